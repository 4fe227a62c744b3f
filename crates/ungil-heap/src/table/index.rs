//! The index of a table: slots of 32 bits, two in a word of the heap.

use crate::atomic::{AtomicU64, Ordering::Relaxed};

/// 2^b slots, or none.
#[derive(Clone, Copy)]
pub(super) struct Index<'s>(pub(super) &'s [AtomicU64]);

impl<'s> Index<'s> {
    #[inline]
    fn slots(self) -> u32 {
        u32::try_from(self.0.len() * 2).expect("a table has at most 2^31 slots")
    }

    /// The bits of a hash that say where a search begins, and of a slot that name an entry.
    #[inline]
    fn mask(self) -> u32 {
        self.slots().wrapping_sub(1)
    }

    /// What the slots contain where a search for a hash passes, up to the first free one at most;
    /// that one contains 0. Nothing is free in a damaged index.
    #[inline]
    pub(super) fn search(self, hash: u32) -> impl Iterator<Item = (u32, u32)> + use<'s> {
        let mask = self.mask();
        (0..self.slots()).map(move |step| {
            let slot = hash.wrapping_add(step) & mask;
            let word = self.0[slot as usize / 2].load(Relaxed);
            #[expect(clippy::cast_possible_truncation, reason = "one slot of the two is meant")]
            (slot, (word >> (slot % 2 * 32)) as u32)
        })
    }

    /// What the slot of an entry contains.
    #[inline]
    pub(super) fn content(self, hash: u32, number: u32) -> u32 {
        hash & !self.mask() | number.wrapping_add(1)
    }

    /// The number of the entry that a slot names, if its hash can be this one.
    #[inline]
    pub(super) fn number(self, content: u32, hash: u32) -> Option<usize> {
        let mask = self.mask();
        if (content ^ hash) & !mask == 0 {
            Some(((content & mask) as usize).wrapping_sub(1))
        } else {
            None
        }
    }

    /// The word that a slot is part of, with the slot containing this; and that word's number.
    #[inline]
    pub(super) fn with(self, slot: u32, content: u32) -> Option<(usize, u64)> {
        let number = slot as usize / 2;
        let shift = slot % 2 * 32;
        let others = self.0.get(number)?.load(Relaxed) & !(u64::from(u32::MAX) << shift);
        Some((number, others | u64::from(content) << shift))
    }
}
