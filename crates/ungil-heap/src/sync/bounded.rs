//! `BoundedSemaphore`: a fixed number of units, each with its owner.
//!
//! Every unit is a lock word behind the head that names who has it, so one instruction takes a unit
//! and one gives it back, and the units of a dead process are there for who finds no free one.
//! Units count places that somebody occupies: connections, licences, seats.
//!
//! The body: a word that changes whenever a unit is given back while somebody waits (bit 31:
//! somebody waits), and the number of units.

use std::time::Instant;

use crate::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    in_total_order,
};
use crate::lock::{self, Acquired, Holder};
use crate::monitor::{self, Owner, Slept, may_wait, sleep};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::sync::sort::{self, Sort};
use crate::{Error, Heap, Result, clock, fault, mutation, object};

const WAITED: u32 = 1 << 31;
/// The largest number of units.
pub const MOST: u32 = 1 << 16;
/// How often the units are looked at before a sleep.
const SPINS: u32 = if cfg!(loom) { 1 } else { 20 };

/// A new semaphore with so many units, none of them taken.
///
/// # Errors
/// [`Error::Misuse`] for more than [`MOST`].
pub fn create(op: &mut Op<'_>, units: u32) -> Result<Offset> {
    if units > MOST {
        return Err(Error::Misuse("a bounded semaphore has at most 65,536 units"));
    }
    let at = sort::create(op, Sort::BoundedSemaphore, object::SIZE + units as usize * 4)?;
    let segment = op.heap().segment();
    segment.word32(at + object::BODY + 4)?.store(units, Relaxed);
    for index in 0..units as usize {
        segment.word32(at + object::SIZE + index * 4)?.store(0, Relaxed);
    }
    Ok(at)
}

/// Bytes of the object.
pub(super) fn size(segment: &Segment, at: Offset) -> Result<usize> {
    Ok(object::SIZE + count(segment, at)? * 4)
}

/// How many units there are, taken or not.
fn count(segment: &Segment, at: Offset) -> Result<usize> {
    match segment.word32(at + object::BODY + 4)?.load(Relaxed) {
        units @ 0..=MOST => Ok(units as usize),
        _ => Err(Error::Corrupt("a semaphore with too many units")),
    }
}

fn units(heap: &Heap, at: Offset) -> Result<impl Iterator<Item = Result<&AtomicU32>>> {
    sort::head(heap, at, Sort::BoundedSemaphore)?;
    let segment = heap.segment();
    let count = count(segment, at)?;
    Ok((0..count).map(move |index| segment.word32(at + object::SIZE + index * 4)))
}

/// How many units are free. Those of the dead count as taken until somebody needs them.
pub fn value(heap: &Heap, at: Offset) -> Result<u32> {
    let mut free = 0;
    for unit in units(heap, at)? {
        free += u32::from(unit?.load(SeqCst) == 0);
    }
    Ok(free)
}

/// Who has units: one entry for each.
pub fn holders(heap: &Heap, at: Offset) -> Result<Vec<Owner>> {
    let mut owners = Vec::new();
    for unit in units(heap, at)? {
        if let Some(holder) = Holder::of(unit?.load(Relaxed)) {
            owners.push(monitor::owner(heap, holder)?);
        }
    }
    Ok(owners)
}

/// Takes a unit, one of a dead owner if need be; `None`: there was none before the deadline.
pub fn acquire(heap: &Heap, at: Offset, deadline: Option<Instant>) -> Result<Option<Acquired>> {
    let me = heap.me()?;
    may_wait(heap, deadline)?;
    for _ in 0..SPINS {
        if take(heap, at, me)? {
            return Ok(Some(Acquired::Free));
        }
        std::hint::spin_loop();
    }
    let bell = heap.segment().word32(at + object::BODY)?;
    let (mut slept, mut has_slept) = (Slept::Woken, false);
    loop {
        // Set before the look, so that what is given back after it wakes.
        let seen = bell.fetch_or(WAITED, SeqCst) | WAITED;
        in_total_order();
        if take(heap, at, me)? {
            if has_slept && value(heap, at)? > 0 && !mutation::is("bounded: a call is handed on") {
                // Units that came since the call called nobody: nobody was known to wait.
                lock::wake(bell, 1);
            }
            return Ok(Some(Acquired::Free));
        }
        let is_last = deadline.is_some_and(|end| end <= clock::now());
        if is_last || slept == Slept::Long {
            for unit in units(heap, at)? {
                if monitor::take_over(heap, unit?, me)? {
                    return Ok(Some(Acquired::Abandoned));
                }
            }
        }
        if is_last {
            return Ok(None);
        }
        slept = sleep(heap, bell, seen, deadline)?;
        has_slept = true;
    }
}

/// Takes a free unit, if there is one.
fn take(heap: &Heap, at: Offset, me: Holder) -> Result<bool> {
    for unit in units(heap, at)? {
        let unit = unit?;
        // In one order with the look of who gives back at the bell.
        if unit.load(SeqCst) == 0 && lock::try_acquire(unit, me) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives a unit back: one of this thread's, else anybody's. False: all are there already.
pub fn release(heap: &Heap, at: Offset) -> Result<bool> {
    let me = heap.me()?;
    let free = |wanted: Option<Holder>| -> Result<bool> {
        for unit in units(heap, at)? {
            let unit = unit?;
            let seen = unit.load(Relaxed);
            let is_wanted = wanted.map_or(seen != 0, |holder| seen == holder.word());
            if is_wanted && unit.compare_exchange(seen, 0, SeqCst, Relaxed).is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    if !free(Some(me))? && !free(None)? {
        return Ok(false);
    }
    fault::point("semaphore: unit given back");
    let bell = heap.segment().word32(at + object::BODY)?;
    in_total_order();
    if bell.load(SeqCst) & WAITED != 0 && !mutation::is("bounded: a call") {
        let rung = |seen: u32| Some((seen & !WAITED).wrapping_add(1) & !WAITED);
        let _ = bell.fetch_update(SeqCst, Relaxed, rung);
        lock::wake(bell, 1);
    }
    Ok(true)
}
