//! Each kind of advice, over a story that calls for it.

pub mod story;
mod remedies;
mod loops;
mod elsewhere;
mod computing;
mod polling;
mod pools;
mod schema;
mod short_threads;
mod supply;
