//! `Condition`: threads that wait, under a lock, until another one says that something has changed.
//!
//! The lock is that of the condition itself, re-entrant, or another object's (body word 3). Who
//! waits is listed ([`super::waiters`]); a notification goes to the one who has waited longest and
//! lives. It is listed until it has the lock back; if it dies before that, whoever else waits
//! finds its entry within some 20 ms and the next one gets the notification. So a notification is
//! lost only if all who waited are dead, and a wait can end without one if a notified one died.

use std::time::Instant;

use crate::atomic::Ordering::Relaxed;
use crate::lock::{Acquired, Holder, Liveness};
use crate::monitor::{self, Owner, Slept};
use crate::object::{self, BODY, Head, Kind, Owned, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::sync::sort::{self, Sort};
use crate::sync::waiters::{self, State, Waiter};
use crate::{Error, Heap, Result, fault, mutation};

/// Where the offset of the lock is, or 0.
const LOCK: usize = BODY + 24;

/// A new condition with a lock of its own, or with that of a `Lock` or an `RLock`.
///
/// # Errors
/// [`Error::Misuse`] if `lock` is neither.
pub fn create(op: &mut Op<'_>, lock: Option<Offset>) -> Result<Offset> {
    if let Some(lock) = lock {
        let is_sync = object::head(op.heap().segment(), lock)?.kind()? == Kind::Sync;
        if !is_sync || !matches!(sort::sort(op.heap().segment(), lock)?, Sort::Lock | Sort::RLock) {
            return Err(Error::Misuse("a condition needs a Lock or an RLock"));
        }
        op.retain(lock)?;
    }
    let at = sort::create(op, Sort::Condition, object::SIZE)?;
    op.heap().segment().word(at + LOCK)?.store(lock.unwrap_or(0) as u64, Relaxed);
    Ok(at)
}

/// The object whose lock it is under; whether the same thread can take it again.
pub fn lock(heap: &Heap, at: Offset) -> Result<(Offset, bool)> {
    match offset(sort::head(heap, at, Sort::Condition)?) {
        0 => Ok((at, true)),
        lock => Ok((lock, sort::sort(heap.segment(), lock)? == Sort::RLock)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
fn offset(head: &Head) -> Offset {
    head.body[3].load(Relaxed) as Offset
}

/// Takes the lock, as [`monitor::enter`] or [`monitor::acquire`].
pub fn acquire(heap: &Heap, at: Offset, deadline: Option<Instant>) -> Result<Option<Acquired>> {
    match lock(heap, at)? {
        (lock, true) => monitor::enter(heap, lock, deadline),
        (lock, false) => monitor::acquire(heap, lock, deadline),
    }
}

/// Lets go of the lock, as [`monitor::leave`] or [`monitor::release`].
pub fn release(heap: &Heap, at: Offset) -> Result<()> {
    match lock(heap, at)? {
        (lock, true) => monitor::leave(heap, lock),
        (lock, false) => monitor::release(heap, lock),
    }
}

/// Lets go of the lock, waits for a notification, and takes the lock again; false: there was none
/// before the deadline.
///
/// The caller has the lock again whenever this returns, unless the heap is damaged.
///
/// # Errors
/// [`Error::Misuse`] if this thread does not hold the lock, or is in a transaction, which would
/// hide from the others that it waits. Those of [`crate::lock::Pause`]; a notification that came at
/// the same time goes to the next one then.
pub fn wait(heap: &Heap, at: Offset, deadline: Option<Instant>) -> Result<bool> {
    let (lock, _) = lock(heap, at)?;
    let head = monitor::held(heap, lock)?;
    let me = heap.me()?;
    let mut op = heap.op()?;
    if op.is_nested() {
        return Err(Error::Misuse("waiting inside of a transaction would never end"));
    }
    let depth = head.depth.load(Relaxed);
    if mutation::is("wait: listed before the lock is let go") {
        monitor::let_go(head);
    }
    op.lock(at)?;
    waiters::join(&mut op, at, me)?;
    op.commit()?;
    fault::point("condition: listed");
    if !mutation::is("wait: listed before the lock is let go") {
        monitor::let_go(head);
    }
    fault::point("condition: lock let go");
    let waited = until_answered(heap, at, me, deadline);
    let interrupted = monitor::take_back(heap, head)?;
    head.depth.store(depth, Relaxed);
    fault::point("condition: lock taken back");
    let waited = waited.and(interrupted.map_or(Ok(()), Err));
    loop {
        match withdraw(heap, at, me, waited.is_err()) {
            // The entry of a thread that waits no more would swallow a notification.
            Err(Error::Interrupted) => {}
            was_notified => return waited.and(was_notified),
        }
    }
}

/// Waits for an answer, or until the deadline.
fn until_answered(heap: &Heap, at: Offset, me: Holder, deadline: Option<Instant>) -> Result<()> {
    while waiters::state(heap, at, me)? == Some(State::Waiting) {
        match waiters::park(heap, me, deadline)? {
            Slept::Woken => {}
            Slept::NoTimeLeft => return Ok(()),
            Slept::Long if mutation::is("wait: inherited") => {}
            Slept::Long => inherit(heap, at)?,
        }
    }
    Ok(())
}

/// Hands notifications of the dead on to those who wait.
fn inherit(heap: &Heap, at: Offset) -> Result<()> {
    let is_dead = |waiter: &Waiter| -> Result<bool> {
        Ok(waiter.state == State::Passed && heap.is_gone(waiter.holder)?)
    };
    let mut has_dead = false;
    for waiter in heap.read(at, || waiters::all(heap.segment(), at))? {
        has_dead |= is_dead(&waiter)?;
    }
    if !has_dead {
        return Ok(());
    }
    let mut op = heap.op()?;
    op.lock(at)?;
    let mut all = Vec::new();
    let mut inherited = 0;
    for waiter in waiters::all(heap.segment(), at)? {
        if is_dead(&waiter)? {
            inherited += 1;
        } else {
            all.push(waiter);
        }
    }
    let called = answer(heap, &mut all, inherited)?;
    waiters::set(&mut op, at, &all)?;
    op.commit()?;
    fault::point("condition: notification inherited");
    waiters::call(heap, &called)
}

/// Takes the calling thread out; whether it was notified. What it does not need is handed on.
fn withdraw(heap: &Heap, at: Offset, me: Holder, is_unwanted: bool) -> Result<bool> {
    let mut op = heap.op()?;
    op.lock(at)?;
    let mut all = waiters::all(heap.segment(), at)?;
    let was_notified =
        all.iter().any(|waiter| waiter.holder == me && waiter.state == State::Passed)
            && !mutation::is("withdraw: an answer that came late");
    all.retain(|waiter| waiter.holder != me);
    let spare = usize::from(was_notified && is_unwanted);
    let called = answer(heap, &mut all, spare)?;
    waiters::set(&mut op, at, &all)?;
    op.commit()?;
    fault::point("condition: withdrawn");
    waiters::call(heap, &called)?;
    Ok(was_notified)
}

/// Notifies those who have waited longest, at most `count`; returns how many. The notified go on
/// when the caller lets go of the lock.
///
/// # Errors
/// [`Error::Misuse`] if this thread does not hold the lock.
pub fn notify(heap: &Heap, at: Offset, count: usize) -> Result<usize> {
    monitor::held(heap, lock(heap, at)?.0)?;
    // Nobody joins without the lock, which the caller has.
    if sort::head(heap, at, Sort::Condition)?.body[1].load(Relaxed) == 0 {
        return Ok(0);
    }
    let mut op = heap.op()?;
    op.lock(at)?;
    let mut all = waiters::all(heap.segment(), at)?;
    let called = answer(heap, &mut all, count)?;
    waiters::set(&mut op, at, &all)?;
    op.commit()?;
    fault::point("condition: notified");
    waiters::call(heap, &called)?;
    Ok(called.len())
}

/// Gives up to `count` living ones who wait their answer, takes the dead before them out, and
/// returns those who are to be called.
fn answer(heap: &Heap, waiters: &mut Vec<Waiter>, count: usize) -> Result<Vec<Waiter>> {
    let mut called = Vec::new();
    let mut index = 0;
    while index < waiters.len() && called.len() < count {
        let waiter = &mut waiters[index];
        if waiter.state == State::Waiting {
            if heap.is_gone(waiter.holder)? {
                waiters.remove(index);
                continue;
            }
            waiter.state = State::Passed;
            called.push(*waiter);
        }
        index += 1;
    }
    Ok(called)
}

/// Who waits, the longest first.
pub fn waiting(heap: &Heap, at: Offset) -> Result<Vec<Owner>> {
    sort::head(heap, at, Sort::Condition)?;
    let all = heap.read(at, || waiters::all(heap.segment(), at))?;
    let waiting = all.iter().filter(|waiter| waiter.state == State::Waiting);
    waiting.map(|waiter| monitor::owner(heap, waiter.holder)).collect()
}

/// Calls `visit` with the lock, if it is another object's.
pub(super) fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    match offset(object::head(segment, at)?) {
        0 => Ok(()),
        lock => visit(Owned::Object(lock)),
    }
}
