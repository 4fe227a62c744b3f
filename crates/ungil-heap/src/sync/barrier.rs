//! `Barrier`: parties that go on together.
//!
//! Who arrives is listed ([`super::waiters`]); the one who makes it complete lets the others go,
//! after it did what was to be done once for all. The list keeps the answer of each until it has
//! seen it, so that the next round can begin meanwhile.
//!
//! A party that dies while it waits breaks the barrier for the others, within some 20 ms, and no
//! round is complete with a party that is known to be dead: those who wait for it would do so in
//! vain, and going on would be going on without it. Whom somebody else is just cleaning up behind is
//! not known to be dead yet, and counts as one who dies after it was let go. [`reset`] makes the
//! barrier usable again. A party that died before it came cannot be known: only a deadline helps
//! against that.
//!
//! Body word 3: the number of parties, and in bit 32 whether it is broken.

use std::time::Instant;

use crate::atomic::Ordering::Relaxed;
use crate::lock::{Holder, Liveness};
use crate::monitor::Slept;
use crate::object::{self, BODY};
use crate::op::Op;
use crate::segment::Offset;
use crate::sync::sort::{self, Sort};
use crate::sync::waiters::{self, State, Waiter};
use crate::{Error, Heap, Result, fault, mutation};

const PARTIES: usize = BODY + 24;
const BROKEN: u64 = 1 << 32;
/// The largest number of parties: as many threads can use a heap.
pub const MOST: u32 = if cfg!(loom) { 3 } else { 4095 };

const _: () = assert!(MOST as usize == crate::header::LANES);

/// How a wait at a barrier ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All have come; this thread was number so many of them, from 0.
    Passed(usize),
    /// The barrier is broken, or was reset meanwhile.
    Broken,
}

/// A new barrier for so many parties.
///
/// # Errors
/// [`Error::Misuse`] for none, or more than [`MOST`].
pub fn create(op: &mut Op<'_>, parties: u32) -> Result<Offset> {
    if parties == 0 || parties > MOST {
        return Err(Error::Misuse("a barrier is for 1 to 4095 parties"));
    }
    let at = sort::create(op, Sort::Barrier, object::SIZE)?;
    op.heap().segment().word(at + PARTIES)?.store(u64::from(parties), Relaxed);
    Ok(at)
}

fn word(heap: &Heap, at: Offset) -> Result<u64> {
    Ok(sort::head(heap, at, Sort::Barrier)?.body[3].load(Relaxed))
}

/// How many must come.
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub fn parties(heap: &Heap, at: Offset) -> Result<usize> {
    Ok(word(heap, at)? as u32 as usize)
}

/// Whether it is broken.
pub fn is_broken(heap: &Heap, at: Offset) -> Result<bool> {
    Ok(word(heap, at)? & BROKEN != 0)
}

/// How many have come and wait.
pub fn waiting(heap: &Heap, at: Offset) -> Result<usize> {
    sort::head(heap, at, Sort::Barrier)?;
    let all = heap.read(at, || waiters::all(heap.segment(), at))?;
    Ok(all.iter().filter(|waiter| is_inside(**waiter)).count())
}

const fn is_inside(waiter: Waiter) -> bool {
    is_undecided(Some(waiter.state))
}

const fn is_undecided(state: Option<State>) -> bool {
    matches!(state, Some(State::Waiting | State::Complete))
}

/// Waits for the other parties. The last one to come calls `action` before all go on.
///
/// Who waits until its deadline, or is interrupted, breaks the barrier; so does an error of
/// `action`.
///
/// # Errors
/// [`Error::Misuse`] inside of a transaction; those of `action` and of [`crate::lock::Pause`].
pub fn wait(
    heap: &Heap,
    at: Offset,
    deadline: Option<Instant>,
    action: impl FnOnce() -> Result<()>,
) -> Result<Outcome> {
    let me = heap.me()?;
    let Some((index, is_last)) = arrive(heap, at, me, deadline)? else {
        return Ok(Outcome::Broken);
    };
    fault::point("barrier: arrived");
    let waited = if is_last {
        if mutation::is("barrier: complete is not yet open") {
            open(heap, at, me)?;
        }
        action().and_then(|()| open(heap, at, me))
    } else {
        until_answered(heap, at, me, deadline)
    };
    // If its round is over already, its error is nobody else's affair.
    if waited.is_err() {
        insist(|| give_up(heap, at, me))?;
    }
    let state = insist(|| withdraw(heap, at, me))?;
    waited?;
    Ok(if state == Some(State::Passed) { Outcome::Passed(index) } else { Outcome::Broken })
}

/// Does what must be done though the user asks to stop.
fn insist<T>(mut work: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match work() {
            Err(Error::Interrupted) => {}
            done => return done,
        }
    }
}

/// Enters the list; returns as which one, and whether all have come. `None`: it is broken.
fn arrive(
    heap: &Heap,
    at: Offset,
    me: Holder,
    deadline: Option<Instant>,
) -> Result<Option<(usize, bool)>> {
    let parties = parties(heap, at)?;
    loop {
        let mut op = heap.op()?;
        if op.is_nested() {
            return Err(Error::Misuse("waiting inside of a transaction would never end"));
        }
        op.lock(at)?;
        if is_broken(heap, at)? {
            return Ok(None);
        }
        let before = waiters::all(heap.segment(), at)?;
        if before.iter().all(|waiter| waiter.state != State::Complete) {
            waiters::join(&mut op, at, me)?;
            let mut all = waiters::all(heap.segment(), at)?;
            let count = all.iter().filter(|waiter| is_inside(**waiter)).count();
            if count >= parties {
                if waiters::forget_dead(heap, &mut all)? && !mutation::is("barrier: none is dead") {
                    drop(op);
                    break_up(heap, at, BROKEN)?;
                    return Ok(None);
                }
                for waiter in all.iter_mut().filter(|waiter| is_inside(**waiter)) {
                    waiter.state = State::Complete;
                }
                waiters::set(&mut op, at, &all)?;
            }
            op.commit()?;
            return Ok(Some((count - 1, count >= parties)));
        }
        drop(op);
        // A round is complete and not let go yet; this thread is of the next one. Nobody calls
        // those who wait for that, which takes more threads than parties.
        match waiters::park(heap, me, deadline)? {
            Slept::Woken => {}
            Slept::Long => look_for_dead(heap, at)?,
            Slept::NoTimeLeft => {
                break_up(heap, at, BROKEN)?;
                return Ok(None);
            }
        }
    }
}

/// Lets the complete round go on.
fn open(heap: &Heap, at: Offset, me: Holder) -> Result<()> {
    insist(|| {
        let mut op = heap.op()?;
        op.lock(at)?;
        let mut all = waiters::all(heap.segment(), at)?;
        let mut called = Vec::new();
        for waiter in all.iter_mut().filter(|waiter| waiter.state == State::Complete) {
            waiter.state = State::Passed;
            if waiter.holder != me {
                called.push(*waiter);
            }
        }
        waiters::set(&mut op, at, &all)?;
        op.commit()?;
        fault::point("barrier: open");
        waiters::call(heap, &called)
    })
}

/// Waits for an answer; breaks the barrier at the deadline, or when another party has died.
fn until_answered(heap: &Heap, at: Offset, me: Holder, deadline: Option<Instant>) -> Result<()> {
    while is_undecided(waiters::state(heap, at, me)?) {
        match waiters::park(heap, me, deadline)? {
            Slept::Woken => {}
            Slept::NoTimeLeft => give_up(heap, at, me)?,
            Slept::Long if mutation::is("barrier: a look who lives") => {}
            Slept::Long => look_for_dead(heap, at)?,
        }
    }
    Ok(())
}

/// Breaks the barrier if a party that has come is dead.
fn look_for_dead(heap: &Heap, at: Offset) -> Result<()> {
    for waiter in heap.read(at, || waiters::all(heap.segment(), at))? {
        if is_inside(waiter) && heap.is_gone(waiter.holder)? {
            return break_up(heap, at, BROKEN);
        }
    }
    Ok(())
}

/// Takes the calling thread out; returns what had become of its wait.
fn withdraw(heap: &Heap, at: Offset, me: Holder) -> Result<Option<State>> {
    let mut op = heap.op()?;
    op.lock(at)?;
    let mut all = waiters::all(heap.segment(), at)?;
    let state = all.iter().find(|waiter| waiter.holder == me).map(|waiter| waiter.state);
    all.retain(|waiter| waiter.holder != me);
    waiters::set(&mut op, at, &all)?;
    op.commit()?;
    fault::point("barrier: withdrawn");
    Ok(state)
}

/// Breaks the barrier, unless the calling thread got its answer at the last moment.
fn give_up(heap: &Heap, at: Offset, me: Holder) -> Result<()> {
    let is_mine = |waiter: &Waiter| waiter.holder == me && is_inside(*waiter);
    break_up_if(heap, at, BROKEN, |all| {
        all.iter().any(is_mine)
            || mutation::is("barrier: an answer that came late")
            || mutation::is("barrier: who has passed has passed")
    })
}

/// Sends all away who wait, and leaves the barrier broken or as new.
fn break_up(heap: &Heap, at: Offset, broken: u64) -> Result<()> {
    break_up_if(heap, at, broken, |_| true)
}

/// As above, if that is still wanted when nobody else can answer any more.
fn break_up_if(
    heap: &Heap,
    at: Offset,
    broken: u64,
    is_wanted: impl FnOnce(&[Waiter]) -> bool,
) -> Result<()> {
    let parties = parties(heap, at)? as u64;
    let mut op = heap.op()?;
    op.lock(at)?;
    let mut all = waiters::all(heap.segment(), at)?;
    if !is_wanted(&all) {
        return Ok(());
    }
    waiters::forget_dead(heap, &mut all)?;
    let mut called = Vec::new();
    let is_late = mutation::is("barrier: who has passed has passed");
    for waiter in all.iter_mut().filter(|waiter| is_late || is_inside(**waiter)) {
        waiter.state = State::Broken;
        called.push(*waiter);
    }
    waiters::set(&mut op, at, &all)?;
    op.store(at + PARTIES, parties | broken)?;
    op.commit()?;
    fault::point("barrier: broken");
    waiters::call(heap, &called)
}

/// Breaks the barrier: all who wait or come later are sent away.
pub fn abort(heap: &Heap, at: Offset) -> Result<()> {
    break_up(heap, at, BROKEN)
}

/// Makes the barrier as new: who waits is sent away, who comes later is not.
pub fn reset(heap: &Heap, at: Offset) -> Result<()> {
    break_up(heap, at, 0)
}
