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
use crate::header::{BITMAP_SIZE, CHUNK, GRANULE};
use crate::segment::{Offset, Segment};
use crate::{Error, Result, bitmap, fault};

/// The largest block that comes from a slab.
pub const LARGEST: usize = CHUNK / 2;

/// How many classes of blocks there are.
pub const CLASSES: usize = if cfg!(loom) { 16 } else { 40 };

/// Bytes of the blocks of each class: four sizes to each doubling, as in jemalloc.
pub const SIZES: [usize; CLASSES] = sizes();

const fn sizes() -> [usize; CLASSES] {
    let mut sizes = [0; CLASSES];
    let mut class = 0;
    let mut size = GRANULE;
    while class < sizes.len() {
        sizes[class] = size;
        size += if size < 128 { 16 } else { (1 << size.ilog2()) / 4 };
        class += 1;
    }
    sizes
}

const _: () = assert!(SIZES[SIZES.len() - 1] == LARGEST);

/// How many blocks of each class a slab has.
const CAPACITIES: [usize; CLASSES] = capacities();

const fn capacities() -> [usize; CLASSES] {
    let mut capacities = [0; CLASSES];
    let mut class = 0;
    while class < capacities.len() {
        capacities[class] = CHUNK / SIZES[class];
        class += 1;
    }
    capacities
}

/// The class whose blocks hold `bytes`, if there is one.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "there are few classes")]
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
    CAPACITIES[class as usize]
}

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
    let capacity = capacity(class);
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
    if block * size != inside || block >= capacity(class) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_a_size_is_the_smallest_that_holds_it() {
        for bytes in 0..=LARGEST {
            let class = usize::from(class(bytes).expect("it comes from a slab"));
            assert!(SIZES[class] >= bytes, "{bytes}");
            assert!(class == 0 || SIZES[class - 1] < bytes, "{bytes}");
        }
        assert_eq!(class(LARGEST + 1), None);
        assert_eq!(class(usize::MAX), None);
    }

    #[test]
    fn blocks_are_aligned_and_waste_little() {
        for pair in SIZES.windows(2) {
            assert!(pair[1].is_multiple_of(GRANULE) && pair[1] <= pair[0] * 2, "{pair:?}");
            assert!(pair[0] < 128 || pair[1] * 4 <= pair[0] * 5, "{pair:?}");
        }
    }
}
