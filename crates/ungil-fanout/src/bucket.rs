//! A token bucket: so many starts a second, and so many at once after a pause.
