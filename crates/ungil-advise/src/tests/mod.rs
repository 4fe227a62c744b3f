//! Each kind of advice, over a story that calls for it.

mod story;
mod remedies;
mod elsewhere;
mod schema;
