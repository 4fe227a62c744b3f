//! Mode `lean`: coroutines driven by a loop of our own, without asyncio.
//!
//! A primitive (`sleep`, `connect`, ...) that has to wait leaves what it wants in the
//! [`hand`](ungil_fanout::lean::hand) of its thread and yields up to the [`Lean`] loop, which finds
//! it there. For each item there is one coroutine, and nothing else: no task object, no future.

mod asked;
mod asyncgens;
mod connecting;
mod connection;
mod context;
mod coroutine;
mod ending;
mod operation;
mod run;
mod steps;
mod task;
mod transfer;
mod wait_for;

pub use connecting::{Connecting, connect, connect_unix};
pub use connection::Connection;
pub use ending::{Cancelled, CutOff};
pub use operation::Operation;
pub use run::Lean;
pub use wait_for::{sleep, wait_readable, wait_writable};
