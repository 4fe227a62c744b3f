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
//! The log begins in a place of its own and goes on in blocks of the heap, the newest first. A
//! record is the old words and then one word that says where they were and how many, so that the
//! log is read from its end.

use crate::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release, SeqCst},
    compiler_fence,
};
pub use crate::gate::{BUSY, DONE, IDLE};
use crate::header::{LANE_SIZE, LANES, LOG_SIZE};
use crate::lock::Holder;
pub use crate::lock::{GENERATION_BITS, GENERATIONS};
use crate::segment::{Offset, Part, Segment};
use crate::{Error, Result, fault, mutation};

/// Words before the log in a block that continues it: the previous block, this one's size, used.
const MORE_WORDS: usize = 3;
/// The smallest block that continues a log, in bytes.
pub const LEAST_MORE: usize = if cfg!(loom) { 64 } else { 4096 };
/// The most words of one record.
pub const LONGEST: usize = if cfg!(loom) { 16 } else { 4096 };
/// Bits of a record's last word that say where; the others say how many words.
const WHERE_BITS: u32 = 48;

/// A thread's place in the table of lanes.
#[repr(C)]
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
pub struct Lane {
    /// 0, or the number of its process's slot, plus 1.
    pub owner: AtomicU32,
    /// How often it was given to somebody else.
    pub generation: AtomicU32,
    /// [`IDLE`], [`BUSY`] or [`DONE`].
    pub state: AtomicU32,
    /// Not 0: the thread is to look at what it waits for. It sleeps on this word.
    pub call: AtomicU32,
    /// Words of the log's beginning.
    pub used: AtomicU64,
    /// The newest block that continues the log, or 0.
    pub more: AtomicU64,
    reserved_words: [AtomicU64; 4],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Lane>() == LANE_SIZE);

// SAFETY: a lane is made of atomics and aligned like a word.
unsafe impl Part for Lane {}

/// The lane number `index`.
pub fn lane(segment: &Segment, index: usize) -> Result<&Lane> {
    if index >= LANES {
        return Err(Error::Corrupt("a lane that does not exist"));
    }
    segment.part(segment.layout().lanes + index * LANE_SIZE)
}

/// Whether a lane is still somebody's in the generation of `holder`. Who died and was not noticed yet
/// counts.
pub(crate) fn is_taken(segment: &Segment, holder: Holder) -> bool {
    lane(segment, holder.lane()).is_ok_and(|lane| {
        lane.owner.load(SeqCst) != 0
            && lane.generation.load(SeqCst) % GENERATIONS == holder.generation()
    })
}

/// Where the log of a lane begins.
fn log(segment: &Segment, index: usize) -> Result<&[AtomicU64]> {
    segment.words(segment.layout().logs + index * LOG_SIZE, LOG_SIZE / 8)
}

/// Takes a free lane for a thread of the process in slot `process`.
pub fn take(segment: &Segment, process: usize) -> Result<usize> {
    let owner = u32::try_from(process).map_or(0, |process| process + 1);
    // Processes begin to look at different places, so that they do not meet.
    let first = process * 2 % LANES;
    let mut refusal = Error::Crowded { what: "threads", limit: LANES };
    for index in (first..LANES).chain(0..first) {
        let lane = lane(segment, index)?;
        if lane.owner.load(Relaxed) == 0 {
            match segment.provide(segment.layout().logs + index * LOG_SIZE, LOG_SIZE) {
                // Those that were used before have memory.
                Err(full @ Error::Full { .. }) => {
                    refusal = full;
                    continue;
                }
                provided => provided?,
            }
            if mutation::is("lane: it is still free") {
                lane.owner.store(owner, SeqCst);
                return Ok(index);
            }
            if lane.owner.compare_exchange(0, owner, SeqCst, Relaxed).is_ok() {
                fault::point("lane: taken");
                return Ok(index);
            }
        }
    }
    Err(refusal)
}

/// Gives a lane back. Lock words that name it become nobody's.
pub fn give_back(lane: &Lane) {
    fault::point("lane: about to be given back");
    let next = lane.generation.load(Relaxed).wrapping_add(1) % GENERATIONS;
    if !mutation::is("lane: a new generation") {
        lane.generation.store(next, SeqCst);
    }
    fault::point("lane: has a new generation");
    lane.owner.store(0, SeqCst);
}

/// Where the log stands: how many words of it are used, and all of them.
#[inline]
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
    let bytes = offset(segment.words(at, MORE_WORDS)?[1].load(Relaxed));
    if bytes < LEAST_MORE {
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

/// How many bytes the block must have that continues a log for `count` words.
pub const fn needed(count: usize) -> usize {
    let bytes = (MORE_WORDS + count + 1) * 8;
    if bytes < LEAST_MORE { LEAST_MORE } else { bytes }
}

/// Remembers `count` words at `at`, which are about to change. False: the log has no room for them,
/// [`extend`] it first; or they are more than [`LONGEST`].
#[inline]
pub fn save(segment: &Segment, index: usize, at: Offset, count: usize) -> Result<bool> {
    let (used, log) = place(segment, index)?;
    let from = offset(used.load(Relaxed));
    if from >= log.len() || count >= log.len() - from || count > LONGEST {
        return Ok(false);
    }
    let record = &log[from..=from + count];
    let old = segment.words(at, count)?;
    for (record, old) in record.iter().zip(old) {
        record.store(old.load(Relaxed), Relaxed);
    }
    record[count].store((count as u64) << WHERE_BITS | at as u64, Relaxed);
    fault::point("lane: record written");
    compiler_fence(Release);
    used.store((from + 1 + count) as u64, Relaxed);
    compiler_fence(SeqCst);
    fault::point("lane: record counted");
    Ok(true)
}

/// Continues the log in a block of the heap, of at least [`LEAST_MORE`] bytes.
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
pub struct Position {
    more: u64,
    used: u64,
}

/// Where the log stands.
pub fn position(segment: &Segment, index: usize) -> Result<Position> {
    let more = lane(segment, index)?.more.load(Relaxed);
    Ok(Position { more, used: place(segment, index)?.0.load(Relaxed) })
}

/// Undoes all that was remembered since `to`, newest first. May be killed and begun again.
pub fn roll_back(segment: &Segment, index: usize, to: Position) -> Result<()> {
    let lane = lane(segment, index)?;
    // More blocks than the heap has room for are a ring.
    for _ in 0..=segment.layout().end / LEAST_MORE {
        let here = lane.more.load(Relaxed);
        let (used, log) = place(segment, index)?;
        undo(segment, used, log, if here == to.more { offset(to.used) } else { 0 })?;
        if here == to.more || mutation::is("roll back: all blocks") {
            return Ok(());
        }
        if here == 0 {
            break;
        }
        // Whatever was in this block is undone; the block itself is garbage.
        let previous = block(segment, here)?[0].load(Relaxed);
        compiler_fence(Release);
        lane.more.store(previous, Relaxed);
        fault::point("lane: block undone");
    }
    Err(Error::Corrupt("a log never ends"))
}

/// Undoes the records of a part of a log, down to `floor`.
fn undo(segment: &Segment, used: &AtomicU64, log: &[AtomicU64], floor: usize) -> Result<()> {
    let mut end = offset(used.load(Relaxed));
    if end > log.len() {
        return Err(Error::Corrupt("a log is longer than it can be"));
    }
    while end > floor {
        let last = log[end - 1].load(Relaxed);
        let count = offset(last >> WHERE_BITS);
        let Some(start) = (end - 1).checked_sub(count).filter(|start| *start >= floor) else {
            return Err(Error::Corrupt("a log record is cut off"));
        };
        let words = segment.words(offset(last & ((1 << WHERE_BITS) - 1)), count)?;
        for (word, old) in words.iter().zip(&log[start..end - 1]) {
            word.store(old.load(Relaxed), Relaxed);
        }
        fault::point("lane: record undone");
        compiler_fence(Release);
        used.store(start as u64, Relaxed);
        end = start;
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SIZE: usize = 4 << 20;

    /// A segment with a chunk to write to, and a lane.
    fn segment() -> (Segment, usize, Offset) {
        let segment = Segment::anonymous(SIZE).unwrap();
        let layout = *segment.layout();
        segment.provide(layout.processes, layout.logs - layout.processes).unwrap();
        segment.provide(layout.data, crate::header::CHUNK * 4).unwrap();
        segment.header().chunks.store(4, Relaxed);
        let lane = take(&segment, 3).unwrap();
        (segment, lane, layout.data)
    }

    fn set(segment: &Segment, lane: usize, at: Offset, value: u64) {
        assert!(save(segment, lane, at, 1).unwrap());
        segment.word(at).unwrap().store(value, Relaxed);
    }

    #[test]
    fn what_was_changed_twice_becomes_what_it_was_at_first() {
        let (segment, lane, at) = segment();
        segment.word(at).unwrap().store(7, Relaxed);
        set(&segment, lane, at, 8);
        set(&segment, lane, at, 9);
        roll_back(&segment, lane, Position::default()).unwrap();
        assert_eq!(segment.word(at).unwrap().load(Relaxed), 7);
        assert_eq!(position(&segment, lane).unwrap(), Position::default());
    }

    #[test]
    fn a_log_is_rolled_back_to_a_mark_across_blocks() {
        let (segment, lane, at) = segment();
        set(&segment, lane, at, 1);
        let middle = position(&segment, lane).unwrap();
        set(&segment, lane, at, 2);
        extend(&segment, lane, at + 0x4000, LEAST_MORE).unwrap();
        set(&segment, lane, at, 3);
        extend(&segment, lane, at + 0x8000, LEAST_MORE).unwrap();
        set(&segment, lane, at, 4);
        set(&segment, lane, at + 8, 5);
        roll_back(&segment, lane, middle).unwrap();
        assert_eq!(segment.word(at).unwrap().load(Relaxed), 1);
        assert_eq!(segment.word(at + 8).unwrap().load(Relaxed), 0);
        assert_eq!(position(&segment, lane).unwrap(), middle);
        roll_back(&segment, lane, Position::default()).unwrap();
        assert_eq!(segment.word(at).unwrap().load(Relaxed), 0);
    }

    #[test]
    fn a_log_takes_what_fits_and_not_a_word_more() {
        let (segment, lane, at) = segment();
        let room = LOG_SIZE / 8;
        assert!(!save(&segment, lane, at, room).unwrap());
        assert!(save(&segment, lane, at, room - 1).unwrap());
        assert!(!save(&segment, lane, at, 0).unwrap());
        extend(&segment, lane, at + 0x4000, needed(LONGEST)).unwrap();
        assert!(!save(&segment, lane, at, LONGEST + 1).unwrap());
        assert!(save(&segment, lane, at, LONGEST).unwrap());
        roll_back(&segment, lane, Position::default()).unwrap();
    }

    #[test]
    fn a_damaged_log_is_an_error_and_no_endless_loop() {
        let (segment, index, at) = segment();
        let lane = lane(&segment, index).unwrap();
        let damaged = || {
            assert!(matches!(
                roll_back(&segment, index, Position::default()),
                Err(Error::Corrupt(_))
            ));
        };
        lane.used.store(u64::MAX, Relaxed);
        damaged();
        // A record that begins before the log.
        lane.used.store(1, Relaxed);
        log(&segment, index).unwrap()[0].store(u64::MAX, Relaxed);
        damaged();
        // A record of words outside of the heap.
        log(&segment, index).unwrap()[0].store((1 << WHERE_BITS) - 8, Relaxed);
        set(&segment, index, at, 1);
        lane.used.store(3, Relaxed);
        log(&segment, index).unwrap()[2].store(1 << WHERE_BITS | ((1 << WHERE_BITS) - 8), Relaxed);
        damaged();
        // Blocks in a ring.
        lane.used.store(0, Relaxed);
        extend(&segment, index, at, LEAST_MORE).unwrap();
        segment.word(at).unwrap().store(at as u64, Relaxed);
        damaged();
        // A block outside of the heap, and one that is no block.
        lane.more.store(u64::MAX - 7, Relaxed);
        damaged();
        lane.more.store(at as u64 + 0x1000, Relaxed);
        damaged();
    }

    #[test]
    fn a_lane_that_is_given_back_has_another_generation() {
        let (segment, index, _) = segment();
        let lane = lane(&segment, index).unwrap();
        let before = lane.generation.load(Relaxed);
        give_back(lane);
        assert_ne!(lane.generation.load(Relaxed), before);
        assert_eq!(take(&segment, 3).unwrap(), index);
        lane.generation.store(GENERATIONS - 1, Relaxed);
        give_back(lane);
        assert_eq!(lane.generation.load(Relaxed), 0);
    }
}
