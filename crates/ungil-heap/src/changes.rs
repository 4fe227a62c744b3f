//! Waiting until an object has changed.
//!
//! The version of an object, by which readers see that nothing changed meanwhile, counts its changes.
//! A change that is under way is not counted, and one that was undone is, so that who waits sees too
//! many rather than too few. It starts again at 0 after 2^31 changes.

use std::time::Instant;

use crate::atomic::Ordering::{AcqRel, Acquire};
use crate::monitor::may_wait;
use crate::object::{self, Kind};
use crate::segment::Offset;
use crate::{Error, Heap, Result, clock, lock, mutation, watch};

/// How often an object has changed.
///
/// # Errors
/// [`Error::Unfit`] for something to wait for, and for queues: those do not change in this way. Also
/// for arrays and buffers: programs write to their memory, and nobody counts that.
pub fn version(heap: &Heap, at: Offset) -> Result<u32> {
    let head = object::head(heap.segment(), at)?;
    match head.kind()? {
        Kind::Sync | Kind::Queue | Kind::Buffer | Kind::Array => Err(Error::Unfit(
            "only containers count their changes: a lock, a queue, an array or a buffer does not",
        )),
        Kind::Gone => Err(Error::Stale),
        _ => Ok(head.version.load(Acquire) / 2),
    }
}

/// How often an object has changed. The heap's bell rings when it changes the next time.
///
/// # Errors
/// As those of [`version`].
pub fn watch(heap: &Heap, at: Offset) -> Result<u32> {
    version(heap, at)?;
    asked(heap, at)
}

/// As above, of an object of any kind.
pub(crate) fn asked(heap: &Heap, at: Offset) -> Result<u32> {
    let head = object::head(heap.segment(), at)?;
    watch::ask(head, watch::CHANGE);
    // Whoever changes it lets go of this before it looks whether somebody asked.
    if !mutation::is("changes: one sees the other") {
        head.lock.fetch_or(0, AcqRel);
    }
    Ok(head.version.load(Acquire) / 2)
}

/// Waits until an object has changed another number of times than `seen`; how many times it has. The
/// same number: it did not change before the deadline.
///
/// # Errors
/// As those of [`version`]; [`Error::Misuse`] in a transaction; those of [`crate::lock::Pause`].
pub fn wait(heap: &Heap, at: Offset, seen: u32, deadline: Option<Instant>) -> Result<u32> {
    let changed = until(heap, deadline, || {
        let version = watch(heap, at)?;
        Ok((version != seen).then_some(version))
    })?;
    Ok(changed.unwrap_or(seen))
}

/// Calls `look` until it returns something, and sleeps at the heap's bell in between. `None`: it
/// returned nothing before the deadline.
pub(crate) fn until<T>(
    heap: &Heap,
    deadline: Option<Instant>,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    may_wait(heap, deadline)?;
    let mut patience = lock::PATIENCE;
    loop {
        let seen = watch::now(heap.segment());
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        let left = deadline.map_or(patience, |end| end.saturating_duration_since(clock::now()));
        if left.is_zero() {
            return Ok(None);
        }
        let mut rung = true;
        let longest = left.min(patience);
        heap.pause().pause(&mut || rung = watch::sleep(heap.segment(), seen, longest))?;
        patience = if rung { lock::PATIENCE } else { (patience * 2).min(watch::LONGEST) };
    }
}
