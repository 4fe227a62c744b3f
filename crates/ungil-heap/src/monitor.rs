//! The lock that every object has for its user.
//!
//! `with obj:` enters it as a monitor, as often as the same thread likes; the locks among the
//! objects ([`crate::sync`]) are the same word with other manners. It has nothing to do with the
//! lock under which the heap itself changes the object: who reads or changes one whose monitor is
//! held is not kept from it.
//!
//! Its holder is a thread. When that ends or dies with it, the next one gets the lock all the same
//! and is told ([`Acquired::Abandoned`], and [`owner_died`] as long as it holds it). Such a
//! takeover happens within some 20 ms of a wait, or at once for who does not wait.
//!
//! All of it is outside of operations: a transaction that is rolled back gives no lock back. Inside
//! of one, [`enter`] and [`acquire`] are refused if they could wait: who holds the lock may be waiting
//! for what the transaction has changed.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Instant;

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, SeqCst},
};
use crate::lane;
use crate::lock::{self, Acquired, Holder, Liveness, Pause};
use crate::object::{self, Head};
use crate::process_table;
use crate::segment::Offset;
use crate::{Error, Heap, Result, clock, fault};

/// Who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A thread of the process with this number, in its own namespace. It may have died since the
    /// heap was last cleaned.
    Process {
        /// The process.
        pid: u32,
        /// The number of the thread's lane.
        lane: usize,
    },
    /// A thread that is no more.
    Dead,
}

/// Takes the lock of an object that nobody has. False: ask [`acquire`], or [`enter`].
#[inline]
pub fn acquire_at_once(heap: &Heap, at: Offset) -> bool {
    let (Ok(head), Some(me)) = (object::head(heap.segment(), at), heap.lately_me()) else {
        return false;
    };
    let is_mine = !heap.is_in_transaction() && lock::try_acquire(&head.monitor, me);
    if is_mine {
        head.depth.store(1, Relaxed);
    }
    is_mine
}

/// Enters the monitor of an object; the thread that is in it already enters once more.
///
/// `None`: not before `deadline`. Without a deadline it is waited for as long as it takes; with one
/// that has passed, not at all.
pub fn enter(heap: &Heap, at: Offset, deadline: Option<Instant>) -> Result<Option<Acquired>> {
    let head = object::head(heap.segment(), at)?;
    let me = heap.me()?;
    if Holder::of(head.monitor.load(Relaxed)) != Some(me) {
        may_wait(heap, deadline)?;
    }
    let mut got = Some(Acquired::Free);
    if !lock::try_acquire(&head.monitor, me) {
        if Holder::of(head.monitor.load(Relaxed)) == Some(me) {
            let depth = head.depth.load(Relaxed).checked_add(1);
            head.depth
                .store(depth.ok_or(Error::Misuse("a monitor is entered too often"))?, Relaxed);
            return Ok(got);
        }
        got = acquire_slowly(heap, head, me, heap.pause(), deadline)?;
    }
    if got.is_some() {
        // A dead holder can have left any number.
        head.depth.store(1, Relaxed);
    }
    Ok(got)
}

/// Leaves the monitor once.
///
/// # Errors
/// [`Error::Misuse`] if this thread is not in it.
pub fn leave(heap: &Heap, at: Offset) -> Result<()> {
    let head = held(heap, at)?;
    match head.depth.load(Relaxed) {
        0 | 1 => let_go(head),
        depth => head.depth.store(depth - 1, Relaxed),
    }
    Ok(())
}

/// Takes the lock of an object; the thread that has it already waits like any other.
///
/// `None` as in [`enter`].
pub fn acquire(heap: &Heap, at: Offset, deadline: Option<Instant>) -> Result<Option<Acquired>> {
    let head = object::head(heap.segment(), at)?;
    let me = heap.me()?;
    may_wait(heap, deadline)?;
    if lock::try_acquire(&head.monitor, me) {
        return Ok(Some(Acquired::Free));
    }
    // Only another thread can let go of what this one has, and nobody but this one takes it as
    // this one: once it is not held by this thread, it is not until it is got.
    loop {
        let seen = head.monitor.load(Relaxed);
        if Holder::of(seen) != Some(me) {
            return acquire_slowly(heap, head, me, heap.pause(), deadline);
        }
        if sleep(heap, &head.monitor, seen, deadline)? == Slept::NoTimeLeft {
            return Ok(None);
        }
    }
}

/// Lets go of the lock of an object, whichever thread took it.
///
/// # Errors
/// [`Error::Misuse`] if nobody has it.
pub fn release(heap: &Heap, at: Offset) -> Result<()> {
    let head = object::head(heap.segment(), at)?;
    if Holder::of(head.monitor.load(Relaxed)).is_none() {
        return Err(Error::Misuse("a lock is released that nobody holds"));
    }
    let_go(head);
    Ok(())
}

/// Lets go of the lock of an object that this thread has taken once. False: ask [`release`], or
/// [`leave`].
#[inline]
pub fn release_at_once(heap: &Heap, at: Offset) -> bool {
    let Ok(head) = object::head(heap.segment(), at) else { return false };
    let holder = Holder::of(head.monitor.load(Relaxed));
    let is_mine = holder.is_some() && holder == heap.lately_me() && head.depth.load(Relaxed) <= 1;
    if is_mine {
        let_go(head);
    }
    is_mine
}

/// Whether the present holder took the lock over from one that ended or died with it.
pub fn owner_died(heap: &Heap, at: Offset) -> Result<bool> {
    let head = object::head(heap.segment(), at)?;
    Ok(head.owner_died.load(Relaxed) != 0 && Holder::of(head.monitor.load(Acquire)).is_some())
}

/// Whether this thread holds the lock or is in the monitor.
pub fn is_mine(heap: &Heap, at: Offset) -> Result<bool> {
    let head = object::head(heap.segment(), at)?;
    Ok(Holder::of(head.monitor.load(Relaxed)) == Some(heap.me()?))
}

/// Who holds the lock or is in the monitor, if anybody.
pub fn holder(heap: &Heap, at: Offset) -> Result<Option<Owner>> {
    let head = object::head(heap.segment(), at)?;
    Holder::of(head.monitor.load(Acquire)).map(|holder| owner(heap, holder)).transpose()
}

/// Who a holder is.
pub fn owner(heap: &Heap, holder: Holder) -> Result<Owner> {
    let Ok(lane) = lane::lane(heap.segment(), holder.lane()) else { return Ok(Owner::Dead) };
    let Some(slot) = (lane.owner.load(SeqCst) as usize).checked_sub(1) else {
        return Ok(Owner::Dead);
    };
    let pid = process_table::slot(heap.segment(), slot)?.pid.load(Relaxed);
    // Looked at last, so that the process is the one of this holder.
    if lane.generation.load(SeqCst) != holder.generation() {
        return Ok(Owner::Dead);
    }
    Ok(Owner::Process { pid, lane: holder.lane() })
}

/// The head of an object whose lock this thread has.
pub(crate) fn held(heap: &Heap, at: Offset) -> Result<&Head> {
    let head = object::head(heap.segment(), at)?;
    if Holder::of(head.monitor.load(Relaxed)) != Some(heap.me()?) {
        return Err(Error::Misuse("this thread does not hold the lock"));
    }
    Ok(head)
}

/// Lets go, however often it was entered.
#[inline]
pub(crate) fn let_go(head: &Head) {
    if head.owner_died.load(Relaxed) != 0 {
        // Whoever follows a death between the two finds a dead holder again.
        head.owner_died.store(0, Relaxed);
        fault::point("monitor: death forgotten");
    }
    lock::release(&head.monitor);
}

/// Takes back what this thread had let go of to wait for something. An interruption is put off:
/// the caller must have the lock, whatever happened. Returns the first one.
pub(crate) fn take_back(heap: &Heap, head: &Head) -> Result<Option<Error>> {
    let patient = Patient { pause: heap.pause(), first: Mutex::new(None) };
    let me = heap.me()?;
    if !lock::try_acquire(&head.monitor, me) {
        let _ = acquire_slowly(heap, head, me, &patient, None)?;
    }
    Ok(patient.first.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Waits, and remembers the first interruption.
struct Patient<'p> {
    pause: &'p dyn Pause,
    first: Mutex<Option<Error>>,
}

impl Pause for Patient<'_> {
    fn pause(&self, wait: &mut dyn FnMut()) -> Result<()> {
        if let Err(error) = self.pause.pause(wait) {
            self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
        Ok(())
    }
}

/// Takes the lock where it was not free at the first look.
#[cold]
fn acquire_slowly(
    heap: &Heap,
    head: &Head,
    me: Holder,
    pause: &dyn Pause,
    deadline: Option<Instant>,
) -> Result<Option<Acquired>> {
    let mut got = lock::acquire(&head.monitor, me, heap, pause, deadline)?;
    // Who had no time to wait for the holder had none to see whether it lives.
    if got.is_none() && take_over(heap, &head.monitor, me)? {
        got = Some(Acquired::Abandoned);
    }
    if got == Some(Acquired::Abandoned) {
        head.owner_died.store(1, Relaxed);
        fault::point("monitor: death noted");
    }
    Ok(got)
}

/// Takes a lock word from a holder that is gone; false: there is none such.
pub(crate) fn take_over(heap: &Heap, word: &AtomicU32, me: Holder) -> Result<bool> {
    let seen = word.load(Relaxed);
    let Some(holder) = Holder::of(seen) else { return Ok(false) };
    if !heap.is_gone(holder)? {
        return Ok(false);
    }
    fault::point("monitor: holder is gone");
    let waited = seen ^ holder.word();
    Ok(word.compare_exchange(seen, me.word() | waited, SeqCst, Relaxed).is_ok())
}

/// Refuses to wait for something of the user's in a transaction.
#[inline]
pub(crate) fn may_wait(heap: &Heap, deadline: Option<Instant>) -> Result<()> {
    let would_wait = || deadline.is_none_or(|end| end > clock::now());
    if heap.is_in_transaction() && would_wait() {
        return Err(Error::Misuse(
            "a lock is taken before the transaction begins, not in it: who has it may be \
             waiting for the transaction to end",
        ));
    }
    Ok(())
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// Somebody woke it, or the word had another value.
    Woken,
    /// Nobody did for some 20 ms: time to look who lives.
    Long,
    /// It did not sleep: the deadline has passed.
    NoTimeLeft,
}

/// Sleeps while a word has a value, for some 20 ms at most and not beyond the deadline.
pub(crate) fn sleep(
    heap: &Heap,
    word: &AtomicU32,
    value: u32,
    deadline: Option<Instant>,
) -> Result<Slept> {
    let left = deadline.map_or(lock::PATIENCE, |end| end.saturating_duration_since(clock::now()));
    if left.is_zero() {
        return Ok(Slept::NoTimeLeft);
    }
    let mut woken = true;
    heap.pause().pause(&mut || woken = lock::wait(word, value, left.min(lock::PATIENCE)))?;
    Ok(if woken { Slept::Woken } else { Slept::Long })
}
