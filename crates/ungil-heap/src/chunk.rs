//! Whole chunks: taken as slabs of equal blocks, or in runs for what is larger.
//!
//! The state of a chunk is one word, and each step of taking or freeing is one store, so that a
//! kill leaves a chunk taken or free. In a run only the first chunk's state counts. What a dead
//! process had taken and not used is found by the collector.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release, SeqCst},
};

use crate::header::{BITMAP_SIZE, CHUNK};
use crate::segment::{Offset, Segment};
use crate::{Error, Result, fault};

/// What a chunk is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Free,
    /// Nothing, and there may be no memory behind it.
    Hole,
    /// Blocks of a size class.
    Slab(u8),
    /// Blocks of a size class, all free; may become free itself.
    Retiring(u8),
    /// The first of a run of so many.
    Run(usize),
}

const KIND_BITS: u32 = 56;

impl State {
    /// As it is stored.
    pub const fn word(self) -> u64 {
        match self {
            Self::Free => 0,
            Self::Slab(class) => 1 << KIND_BITS | class as u64,
            Self::Retiring(class) => 2 << KIND_BITS | class as u64,
            Self::Run(chunks) => 3 << KIND_BITS | chunks as u64,
            Self::Hole => 4 << KIND_BITS,
        }
    }

    /// From what is stored.
    #[expect(clippy::cast_possible_truncation, reason = "the values are masked")]
    pub const fn from_word(word: u64) -> Result<Self> {
        let value = word & ((1 << KIND_BITS) - 1);
        match (word >> KIND_BITS, value) {
            (0, 0) => Ok(Self::Free),
            (1, 0..=255) => Ok(Self::Slab(value as u8)),
            (2, 0..=255) => Ok(Self::Retiring(value as u8)),
            (3, 1..) => Ok(Self::Run(value as usize)),
            (4, 0) => Ok(Self::Hole),
            _ => Err(Error::Corrupt("a chunk of an unknown kind")),
        }
    }
}

/// The word with the state of a chunk.
pub fn state(segment: &Segment, index: usize) -> Result<&AtomicU64> {
    if index >= segment.layout().chunks {
        return Err(Error::Corrupt("a chunk that does not exist"));
    }
    segment.word(segment.layout().states + index * 8)
}

/// The number of the chunk that an offset is in.
pub fn number(segment: &Segment, at: Offset) -> Result<usize> {
    let layout = segment.layout();
    if at < layout.data || at >= layout.end {
        return Err(Error::Corrupt("an offset outside of the chunks"));
    }
    Ok((at - layout.data) / CHUNK)
}

/// How many chunks the heap has.
#[expect(clippy::cast_possible_truncation, reason = "bounded by the layout")]
pub fn count(segment: &Segment) -> usize {
    (segment.header().chunks.load(Acquire) as usize).min(segment.layout().chunks)
}

/// How many chunks are used.
pub fn used(segment: &Segment) -> Result<usize> {
    let total = count(segment);
    let (mut chunk, mut used) = (0, 0);
    while chunk < total {
        let (is_used, chunks) = match State::from_word(state(segment, chunk)?.load(Acquire))? {
            State::Free | State::Hole => (0, 1),
            State::Run(chunks) => (chunks, chunks),
            State::Slab(_) | State::Retiring(_) => (1, 1),
        };
        used += is_used;
        chunk += chunks;
    }
    Ok(used)
}

/// Finds free chunks in a row, looking from chunk `cursor` on, and marks the first as `wanted`.
/// Those with memory behind them are preferred.
///
/// The caller holds the lock of the chunks.
///
/// # Errors
/// [`Error::Full`] if a hole cannot be filled with memory; nothing has changed then.
pub fn take(
    segment: &Segment,
    count: usize,
    wanted: State,
    cursor: usize,
) -> Result<Option<usize>> {
    let total = self::count(segment);
    let search = |from: usize, to: usize, with_holes: bool| -> Result<Option<usize>> {
        let mut at = from;
        let mut free = 0;
        while at < to {
            let (is_free, chunks) = match State::from_word(state(segment, at)?.load(Acquire))? {
                State::Free => (true, 1),
                State::Hole => (with_holes, 1),
                State::Run(chunks) => (false, chunks),
                State::Slab(_) | State::Retiring(_) => (false, 1),
            };
            free = if is_free { free + 1 } else { 0 };
            at += chunks;
            if free == count {
                return Ok(Some(at - count));
            }
        }
        Ok(None)
    };
    // A cursor inside of a run would take its inner chunks for free ones.
    let cursor = boundary(segment, cursor.min(total))?;
    for (from, with_holes) in [(cursor, false), (0, false), (cursor, true), (0, true)] {
        let Some(first) = search(from, total, with_holes)? else { continue };
        if with_holes {
            fill(segment, first, count)?;
        }
        fault::point("chunk: found");
        state(segment, first)?.store(wanted.word(), SeqCst);
        fault::point("chunk: taken");
        return Ok(Some(first));
    }
    Ok(None)
}

/// Puts memory behind free chunks, some of which are holes.
fn fill(segment: &Segment, first: usize, count: usize) -> Result<()> {
    segment.provide(segment.layout().chunk(first), count * CHUNK)?;
    fault::point("chunk: hole filled");
    for chunk in first..first + count {
        state(segment, chunk)?.store(State::Free.word(), SeqCst);
    }
    Ok(())
}

/// Runs of so many bytes are given back to the system when they are freed.
const GIVEN_BACK: usize = 1 << 20;

/// The first chunk from `at` backwards that no run reaches over.
fn boundary(segment: &Segment, at: usize) -> Result<usize> {
    let mut walk = 0;
    while walk < at {
        match State::from_word(state(segment, walk)?.load(Acquire))? {
            State::Run(chunks) if walk + chunks > at => return Ok(walk),
            State::Run(chunks) => walk += chunks,
            _ => walk += 1,
        }
    }
    Ok(walk)
}

/// Frees a run. The caller holds the lock of the chunks.
pub fn free_run(segment: &Segment, first: usize, chunks: usize) -> Result<()> {
    let is_given_back = chunks * CHUNK >= GIVEN_BACK;
    if is_given_back {
        // What is inside of a run is not looked at until the run is none any more.
        for inner in first + 1..first + chunks {
            state(segment, inner)?.store(State::Hole.word(), SeqCst);
        }
        segment.give_back(segment.layout().chunk(first), chunks * CHUNK);
        fault::point("chunk: memory given back");
    }
    let free = if is_given_back { State::Hole } else { State::Free };
    state(segment, first)?.store(free.word(), SeqCst);
    fault::point("chunk: run freed");
    Ok(())
}

/// Gives the memory of free chunks back to the system, except a reserve of `reserve` chunks; returns
/// how many chunks have none any more. The caller holds the lock of the chunks.
pub fn give_back(segment: &Segment, reserve: usize) -> Result<usize> {
    let total = count(segment);
    let (mut chunk, mut kept, mut given) = (0, 0, 0);
    while chunk < total {
        let start = chunk;
        while chunk < total
            && matches!(
                State::from_word(state(segment, chunk)?.load(Acquire))?,
                State::Free | State::Hole
            )
        {
            chunk += 1;
        }
        // A stretch that begins in the reserve is kept as far as the reserve reaches.
        let spared = (reserve - kept).min(chunk - start);
        kept += spared;
        if (chunk - start - spared) * CHUNK >= GIVEN_BACK {
            // A hole first: a chunk that is free has memory, whoever dies.
            for hole in start + spared..chunk {
                state(segment, hole)?.store(State::Hole.word(), SeqCst);
            }
            fault::point("chunk: holes marked");
            let at = segment.layout().chunk(start + spared);
            segment.give_back(at, (chunk - start - spared) * CHUNK);
            fault::point("chunk: holes made");
            given += chunk - start - spared;
        }
        if chunk < total {
            chunk += match State::from_word(state(segment, chunk)?.load(Acquire))? {
                State::Run(chunks) => chunks,
                _ => 1,
            };
        }
    }
    Ok(given)
}

/// Makes the heap longer by at least `count` chunks. The caller holds the lock of the chunks.
///
/// # Errors
/// [`Error::Full`]; the heap stays as it is.
pub fn grow(segment: &Segment, count: usize) -> Result<()> {
    let layout = segment.layout();
    let total = self::count(segment);
    let left = layout.chunks - total;
    if count > left {
        return Err(Error::Full { wanted: count * CHUNK, limit: "it has reached its max_size" });
    }
    // An eighth more at a time, between 2 and 64 MiB: growing stays rare and waste small.
    let step = (total / 8).clamp(32, 1024);
    let generous = count.max(step).min(left);
    let provide = |more: usize| -> Result<()> {
        segment.provide(layout.states + total * 8, more * 8)?;
        segment.provide(layout.bitmaps + total * BITMAP_SIZE, more * BITMAP_SIZE)?;
        segment.provide(layout.chunk(total), more * CHUNK)
    };
    let more = match provide(generous) {
        Ok(()) => generous,
        // What is enough may fit where a reserve does not.
        Err(_) => provide(count).map(|()| count)?,
    };
    fault::point("chunk: memory provided");
    segment.header().chunks.store((total + more) as u64, Release);
    fault::point("chunk: heap grown");
    Ok(())
}
