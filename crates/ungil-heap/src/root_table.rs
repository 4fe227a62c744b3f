//! Where it is written what a process holds: a table in the heap, with a reference for each object that
//! the process has something in hand for.
//!
//! Each process writes its own table, under a lock of its own that serves its threads. If the process
//! dies, its table counts for nothing but its pins: the next collection finds the references gone. So
//! nothing here needs to be undone, and the order of steps does not matter.
//!
//! An entry has three words:
//!
//! | word | an object is held | free |
//! |---|---|---|
//! | 0 | its offset | 0 |
//! | 1 | its serial number | the next free entry, plus 1, or 0 |
//! | 2 | 0, or the nonce of a pin ([`crate::pin`]) | anything |
//!
//! What is held in a transaction stays held when that fails, except objects that were made in it:
//! their entries lead nowhere, which their serial numbers tell.

use crate::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::chunk::{self, State};
use crate::header::CHUNK;
use crate::process_table::Slot;
use crate::segment::{Offset, Segment};
use crate::{Result, object, size_class};

/// Words of an entry.
pub(crate) const ENTRY: usize = 3;
/// Bytes of an entry.
pub(crate) const ENTRY_SIZE: usize = ENTRY * 8;

/// An entry of a table, in which an object is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: Offset,
    pub(crate) serial: u32,
    /// Not 0 for a pin.
    pub(crate) nonce: u64,
}

impl Entry {
    /// Whether the object is still there.
    pub(crate) fn is_alive(&self, segment: &Segment) -> Result<bool> {
        let head = object::head(segment, self.at)?;
        Ok(head.serial() == self.serial && head.references() > 0)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub(crate) fn read(words: &[AtomicU64]) -> Self {
        Self {
            at: words[0].load(Relaxed) as Offset,
            serial: words[1].load(Relaxed) as u32,
            nonce: words[2].load(Relaxed),
        }
    }

    #[inline]
    pub(crate) fn write(self, words: &[AtomicU64]) {
        words[2].store(self.nonce, Relaxed);
        words[1].store(u64::from(self.serial), Relaxed);
        words[0].store(self.at as u64, Release);
    }
}

/// Where a process's table is, and how many bytes it has.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "64-bit machines only; and it is checked later"
)]
pub(crate) fn location(slot: &Slot) -> Option<(Offset, usize)> {
    let at = slot.roots.load(Acquire) as Offset;
    (at != 0).then(|| (at, slot.roots_size.load(Relaxed) as usize))
}

/// The entries of a process's table in which something is held. Others do not change it meanwhile.
pub(crate) fn entries<'s>(
    segment: &'s Segment,
    slot: &Slot,
) -> Result<impl Iterator<Item = Entry> + use<'s>> {
    let words = words(segment, slot)?;
    Ok(words.chunks_exact(ENTRY).map(Entry::read).filter(|entry| entry.at != 0))
}

/// Whether handles of a process are on their way, which has ended or is looked at by itself. One that
/// died while it published a new table has lost them.
pub(crate) fn has_pins(segment: &Segment, slot: &Slot) -> bool {
    let Some((at, bytes)) = location(slot) else { return false };
    let size = chunk::number(segment, at)
        .and_then(|chunk| State::from_word(chunk::state(segment, chunk)?.load(Acquire)))
        .map(|state| match state {
            State::Slab(class) | State::Retiring(class) => size_class::SIZES[usize::from(class)],
            State::Run(chunks) => chunks.saturating_mul(CHUNK),
            _ => 0,
        });
    size.is_ok_and(|size| size == bytes)
        && entries(segment, slot).is_ok_and(|mut held| held.any(|entry| entry.nonce != 0))
}

/// All words of a process's table.
#[inline]
pub(crate) fn words<'s>(segment: &'s Segment, slot: &Slot) -> Result<&'s [AtomicU64]> {
    match location(slot) {
        None => Ok(&[]),
        Some((at, bytes)) => segment.words(at, bytes / 8),
    }
}
