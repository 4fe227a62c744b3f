//! Who waits for an object, in the order in which they came.
//!
//! A block of words, one for each: its lane and generation in the low half ([`Holder`]), what
//! became of its wait in the high. The body of the object has the block, how many words of it are
//! used, and how many it has room for. Everything changes in operations, under the object's lock;
//! who waits puts itself in and takes itself out.
//!
//! A thread sleeps on a word of its lane ([`crate::lane::Lane::call`]), so that exactly those are
//! woken who are meant. That word decides nothing: it only says that a look is worth while.

use std::time::Instant;

use crate::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::lane;
use crate::lock::{self, Holder, Liveness};
use crate::monitor::{Slept, sleep};
use crate::object::{self, BODY, Head, Owned, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::{Error, Heap, Result, mutation};

/// More than can wait: each thread at most once, and some dead ones.
const MOST: usize = 1 << 15;

/// What has become of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing yet.
    Waiting = 0,
    /// Its round of a barrier is complete, but not let go yet.
    Complete = 1,
    /// It may go on.
    Passed = 2,
    /// It waits in vain.
    Broken = 3,
}

/// One who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) holder: Holder,
    pub(super) state: State,
}

impl Waiter {
    const fn word(self) -> u64 {
        (self.state as u64) << 32 | self.holder.word() as u64
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    fn from_word(word: u64) -> Result<Self> {
        let state = match word >> 32 {
            0 => State::Waiting,
            1 => State::Complete,
            2 => State::Passed,
            3 => State::Broken,
            _ => return Err(Error::Corrupt("a wait in an unknown state")),
        };
        let holder = Holder::of(word as u32).ok_or(Error::Corrupt("nobody waits"))?;
        Ok(Self { holder, state })
    }
}

/// Where the block is, how many words are used, and how many there are.
#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
fn place(head: &Head) -> Result<(Offset, usize, usize)> {
    let [block, used, room, _] = &head.body;
    let (used, room) = (used.load(Relaxed) as usize, room.load(Relaxed) as usize);
    if used > room || room > MOST {
        return Err(Error::Corrupt("more wait than there is room for"));
    }
    Ok((block.load(Relaxed) as usize, used, room))
}

/// All who wait for the object at `at`, which is locked, or is being read.
pub(super) fn all(segment: &Segment, at: Offset) -> Result<Vec<Waiter>> {
    let (block, used, _) = place(object::head(segment, at)?)?;
    segment.words(block, used)?.iter().map(|word| Waiter::from_word(word.load(Relaxed))).collect()
}

/// Lists those who wait anew. The object is locked.
pub(super) fn set(op: &mut Op<'_>, at: Offset, waiters: &[Waiter]) -> Result<()> {
    let segment = op.heap().segment();
    let (block, used, room) = place(object::head(segment, at)?)?;
    let words: Vec<u64> = waiters.iter().map(|waiter| waiter.word()).collect();
    let body = at + BODY;
    if words.len() > room {
        let more = (words.len() * 2).max(4);
        if more > MOST {
            return Err(Error::Corrupt("more wait than there are threads"));
        }
        let new = op.take_needed(more * 8)?;
        for (word, value) in segment.words(new, words.len())?.iter().zip(&words) {
            word.store(*value, Relaxed);
        }
        if room > 0 {
            op.free(block, room * 8);
        }
        return op.store_all(body, &[new as u64, words.len() as u64, more as u64]);
    }
    let old = segment.words(block, used)?;
    let same = old.iter().zip(&words).take_while(|(old, new)| old.load(Relaxed) == **new).count();
    if same < words.len() {
        op.store_all(block + same * 8, &words[same..])?;
    }
    if words.len() != used {
        op.store(body + 8, words.len() as u64)?;
    }
    Ok(())
}

/// Adds the calling thread, behind all others.
pub(crate) fn join(op: &mut Op<'_>, at: Offset, me: Holder) -> Result<()> {
    let heap = op.heap();
    lane::lane(heap.segment(), me.lane())?.call.store(0, Relaxed);
    let mut waiters = all(heap.segment(), at)?;
    let (_, _, room) = place(object::head(heap.segment(), at)?)?;
    waiters.retain(|waiter| waiter.holder != me);
    if waiters.len() >= room {
        forget_dead(heap, &mut waiters)?;
    }
    waiters.push(Waiter { holder: me, state: State::Waiting });
    set(op, at, &waiters)
}

/// Takes out those who have died; says whether one of them had got no answer yet.
pub(super) fn forget_dead(heap: &Heap, waiters: &mut Vec<Waiter>) -> Result<bool> {
    let mut is_missing = false;
    let mut alive = Vec::with_capacity(waiters.len());
    for waiter in waiters.drain(..) {
        if heap.is_gone(waiter.holder)? {
            is_missing |= matches!(waiter.state, State::Waiting | State::Complete);
        } else {
            alive.push(waiter);
        }
    }
    *waiters = alive;
    Ok(is_missing)
}

/// What has become of the wait of `me`; `None`: it is not known here.
pub(super) fn state(heap: &Heap, at: Offset, me: Holder) -> Result<Option<State>> {
    let segment = heap.segment();
    heap.read(at, || {
        let (block, used, _) = place(object::head(segment, at)?)?;
        for word in segment.words(block, used)? {
            let word = word.load(Relaxed);
            if word & u64::from(u32::MAX) == u64::from(me.word()) {
                return Ok(Some(Waiter::from_word(word)?.state));
            }
        }
        Ok(None)
    })
}

/// Sleeps until the calling thread is called, for some 20 ms at most.
pub(super) fn park(heap: &Heap, me: Holder, deadline: Option<Instant>) -> Result<Slept> {
    let call = &lane::lane(heap.segment(), me.lane())?.call;
    let slept = sleep(heap, call, 0, deadline)?;
    call.swap(0, Acquire);
    Ok(slept)
}

/// Calls those who have an answer.
pub(super) fn call(heap: &Heap, waiters: &[Waiter]) -> Result<()> {
    for waiter in waiters {
        let call = &lane::lane(heap.segment(), waiter.holder.lane())?.call;
        if call.swap(1, Release) == 0 && !mutation::is("waiters: a call") {
            lock::wake(call, 1);
        }
    }
    Ok(())
}

/// Calls `visit` with the block.
pub(super) fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    match place(object::head(segment, at)?)? {
        (_, _, 0) => Ok(()),
        (block, _, room) => visit(Owned::Block { at: block, bytes: room * 8 }),
    }
}
