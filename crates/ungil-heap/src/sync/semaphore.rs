//! `Semaphore`: a number of units without owners, in one word.
//!
//! Bit 31 says that somebody waits, the others are the number. It counts events, for instance what
//! a producer has put where a consumer takes it, so what a dead process took stays taken, as with
//! POSIX semaphores. Where units are places that somebody occupies, [`super::bounded`] is right.

use std::time::Instant;

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use crate::monitor::{Slept, may_wait, sleep};
use crate::op::Op;
use crate::segment::Offset;
use crate::sync::sort::{self, Sort};
use crate::{Error, Heap, Result, fault, lock, mutation, object};

const WAITED: u32 = 1 << 31;
/// The largest number of units.
pub const MOST: u32 = WAITED - 1;
/// How often it is looked at before a sleep.
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// A new semaphore with so many units.
///
/// # Errors
/// [`Error::Misuse`] for more than [`MOST`].
pub fn create(op: &mut Op<'_>, units: u32) -> Result<Offset> {
    if units > MOST {
        return Err(Error::Misuse("a semaphore has fewer than 2^31 units"));
    }
    let at = sort::create(op, Sort::Semaphore, object::SIZE)?;
    op.heap().segment().word32(at + object::BODY)?.store(units, Relaxed);
    Ok(at)
}

fn word(heap: &Heap, at: Offset) -> Result<&AtomicU32> {
    sort::head(heap, at, Sort::Semaphore)?;
    heap.segment().word32(at + object::BODY)
}

/// How many units there are.
pub fn value(heap: &Heap, at: Offset) -> Result<u32> {
    Ok(word(heap, at)?.load(Acquire) & !WAITED)
}

/// Takes a unit; false: there was none before the deadline.
pub fn acquire(heap: &Heap, at: Offset, deadline: Option<Instant>) -> Result<bool> {
    let word = word(heap, at)?;
    may_wait(heap, deadline)?;
    for _ in 0..SPINS {
        let seen = word.load(Relaxed);
        if seen & !WAITED == 0 {
            std::hint::spin_loop();
        } else if word.compare_exchange(seen, seen - 1, SeqCst, Relaxed).is_ok() {
            return Ok(true);
        }
    }
    // Who has slept does not know who sleeps still.
    let mut others = 0;
    loop {
        let seen = word.load(Relaxed);
        if seen & !WAITED != 0 {
            if word.compare_exchange(seen, (seen - 1) | others, SeqCst, Relaxed).is_ok() {
                let is_last = (seen - 1) & !WAITED == 0;
                if others != 0 && !is_last && !mutation::is("semaphore: a call is handed on") {
                    // Units that came since then called nobody: nobody was known to wait.
                    lock::wake(word, 1);
                }
                return Ok(true);
            }
            continue;
        }
        if seen == 0 && word.compare_exchange(0, WAITED, SeqCst, Relaxed).is_err() {
            continue;
        }
        if sleep(heap, word, WAITED, deadline)? == Slept::NoTimeLeft {
            return Ok(false);
        }
        others = if mutation::is("semaphore: others may sleep still") { 0 } else { WAITED };
    }
}

/// Adds units, and wakes as many of those who wait.
///
/// # Errors
/// [`Error::Misuse`] if there would be more than [`MOST`].
pub fn release(heap: &Heap, at: Offset, units: u32) -> Result<()> {
    let word = word(heap, at)?;
    let added = |seen: u32| (seen & !WAITED).checked_add(units).filter(|sum| *sum <= MOST);
    let Ok(before) = word.fetch_update(SeqCst, Relaxed, added) else {
        return Err(Error::Misuse("a semaphore has fewer than 2^31 units"));
    };
    fault::point("semaphore: released");
    if before & WAITED != 0 && !mutation::is("semaphore: a call") {
        lock::wake(word, i32::try_from(units).unwrap_or(i32::MAX));
    }
    Ok(())
}
