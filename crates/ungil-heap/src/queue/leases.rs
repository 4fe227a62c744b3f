//! Values that are out on a lease: whoever took one has it until it says that it is done with it. If
//! it dies before, the value is in the queue again, at its beginning.
//!
//! A row for each lease, of four words: the process that has it (its slot plus 1, and how often that
//! slot was taken), a number that no other lease of the queue has, and the cell. The rows are the
//! queue's, and so is what the cells refer to.
//!
//! Rows change in operations, with both ends locked until the operation has ended: so nobody sees a
//! beginning that an undone operation would take back.

use std::cell::Cell as Place;
use std::time::Instant;

use super::bell;
use super::ends::{Got, Keep};
use super::priority::DONE;
use super::{Locked, Queue, count};
use crate::atomic::Ordering::{Acquire, Relaxed};
use crate::object::{BODY, Owned, Visit};
use crate::op::Op;
use crate::process_table::{self, TAKEN};
use crate::segment::{Offset, Segment};
use crate::value::{self, Cell};
use crate::{Error, Heap, Result, fault, watch};

/// Words of a row.
const ROW: usize = 4;
/// Rows of the first table.
const FIRST: usize = 4;
/// The most rows: more than there are processes and threads.
const MOST: usize = 1 << 20;
/// Bits of the word that says where the rows are which say how many.
const LENGTH_BITS: u32 = 6;
/// Every so many leases somebody looks for those of the dead, though there is no need.
const NOW_AND_THEN: u64 = 64;

/// A lease of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    row: usize,
    number: u64,
    owner: u64,
}

/// Takes the first value out on a lease, and waits for one until `deadline`.
///
/// # Errors
/// As those of [`super::get`].
pub fn lease(
    heap: &Heap,
    at: Offset,
    deadline: Option<Instant>,
    keep: &mut Keep<'_>,
) -> Result<(Got, Option<Lease>)> {
    let queue = Queue::at(heap, at)?;
    if queue.control.leases.load(Relaxed) % NOW_AND_THEN == NOW_AND_THEN - 1 {
        queue.recover()?;
    }
    let leased = queue.wait_for_value(deadline, || queue.try_lease(keep))?;
    Ok(match leased {
        Ok((got, lease)) => {
            queue.tell_of_room(1);
            (got, Some(lease))
        }
        Err(none) => (none, None),
    })
}

/// Says that the value of a lease is done with, which counts as [`super::task_done`]. False: this
/// process does not have it, or not any more.
pub fn acknowledge(heap: &Heap, at: Offset, lease: &Lease) -> Result<bool> {
    let queue = Queue::at(heap, at)?;
    queue.me()?;
    let done = queue.with_both_ends(|op| {
        let Some((row, cell)) = queue.find(lease)? else { return Ok(None) };
        let done = queue.control.done.load(Relaxed);
        let left = count(done, queue.control.tail.load(Acquire));
        op.store(row, 0)?;
        value::discard(op, cell)?;
        // Somebody may have said so already, by `task_done`.
        if left > 0 {
            op.store(queue.at + DONE, done.wrapping_add(1))?;
        }
        Ok(Some(left))
    })?;
    if done == Some(1) {
        bell::ring_for_all(&queue.control.all_done);
    }
    if done.is_some() && queue.is_closed() {
        // Who waits whether it comes back need not wait any more.
        bell::ring_for_all(&queue.control.values);
        watch::tell(heap.segment(), queue.head, watch::CHANGE);
    }
    Ok(done.is_some())
}

/// Puts the value of a lease back, at the beginning of the queue. False: this process does not have
/// it, or not any more.
pub fn give_back(heap: &Heap, at: Offset, lease: &Lease) -> Result<bool> {
    let queue = Queue::at(heap, at)?;
    queue.me()?;
    let done = queue.with_both_ends(|op| {
        let Some((row, cell)) = queue.find(lease)? else { return Ok(false) };
        queue.insert_first(op, cell)?;
        op.store(row, 0)?;
        Ok(true)
    })?;
    if done {
        queue.tell_of_values(1);
    }
    Ok(done)
}

/// Puts values back whose processes have died; how many.
pub fn recover(heap: &Heap, at: Offset) -> Result<usize> {
    let queue = Queue::at(heap, at)?;
    queue.me()?;
    queue.recover()
}

/// How many values are out on leases.
pub fn leased(heap: &Heap, at: Offset) -> Result<usize> {
    let queue = Queue::at(heap, at)?;
    let _locked = queue.lock(&queue.control.get_lock, queue.me()?)?;
    let rows = queue.rows()?;
    let owner = |row: usize| Ok(rows.words(heap.segment(), row)?[0].load(Relaxed));
    let mut count = 0;
    for row in 0..rows.count {
        count += usize::from(owner(row)? != 0);
    }
    Ok(count)
}

/// The rows of a queue.
#[derive(Clone, Copy)]
struct Rows {
    at: Offset,
    count: usize,
}

impl Rows {
    fn of(word: u64) -> Result<Self> {
        if word == 0 {
            return Ok(Self { at: 0, count: 0 });
        }
        let length = word & ((1 << LENGTH_BITS) - 1);
        if 1 << length > MOST {
            return Err(Error::Corrupt("a queue with too many leases"));
        }
        Ok(Self { at: (word >> LENGTH_BITS) as usize, count: 1 << length })
    }

    const fn bytes(self) -> usize {
        self.count * ROW * 8
    }

    const fn place(self, row: usize) -> Offset {
        self.at.wrapping_add(row * ROW * 8)
    }

    fn words(self, segment: &Segment, row: usize) -> Result<&[crate::atomic::AtomicU64]> {
        segment.words(self.place(row), ROW)
    }

    /// Who has a row, and what is in it.
    fn read(self, segment: &Segment, row: usize) -> Result<(u64, u64, Cell)> {
        let words = self.words(segment, row)?;
        let [owner, number, first, second] = [0, 1, 2, 3].map(|word| words[word].load(Relaxed));
        Ok((owner, number, Cell(first, second)))
    }
}

/// Where the word that says where the rows are is.
const ROWS: usize = BODY + 24;

/// Calls `visit` with what the leases of a queue own.
pub(super) fn owned(segment: &Segment, word: u64, visit: &mut Visit<'_>) -> Result<()> {
    let rows = Rows::of(word)?;
    if rows.count == 0 {
        return Ok(());
    }
    visit(Owned::Block { at: rows.at, bytes: rows.bytes() })?;
    for row in 0..rows.count {
        let (owner, _, cell) = rows.read(segment, row)?;
        if owner != 0 {
            value::owned(segment, cell, visit)?;
        }
    }
    Ok(())
}

impl<'h> Queue<'h> {
    fn rows(&self) -> Result<Rows> {
        Rows::of(self.head.body[3].load(Acquire))
    }

    /// Changes the queue with both ends locked until the operation has ended, or is undone.
    pub(super) fn with_both_ends<T>(
        &self,
        mut work: impl FnMut(&mut Op<'h>) -> Result<T>,
    ) -> Result<T> {
        let locked: Place<Option<(Locked<'h>, Locked<'h>)>> = Place::new(None);
        let unlock = || drop(locked.take());
        let done = self.heap.change_and_let_go(
            |op| {
                let put = self.lock(&self.control.put_lock, op.me())?;
                locked.set(Some((put, self.lock(&self.control.get_lock, op.me())?)));
                work(op)
            },
            unlock,
        );
        unlock();
        fault::point("queue: both ends unlocked");
        done
    }

    /// Who this process is in the words of leases.
    fn owner(&self) -> Result<u64> {
        let slot = self.heap.slot();
        let generation = process_table::slot(self.heap.segment(), slot)?.generation.load(Relaxed);
        Ok((slot as u64 + 1) << 32 | u64::from(generation))
    }

    /// Takes the first value out on a lease, if there is one.
    fn try_lease(&self, keep: &mut Keep<'_>) -> Result<Option<(Got, Lease)>> {
        self.me()?;
        if self.is_empty() {
            return Ok(None);
        }
        let owner = self.owner()?;
        let number = self.control.leases.fetch_add(1, Relaxed);
        self.with_both_ends(|op| {
            let Some(cell) = self.remove_first(op)? else { return Ok(None) };
            let got = self.take_over(cell, keep)?;
            let (rows, row) = self.free_row(op)?;
            op.store_all(rows.place(row), &[owner, number, cell.0, cell.1])?;
            Ok(Some((got, Lease { row, number, owner })))
        })
    }

    /// A row that nobody has, which may have to be made.
    fn free_row(&self, op: &mut Op<'_>) -> Result<(Rows, usize)> {
        let segment = self.heap.segment();
        let rows = self.rows()?;
        for row in 0..rows.count {
            if rows.words(segment, row)?[0].load(Relaxed) == 0 {
                return Ok((rows, row));
            }
        }
        let count = (rows.count * 2).max(FIRST);
        if count > MOST {
            return Err(Error::Full { wanted: count, limit: "too many values are leased" });
        }
        let new = Rows { at: op.take_needed(count * ROW * 8)?, count };
        for row in 0..count {
            let to = new.words(segment, row)?;
            let from = if row < rows.count { Some(rows.words(segment, row)?) } else { None };
            for (index, word) in to.iter().enumerate() {
                word.store(from.map_or(0, |from| from[index].load(Relaxed)), Relaxed);
            }
        }
        let word = (new.at as u64) << LENGTH_BITS | u64::from(count.trailing_zeros());
        op.store(self.at + ROWS, word)?;
        if rows.count > 0 {
            op.free(rows.at, rows.bytes());
        }
        Ok((new, rows.count))
    }

    /// Where the row of a lease is, and the cell in it, if this process has it still.
    fn find(&self, lease: &Lease) -> Result<Option<(Offset, Cell)>> {
        let rows = self.rows()?;
        if lease.row >= rows.count || lease.owner != self.owner()? {
            return Ok(None);
        }
        let (owner, number, cell) = rows.read(self.heap.segment(), lease.row)?;
        let is_same = owner == lease.owner && number == lease.number;
        Ok(is_same.then(|| (rows.place(lease.row), cell)))
    }

    /// Whether the process that has a row is dead.
    fn is_dead(&self, owner: u64) -> Result<bool> {
        let Some(slot) = usize::try_from(owner >> 32).ok().and_then(|slot| slot.checked_sub(1))
        else {
            return Ok(false);
        };
        if slot == self.heap.slot() {
            return Ok(owner != self.owner()?);
        }
        let place = process_table::slot(self.heap.segment(), slot)?;
        let is_same = || u64::from(place.generation.load(Acquire)) == owner & u64::from(u32::MAX);
        if place.state.load(Acquire) == TAKEN && is_same() {
            // Either it is, or it is cleaned up behind, after which the slot is another's.
            self.heap.clean_slot(slot)?;
        }
        Ok(place.state.load(Acquire) != TAKEN || !is_same())
    }

    /// Puts values back whose processes have died; how many.
    pub(super) fn recover(&self) -> Result<usize> {
        if self.head.body[3].load(Acquire) == 0 {
            return Ok(0);
        }
        // Not in a transaction: others could take out what its end would undo.
        let me = self.me()?;
        let owners = {
            let _locked = self.lock(&self.control.get_lock, me)?;
            let (rows, mut owners) = (self.rows()?, Vec::new());
            for row in 0..rows.count {
                owners.push(rows.read(self.heap.segment(), row)?.0);
            }
            owners
        };
        let mut dead = Vec::new();
        for owner in owners {
            if owner != 0 && !dead.contains(&owner) && self.is_dead(owner)? {
                dead.push(owner);
            }
        }
        if dead.is_empty() {
            return Ok(0);
        }
        fault::point("queue: leases of the dead found");
        let recovered = self.with_both_ends(|op| {
            let rows = self.rows()?;
            let mut found = Vec::new();
            for row in 0..rows.count {
                let (owner, number, cell) = rows.read(self.heap.segment(), row)?;
                if dead.contains(&owner) {
                    found.push((number, row, cell));
                }
            }
            // The one that was taken first is to be the first again.
            found.sort_by_key(|(number, ..)| std::cmp::Reverse(*number));
            for (_, row, cell) in &found {
                self.insert_first(op, *cell)?;
                op.store(rows.place(*row), 0)?;
            }
            Ok(found.len())
        })?;
        if recovered > 0 {
            self.tell_of_values(recovered);
        }
        Ok(recovered)
    }

    /// Whether the queue is closed, has nothing, and gets nothing back: no other process has a lease.
    pub(super) fn is_over(&self) -> Result<bool> {
        if !self.is_closed() {
            return Ok(false);
        }
        let me = self.me()?;
        let _put = self.lock(&self.control.put_lock, me)?;
        let _get = self.lock(&self.control.get_lock, me)?;
        if !self.is_empty() {
            return Ok(false);
        }
        let (rows, owner) = (self.rows()?, self.owner()?);
        for row in 0..rows.count {
            let (others, ..) = rows.read(self.heap.segment(), row)?;
            if others != 0 && others != owner {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
