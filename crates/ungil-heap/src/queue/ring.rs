//! The cells of a queue: where they are, how many, and what happens when they do not suffice.

use super::{MOST, Queue, count, is_ordered};
use crate::atomic::Ordering::{Acquire, Relaxed};
use crate::cells::{self, place};
use crate::object::Head;
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::value::Cell;
use crate::{Error, Result, fault};

/// Cells of a new ring, unless fewer are ever needed.
const FIRST: usize = if cfg!(loom) { 2 } else { 64 };
/// How many bits of the word say how long the ring is.
const LENGTH_BITS: u32 = 6;

/// A ring of cells, as one word says that is in the body: replaced by one store.
#[derive(Clone, Copy)]
pub(super) struct Ring {
    pub(super) cells: Offset,
    /// How many values fit in, a power of two.
    pub(super) room: usize,
    /// How many cells there are for each.
    width: usize,
}

impl Ring {
    #[inline]
    pub(super) fn of(head: &Head) -> Result<Self> {
        let word = head.body[0].load(Acquire);
        let length = word & ((1 << LENGTH_BITS) - 1);
        if 1 << length > MOST {
            return Err(Error::Corrupt("a queue of an impossible size"));
        }
        let cells = (word >> LENGTH_BITS) as usize;
        Ok(Self { cells, room: 1 << length, width: if is_ordered(head) { 2 } else { 1 } })
    }

    /// That of a new queue.
    pub(super) fn first(op: &mut Op<'_>, limit: Option<usize>, is_ordered: bool) -> Result<Self> {
        let room = limit.unwrap_or(FIRST).min(FIRST).next_power_of_two();
        Self::make(op, room, if is_ordered { 2 } else { 1 })
    }

    fn make(op: &mut Op<'_>, room: usize, width: usize) -> Result<Self> {
        Ok(Self { cells: op.take(room * width * Cell::SIZE)?, room, width })
    }

    /// As above, for what is put back: also where there is no memory but the reserve.
    fn make_needed(op: &mut Op<'_>, room: usize, width: usize) -> Result<Self> {
        Ok(Self { cells: op.take_needed(room * width * Cell::SIZE)?, room, width })
    }

    pub(super) const fn word(self) -> u64 {
        (self.cells as u64) << LENGTH_BITS | self.room.trailing_zeros() as u64
    }

    pub(super) const fn bytes(self) -> usize {
        self.room * self.width * Cell::SIZE
    }

    /// Whether it lies where the heap has memory.
    pub(super) fn check(self, segment: &Segment) -> Result<()> {
        cells::check(segment, self.cells, self.room * self.width)
    }

    /// Where the value with a position is.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
    const fn cell(self, position: u64) -> Offset {
        place(self.cells, position as usize & (self.room - 1))
    }

    #[inline]
    pub(super) fn read(self, segment: &Segment, position: u64) -> Result<Cell> {
        Cell::read(segment, self.cell(position))
    }

    /// Writes a value where nobody looks yet.
    #[inline]
    pub(super) fn write(self, segment: &Segment, position: u64, cell: Cell) -> Result<()> {
        for (word, value) in segment.words(self.cell(position), 2)?.iter().zip(cell.words()) {
            word.store(value, Relaxed);
        }
        fault::point("queue: cell written");
        Ok(())
    }
}

impl Queue<'_> {
    /// Sees to it that there are cells for so many values more, if there can be.
    #[cold]
    pub(super) fn grow(&self, more: usize) -> Result<()> {
        self.with_both_ends(|op| self.make_room(op, more, Ring::make))
    }

    /// As above, for one value that is put back. The caller has locked both ends until the operation
    /// has ended.
    pub(super) fn make_needed_room(&self, op: &mut Op<'_>) -> Result<()> {
        self.make_room(op, 1, Ring::make_needed)
    }

    fn make_room(
        &self,
        op: &mut Op<'_>,
        more: usize,
        make: impl Fn(&mut Op<'_>, usize, usize) -> Result<Ring>,
    ) -> Result<()> {
        let old = Ring::of(self.head)?;
        let head = self.control.head.load(Relaxed);
        let length = count(head, self.control.tail.load(Relaxed));
        if length > old.room {
            return Err(Error::Corrupt("a queue has more values than room"));
        }
        let wanted = length.saturating_add(more);
        if wanted <= old.room {
            return Ok(());
        }
        if wanted > MOST {
            return Err(Error::Full { wanted, limit: "a queue has at most 2^31 values" });
        }
        let segment = self.heap.segment();
        let new = make(op, wanted.next_power_of_two(), old.width)?;
        old.check(segment)?;
        if old.width == 1 {
            for index in 0..length as u64 {
                let position = head.wrapping_add(index);
                new.write(segment, position, old.read(segment, position)?)?;
            }
        } else {
            cells::copy(segment, old.cells, new.cells, length * old.width)?;
        }
        op.store(self.at + crate::object::BODY, new.word())?;
        fault::point("queue: ring replaced");
        op.free(old.cells, old.bytes());
        Ok(())
    }
}
