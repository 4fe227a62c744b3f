//! `ungil.fanout`: a function run for many items at once.

mod clock;
mod dispatcher;
mod outcome;

pub use dispatcher::Dispatcher;
pub use outcome::Outcome;
