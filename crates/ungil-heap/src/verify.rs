//! Looks whether a heap is whole, and whether anything of it is lost.

use std::time::Duration;

use crate::atomic::Ordering::Relaxed;
use crate::header::CHUNK;
use crate::mark::{Reached, Use};
use crate::segment::Segment;
use crate::world::Stillness;
use crate::{Error, Heap, Result, object, size_class, slab};

/// What a heap that is whole has in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Objects that can be reached.
    pub objects: usize,
    /// Bytes that are taken.
    pub taken_bytes: usize,
    /// Of these, bytes that can be reached.
    pub reached_bytes: usize,
    /// References that are counted and do not exist.
    pub excess: u64,
    /// Bits that say that there is a block where none can be.
    pub stray_bits: usize,
}

impl Verified {
    /// Bytes that are taken and cannot be reached: garbage in cycles, and what dead processes left.
    /// After a collection there are none.
    pub const fn lost_bytes(&self) -> usize {
        self.taken_bytes - self.reached_bytes
    }

    /// Whether nothing is lost and every count is exact, as after a collection.
    pub const fn is_exact(&self) -> bool {
        self.taken_bytes == self.reached_bytes && self.excess == 0 && self.stray_bits == 0
    }
}

impl Heap {
    /// Walks the whole heap while the world stands still. `None`: it did not within `patience`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] unless everything that can be reached is taken, belongs to one object and
    /// overlaps nothing, and has at least as many references counted as there are.
    pub fn verify(&self, patience: Duration) -> Result<Option<Verified>> {
        let Some(_still) = Stillness::begin(self, patience)? else { return Ok(None) };
        let reached = Reached::walk(&self.segment)?;
        count(&self.segment, &reached).map(Some)
    }
}

/// Compares what is reached with what is taken and counted.
pub(crate) fn count(segment: &Segment, reached: &Reached) -> Result<Verified> {
    let mut found = Verified { objects: reached.objects.len(), ..Verified::default() };
    for &at in &reached.objects {
        let counted = object::head(segment, at)?.references();
        let excess = counted
            .checked_sub(reached.references(at))
            .ok_or(Error::Corrupt("an object has fewer references than there are to it"))?;
        found.excess += u64::from(excess);
    }
    for (chunk, used) in reached.chunks.iter().enumerate() {
        let marks = reached.marks(chunk);
        let bits = slab::bitmap(segment, chunk)?;
        let taken: usize = bits.iter().map(|word| word.load(Relaxed).count_ones() as usize).sum();
        match *used {
            Use::Slab(class) => {
                let (size, capacity) =
                    (size_class::SIZES[usize::from(class)], size_class::capacity(class));
                let beyond = beyond(bits.iter().map(|word| word.load(Relaxed)), capacity);
                let reached: usize = marks.iter().map(|word| word.count_ones() as usize).sum();
                found.stray_bits += beyond;
                found.taken_bytes += (taken - beyond) * size;
                found.reached_bytes += reached * size;
            }
            Use::Run(chunks) => {
                found.stray_bits += taken;
                found.taken_bytes += chunks * CHUNK;
                found.reached_bytes += if marks[0] == 0 { 0 } else { chunks * CHUNK };
            }
            Use::Free | Use::Inner => found.stray_bits += taken,
        }
    }
    Ok(found)
}

/// How many bits are set from bit number `capacity` on.
fn beyond(words: impl Iterator<Item = u64>, capacity: usize) -> usize {
    words
        .zip((0..).step_by(64))
        .map(|(word, first): (u64, usize)| match capacity.saturating_sub(first) {
            64.. => 0,
            inside => (word >> inside).count_ones() as usize,
        })
        .sum()
}
