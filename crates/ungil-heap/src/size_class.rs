//! The sizes that blocks of the heap have, and which of them a request gets.

use crate::header::{CHUNK, GRANULE};

/// The largest block that comes from a slab.
pub const LARGEST: usize = CHUNK / 2;

/// How many classes of blocks there are.
pub const COUNT: usize = if cfg!(loom) { 16 } else { 40 };

/// Bytes of the blocks of each class: four sizes to each doubling, as in jemalloc.
pub const SIZES: [usize; COUNT] = sizes();

const fn sizes() -> [usize; COUNT] {
    let mut sizes = [0; COUNT];
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

/// How many blocks of each class a chunk has.
const CAPACITIES: [usize; COUNT] = capacities();

const fn capacities() -> [usize; COUNT] {
    let mut capacities = [0; COUNT];
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
pub const fn of(bytes: usize) -> Option<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_a_size_is_the_smallest_that_holds_it() {
        for bytes in 0..=LARGEST {
            let class = usize::from(of(bytes).expect("it comes from a slab"));
            assert!(SIZES[class] >= bytes, "{bytes}");
            assert!(class == 0 || SIZES[class - 1] < bytes, "{bytes}");
        }
        assert_eq!(of(LARGEST + 1), None);
        assert_eq!(of(usize::MAX), None);
    }

    #[test]
    fn blocks_are_aligned_and_waste_little() {
        for pair in SIZES.windows(2) {
            assert!(pair[1].is_multiple_of(GRANULE) && pair[1] <= pair[0] * 2, "{pair:?}");
            assert!(pair[0] < 128 || pair[1] * 4 <= pair[0] * 5, "{pair:?}");
        }
    }
}
