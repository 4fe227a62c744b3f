//! A fan-out, without Python: what may start now, what is handed out, and what the loop of mode
//! `lean` waits with.
//!
//! Nothing here reads a clock: times are nanoseconds that the caller gives, on one clock that never
//! goes back. Only [`lean`] does I/O.

pub mod attempt;
pub mod auto_limit;
pub mod backoff;
pub mod bucket;
pub mod dispatch;
pub mod dispatcher;
mod groups;
pub mod lean;
pub mod limit;
mod order;
pub mod url;
