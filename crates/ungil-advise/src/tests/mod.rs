//! Each kind of advice, over a story that calls for it.

pub mod story;
mod remedies;
mod to_a_process;
mod native_holds;
mod loops;
mod elsewhere;
mod blocked_loops;
mod processors;
mod locks;
mod processes;
mod computing;
mod polling;
mod pools;
mod batches;
mod schema;
mod short_threads;
mod supply;
