//! Putting in and taking out.

use std::time::Instant;

use super::bell::{self, Answer, Waiting};
use super::ring::Ring;
use super::{Locked, Queue, count};
use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::cells;
use crate::lock::Holder;
use crate::op::Op;
use crate::segment::Offset;
use crate::value::{self, Cell, Value};
use crate::{Error, Heap, Result, fault, memory};

use super::priority::{DONE, HEAD, TAIL};

/// What became of a value that was to be put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is in the queue.
    Done,
    /// There was no room before the deadline.
    Full,
    /// The queue is closed.
    Closed,
}

/// What was taken out.
#[derive(Clone, Debug, PartialEq)]
pub enum Got {
    /// A value that is all of its cell.
    Cell(Cell),
    /// Any other value.
    Value(Value<'static>),
    /// There was nothing before the deadline.
    Empty,
    /// There is nothing, and the queue is closed.
    Closed,
}

/// What a look at the putting end found.
pub(super) enum Room {
    /// The value is in.
    Taken,
    /// There is none.
    None,
    /// The ring is to become larger.
    Growing,
    Closed,
}

/// What is done with the objects in a value that is taken out, before the queue refers to them no
/// longer: whoever wants them holds them.
pub type Keep<'k> = dyn FnMut(&Value<'static>) -> Result<()> + 'k;

/// Every so many values somebody looks for leases of the dead, if there are leases.
const NOW_AND_THEN: u64 = 256;

/// Puts a value in, and waits for room until `deadline`; without one, as long as it takes.
///
/// An object in the value is complete: what made it has been committed.
///
/// # Errors
/// [`crate::Error::Misuse`] in a transaction; those of [`value::store`] and of
/// [`crate::lock::Pause`]. It is not in the queue then.
#[inline]
pub fn put(heap: &Heap, at: Offset, value: &Value<'_>, deadline: Option<Instant>) -> Result<Put> {
    let queue = Queue::at(heap, at)?;
    let cell = Cell::inline(value);
    if let Some(done) = queue.try_put(cell, value)? {
        return Ok(done);
    }
    queue.put_slowly(cell, value, deadline)
}

/// Takes the first value out, and waits for one until `deadline`; without one, as long as it takes.
///
/// # Errors
/// [`crate::Error::Misuse`] in a transaction; those of `keep`, which may be called twice, and of
/// [`crate::lock::Pause`]. Nothing is taken out then.
#[inline]
pub fn get(heap: &Heap, at: Offset, deadline: Option<Instant>, keep: &mut Keep<'_>) -> Result<Got> {
    let queue = Queue::at(heap, at)?;
    queue.look_now_and_then()?;
    if let Some(found) = queue.try_get(keep)? {
        return Ok(found);
    }
    let got = queue.wait_for_value(deadline, || queue.try_get(keep))?;
    Ok(got.unwrap_or_else(|none| none))
}

/// Puts a value back where it was taken out, though there may be no room: it is the next one.
///
/// # Errors
/// As those of [`put`].
pub fn put_back(heap: &Heap, at: Offset, value: &Value<'_>) -> Result<()> {
    let queue = Queue::at(heap, at)?;
    queue.me()?;
    queue.with_both_ends(|op| {
        let cell = cells::store_one(op, value)?;
        queue.insert_first(op, cell)
    })?;
    queue.tell_of_values(1);
    Ok(())
}

impl<'h> Queue<'h> {
    /// Puts a value in if there is room; `None`: there is none.
    #[inline]
    pub(super) fn try_put(&self, cell: Option<Cell>, value: &Value<'_>) -> Result<Option<Put>> {
        let me = self.me()?;
        loop {
            let room = match cell {
                Some(cell) if !self.is_ordered() => self.put_cell(me, cell)?,
                _ => self.put_block(value)?,
            };
            match room {
                Room::Taken => {
                    self.tell_of_values(1);
                    return Ok(Some(Put::Done));
                }
                Room::Closed => return Ok(Some(Put::Closed)),
                Room::None => return Ok(None),
                Room::Growing => self.grow(1)?,
            }
        }
    }

    /// Puts a cell in that needs no memory of its own.
    #[inline]
    fn put_cell(&self, me: Holder, cell: Cell) -> Result<Room> {
        let locked = self.lock(&self.control.put_lock, me)?;
        let (room, ring) = self.room()?;
        if matches!(room, Room::Taken) {
            let tail = self.control.tail.load(Relaxed);
            ring.write(self.heap.segment(), tail, cell)?;
            self.publish(locked, tail.wrapping_add(1));
        }
        Ok(room)
    }

    /// Puts a value in that needs memory, or has objects in it.
    #[inline(never)]
    fn put_block(&self, value: &Value<'_>) -> Result<Room> {
        // A look, so that what is too much is not stored in vain.
        if self.is_full() && !self.is_closed() {
            return Ok(Room::None);
        }
        if self.is_ordered() {
            return self.with_both_ends(|op| self.put_ordered(op, value));
        }
        self.heap.change(|op| {
            let cell = value::store(op, value)?;
            // Until the operation ends, the collector waits for it: by then the queue has the cell.
            let done = self.put_cell(op.me(), cell)?;
            if !matches!(done, Room::Taken) {
                value::discard(op, cell)?;
            }
            Ok(done)
        })
    }

    fn put_ordered(&self, op: &mut Op<'_>, value: &Value<'_>) -> Result<Room> {
        let (room, _) = self.room()?;
        if !matches!(room, Room::Taken) {
            return Ok(room);
        }
        let cell = cells::store_one(op, value)?;
        let next = self.control.tail.load(Relaxed).wrapping_add(1);
        self.insert_ordered(op, cell, next)?;
        op.store(self.at + TAIL, next)?;
        Ok(Room::Taken)
    }

    /// Whether there is a cell for one more value, for who has locked the putting end.
    #[inline]
    fn room(&self) -> Result<(Room, Ring)> {
        let ring = Ring::of(self.head)?;
        if self.is_closed() {
            return Ok((Room::Closed, ring));
        }
        let limit = self.limit();
        let tail = self.control.tail.load(Relaxed);
        let mut length = count(self.control.head_seen.load(Relaxed), tail);
        if length >= ring.room.min(limit) {
            let head = self.control.head.load(Acquire);
            self.control.head_seen.store(head, Relaxed);
            length = count(head, tail);
        }
        let room = if length >= limit {
            Room::None
        } else if length >= ring.room {
            Room::Growing
        } else {
            Room::Taken
        };
        Ok((room, ring))
    }

    /// Puts in what was written before the new end.
    #[inline]
    pub(super) fn publish(&self, locked: Locked<'_>, tail: u64) {
        self.control.tail.store(tail, Release);
        fault::point("queue: values put in");
        drop(locked);
        fault::point("queue: putting end unlocked");
    }

    #[cold]
    fn put_slowly(
        &self,
        cell: Option<Cell>,
        value: &Value<'_>,
        deadline: Option<Instant>,
    ) -> Result<Put> {
        let done = self.wait_for_room(deadline, || self.try_put(cell, value))?;
        Ok(done.unwrap_or(Put::Full))
    }

    /// Calls `put` until there is room for what it puts in; `None`: there was none before the
    /// deadline.
    #[cold]
    pub(super) fn wait_for_room<T>(
        &self,
        deadline: Option<Instant>,
        mut put: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let (bell, touched) = (&self.control.room, &self.control.get_lock);
        bell::answer(
            &self.waiting(bell, touched, deadline),
            || !self.is_full() || self.is_closed(),
            || {
                let done = put()?;
                let is_more = !self.is_full() || self.is_closed();
                Ok(done.map(|answer| Answer { answer, is_more }))
            },
        )
    }

    /// Calls `take` until there is something for it to take out; [`Got::Empty`] or [`Got::Closed`] if
    /// there was nothing.
    #[cold]
    pub(super) fn wait_for_value<T>(
        &self,
        deadline: Option<Instant>,
        mut take: impl FnMut() -> Result<Option<T>>,
    ) -> Result<std::result::Result<T, Got>> {
        let attempt = || -> Result<Option<Answer<std::result::Result<T, Got>>>> {
            loop {
                let answer = match take()? {
                    Some(got) => Ok(got),
                    // What was out on leases of the dead is there again.
                    None if self.recover()? > 0 => continue,
                    None if self.is_over()? => Err(Got::Closed),
                    None => return Ok(None),
                };
                let is_more = !self.is_empty() || self.is_closed();
                return Ok(Some(Answer { answer, is_more }));
            }
        };
        let (bell, touched) = (&self.control.values, &self.control.put_lock);
        let answered = bell::answer(
            &self.waiting(bell, touched, deadline),
            || !self.is_empty() || self.is_closed(),
            attempt,
        )?;
        Ok(answered.unwrap_or(Err(Got::Empty)))
    }

    /// This thread, if it is to wait at a bell of the queue.
    fn waiting(
        &self,
        bell: &'h AtomicU32,
        touched: &'h AtomicU32,
        deadline: Option<Instant>,
    ) -> Waiting<'h> {
        Waiting { heap: self.heap, bell, touched, spin: self.spin(), deadline }
    }

    /// Takes the first value out, if there is one.
    #[inline]
    fn try_get(&self, keep: &mut Keep<'_>) -> Result<Option<Got>> {
        let me = self.me()?;
        if self.is_ordered() {
            return self.get_in_operation(keep);
        }
        let locked = self.lock(&self.control.get_lock, me)?;
        let Some((cell, head)) = self.first()? else { return Ok(None) };
        if cell.is_whole() {
            self.advance(locked, head.wrapping_add(1));
            self.tell_of_room(1);
            return Ok(Some(Got::Cell(cell)));
        }
        if let Some(value) = self.get_block(locked, cell, head)? {
            self.tell_of_room(1);
            return Ok(Some(Got::Value(value)));
        }
        self.get_in_operation(keep)
    }

    /// The first cell and its position, for who has locked the taking end.
    #[inline]
    pub(super) fn first(&self) -> Result<Option<(Cell, u64)>> {
        let head = self.control.head.load(Relaxed);
        if self.control.tail_seen.load(Relaxed) == head {
            let tail = self.control.tail.load(Acquire);
            self.control.tail_seen.store(tail, Relaxed);
            if tail == head {
                return Ok(None);
            }
        }
        let cell = Ring::of(self.head)?.read(self.heap.segment(), head)?;
        Ok(Some((cell, head)))
    }

    /// Takes out what is before the new beginning.
    #[inline]
    pub(super) fn advance(&self, locked: Locked<'_>, head: u64) {
        self.control.head.store(head, Release);
        fault::point("queue: values taken out");
        drop(locked);
        fault::point("queue: taking end unlocked");
    }

    /// Takes out the first value, whose cell has a block and no objects in it. `None`: it takes
    /// more than that.
    #[inline(never)]
    fn get_block(
        &self,
        locked: Locked<'_>,
        cell: Cell,
        head: u64,
    ) -> Result<Option<Value<'static>>> {
        if !cell.has_only_block() {
            return Ok(None);
        }
        let Some(_busy) = self.heap.busy()? else { return Ok(None) };
        let Some((at, bytes)) = cell.block() else { return Ok(None) };
        // If it cannot be had here, it stays where it is.
        let ready = value::prepare(self.heap.segment(), cell)?;
        self.advance(locked, head.wrapping_add(1));
        // From here on it is this thread's, and the collector waits for it.
        let value = value::finish(self.heap.segment(), cell, ready)?;
        fault::point("queue: value copied");
        memory::free(self.heap.segment(), &self.heap.hints, at, bytes)?;
        Ok(Some(value))
    }

    /// Takes out the first value, whatever it is.
    #[inline(never)]
    fn get_in_operation(&self, keep: &mut Keep<'_>) -> Result<Option<Got>> {
        if self.is_empty() {
            return Ok(None);
        }
        let got = self.with_both_ends(|op| {
            let Some(cell) = self.remove_first(op)? else { return Ok(None) };
            let got = self.take_over(cell, keep)?;
            value::discard(op, cell)?;
            Ok(Some(got))
        })?;
        if got.is_some() {
            self.tell_of_room(1);
        }
        Ok(got)
    }

    /// The value of a cell, with the objects in it held.
    pub(super) fn take_over(&self, cell: Cell, keep: &mut Keep<'_>) -> Result<Got> {
        if cell.is_whole() {
            return Ok(Got::Cell(cell));
        }
        let value = value::load(self.heap.segment(), cell)?;
        keep(&value)?;
        Ok(Got::Value(value))
    }

    /// Takes the first cell out, for who has locked both ends until the operation has ended.
    pub(super) fn remove_first(&self, op: &mut Op<'_>) -> Result<Option<Cell>> {
        let ring = Ring::of(self.head)?;
        let length = count(self.control.head.load(Relaxed), self.control.tail.load(Relaxed));
        if length > ring.room {
            return Err(Error::Corrupt("a queue has more values than room"));
        }
        let cell = if self.is_ordered() {
            self.remove_ordered(op)?
        } else {
            self.first()?.map(|(cell, _)| cell)
        };
        if cell.is_some() {
            op.store(self.at + HEAD, self.control.head.load(Relaxed).wrapping_add(1))?;
        }
        Ok(cell)
    }

    /// Puts a cell at the beginning, for who has locked both ends until the operation has ended.
    pub(super) fn insert_first(&self, op: &mut Op<'_>, cell: Cell) -> Result<()> {
        self.make_needed_room(op)?;
        if self.is_ordered() {
            self.insert_ordered(op, cell, 0)?;
        }
        let head = self.control.head.load(Relaxed).wrapping_sub(1);
        if !self.is_ordered() {
            Ring::of(self.head)?.write(self.heap.segment(), head, cell)?;
        }
        // Whoever puts must not believe that there is more room than there is.
        self.control.head_seen.store(head, Relaxed);
        op.store(self.at + HEAD, head)
    }

    /// Gives up all values, which count as done. The caller has locked both ends until the operation
    /// has ended.
    pub(super) fn empty(&self, op: &mut Op<'_>) -> Result<()> {
        let mut emptied = 0;
        while let Some(cell) = self.remove_first(op)? {
            value::discard(op, cell)?;
            emptied += 1;
        }
        let done = self.control.done.load(Relaxed);
        let left = count(done, self.control.tail.load(Relaxed)) as u64;
        op.store(self.at + DONE, done.wrapping_add(left.min(emptied)))
    }

    /// Looks for leases of the dead now and then, where nobody would miss what they have.
    #[inline]
    pub(super) fn look_now_and_then(&self) -> Result<()> {
        if self.head.body[3].load(Relaxed) != 0
            && self.control.head.load(Relaxed).is_multiple_of(NOW_AND_THEN)
        {
            self.recover()?;
        }
        Ok(())
    }
}
