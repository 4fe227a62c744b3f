//! Putting in and taking out.

use std::time::Instant;

use super::bell::{self, Answer};
use super::ring::Ring;
use super::{Locked, Queue, count};
use crate::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::cells;
use crate::lock::Holder;
use crate::op::Op;
use crate::segment::Offset;
use crate::value::{self, Cell, Value};
use crate::{Heap, Result, fault, memory};

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
enum Room {
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
    if let Some(found) = queue.try_get(keep)? {
        return Ok(found.answer);
    }
    queue.get_slowly(deadline, keep)
}

/// Puts a value back where it was taken out, though there may be no room: it is the next one.
///
/// # Errors
/// As those of [`put`].
pub fn put_back(heap: &Heap, at: Offset, value: &Value<'_>) -> Result<()> {
    let queue = Queue::at(heap, at)?;
    queue.me()?;
    heap.change(|op| {
        let cell = cells::store_one(op, value)?;
        queue.put_cell_back(op, cell)
    })?;
    bell::ring(&queue.control.values, 1);
    Ok(())
}

impl<'h> Queue<'h> {
    /// Puts a value in if there is room; `None`: there is none.
    #[inline]
    fn try_put(&self, cell: Option<Cell>, value: &Value<'_>) -> Result<Option<Put>> {
        let me = self.me()?;
        loop {
            let room = match cell {
                Some(cell) => self.put_cell(me, cell)?,
                None => self.put_block(value)?,
            };
            match room {
                Room::Taken => {
                    bell::ring(&self.control.values, 1);
                    return Ok(Some(Put::Done));
                }
                Room::Closed => return Ok(Some(Put::Closed)),
                Room::None => return Ok(None),
                Room::Growing => self.grow()?,
            }
        }
    }

    /// Puts a cell in that needs no memory of its own.
    #[inline]
    fn put_cell(&self, me: Holder, cell: Cell) -> Result<Room> {
        let locked = self.lock(&self.control.put_lock, me)?;
        match self.room()? {
            (Room::Taken, ring) => {
                let tail = self.control.tail.load(Relaxed);
                ring.write(self.heap.segment(), tail, cell)?;
                self.publish(locked, tail.wrapping_add(1));
                Ok(Room::Taken)
            }
            (room, _) => Ok(room),
        }
    }

    /// Puts a value in that needs memory, or has objects in it.
    #[inline(never)]
    fn put_block(&self, value: &Value<'_>) -> Result<Room> {
        // A look, so that what is too much is not stored in vain.
        if self.is_full() && !self.is_closed() {
            return Ok(Room::None);
        }
        self.heap.change(|op| {
            let cell = value::store(op, value)?;
            let me = op.me();
            // Until the operation ends, the collector waits for it: by then the queue has the cell.
            let done = self.put_cell(me, cell)?;
            if !matches!(done, Room::Taken) {
                self.unstore(op, cell)?;
            }
            Ok(done)
        })
    }

    /// Gives up what was stored and is nowhere.
    fn unstore(&self, op: &mut Op<'_>, cell: Cell) -> Result<()> {
        value::discard(op, cell)
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
    fn publish(&self, locked: Locked<'_>, tail: u64) {
        self.control.tail.store(tail, Release);
        fault::point("queue: values put in");
        drop(locked);
        fault::point("queue: putting end unlocked");
    }

    /// Whether it looks as if there were no room.
    fn is_full(&self) -> bool {
        let head = self.control.head.load(Acquire);
        count(head, self.control.tail.load(Acquire)) >= self.limit()
    }

    /// Whether it looks as if there were nothing.
    #[inline]
    fn is_empty(&self) -> bool {
        self.control.head.load(Relaxed) == self.control.tail.load(Relaxed)
    }

    #[cold]
    fn put_slowly(
        &self,
        cell: Option<Cell>,
        value: &Value<'_>,
        deadline: Option<Instant>,
    ) -> Result<Put> {
        let answered = bell::answer(
            self.heap,
            (&self.control.room, &self.control.get_lock),
            deadline,
            || !self.is_full() || self.is_closed(),
            || {
                let done = self.try_put(cell, value)?;
                Ok(done.map(|answer| Answer { answer, is_more: !self.is_full() }))
            },
        )?;
        Ok(answered.unwrap_or(Put::Full))
    }

    #[cold]
    fn get_slowly(&self, deadline: Option<Instant>, keep: &mut Keep<'_>) -> Result<Got> {
        let answered = bell::answer(
            self.heap,
            (&self.control.values, &self.control.put_lock),
            deadline,
            || !self.is_empty() || self.is_closed(),
            || self.try_get(keep),
        )?;
        Ok(answered.unwrap_or(Got::Empty))
    }

    /// Takes the first value out, if there is one, or says that there will be none.
    #[inline]
    fn try_get(&self, keep: &mut Keep<'_>) -> Result<Option<Answer<Got>>> {
        let me = self.me()?;
        let locked = self.lock(&self.control.get_lock, me)?;
        let Some((cell, head)) = self.first()? else {
            drop(locked);
            // In this order: what was put in before it was closed is seen.
            let is_over = self.is_closed() && self.is_empty_for_sure();
            return Ok(is_over.then_some(Answer { answer: Got::Closed, is_more: true }));
        };
        let got = if cell.is_whole() {
            self.advance(locked, head.wrapping_add(1));
            Got::Cell(cell)
        } else {
            match self.get_block(locked, cell, head)? {
                Some(value) => Got::Value(value),
                None => match self.get_in_operation(keep)? {
                    Some(value) => Got::Value(value),
                    None => return Ok(None),
                },
            }
        };
        if self.head.body[1].load(Relaxed) != 0 {
            bell::ring(&self.control.room, 1);
        }
        Ok(Some(Answer { answer: got, is_more: !self.is_empty() }))
    }

    /// The first cell and its position, for who has locked the taking end.
    #[inline]
    fn first(&self) -> Result<Option<(Cell, u64)>> {
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
    fn advance(&self, locked: Locked<'_>, head: u64) {
        self.control.head.store(head, Release);
        fault::point("queue: values taken out");
        drop(locked);
        fault::point("queue: taking end unlocked");
    }

    /// Whether there is nothing, after it was closed.
    fn is_empty_for_sure(&self) -> bool {
        self.control.head.load(Acquire) == self.control.tail.load(Acquire)
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
        self.advance(locked, head.wrapping_add(1));
        // From here on it is this thread's, and the collector waits for it.
        let value = value::load(self.heap.segment(), cell)?;
        fault::point("queue: value copied");
        memory::free(self.heap.segment(), &self.heap.hints, at, bytes)?;
        Ok(Some(value))
    }

    /// Takes out the first value, whatever it is.
    #[inline(never)]
    fn get_in_operation(&self, keep: &mut Keep<'_>) -> Result<Option<Value<'static>>> {
        self.heap.change(|op| {
            let locked = self.lock(&self.control.get_lock, op.me())?;
            let Some((cell, head)) = self.first()? else { return Ok(None) };
            let value = value::load(self.heap.segment(), cell)?;
            keep(&value)?;
            value::discard(op, cell)?;
            self.advance(locked, head.wrapping_add(1));
            Ok(Some(value))
        })
    }

    /// Puts a cell at the beginning.
    fn put_cell_back(&self, op: &mut Op<'_>, cell: Cell) -> Result<()> {
        let put = self.lock(&self.control.put_lock, op.me())?;
        let get = self.lock(&self.control.get_lock, op.me())?;
        self.make_room(op)?;
        let head = self.control.head.load(Relaxed).wrapping_sub(1);
        Ring::of(self.head)?.write(self.heap.segment(), head, cell)?;
        // Whoever puts must not believe that there is more room than there is.
        self.control.head_seen.store(head, Relaxed);
        self.advance(get, head);
        drop(put);
        Ok(())
    }
}
