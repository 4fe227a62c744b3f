//! `ungil.fanout`: a function run for many items at once.

mod callables;
mod coroutine;
mod cycles;
mod dispatcher;
mod hosts;
mod input;
mod kept;
mod lean;
mod load;
mod outcome;
mod slot;

pub use dispatcher::Dispatcher;
pub use kept::kept_waiting;
pub use lean::{
    Cancelled, Connecting, Connection, CutOff, Lean, Operation, connect, connect_unix, sleep,
    wait_readable, wait_writable,
};
pub use outcome::Outcome;
pub use slot::{Slot, Slots};
