//! Blocks of equal size in a chunk.
//!
//! A block is taken by setting its bit in the chunk's bitmap and freed by clearing it: one atomic
//! instruction each, by any process, so that nothing can be torn and nothing needs to be locked
//! ([`crate::bitmap`]). A process that dies between taking a block and using it leaves a bit for
//! the collector.
//!
//! A slab whose bits are all clear can be retired ([`retire`]). Who takes a block finds that out
//! only after it has set a bit, and clears it again. So a bit can be set for a moment in a chunk
//! that is something else by then; therefore bitmaps lie outside of the chunks, and no one writes
//! zeros over one while others run.

use crate::atomic::{AtomicU64, Ordering::Acquire};
use crate::chunk::{self, State};
use crate::header::BITMAP_SIZE;
use crate::segment::{Offset, Segment};
use crate::size_class::{self, SIZES};
use crate::{Error, Result, bitmap, fault};

/// The bitmap of a chunk.
pub fn bitmap(segment: &Segment, chunk: usize) -> Result<&[AtomicU64]> {
    if chunk >= segment.layout().chunks {
        return Err(Error::Corrupt("a chunk that does not exist"));
    }
    segment.words(segment.layout().bitmaps + chunk * BITMAP_SIZE, BITMAP_SIZE / 8)
}

/// Takes a block of a slab, if it still is one of this class and has a free one. Looks from the
/// block with the number `from` on.
#[inline]
pub fn take(segment: &Segment, chunk: usize, class: u8, from: usize) -> Result<Option<Offset>> {
    let state = chunk::state(segment, chunk)?;
    let capacity = size_class::capacity(class);
    let bits = &bitmap(segment, chunk)?[..capacity.div_ceil(64)];
    let block = bitmap::take(state, State::Slab(class).word(), bits, capacity, from / 64);
    Ok(block.map(|block| segment.layout().chunk(chunk) + block * SIZES[usize::from(class)]))
}

/// Which bit stands for the block at `at`, which was taken for the class.
fn bit(segment: &Segment, at: Offset, class: u8) -> Result<(&AtomicU64, u64)> {
    let chunk = chunk::number(segment, at)?;
    let (slab, retiring) = (State::Slab(class).word(), State::Retiring(class).word());
    if !bitmap::is_in_use(chunk::state(segment, chunk)?, slab, retiring) {
        return Err(Error::Corrupt("a block is not in a slab of its size"));
    }
    let (size, inside) = (SIZES[usize::from(class)], at - segment.layout().chunk(chunk));
    let block = inside / size;
    if block * size != inside || block >= size_class::capacity(class) {
        return Err(Error::Corrupt("a block begins inside of another"));
    }
    Ok((&bitmap(segment, chunk)?[block / 64], 1 << (block % 64)))
}

/// Frees the block at `at`.
pub fn free(segment: &Segment, at: Offset, class: u8) -> Result<()> {
    let (word, mask) = bit(segment, at, class)?;
    if !bitmap::free(word, mask) {
        return Err(Error::Corrupt("a block was freed twice"));
    }
    fault::point("slab: bit cleared");
    Ok(())
}

/// Whether the block at `at` is taken.
pub fn is_taken(segment: &Segment, at: Offset, class: u8) -> Result<bool> {
    let (word, mask) = bit(segment, at, class)?;
    Ok(word.load(Acquire) & mask != 0)
}

/// Frees the chunk of a slab if all its blocks are free. The caller holds the lock of the chunks.
pub fn retire(segment: &Segment, chunk: usize, class: u8) -> Result<bool> {
    let words = (State::Slab(class).word(), State::Retiring(class).word(), State::Free.word());
    Ok(bitmap::retire(chunk::state(segment, chunk)?, words, bitmap(segment, chunk)?))
}
