//! Who gets the GIL next, and when the holder is asked to let go.
//!
//! [`Scheduler`] is the decision: a pure state machine that is told what happened and when, and
//! says which of two waiters comes first and how long a holder may go on. [`Line`] is the queue
//! in which threads wait for their turn; it is generic over its [`Host`], so that the same code
//! runs inside an interpreter, in a model checker, and in a simulation.

mod policy;
mod slice;
mod account;
mod scheduler;
mod queue;
mod host;
mod holder;
mod spared;
mod line;
#[cfg(test)]
mod tests;

pub use account::{Account, Hold, Standing, Waker};
pub use host::Host;
pub use line::{Answer, Line};
pub use policy::{Level, Policy, Settings, UnknownName};
pub use queue::{Queue, Waiter};
pub use scheduler::Scheduler;
pub use slice::Slice;

use std::cell::Cell;

/// Calls `change` with what is in `cell`, in place, and returns what that returns.
fn modify<T, R>(cell: &Cell<T>, change: impl FnOnce(&mut T) -> R) -> R {
    // SAFETY: a cell is of one thread at a time, and no `change` in this module reaches its own.
    change(unsafe { &mut *cell.as_ptr() })
}
