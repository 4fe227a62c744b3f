//! What a thread is changing, and how to undo it.
//!
//! A thread that changes the heap has a *lane*: the identity under which it holds locks, and the
//! log of what it overwrote since its operation began. If the process dies, whoever notices it
//! plays the log backwards ([`roll_back`]) and gives the lane a new generation; every lock word
//! that still names the old one is then known to be nobody's.
//!
//! The order of steps is what makes this safe at any instruction: a record is complete before the
//! log's length includes it, and included before the word that it remembers changes. Only one
//! store, that of [`DONE`], ends an operation. No memory barrier is needed for it: whoever reads
//! the log of a dead process learned of its death from the kernel.
//!
//! The log begins in a place of its own and goes on in blocks of the heap, the newest first.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence,
};

use crate::header::{LANE_SIZE, LANES, LOG_SIZE};
use crate::process::Membership;
use crate::segment::{Offset, Segment};
use crate::{Error, Result, fault};

/// No operation is under way: the log is of no interest.
pub const IDLE: u32 = 0;
/// An operation is under way: the log undoes it, and the collector waits for it.
pub const BUSY: u32 = 1;
/// The operation has happened and is cleaning up: the collector waits for it still.
pub const DONE: u32 = 2;

/// Words before the log in a block that continues it: the previous block, this one's size, used.
const MORE_WORDS: usize = 3;
/// Bits of a record's first word that say where; the others say how many words.
const WHERE_BITS: u32 = 48;

/// Bits of a generation.
pub const GENERATION_BITS: u32 = 19;
/// The largest generation.
pub const GENERATIONS: u32 = 1 << GENERATION_BITS;

/// A thread's place in the table of lanes.
#[repr(C)]
#[derive(Debug)]
pub struct Lane {
    /// 0, or the number of its process's slot, plus 1.
    pub owner: AtomicU32,
    /// How often it was given to somebody else.
    pub generation: AtomicU32,
    /// [`IDLE`] or [`BUSY`].
    pub state: AtomicU32,
    /// Not 0: the thread is to look at what it waits for. It sleeps on this word (`sync`).
    pub call: AtomicU32,
    /// Words of the log's beginning.
    pub used: AtomicU64,
    /// The newest block that continues the log, or 0.
    pub more: AtomicU64,
    reserved_words: [AtomicU64; 4],
}

const _: () = assert!(size_of::<Lane>() == LANE_SIZE);

/// The lane number `index`.
pub fn lane(segment: &Segment, index: usize) -> Result<&Lane> {
    if index >= LANES {
        return Err(Error::Corrupt("a lane that does not exist"));
    }
    let words = segment.words(segment.layout().lanes + index * LANE_SIZE, LANE_SIZE / 8)?;
    // SAFETY: a lane is made of atomics, as large as these words and aligned like them.
    Ok(unsafe { &*words.as_ptr().cast::<Lane>() })
}

/// Where the log of a lane begins.
fn log(segment: &Segment, index: usize) -> Result<&[AtomicU64]> {
    segment.words(segment.layout().logs + index * LOG_SIZE, LOG_SIZE / 8)
}

/// Takes a free lane for a thread of the process in `membership`.
pub fn take(segment: &Segment, membership: &Membership) -> Result<usize> {
    let owner = u32::try_from(membership.slot).expect("a slot's number is small") + 1;
    // Processes begin to look at different places, so that they do not meet.
    let first = membership.slot * 2 % LANES;
    for index in (first..LANES).chain(0..first) {
        let lane = lane(segment, index)?;
        if lane.owner.load(Relaxed) == 0 {
            segment.provide(segment.layout().logs + index * LOG_SIZE, LOG_SIZE)?;
            if lane.owner.compare_exchange(0, owner, SeqCst, Relaxed).is_ok() {
                fault::point("lane: taken");
                return Ok(index);
            }
        }
    }
    Err(Error::Crowded { what: "threads", limit: LANES })
}

/// Gives a lane back. Lock words that name it become nobody's.
pub fn give_back(lane: &Lane) {
    fault::point("lane: about to be given back");
    let next = (lane.generation.load(Relaxed) + 1) % GENERATIONS;
    lane.generation.store(next, SeqCst);
    fault::point("lane: has a new generation");
    lane.owner.store(0, SeqCst);
}

/// Whether the log has room for a record of `words` words where it stands.
fn place(segment: &Segment, index: usize) -> Result<(&AtomicU64, &[AtomicU64])> {
    let lane = lane(segment, index)?;
    let more = lane.more.load(Relaxed);
    if more == 0 {
        return Ok((&lane.used, log(segment, index)?));
    }
    let block = block(segment, more)?;
    Ok((&block[2], &block[MORE_WORDS..]))
}

/// A block that continues a log, whole.
fn block(segment: &Segment, at: u64) -> Result<&[AtomicU64]> {
    let at = offset(at);
    let bytes = offset(segment.word(at + 8)?.load(Relaxed));
    if bytes < (MORE_WORDS + 2) * 8 || !bytes.is_multiple_of(8) {
        return Err(Error::Corrupt("a log block of no size"));
    }
    segment.words(at, bytes / 8)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "64-bit machines only; and it is checked later"
)]
const fn offset(word: u64) -> usize {
    word as usize
}

/// Remembers `count` words at `at`, which are about to change.
///
/// Returns how many bytes are missing if the log is full; then [`extend`] it with a block of so
/// many and try again.
pub fn save(segment: &Segment, index: usize, at: Offset, count: usize) -> Result<Option<usize>> {
    let (used, log) = place(segment, index)?;
    let from = offset(used.load(Relaxed));
    let Some(record) = log.get(from..from + 1 + count) else {
        return Ok(Some((MORE_WORDS + 1 + count) * 8));
    };
    let old = segment.words(at, count)?;
    record[0].store((count as u64) << WHERE_BITS | at as u64, Relaxed);
    for (record, old) in record[1..].iter().zip(old) {
        record.store(old.load(Relaxed), Relaxed);
    }
    fault::point("lane: record written");
    compiler_fence(Release);
    used.store((from + 1 + count) as u64, Relaxed);
    compiler_fence(SeqCst);
    fault::point("lane: record counted");
    Ok(None)
}

/// Continues the log in a block of the heap.
pub fn extend(segment: &Segment, index: usize, at: Offset, bytes: usize) -> Result<()> {
    let lane = lane(segment, index)?;
    let head = segment.words(at, MORE_WORDS)?;
    head[0].store(lane.more.load(Relaxed), Relaxed);
    head[1].store(bytes as u64, Relaxed);
    head[2].store(0, Relaxed);
    compiler_fence(Release);
    lane.more.store(at as u64, Relaxed);
    fault::point("lane: log continued");
    Ok(())
}

/// A position in a log, to roll back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    more: u64,
    used: u64,
}

/// Where the log stands.
pub fn mark(segment: &Segment, index: usize) -> Result<Mark> {
    let more = lane(segment, index)?.more.load(Relaxed);
    Ok(Mark { more, used: place(segment, index)?.0.load(Relaxed) })
}

/// Undoes all that was remembered since `to`, newest first. May be killed and begun again.
pub fn roll_back(segment: &Segment, index: usize, to: Mark) -> Result<()> {
    let lane = lane(segment, index)?;
    loop {
        let here = lane.more.load(Acquire);
        let (used, log) = place(segment, index)?;
        let floor = if here == to.more { to.used } else { 0 };
        // Records can only be found from the front.
        let mut starts = Vec::new();
        let end = offset(used.load(Acquire)).min(log.len());
        let mut at = 0;
        while at < end {
            starts.push(at);
            at += 1 + offset(log[at].load(Relaxed) >> WHERE_BITS);
        }
        for &start in starts.iter().rev() {
            if (start as u64) < floor {
                break;
            }
            let first = log[start].load(Relaxed);
            let count = offset(first >> WHERE_BITS);
            let Some(old) = log.get(start + 1..start + 1 + count) else {
                return Err(Error::Corrupt("a log record is cut off"));
            };
            let words = segment.words(offset(first & ((1 << WHERE_BITS) - 1)), count)?;
            for (word, old) in words.iter().zip(old) {
                word.store(old.load(Relaxed), Relaxed);
            }
            fault::point("lane: record undone");
            compiler_fence(Release);
            used.store(start as u64, Relaxed);
        }
        if here == to.more {
            return Ok(());
        }
        // Whatever was in this block is undone; the block itself is garbage.
        let previous = block(segment, here)?[0].load(Relaxed);
        compiler_fence(Release);
        lane.more.store(previous, Relaxed);
        fault::point("lane: block undone");
    }
}
