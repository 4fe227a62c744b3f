//! The cells of a queue: where they are, how many, and what happens when they do not suffice.

use super::{MOST, Queue, count};
use crate::atomic::Ordering::{Acquire, Relaxed};
use crate::cells::{self, place};
use crate::object::Head;
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::value::Cell;
use crate::{Error, Result, fault};

/// Cells of a new ring, unless fewer are ever needed.
pub(super) const FIRST: usize = if cfg!(loom) { 2 } else { 64 };
/// How many bits of the word say how long the ring is.
const LENGTH_BITS: u32 = 6;

/// A ring of cells, as one word says that is in the body: replaced by one store.
#[derive(Clone, Copy)]
pub(super) struct Ring {
    pub(super) cells: Offset,
    /// How many there are, a power of two.
    pub(super) room: usize,
}

impl Ring {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
    pub(super) fn of(head: &Head) -> Result<Self> {
        let word = head.body[0].load(Acquire);
        let length = word & ((1 << LENGTH_BITS) - 1);
        if 1 << length > MOST {
            return Err(Error::Corrupt("a queue of an impossible size"));
        }
        Ok(Self { cells: (word >> LENGTH_BITS) as usize, room: 1 << length })
    }

    pub(super) const fn word(self) -> u64 {
        (self.cells as u64) << LENGTH_BITS | self.room.trailing_zeros() as u64
    }

    pub(super) const fn bytes(self) -> usize {
        self.room * Cell::SIZE
    }

    /// A new ring for at least so many values.
    pub(super) fn make(op: &mut Op<'_>, count: usize) -> Result<Self> {
        let room = count.next_power_of_two();
        Ok(Self { cells: op.take(room * Cell::SIZE)?, room })
    }

    /// Where the value with a position is.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
    pub(super) const fn cell(self, position: u64) -> Offset {
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
    /// Sees to it that there is a cell for one more value, if there can be one.
    #[cold]
    pub(super) fn grow(&self) -> Result<()> {
        self.heap.change(|op| {
            let put = self.lock(&self.control.put_lock, op.me())?;
            let get = self.lock(&self.control.get_lock, op.me())?;
            self.make_room(op)?;
            drop((get, put));
            Ok(())
        })
    }

    /// As above, for who has locked both ends.
    pub(super) fn make_room(&self, op: &mut Op<'_>) -> Result<()> {
        let old = Ring::of(self.head)?;
        let head = self.control.head.load(Relaxed);
        let length = count(head, self.control.tail.load(Relaxed));
        if length < old.room {
            return Ok(());
        }
        if length > old.room {
            return Err(Error::Corrupt("a queue has more values than room"));
        }
        if length >= MOST {
            return Err(Error::Full { wanted: length, limit: "a queue has at most 2^31 values" });
        }
        let segment = self.heap.segment();
        let new = Ring::make(op, old.room * 2)?;
        cells::check(segment, old.cells, old.room)?;
        for index in 0..length as u64 {
            let position = head.wrapping_add(index);
            new.write(segment, position, old.read(segment, position)?)?;
        }
        // The world may come to a stop and go on before the operation ends, but nobody else looks at
        // the old ring then.
        self.head.body[0].store(new.word(), crate::atomic::Ordering::Release);
        fault::point("queue: ring replaced");
        op.free(old.cells, old.bytes());
        Ok(())
    }
}
