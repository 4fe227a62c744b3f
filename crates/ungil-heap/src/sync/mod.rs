//! What threads and processes wait for, as objects: locks, conditions, semaphores, events, barriers.
//!
//! They outlive any of their users, at any instruction:
//!
//! | | when a process is killed that … |
//! |---|---|
//! | lock | … holds it, the next one gets it and is told ([`crate::monitor`]) |
//! | [`condition`] | … waits or was notified, its notification goes to another one who waits |
//! | [`semaphore`] | … took units, they stay taken: they count events, as in POSIX |
//! | [`bounded`] semaphore | … has units, the next one who finds none gets them and is told |
//! | [`event`] | … sets or clears it, it is set or it is not |
//! | [`barrier`] | … waits, the barrier breaks and the others are told |
//!
//! Who sleeps looks again every 20 ms at most, so that a wake-up that died with somebody costs that
//! time and nothing else. Nobody holds a lock of the heap while it sleeps.
//!
//! All times are points of [`std::time::Instant`]; no deadline is for ever, one that has passed is
//! not at all.

use crate::Result;
use crate::object::{self, Owned, Visit};
use crate::segment::{Offset, Segment};

pub mod barrier;
pub mod bounded;
pub mod condition;
pub mod event;
pub mod lock;
pub mod semaphore;
mod sort;
pub(crate) mod waiters;

pub use sort::{Sort, sort};

/// Calls `visit` with all that the object at `at` owns.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    let sort = sort(segment, at)?;
    let bytes = match sort {
        Sort::BoundedSemaphore => bounded::size(segment, at)?,
        _ => object::SIZE,
    };
    visit(Owned::Block { at, bytes })?;
    match sort {
        Sort::Condition => {
            waiters::owned(segment, at, visit)?;
            condition::owned(segment, at, visit)
        }
        Sort::Barrier => waiters::owned(segment, at, visit),
        _ => Ok(()),
    }
}
