//! Whole chunks: taken as slabs of equal blocks, or in runs for what is larger.
//!
//! The state of a chunk is one word, and each step of taking or freeing is one store, so that a
//! kill leaves a chunk taken or free. In a run only the first chunk's state counts; those of the
//! others say that they are free, as they will be when it is. What a dead process had taken and not
//! used is found by the collector.
//!
//! Chunks are taken under a lock, and freed without one.
//!
//! The first chunks are the reserve ([`crate::header::Layout::reserve`]), from which only
//! [`take_reserved`] takes.

use crate::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use crate::header::{BITMAP_SIZE, CHUNK, READY_CHUNKS};
use crate::segment::{Offset, Segment};
use crate::size_class;
use crate::{Error, Result, fault};

/// What a chunk is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Free,
    /// Nothing, and its memory was given back: [`Segment::provide`] it before use.
    Hole,
    /// Blocks of a size class.
    Slab(u8),
    /// The same, but somebody looks whether all of them are free, and takes the chunk back if so.
    /// Whoever has a block may find this, and sees no difference.
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
            Self::Hole => 1,
            Self::Slab(class) => 1 << KIND_BITS | class as u64,
            Self::Retiring(class) => 2 << KIND_BITS | class as u64,
            Self::Run(chunks) => 3 << KIND_BITS | chunks as u64,
        }
    }

    /// From what is stored.
    #[expect(clippy::cast_possible_truncation, reason = "the values are masked")]
    pub const fn from_word(word: u64) -> Result<Self> {
        const CLASSES: u64 = size_class::COUNT as u64;
        let value = word & ((1 << KIND_BITS) - 1);
        match (word >> KIND_BITS, value) {
            (0, 0) => Ok(Self::Free),
            (0, 1) => Ok(Self::Hole),
            (1, 0..CLASSES) => Ok(Self::Slab(value as u8)),
            (2, 0..CLASSES) => Ok(Self::Retiring(value as u8)),
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

/// The state of a chunk.
fn look(segment: &Segment, index: usize) -> Result<State> {
    State::from_word(state(segment, index)?.load(Acquire))
}

/// Gives a new heap its reserve, before anybody else sees it.
pub fn begin(segment: &Segment) -> Result<()> {
    let layout = segment.layout();
    segment.provide(layout.states, layout.reserve * 8)?;
    segment.provide(layout.bitmaps, layout.reserve * BITMAP_SIZE)?;
    segment.provide(layout.data, READY_CHUNKS * CHUNK)?;
    segment.header().chunks.store(layout.reserve as u64, Release);
    for index in READY_CHUNKS..layout.reserve {
        state(segment, index)?.store(State::Hole.word(), Relaxed);
    }
    Ok(())
}

/// Finds free chunks in a row in the reserve and marks the first as `wanted`. See [`take`].
pub fn take_reserved(segment: &Segment, count: usize, wanted: State) -> Result<Option<usize>> {
    let Some(first) = search(segment, count, 0, segment.layout().reserve)? else { return Ok(None) };
    fill_holes(segment, first, count)?;
    state(segment, first)?.store(wanted.word(), SeqCst);
    fault::point("chunk: reserved one taken");
    Ok(Some(first))
}

/// Finds free chunks in a row, not in the reserve, and marks the first as `wanted`.
///
/// The caller holds the lock of the chunks.
///
/// # Errors
/// [`Error::Full`] if there are some, but no memory for them.
pub fn take(segment: &Segment, count: usize, wanted: State) -> Result<Option<usize>> {
    let (reserve, total) = (segment.layout().reserve, self::count(segment));
    let cursor = &segment.header().chunk_cursor;
    let middle = usize::try_from(cursor.load(Relaxed)).unwrap_or(total).max(reserve).min(total);
    let found = match search(segment, count, middle, total)? {
        Some(first) => Some(first),
        None => search(segment, count, reserve, total)?,
    };
    let Some(first) = found else { return Ok(None) };
    fill_holes(segment, first, count)?;
    fault::point("chunk: found");
    // Whoever dies between these three leaves a cursor that is at the beginning of something.
    cursor.store(first as u64, Relaxed);
    state(segment, first)?.store(wanted.word(), SeqCst);
    fault::point("chunk: taken");
    cursor.store((first + count) as u64, Relaxed);
    Ok(Some(first))
}

/// Finds `count` free chunks in a row, from chunk `from` on.
fn search(segment: &Segment, count: usize, from: usize, to: usize) -> Result<Option<usize>> {
    let (mut at, mut free) = (from, 0);
    while at < to && free < count {
        free = step(segment, &mut at, free)?;
    }
    Ok((free == count).then(|| at - count))
}

/// Goes past a chunk or a run; returns how many chunks before are free then, if `free` were.
fn step(segment: &Segment, at: &mut usize, free: usize) -> Result<usize> {
    let (length, free) = match look(segment, *at)? {
        State::Free | State::Hole => (1, free + 1),
        State::Slab(_) | State::Retiring(_) => (1, 0),
        State::Run(chunks) => (chunks, 0),
    };
    *at = at.saturating_add(length);
    Ok(free)
}

/// Puts memory behind free chunks that have none.
fn fill_holes(segment: &Segment, first: usize, count: usize) -> Result<()> {
    for index in first..first + count {
        if look(segment, index)? == State::Hole {
            // If that fails, those that had memory may have lost it.
            for index in first..first + count {
                state(segment, index)?.store(State::Hole.word(), Relaxed);
            }
            segment.provide(segment.layout().chunk(first), count * CHUNK)?;
            for index in first..first + count {
                state(segment, index)?.store(State::Free.word(), Relaxed);
            }
            fault::point("chunk: holes filled");
            break;
        }
    }
    Ok(())
}

/// Runs of so many bytes are given back to the system when they are freed.
const GIVEN_BACK: usize = 1 << 20;

/// Frees the run that begins at `at`.
pub fn free_run(segment: &Segment, at: Offset) -> Result<()> {
    let first = number(segment, at)?;
    let State::Run(chunks) = look(segment, first)? else {
        return Err(Error::Corrupt("a run that is not there is freed"));
    };
    if segment.layout().chunk(first) != at || chunks > count(segment).saturating_sub(first) {
        return Err(Error::Corrupt("a run is freed that begins or ends elsewhere"));
    }
    let mut after = State::Free;
    if chunks * CHUNK >= GIVEN_BACK {
        after = State::Hole;
        for index in first + 1..first + chunks {
            state(segment, index)?.store(after.word(), Relaxed);
        }
        fault::point("chunk: holes noted");
        segment.give_back(at, chunks * CHUNK);
        fault::point("chunk: memory given back");
    }
    let run = State::Run(chunks).word();
    state(segment, first)?
        .compare_exchange(run, after.word(), SeqCst, Relaxed)
        .map_err(|_| Error::Corrupt("a run was freed twice"))?;
    fault::point("chunk: run freed");
    Ok(())
}

/// How many chunks the heap has beside the reserve.
pub fn grown(segment: &Segment) -> usize {
    count(segment).saturating_sub(segment.layout().reserve)
}

/// How many of those are used.
pub fn used(segment: &Segment) -> Result<usize> {
    let total = count(segment);
    let (mut at, mut used) = (segment.layout().reserve, 0_usize);
    while at < total {
        let start = at;
        if step(segment, &mut at, 0)? == 0 {
            used = used.saturating_add(at - start);
        }
    }
    Ok(used)
}

/// Gives the memory of free chunks back to the system, except that of the reserve and of the first
/// `spare` ones; returns how many chunks have none any more. The caller holds the lock of the
/// chunks, and nobody frees any.
pub fn give_back(segment: &Segment, spare: usize) -> Result<usize> {
    let total = count(segment);
    let (mut at, mut kept, mut given) = (segment.layout().reserve, 0, 0);
    while at < total {
        let start = at;
        while at < total && matches!(look(segment, at)?, State::Free | State::Hole) {
            at += 1;
        }
        let spared = (spare - kept).min(at - start);
        kept += spared;
        let (first, count) = (start + spared, at - start - spared);
        if count * CHUNK >= GIVEN_BACK {
            // Holes first: a chunk that is free has memory, whoever dies. Those that are holes
            // already may have some from somebody who died here.
            for hole in first..at {
                state(segment, hole)?.store(State::Hole.word(), SeqCst);
            }
            fault::point("chunk: free ones become holes");
            segment.give_back(segment.layout().chunk(first), count * CHUNK);
            given += count;
        }
        if at < total {
            step(segment, &mut at, 0)?;
        }
    }
    Ok(given)
}

/// How many chunks at the end of the heap are free.
fn free_at_end(segment: &Segment) -> Result<usize> {
    let total = count(segment);
    let (mut at, mut free) = (segment.layout().reserve, 0);
    while at < total {
        free = step(segment, &mut at, free)?;
    }
    Ok(free)
}

/// A heap grows by so many chunks at first.
const FIRST_GROWTH: usize = if cfg!(loom) { 1 } else { 8 };
/// It doubles until it grows by so many, which it then does at least.
const LEAST_GROWTH: usize = if cfg!(loom) { 1 } else { 32 };

/// Makes the heap so much longer that it ends with at least `count` free chunks, of which it has
/// fewer. The caller holds the lock of the chunks.
///
/// # Errors
/// [`Error::Full`]; the heap stays as it is.
pub fn grow(segment: &Segment, count: usize) -> Result<()> {
    let layout = segment.layout();
    let total = self::count(segment);
    let left = layout.chunks - total;
    let needed = count.saturating_sub(free_at_end(segment)?).max(1);
    if needed > left {
        let wanted = count.saturating_mul(CHUNK);
        return Err(Error::Full {
            wanted,
            limit: "it has reached its max_size; make it with a larger one",
        });
    }
    let provide = |more: usize| -> Result<()> {
        segment.provide(layout.states + total * 8, more * 8)?;
        segment.provide(layout.bitmaps + total * BITMAP_SIZE, more * BITMAP_SIZE)?;
        segment.provide(layout.chunk(total), more * CHUNK)
    };
    // Half a mebibyte at first, as a small heap is to be there at once, and every page is cleared;
    // later an eighth more at a time, between 2 and 64 MiB: growing stays rare and waste small.
    let grown = grown(segment);
    let usual = (grown / 8).max(grown.min(LEAST_GROWTH)).clamp(FIRST_GROWTH, 1024);
    let mut more = needed.max(usual).min(left);
    if let Err(error) = provide(more) {
        if more == needed {
            return Err(error);
        }
        // What is enough may fit where a reserve does not.
        more = needed;
        provide(more)?;
    }
    fault::point("chunk: memory provided");
    segment.header().chunks.store((total + more) as u64, Release);
    fault::point("chunk: heap grown");
    Ok(())
}
