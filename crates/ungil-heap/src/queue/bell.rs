//! Sleeping until there is something in a queue, or room.
//!
//! A bell is a word: in bit 31 whether somebody may sleep, in the others how often it was rung. Who
//! is about to sleep says so and looks once more; who puts something in looks at the bell after it
//! has let go of its end. Both touch the lock of that end in between, so that one of them sees the
//! other ([`answer`]).
//!
//! One who is woken takes what it was woken for, or finds it taken. In both cases others may sleep
//! still, to whom it leaves the bell as it was for itself; and if there is more, it wakes the next
//! one. Somebody who is killed in between is why nobody sleeps for ever: it looks again after 20 ms,
//! then after twice as long, and so on to a tenth of a second.
//!
//! A queue may say for how long somebody looks before it sleeps. Who looks has set no bit, so that
//! nobody calls the kernel for it.

use std::time::{Duration, Instant};

use crate::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use crate::{Heap, Result, clock, fault, lock, mutation, watch};

const WAITED: u32 = 1 << 31;
/// How often somebody looks before it sleeps, whatever the queue says: for 1 to 2 µs, which is less
/// than a sleep costs.
const SPINS: u32 = if cfg!(loom) { 0 } else { 30 };
/// How often somebody looks before it looks at the clock, and lets others have the processor.
const LOOKS: u32 = 32;

/// Wakes up to `count` of those who sleep for what was just done. The caller has let go of the lock
/// that [`answer`] touches.
#[inline]
pub(super) fn ring(bell: &AtomicU32, count: usize) {
    if bell.load(Acquire) & WAITED != 0 && !mutation::is("queue: a call") {
        wake(bell, i32::try_from(count).unwrap_or(i32::MAX));
    }
}

/// Wakes all who sleep.
pub(super) fn ring_for_all(bell: &AtomicU32) {
    wake(bell, i32::MAX);
}

#[cold]
fn wake(bell: &AtomicU32, count: i32) {
    fault::point("queue: about to ring");
    let rung = |seen: u32| Some((seen & !WAITED).wrapping_add(1) & !WAITED);
    let _ = bell.fetch_update(AcqRel, Relaxed, rung);
    fault::point("queue: rung, nobody woken");
    lock::wake(bell, count);
}

/// Who waits, for what, and how long.
pub(super) struct Waiting<'h> {
    pub(super) heap: &'h Heap,
    pub(super) bell: &'h AtomicU32,
    /// The lock of the end at which what is waited for comes.
    pub(super) touched: &'h AtomicU32,
    /// For how long it looks before it sleeps.
    pub(super) spin: Duration,
    pub(super) deadline: Option<Instant>,
}

/// What was waited for, and whether there is more for others.
pub(super) struct Answer<T> {
    pub(super) answer: T,
    pub(super) is_more: bool,
}

/// Calls `attempt` until it has an answer, and sleeps in between. `None`: there was none before the
/// deadline.
///
/// `is_worth` says whether an attempt is worth the while.
#[cold]
pub(super) fn answer<T>(
    waiting: &Waiting<'_>,
    is_worth: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Result<Option<Answer<T>>>,
) -> Result<Option<T>> {
    let Waiting { heap, bell, touched, spin, deadline } = *waiting;
    if deadline.is_some_and(|end| end <= clock::now()) {
        return Ok(attempt()?.map(|found| found.answer));
    }
    for _ in 0..SPINS {
        if is_worth()
            && let Some(found) = attempt()?
        {
            return Ok(Some(found.answer));
        }
        std::hint::spin_loop();
    }
    if !spin.is_zero() {
        let end = clock::now() + spin;
        let end = deadline.map_or(end, |deadline| deadline.min(end));
        while look_until(heap, end, &is_worth)? {
            if let Some(found) = attempt()? {
                return Ok(Some(found.answer));
            }
            if clock::now() >= end {
                break;
            }
        }
    }
    let mut has_slept = false;
    let mut patience = lock::PATIENCE;
    loop {
        let seen = bell.fetch_or(WAITED, AcqRel) | WAITED;
        // Either whoever rings let go of the lock before this, and what it has done is seen now, or
        // it does so later and sees the bell as it is now.
        if !mutation::is("queue: one sees the other") {
            touched.fetch_or(0, AcqRel);
        }
        let attempted = attempt();
        if has_slept
            && attempted.as_ref().map_or(true, |found| found.as_ref().is_some_and(|it| it.is_more))
            && !mutation::is("queue: a call is handed on")
        {
            lock::wake(bell, 1);
        }
        if let Some(found) = attempted? {
            return Ok(Some(found.answer));
        }
        let left = deadline.map_or(patience, |end| end.saturating_duration_since(clock::now()));
        if left.is_zero() {
            return Ok(None);
        }
        let mut woken = true;
        if let Err(interrupted) =
            heap.pause().pause(&mut || woken = lock::wait(bell, seen, left.min(patience)))
        {
            lock::wake(bell, 1);
            return Err(interrupted);
        }
        patience = if woken { lock::PATIENCE } else { (patience * 2).min(watch::LONGEST) };
        has_slept = true;
    }
}

/// Looks until an attempt is worth the while; false: it was not before the end. Other threads of the
/// process run meanwhile, one of which may do what is waited for.
fn look_until(heap: &Heap, end: Instant, is_worth: &impl Fn() -> bool) -> Result<bool> {
    let mut is_seen = false;
    heap.pause().pause(&mut || {
        loop {
            for _ in 0..LOOKS {
                is_seen = is_worth();
                if is_seen {
                    return;
                }
                std::hint::spin_loop();
            }
            if clock::now() >= end {
                return;
            }
            // If the other side waits for this processor, it would do so for a whole time slice.
            std::thread::yield_now();
        }
    })?;
    Ok(is_seen)
}

#[cfg(all(test, not(loom)))]
mod tests;
