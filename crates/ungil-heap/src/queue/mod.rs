//! Queues: what many put in at one end and many take out at the other, while others sleep for it.
//!
//! The values are in a ring of cells ([`ring`]). Each end has a lock of its own that names its
//! holder, and a position that only grows; one store of a position is what puts a value in or takes
//! it out. So nobody has to write down what it is about to do: who dies before the store has not
//! begun, who dies after it has ended, and the next one takes the lock over. What such a death can
//! leave is memory that nothing refers to, which the collector finds.
//!
//! | offset | who writes it | what |
//! |---|---|---|
//! | 0 | who makes or closes it | the head; body: where the ring is, the most values, whether it is closed, where the leases are |
//! | 64 | who puts | lock, end of the values, the beginning of the values as it was last seen |
//! | 128 | who takes | lock, beginning of the values, their end as it was last seen, how many are done |
//! | 192 | who sleeps | bells: of values, of room, of all being done; for how long it looks before that |
//!
//! Positions are counted from the first value ever put in, modulo 2^64; a value's cell is the
//! position modulo the length of the ring. A value that is put back makes the beginning smaller.
//!
//! What is put into a queue in a transaction could be taken out before that ends, so that it could
//! not be undone: queues are not used in transactions.

mod bell;
mod ends;
mod leases;
mod many;
mod priority;
mod ring;
mod tasks;
mod watching;

use std::time::Duration;

use crate::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use crate::lock::{self, Holder};
use crate::object::{self, Head, Kind, Owned, Visit};
use crate::op::Op;
use crate::segment::{Offset, Part, Segment};
use crate::{Error, Heap, Result, fault, value, watch};

pub use ends::{Got, Keep, Put, get, put, put_back};
pub use leases::{Lease, acknowledge, give_back, lease, leased, recover};
pub use many::{get_many, put_many};
use ring::Ring;
pub use tasks::{join, task_done, unfinished};
pub use watching::{wait, watch_room, watch_values};

/// Where what is behind the head begins.
const CONTROL: usize = object::SIZE;
/// Bytes of it.
const CONTROL_SIZE: usize = 192;
/// Bytes of a queue, without its ring.
const SIZE: usize = object::SIZE + CONTROL_SIZE;
/// Bit of the third word of the body: nothing more is put in.
const CLOSED: u64 = 1;
/// Bit of the flags: the least value comes first.
const ORDERED: u32 = 1;
/// The most values that a queue can be limited to, or have.
pub const MOST: usize = 1 << 31;
/// The longest that somebody looks for what it waits for before it sleeps.
pub const LONGEST_SPIN: Duration = Duration::from_millis(10);

/// What is behind the head: a cache line for each of those who put, who take, and who sleep.
#[repr(C)]
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
pub(crate) struct Control {
    put_lock: AtomicU32,
    put_reserved: AtomicU32,
    /// The position behind the last value.
    tail: AtomicU64,
    /// [`Self::head`], as who puts has seen it last; never beyond it.
    head_seen: AtomicU64,
    put_rest: [AtomicU64; 5],

    get_lock: AtomicU32,
    get_reserved: AtomicU32,
    /// The position of the first value.
    head: AtomicU64,
    /// [`Self::tail`], as who takes has seen it last; never beyond it.
    tail_seen: AtomicU64,
    /// Of how many values somebody has said that they are done.
    done: AtomicU64,
    /// How many leases there were.
    leases: AtomicU64,
    get_rest: [AtomicU64; 3],

    /// Rung when there are more values.
    values: AtomicU32,
    /// Rung when there is more room.
    room: AtomicU32,
    /// Rung when all values are done.
    all_done: AtomicU32,
    /// For how many nanoseconds somebody looks before it sleeps.
    spin_ns: AtomicU32,
    bells_rest: [AtomicU64; 6],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Control>() == CONTROL_SIZE);

impl Control {
    /// That of an empty queue.
    fn clear(&self) {
        let words = [&self.put_lock, &self.get_lock, &self.values, &self.room, &self.all_done];
        for word in words.into_iter().chain([&self.spin_ns]) {
            word.store(0, Relaxed);
        }
        let positions = [&self.tail, &self.head_seen, &self.head, &self.tail_seen, &self.done];
        for word in positions.into_iter().chain([&self.leases]) {
            word.store(0, Relaxed);
        }
    }
}

// SAFETY: it is made of atomics and aligned like a word.
unsafe impl Part for Control {}

/// A queue, looked at.
#[derive(Clone, Copy)]
struct Queue<'h> {
    heap: &'h Heap,
    at: Offset,
    head: &'h Head,
    control: &'h Control,
}

impl<'h> Queue<'h> {
    #[inline]
    fn at(heap: &'h Heap, at: Offset) -> Result<Self> {
        let head = object::head(heap.segment(), at)?;
        if !head.is(Kind::Queue) {
            return Err(head.mistaken("an object is no queue"));
        }
        Ok(Self { heap, at, head, control: heap.segment().part(at + CONTROL)? })
    }

    /// How many values it can have.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "64-bit machines only")]
    fn limit(&self) -> usize {
        match self.head.body[1].load(Relaxed) as usize {
            0 => MOST,
            limit => limit.min(MOST),
        }
    }

    /// For how long somebody looks for what it waits for before it sleeps.
    fn spin(&self) -> Duration {
        Duration::from_nanos(self.control.spin_ns.load(Relaxed).into()).min(LONGEST_SPIN)
    }

    #[inline]
    fn is_ordered(&self) -> bool {
        is_ordered(self.head)
    }

    /// Whether it looks as if there were no room.
    fn is_full(&self) -> bool {
        let head = self.control.head.load(Acquire);
        count(head, self.control.tail.load(Acquire)) >= self.limit()
    }

    /// Whether it looks as if there were nothing.
    #[inline]
    fn is_empty(&self) -> bool {
        self.control.head.load(Acquire) == self.control.tail.load(Acquire)
    }

    /// Wakes those who wait for so many new values.
    #[inline]
    fn tell_of_values(&self, count: usize) {
        bell::ring(&self.control.values, count);
        watch::tell(self.heap.segment(), self.head, watch::CHANGE);
    }

    /// Wakes those who wait for so much new room.
    #[inline]
    fn tell_of_room(&self, count: usize) {
        if self.head.body[1].load(Relaxed) != 0 {
            bell::ring(&self.control.room, count);
            watch::tell(self.heap.segment(), self.head, watch::ROOM);
        }
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.head.body[2].load(Acquire) & CLOSED != 0
    }

    /// Locks an end. Nobody waits for anything but a lock of the same queue while it has one, and who
    /// takes both takes that of the putting end first.
    #[inline]
    fn lock(&self, word: &'h AtomicU32, me: Holder) -> Result<Locked<'h>> {
        if !lock::try_acquire(word, me) {
            // However it was got: a dead holder has left nothing half done.
            let _ = self.heap.acquire(word, me)?;
        }
        fault::point("queue: an end locked");
        Ok(Locked(word))
    }

    /// Who this thread is, which must not be in a transaction.
    #[inline]
    fn me(&self) -> Result<Holder> {
        if self.head.lock.load(Relaxed) != 0 {
            self.wait_until_made()?;
        }
        match self.heap.idle() {
            Some(me) => Ok(me),
            None => self.me_slowly(),
        }
    }

    #[cold]
    fn me_slowly(&self) -> Result<Holder> {
        if self.heap.thread()?.is_busy() {
            return Err(Error::Misuse(
                "a queue is used before or after a transaction, not in it: what is put in could \
                 be taken out before the transaction ends",
            ));
        }
        self.heap.me()
    }

    /// Waits for the end of the transaction in which the queue was made: it may never have been.
    #[cold]
    fn wait_until_made(&self) -> Result<()> {
        if Holder::of(self.head.lock.load(Relaxed)) == Some(self.heap.me()?) {
            return Ok(());
        }
        let mut op = self.heap.op()?;
        op.guard(self.at)?;
        let is_still = self.head.is(Kind::Queue);
        op.commit()?;
        if is_still { Ok(()) } else { Err(Error::Stale) }
    }
}

/// An end of a queue, locked while this lives.
struct Locked<'h>(&'h AtomicU32);

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        lock::release(self.0);
    }
}

#[inline]
fn is_ordered(head: &Head) -> bool {
    head.flags() & ORDERED != 0
}

/// What a queue is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The most values that it has at a time; `None`: any number.
    pub limit: Option<usize>,
    /// What is taken out first is not what was put in first, but the least value ([`value::order`]).
    pub is_ordered: bool,
    /// For how long who waits for values or room looks before it sleeps, and keeps a processor busy.
    pub spin: Duration,
}

/// A new queue with nothing in it.
///
/// # Errors
/// [`Error::Misuse`] for a limit of none, or of more than [`MOST`]; for more than [`LONGEST_SPIN`].
pub fn create(op: &mut Op<'_>, options: Options) -> Result<Offset> {
    let Options { limit, is_ordered, spin } = options;
    let spin_ns = u32::try_from(spin.as_nanos()).unwrap_or(u32::MAX);
    if spin > LONGEST_SPIN {
        return Err(Error::Misuse("who waits at a queue looks for at most 10 ms before it sleeps"));
    }
    if limit.is_some_and(|limit| limit == 0 || limit > MOST) {
        return Err(Error::Misuse("a queue is limited to 1 to 2^31 values"));
    }
    let at = op.create(Kind::Queue, SIZE)?;
    let segment = op.heap().segment();
    let control = segment.part::<Control>(at + CONTROL)?;
    control.clear();
    control.spin_ns.store(spin_ns, Relaxed);
    let ring = Ring::first(op, limit, is_ordered)?;
    let head = object::head(segment, at)?;
    head.set_flags(if is_ordered { ORDERED } else { 0 });
    head.body[0].store(ring.word(), Relaxed);
    head.body[1].store(limit.unwrap_or(0) as u64, Relaxed);
    Ok(at)
}

/// How many values it has.
pub fn len(heap: &Heap, at: Offset) -> Result<usize> {
    let queue = Queue::at(heap, at)?;
    // The beginning first: it is never beyond the end that is read later.
    let head = queue.control.head.load(Acquire);
    Ok(count(head, queue.control.tail.load(Acquire)).min(MOST))
}

/// How many values it can have; `None`: any number.
pub fn limit(heap: &Heap, at: Offset) -> Result<Option<usize>> {
    let queue = Queue::at(heap, at)?;
    let is_limited = queue.head.body[1].load(Relaxed) != 0;
    Ok(is_limited.then(|| queue.limit()))
}

/// For how long who waits for values or room looks before it sleeps.
pub fn spin(heap: &Heap, at: Offset) -> Result<Duration> {
    Ok(Queue::at(heap, at)?.spin())
}

/// Whether the least value comes first, not the one that was put in first.
pub fn is_least_first(segment: &Segment, at: Offset) -> Result<bool> {
    Ok(is_ordered(object::head(segment, at)?))
}

/// Whether nothing more is put in.
pub fn is_closed(heap: &Heap, at: Offset) -> Result<bool> {
    Ok(Queue::at(heap, at)?.is_closed())
}

/// From one position to another.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
const fn count(from: u64, to: u64) -> usize {
    to.wrapping_sub(from) as usize
}

/// Calls `visit` with all that the queue at `at` owns.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    visit(Owned::Block { at, bytes: SIZE })?;
    let control: &Control = segment.part(at + CONTROL)?;
    let head = object::head(segment, at)?;
    let ring = Ring::of(head)?;
    visit(Owned::Block { at: ring.cells, bytes: ring.bytes() })?;
    ring.check(segment)?;
    let first = control.head.load(Acquire);
    // Values that need no memory come and go while the world stands still: then this sees cells of
    // which nobody has any, or that were not there when it began.
    for index in 0..count(first, control.tail.load(Acquire)).min(ring.room) {
        let cell = if is_ordered(head) {
            priority::Entry::read(segment, ring, index)?.cell
        } else {
            ring.read(segment, first.wrapping_add(index as u64))?
        };
        value::owned(segment, cell, visit)?;
    }
    leases::owned(segment, head.body[3].load(Acquire), visit)
}

/// Puts nothing more in: who puts is told at once, who takes when there is nothing left. `is_emptied`:
/// what is in it is given up, and counts as done.
pub fn close(heap: &Heap, at: Offset, is_emptied: bool) -> Result<()> {
    let queue = Queue::at(heap, at)?;
    queue.me()?;
    queue.with_both_ends(|op| {
        op.store(at + object::BODY + 16, CLOSED)?;
        if is_emptied { queue.empty(op) } else { Ok(()) }
    })?;
    for bell in [&queue.control.values, &queue.control.room, &queue.control.all_done] {
        bell::ring_for_all(bell);
    }
    watch::tell(heap.segment(), queue.head, watch::CHANGE | watch::ROOM);
    Ok(())
}
