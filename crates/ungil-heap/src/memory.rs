//! Taking and freeing memory of the heap, whatever its size.

use std::ops::Range;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

use crate::chunk::{self, State};
use crate::header::CHUNK;
use crate::segment::{Offset, Segment};
use crate::{Error, Result, size_class, slab};

/// Where this process looks first: for each class the slab in which it took or freed a block last.
///
/// Only hints: whatever they say, memory is taken where the bitmaps say that it is free. They keep
/// processes out of each other's slabs.
#[derive(Debug)]
pub struct Hints {
    /// The slab in which a block was taken last: the number of its chunk, plus 1.
    slabs: [AtomicU32; size_class::COUNT],
    /// The number of that block.
    blocks: [AtomicU32; size_class::COUNT],
    /// The slab in which a block was freed last, like the other.
    freed: [AtomicU32; size_class::COUNT],
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            slabs: [const { AtomicU32::new(0) }; size_class::COUNT],
            freed: [const { AtomicU32::new(0) }; size_class::COUNT],
            blocks: [const { AtomicU32::new(0) }; size_class::COUNT],
        }
    }
}

impl Hints {
    /// Forgets all, in a forked child, so that it keeps out of its parent's slabs.
    pub fn clear(&self) {
        for hint in self.slabs.iter().chain(&self.freed) {
            hint.store(0, Relaxed);
        }
    }
}

/// How many bytes are taken for a request of `bytes`.
pub const fn rounded(bytes: usize) -> usize {
    match size_class::of(bytes) {
        Some(class) => size_class::SIZES[class as usize],
        None => bytes.div_ceil(CHUNK).saturating_mul(CHUNK),
    }
}

/// Takes a block from the slabs that the hints name, without a lock.
#[inline]
pub fn take_hinted(segment: &Segment, hints: &Hints, class: u8) -> Result<Option<Offset>> {
    let index = usize::from(class);
    for hint in [&hints.slabs[index], &hints.freed[index]] {
        let chunk = hint.load(Relaxed);
        if chunk == 0 {
            continue;
        }
        let chunk = chunk as usize - 1;
        let from = hints.blocks[index].load(Relaxed) as usize;
        if let Some(at) = slab::take(segment, chunk, class, from)? {
            remember(segment, hints, chunk, class, at);
            return Ok(Some(at));
        }
    }
    Ok(None)
}

#[expect(clippy::cast_possible_truncation, reason = "fewer than 2³² chunks and blocks")]
fn remember(segment: &Segment, hints: &Hints, chunk: usize, class: u8, at: Offset) {
    let index = usize::from(class);
    let block = (at - segment.layout().chunk(chunk)) / size_class::SIZES[index];
    hints.slabs[index].store(chunk as u32 + 1, Relaxed);
    hints.blocks[index].store(block as u32, Relaxed);
}

/// Takes memory for `bytes` where the hints did not help. The caller holds the lock of the chunks,
/// and is asked before the heap grows.
///
/// # Errors
/// [`Error::Full`], or what `before_growing` says; nothing has changed then.
pub fn take(
    segment: &Segment,
    hints: &Hints,
    bytes: usize,
    before_growing: &dyn Fn() -> Result<()>,
) -> Result<Offset> {
    let Some(class) = size_class::of(bytes) else {
        let chunks = bytes.div_ceil(CHUNK);
        let first = take_chunks(segment, chunks, State::Run(chunks), before_growing)?;
        return Ok(segment.layout().chunk(first));
    };
    loop {
        let chunk = match chunk::take(segment, 1, State::Slab(class))? {
            Some(chunk) => chunk,
            None => match take_anywhere(segment, hints, class)? {
                Some(at) => return Ok(at),
                None => take_chunks(segment, 1, State::Slab(class), before_growing)?,
            },
        };
        if let Some(at) = slab::take(segment, chunk, class, 0)? {
            remember(segment, hints, chunk, class, at);
            return Ok(at);
        }
        // Others were quicker to fill it, or its bitmap is damaged: there are only so many chunks.
    }
}

/// Takes memory of the reserve. The caller holds the lock of the chunks.
///
/// # Errors
/// [`Error::Full`] if that is used up, too; nothing has changed then.
pub fn take_reserved(segment: &Segment, bytes: usize) -> Result<Offset> {
    let full = Error::Full { wanted: bytes, limit: "its reserve is used up" };
    let take_chunks = |count, wanted| {
        let found = chunk::take_reserved(segment, count, wanted)?;
        if found.is_none() && retire(segment, 0..segment.layout().reserve)? > 0 {
            return chunk::take_reserved(segment, count, wanted);
        }
        Ok(found)
    };
    let Some(class) = size_class::of(bytes) else {
        let chunks = bytes.div_ceil(CHUNK);
        let first = take_chunks(chunks, State::Run(chunks))?.ok_or(full)?;
        return Ok(segment.layout().chunk(first));
    };
    for chunk in 0..segment.layout().reserve {
        if let Some(at) = slab::take(segment, chunk, class, 0)? {
            return Ok(at);
        }
    }
    let chunk = take_chunks(1, State::Slab(class))?;
    // Its bitmap can be damaged, but nobody else takes from it while this one has the lock.
    let taken = chunk.map(|chunk| slab::take(segment, chunk, class, 0)).transpose()?;
    taken.flatten().ok_or(full)
}

/// A block of any slab of the class, not in the reserve, looked for after the one where the last block was had.
fn take_anywhere(segment: &Segment, hints: &Hints, class: u8) -> Result<Option<Offset>> {
    let (reserve, total) = (segment.layout().reserve, chunk::count(segment));
    let last = hints.slabs[usize::from(class)].load(Relaxed) as usize;
    let from = last.max(reserve).min(total);
    // One by one, also through runs: what lies inside of one never says that it is a slab.
    for chunk in (from..total).chain(reserve..from) {
        if let Some(at) = slab::take(segment, chunk, class, 0)? {
            remember(segment, hints, chunk, class, at);
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Takes chunks, if need be from empty slabs or from the system.
fn take_chunks(
    segment: &Segment,
    count: usize,
    wanted: State,
    before_growing: &dyn Fn() -> Result<()>,
) -> Result<usize> {
    let find = || chunk::take(segment, count, wanted);
    if let Some(first) = find()? {
        return Ok(first);
    }
    if retire_all(segment)? > 0
        && let Some(first) = find()?
    {
        return Ok(first);
    }
    before_growing()?;
    chunk::grow(segment, count)?;
    find()?.ok_or(Error::Corrupt("a chunk that was free is not"))
}

/// Frees the chunks of all empty slabs; returns how many. The caller holds the lock of the chunks.
pub fn retire_all(segment: &Segment) -> Result<usize> {
    retire(segment, 0..chunk::count(segment))
}

fn retire(segment: &Segment, chunks: Range<usize>) -> Result<usize> {
    let mut retired = 0;
    let mut chunk = chunks.start;
    while chunk < chunks.end {
        let state = chunk::state(segment, chunk)?;
        let mut length = 1;
        match State::from_word(state.load(Relaxed))? {
            State::Run(chunks) => length = chunks,
            State::Slab(class) => retired += usize::from(slab::retire(segment, chunk, class)?),
            State::Retiring(class) => {
                // Whoever was at it died holding the lock that the caller holds now. `SeqCst` as
                // elsewhere: who takes a block has seen that the heap reaches so far.
                state.store(State::Slab(class).word(), SeqCst);
                retired += usize::from(slab::retire(segment, chunk, class)?);
            }
            State::Free | State::Hole => {}
        }
        chunk = chunk.saturating_add(length);
    }
    Ok(retired)
}

/// Frees a block of a slab.
pub fn free_block(segment: &Segment, hints: &Hints, at: Offset, class: u8) -> Result<()> {
    slab::free(segment, at, class)?;
    let chunk = chunk::number(segment, at)?;
    if chunk >= segment.layout().reserve {
        hints.freed[usize::from(class)]
            .store(u32::try_from(chunk).map_or(0, |chunk| chunk + 1), Relaxed);
    }
    Ok(())
}

/// Frees memory of `bytes`, as it was taken. Needs no lock, and waits for nobody.
#[inline]
pub fn free(segment: &Segment, hints: &Hints, at: Offset, bytes: usize) -> Result<()> {
    match size_class::of(bytes) {
        Some(class) => free_block(segment, hints, at, class),
        None => chunk::free_run(segment, at),
    }
}
