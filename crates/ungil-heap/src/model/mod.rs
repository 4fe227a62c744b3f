//! What must hold for every interleaving of threads, at the level of those who call.
