//! Blocks of equal size in a chunk.
//!
//! A block is taken by setting its bit in the chunk's bitmap and freed by clearing it: one atomic
//! instruction each, by any process, so that nothing can be torn and nothing needs to be locked.
//! A process that dies between taking a block and using it leaves a bit for the collector.
//!
//! A slab whose bits are all clear can be retired ([`retire`]). Who takes a block looks at the
//! state of the chunk *after* setting the bit, and clears it again if the chunk is no slab of that
//! class any more. So a bit can be set for a moment in a chunk that is something else; therefore
//! bitmaps lie outside of the chunks, and no one writes zeros over one.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
};

use crate::chunk::{self, State};
use crate::header::{BITMAP_SIZE, CHUNK};
use crate::segment::{Offset, Segment};
use crate::{Error, Result, fault};

/// The largest block that comes from a slab.
pub const LARGEST: usize = 32 << 10;

/// Bytes of the blocks of each class: four sizes to each doubling, as in jemalloc.
pub const SIZES: [usize; 40] = sizes();

const fn sizes() -> [usize; 40] {
    let mut sizes = [0; 40];
    let mut class = 0;
    let mut size = 16_usize;
    while class < 40 {
        sizes[class] = size;
        size += if size < 128 { 16 } else { (1 << size.ilog2()) / 4 };
        class += 1;
    }
    sizes
}

const _: () = assert!(SIZES[39] == LARGEST);

/// The class whose blocks hold `bytes`, if there is one.
#[inline]
pub const fn class(bytes: usize) -> Option<u8> {
    if bytes <= 128 {
        return Some((bytes.saturating_sub(1) / 16) as u8);
    }
    if bytes > LARGEST {
        return None;
    }
    let doubling = (bytes - 1).ilog2();
    let quarter = ((bytes - 1) >> (doubling - 2)) & 3;
    Some((8 + (doubling as usize - 7) * 4 + quarter) as u8)
}

/// How many blocks of a class a slab has.
#[inline]
pub const fn capacity(class: u8) -> usize {
    CHUNK / SIZES[class as usize]
}

/// The bitmap of a chunk.
pub fn bitmap(segment: &Segment, chunk: usize) -> Result<&[AtomicU64]> {
    if chunk >= segment.layout().chunks {
        return Err(Error::Corrupt("a chunk that does not exist"));
    }
    segment.words(segment.layout().bitmaps + chunk * BITMAP_SIZE, BITMAP_SIZE / 8)
}

/// Takes a block of a slab, if it still is one of this class and has a free one. `from` is a block
/// to begin to look at.
pub fn take(segment: &Segment, chunk: usize, class: u8, from: usize) -> Result<Option<Offset>> {
    let state = chunk::state(segment, chunk)?;
    if state.load(Relaxed) != State::Slab(class).word() {
        return Ok(None);
    }
    let capacity = capacity(class);
    let bitmap = &bitmap(segment, chunk)?[..capacity.div_ceil(64)];
    let first = (from / 64) % bitmap.len();
    for index in (first..bitmap.len()).chain(0..first) {
        let word = &bitmap[index];
        loop {
            let bit = (!word.load(Relaxed)).trailing_zeros() as usize;
            let block = index * 64 + bit;
            if bit == 64 || block >= capacity {
                break;
            }
            if word.fetch_or(1 << bit, SeqCst) >> bit & 1 == 1 {
                continue;
            }
            fault::point("slab: bit set");
            if state.load(SeqCst) != State::Slab(class).word() {
                word.fetch_and(!(1 << bit), SeqCst);
                return Ok(None);
            }
            return Ok(Some(segment.layout().chunk(chunk) + block * SIZES[class as usize]));
        }
    }
    Ok(None)
}

/// Which bit stands for the block at `at`, which was taken for the class.
fn bit(segment: &Segment, at: Offset, class: u8) -> Result<(&AtomicU64, u64)> {
    let chunk = chunk::number(segment, at)?;
    if chunk::state(segment, chunk)?.load(Relaxed) != State::Slab(class).word() {
        return Err(Error::Corrupt("a block is not in a slab of its size"));
    }
    let (size, inside) = (SIZES[class as usize], at - segment.layout().chunk(chunk));
    if !inside.is_multiple_of(size) || inside / size >= capacity(class) {
        return Err(Error::Corrupt("a block begins inside of another"));
    }
    let block = inside / size;
    Ok((&bitmap(segment, chunk)?[block / 64], 1 << (block % 64)))
}

/// Frees the block at `at`.
pub fn free(segment: &Segment, at: Offset, class: u8) -> Result<()> {
    let (word, mask) = bit(segment, at, class)?;
    if word.fetch_and(!mask, SeqCst) & mask == 0 {
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
    let state = chunk::state(segment, chunk)?;
    let (slab, retiring) = (State::Slab(class).word(), State::Retiring(class).word());
    if state.compare_exchange(slab, retiring, SeqCst, Relaxed).is_err() {
        return Ok(false);
    }
    fault::point("slab: retiring");
    let is_empty = bitmap(segment, chunk)?.iter().all(|word| word.load(SeqCst) == 0);
    state.store(if is_empty { State::Free.word() } else { slab }, SeqCst);
    fault::point("slab: retired");
    Ok(is_empty)
}
