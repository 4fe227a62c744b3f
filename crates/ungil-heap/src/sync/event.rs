//! `Event`: set or not, in one word.
//!
//! | bits | meaning |
//! |---|---|
//! | 31 | somebody waits |
//! | 1-30 | how often it was set |
//! | 0 | it is set |
//!
//! The count lets who waits see that the event was set, though it was cleared again before it
//! looked.

use std::time::Instant;

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use crate::monitor::{Slept, may_wait, sleep};
use crate::op::Op;
use crate::segment::Offset;
use crate::sync::sort::{self, Sort};
use crate::{Heap, Result, fault, lock, mutation, object};

const SET: u32 = 1;
const ONCE: u32 = 2;
const WAITED: u32 = 1 << 31;

/// A new event that is not set.
pub fn create(op: &mut Op<'_>) -> Result<Offset> {
    sort::create(op, Sort::Event, object::SIZE)
}

fn word(heap: &Heap, at: Offset) -> Result<&AtomicU32> {
    sort::head(heap, at, Sort::Event)?;
    heap.segment().word32(at + object::BODY)
}

/// Whether it is set.
pub fn is_set(heap: &Heap, at: Offset) -> Result<bool> {
    Ok(word(heap, at)?.load(Acquire) & SET != 0)
}

/// Sets it and wakes all who wait.
pub fn set(heap: &Heap, at: Offset) -> Result<()> {
    let word = word(heap, at)?;
    let set = |seen: u32| (seen & SET == 0).then(|| ((seen & !WAITED) + ONCE) & !WAITED | SET);
    let set = |seen: u32| match set(seen) {
        Some(_) if mutation::is("event: a count") => Some(seen & !WAITED | SET),
        set => set,
    };
    if let Ok(before) = word.fetch_update(SeqCst, Relaxed, set) {
        fault::point("event: set");
        if before & WAITED != 0 && !mutation::is("event: a call") {
            lock::wake(word, i32::MAX);
        }
    }
    Ok(())
}

/// Makes it not set.
pub fn clear(heap: &Heap, at: Offset) -> Result<()> {
    word(heap, at)?.fetch_and(!SET, SeqCst);
    Ok(())
}

/// Waits until it is set; false: it was not before the deadline.
pub fn wait(heap: &Heap, at: Offset, deadline: Option<Instant>) -> Result<bool> {
    let word = word(heap, at)?;
    let first = word.load(Acquire);
    loop {
        let seen = word.load(Acquire);
        if seen & SET != 0 || (seen ^ first) & !(WAITED | SET) != 0 {
            return Ok(true);
        }
        may_wait(heap, deadline)?;
        if seen & WAITED == 0
            && word.compare_exchange(seen, seen | WAITED, SeqCst, Relaxed).is_err()
        {
            continue;
        }
        if sleep(heap, word, seen | WAITED, deadline)? == Slept::NoTimeLeft {
            return Ok(false);
        }
    }
}
