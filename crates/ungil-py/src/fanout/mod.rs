//! `ungil.fanout`: a function run for many items at once.

mod clock;
mod coroutine;
mod cycles;
mod dispatcher;
mod kept;
mod lean;
mod limiter;
mod outcome;
mod slot;

pub use dispatcher::Dispatcher;
pub use kept::kept_waiting;
pub use lean::{
    Cancelled, Connecting, Connection, Lean, Operation, connect, connect_unix, sleep,
    wait_readable, wait_writable,
};
pub use outcome::Outcome;
pub use slot::{Slot, Slots};
