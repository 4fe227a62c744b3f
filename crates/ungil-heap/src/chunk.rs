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

/// Finds free chunks in a row, looking from chunk `cursor` on, and marks the first as `wanted`.
///
/// The caller holds the lock of the chunks.
pub fn take(
    segment: &Segment,
    count: usize,
    wanted: State,
    cursor: usize,
) -> Result<Option<usize>> {
    let total = self::count(segment);
    let search = |from: usize, to: usize| -> Result<Option<usize>> {
        let mut at = from;
        let mut free = 0;
        while at < to {
            match State::from_word(state(segment, at)?.load(Acquire))? {
                State::Free => {
                    free += 1;
                    at += 1;
                    if free == count {
                        return Ok(Some(at - count));
                    }
                }
                State::Run(chunks) => {
                    free = 0;
                    at += chunks;
                }
                State::Slab(_) | State::Retiring(_) => {
                    free = 0;
                    at += 1;
                }
            }
        }
        Ok(None)
    };
    // A cursor inside of a run would take its inner chunks for free ones.
    let cursor = boundary(segment, cursor.min(total))?;
    let found = match search(cursor, total)? {
        Some(found) => Some(found),
        None => search(0, total)?,
    };
    let Some(first) = found else { return Ok(None) };
    if count * CHUNK >= GIVEN_BACK {
        segment.provide(segment.layout().chunk(first), count * CHUNK)?;
    }
    fault::point("chunk: found");
    state(segment, first)?.store(wanted.word(), SeqCst);
    fault::point("chunk: taken");
    Ok(Some(first))
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
    if chunks * CHUNK >= GIVEN_BACK {
        segment.give_back(segment.layout().chunk(first), chunks * CHUNK);
        fault::point("chunk: memory given back");
    }
    state(segment, first)?.store(State::Free.word(), SeqCst);
    fault::point("chunk: run freed");
    Ok(())
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
