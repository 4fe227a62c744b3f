//! Which of these an object is.

use crate::object::{self, Head, Kind};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::{Error, Heap, Result};

/// What an object of [`Kind::Sync`] is: its flags.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// Held by one; released by anybody.
    Lock = 1,
    /// Held by one thread as often as it likes.
    RLock = 2,
    /// A lock, and those who wait for something to become true under it.
    Condition = 3,
    /// A number of units without owners.
    Semaphore = 4,
    /// A fixed number of units, each with its owner.
    BoundedSemaphore = 5,
    /// Set or not.
    Event = 6,
    /// Lets a number of parties go on together.
    Barrier = 7,
}

impl Sort {
    const ALL: [Self; 7] = [
        Self::Lock,
        Self::RLock,
        Self::Condition,
        Self::Semaphore,
        Self::BoundedSemaphore,
        Self::Event,
        Self::Barrier,
    ];
}

/// What the object at `at` is.
///
/// # Errors
/// [`Error::Corrupt`] if it is none of these.
pub fn sort(segment: &Segment, at: Offset) -> Result<Sort> {
    let head = object::head(segment, at)?;
    if head.kind()? != Kind::Sync {
        return Err(head.mistaken("an object is nothing to wait for"));
    }
    let flags = head.flags();
    let sort = Sort::ALL.into_iter().find(|sort| *sort as u32 == flags);
    sort.ok_or(Error::Corrupt("something to wait for of an unknown sort"))
}

/// The head of the object at `at`, which is of this sort.
pub(super) fn head(heap: &Heap, at: Offset, wanted: Sort) -> Result<&Head> {
    if sort(heap.segment(), at)? != wanted {
        return Err(Error::Corrupt("something to wait for is of another sort"));
    }
    object::head(heap.segment(), at)
}

/// A new object of a sort, with a body of zeros.
pub(super) fn create(op: &mut Op<'_>, sort: Sort, bytes: usize) -> Result<Offset> {
    let at = op.create(Kind::Sync, bytes)?;
    object::head(op.heap().segment(), at)?.set_flags(sort as u32);
    Ok(at)
}
