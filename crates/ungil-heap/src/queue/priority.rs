//! Queues that give the least value first: a binary heap of entries, in the place of the ring.
//!
//! An entry has four words: the cell, a number that says which of two equal values was put in
//! earlier, and nothing. Both ends are locked for every change, which is an operation: it is undone
//! if it does not end.

use std::cmp::Ordering;

use super::ring::Ring;
use super::{CONTROL, Control, Queue, count};
use crate::atomic::Ordering::Relaxed;
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::value::{self, Cell};
use crate::{Error, Result};

/// Words of an entry.
const ENTRY: usize = 4;
/// Where the positions of a queue are, from its beginning on.
pub(super) const HEAD: usize = CONTROL + std::mem::offset_of!(Control, head);
pub(super) const DONE: usize = CONTROL + std::mem::offset_of!(Control, done);
pub(super) const TAIL: usize = CONTROL + std::mem::offset_of!(Control, tail);

#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) cell: Cell,
    number: u64,
}

impl Entry {
    pub(super) fn read(segment: &Segment, ring: Ring, index: usize) -> Result<Self> {
        let words = segment.words(place(ring, index), ENTRY)?;
        let [first, second, number] = [0, 1, 2].map(|word| words[word].load(Relaxed));
        Ok(Self { cell: Cell(first, second), number })
    }

    const fn words(self) -> [u64; ENTRY] {
        [self.cell.0, self.cell.1, self.number, 0]
    }

    /// Whether it stands before another one.
    fn is_before(&self, other: &Self, segment: &Segment) -> Result<bool> {
        let order = if let (Some(one), Some(other)) = (self.cell.int(), other.cell.int()) {
            one.cmp(&other)
        } else {
            let one = value::load(segment, self.cell)?;
            value::order(&one, &value::load(segment, other.cell)?)
        };
        Ok(order.then(self.number.cmp(&other.number)) == Ordering::Less)
    }
}

const fn place(ring: Ring, index: usize) -> Offset {
    ring.cells.wrapping_add(index.wrapping_mul(ENTRY * 8))
}

impl Queue<'_> {
    /// How many values there are, for who has locked both ends.
    fn ordered_length(&self, ring: Ring) -> Result<usize> {
        let head = self.control.head.load(Relaxed);
        let length = count(head, self.control.tail.load(Relaxed));
        if length > ring.room {
            return Err(Error::Corrupt("a queue has more values than room"));
        }
        Ok(length)
    }

    /// Adds a value to the others, for which there is room; `number` is the least of those of equal values.
    pub(super) fn insert_ordered(&self, op: &mut Op<'_>, cell: Cell, number: u64) -> Result<()> {
        let (segment, ring) = (self.heap.segment(), Ring::of(self.head)?);
        let new = Entry { cell, number };
        let mut index = self.ordered_length(ring)?;
        while let Some(above) = index.checked_sub(1).map(|before| before / 2) {
            let other = Entry::read(segment, ring, above)?;
            if !new.is_before(&other, segment)? {
                break;
            }
            op.store_all(place(ring, index), &other.words())?;
            index = above;
        }
        op.store_all(place(ring, index), &new.words())
    }

    /// Takes the least value out; the caller moves the beginning.
    pub(super) fn remove_ordered(&self, op: &mut Op<'_>) -> Result<Option<Cell>> {
        let (segment, ring) = (self.heap.segment(), Ring::of(self.head)?);
        let Some(length) = self.ordered_length(ring)?.checked_sub(1) else { return Ok(None) };
        let first = Entry::read(segment, ring, 0)?;
        let last = Entry::read(segment, ring, length)?;
        let mut index = 0;
        loop {
            let mut below = index * 2 + 1;
            if below >= length {
                break;
            }
            let mut least = Entry::read(segment, ring, below)?;
            if below + 1 < length {
                let right = Entry::read(segment, ring, below + 1)?;
                if right.is_before(&least, segment)? {
                    (below, least) = (below + 1, right);
                }
            }
            if !least.is_before(&last, segment)? {
                break;
            }
            op.store_all(place(ring, index), &least.words())?;
            index = below;
        }
        if length > 0 {
            op.store_all(place(ring, index), &last.words())?;
        }
        Ok(Some(first.cell))
    }
}
