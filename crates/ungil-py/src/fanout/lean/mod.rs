//! Mode `lean`: coroutines driven by a loop of our own, without asyncio.
//!
//! A primitive (`sleep`, `connect`, ...) that has to wait leaves what it wants in the [`hand`] of
//! its thread and yields up to the [`Lean`] loop, which finds it there. For each item there is one
//! coroutine, and nothing else: no task object, no future.

mod asyncgens;
mod connecting;
mod connection;
mod context;
mod coroutine;
mod ending;
mod hand;
mod operation;
mod resolver;
mod run;

mod socket;
mod tasks;
mod transfer;
mod unread;
mod wait_for;
mod waits;

pub use connecting::{Connecting, connect, connect_unix};
pub use connection::Connection;
pub use ending::Cancelled;
pub use operation::Operation;
pub use run::Lean;
pub use wait_for::{sleep, wait_readable, wait_writable};
