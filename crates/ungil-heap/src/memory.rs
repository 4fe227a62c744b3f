//! Taking and freeing memory of the heap, whatever its size.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::chunk::{self, State};
use crate::header::CHUNK;
use crate::segment::{Offset, Segment};
use crate::slab;
use crate::{Error, Result};

/// Where this process looks first: for each class the slab in which it took or freed a block last.
///
/// Only hints: whatever they say, memory is taken where the bitmaps say that it is free. They keep
/// processes out of each other's slabs.
#[derive(Debug)]
pub struct Hints {
    /// Numbers of chunks, plus 1.
    slabs: [AtomicU32; slab::SIZES.len()],
    freed: [AtomicU32; slab::SIZES.len()],
    /// The block that was taken last.
    blocks: [AtomicU32; slab::SIZES.len()],
    chunk: AtomicUsize,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            slabs: [const { AtomicU32::new(0) }; slab::SIZES.len()],
            freed: [const { AtomicU32::new(0) }; slab::SIZES.len()],
            blocks: [const { AtomicU32::new(0) }; slab::SIZES.len()],
            chunk: AtomicUsize::new(0),
        }
    }
}

/// How many bytes are taken for a request of `bytes`.
pub const fn rounded(bytes: usize) -> usize {
    match slab::class(bytes) {
        Some(class) => slab::SIZES[class as usize],
        None => bytes.next_multiple_of(CHUNK),
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
    let block = (at - segment.layout().chunk(chunk)) / slab::SIZES[index];
    hints.slabs[index].store(chunk as u32 + 1, Relaxed);
    hints.blocks[index].store(block as u32, Relaxed);
}

/// Takes memory for `bytes` where the hints did not help. The caller holds the lock of the chunks.
///
/// # Errors
/// [`Error::Full`]; nothing has changed then.
pub fn take(segment: &Segment, hints: &Hints, bytes: usize) -> Result<Offset> {
    let Some(class) = slab::class(bytes) else {
        return take_run(segment, hints, bytes.div_ceil(CHUNK));
    };
    let cursor = hints.chunk.load(Relaxed);
    let chunk = match chunk::take(segment, 1, State::Slab(class), cursor)? {
        Some(chunk) => chunk,
        None => match take_anywhere(segment, hints, class)? {
            Some(at) => return Ok(at),
            None => match retire_all(segment)? {
                0 => {
                    chunk::grow(segment, 1)?;
                    free_chunk(segment, State::Slab(class), 1, cursor)?
                }
                _ => free_chunk(segment, State::Slab(class), 1, 0)?,
            },
        },
    };
    hints.chunk.store(chunk, Relaxed);
    match slab::take(segment, chunk, class, 0)? {
        Some(at) => {
            remember(segment, hints, chunk, class, at);
            Ok(at)
        }
        // Others were quicker to fill it: improbable, and the next chunk is ours to try.
        None => take(segment, hints, bytes),
    }
}

/// A block of any slab of the class.
fn take_anywhere(segment: &Segment, hints: &Hints, class: u8) -> Result<Option<Offset>> {
    let mut chunk = 0;
    while chunk < chunk::count(segment) {
        match State::from_word(chunk::state(segment, chunk)?.load(Relaxed))? {
            State::Slab(found) if found == class => {
                if let Some(at) = slab::take(segment, chunk, class, 0)? {
                    remember(segment, hints, chunk, class, at);
                    return Ok(Some(at));
                }
                chunk += 1;
            }
            State::Run(chunks) => chunk += chunks,
            _ => chunk += 1,
        }
    }
    Ok(None)
}

fn take_run(segment: &Segment, hints: &Hints, chunks: usize) -> Result<Offset> {
    let wanted = State::Run(chunks);
    let cursor = hints.chunk.load(Relaxed);
    let mut found = chunk::take(segment, chunks, wanted, cursor)?;
    if found.is_none() && retire_all(segment)? > 0 {
        found = chunk::take(segment, chunks, wanted, 0)?;
    }
    let first = match found {
        Some(first) => first,
        None => {
            chunk::grow(segment, chunks)?;
            free_chunk(segment, wanted, chunks, cursor)?
        }
    };
    Ok(segment.layout().chunk(first))
}

fn free_chunk(segment: &Segment, wanted: State, count: usize, cursor: usize) -> Result<usize> {
    chunk::take(segment, count, wanted, cursor)?
        .ok_or(Error::Corrupt("a chunk that was free is not"))
}

/// Frees the chunks of all empty slabs; returns how many.
pub fn retire_all(segment: &Segment) -> Result<usize> {
    let mut retired = 0;
    let mut chunk = 0;
    while chunk < chunk::count(segment) {
        match State::from_word(chunk::state(segment, chunk)?.load(Relaxed))? {
            State::Run(chunks) => chunk += chunks,
            State::Slab(class) => {
                retired += usize::from(slab::retire(segment, chunk, class)?);
                chunk += 1;
            }
            State::Retiring(class) => {
                // Whoever was at it died holding the lock that the caller holds now.
                chunk::state(segment, chunk)?.store(State::Slab(class).word(), Relaxed);
            }
            State::Free | State::Hole => chunk += 1,
        }
    }
    Ok(retired)
}

/// Frees a block of a slab.
pub fn free_block(segment: &Segment, hints: &Hints, at: Offset, class: u8) -> Result<()> {
    slab::free(segment, at, class)?;
    let chunk = chunk::number(segment, at)?;
    hints.freed[usize::from(class)]
        .store(u32::try_from(chunk).map_or(0, |chunk| chunk + 1), Relaxed);
    Ok(())
}

/// Frees a run. The caller holds the lock of the chunks.
pub fn free_run(segment: &Segment, at: Offset) -> Result<()> {
    let first = chunk::number(segment, at)?;
    match State::from_word(chunk::state(segment, first)?.load(Relaxed))? {
        State::Run(chunks) if segment.layout().chunk(first) == at => {
            chunk::free_run(segment, first, chunks)
        }
        _ => Err(Error::Corrupt("a run that is not there is freed")),
    }
}
