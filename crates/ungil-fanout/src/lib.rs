//! Policy of a fan-out: what may start now. Pure state machines, which never read a clock and do
//! no I/O; every time comes in as an argument, in nanoseconds.

pub mod bucket;
pub mod limit;
