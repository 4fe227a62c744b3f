//! Several values at a time: one lock and one wake-up for all of them.

use std::time::Instant;

use super::ends::{Got, Keep, Put};
use super::ring::Ring;
use super::{Queue, count};
use crate::atomic::Ordering::{Acquire, Relaxed};
use crate::lock::Holder;
use crate::segment::Offset;
use crate::value::{self, Cell, Value};
use crate::{Error, Heap, Result, memory};

/// How many values are put in with one lock.
const PORTION: usize = 256;

/// Puts values in, in their order, and waits for room until `deadline`; how many are in.
///
/// Less than all: the time was over ([`Put::Full`]), or the queue is closed. What is put in can be
/// taken out before the last one is.
///
/// # Errors
/// As those of [`super::put`]; values before it may be in then.
pub fn put_many(
    heap: &Heap,
    at: Offset,
    values: &[Value<'_>],
    deadline: Option<Instant>,
) -> Result<(usize, Put)> {
    let queue = Queue::at(heap, at)?;
    let mut done = 0;
    while done < values.len() {
        match queue.try_put_some(&values[done..])? {
            Some((_, Put::Closed)) => return Ok((done, Put::Closed)),
            Some((some, _)) => done += some,
            None => {
                let put = || queue.try_put_some(&values[done..]);
                match queue.wait_for_room(deadline, put)? {
                    None => return Ok((done, Put::Full)),
                    Some((_, Put::Closed)) => return Ok((done, Put::Closed)),
                    Some((some, _)) => done += some,
                }
            }
        }
    }
    Ok((done, Put::Done))
}

/// Takes out up to `most` values in their order, and waits for the first one until `deadline`. A value
/// with objects in it comes alone; if there is none, one [`Got`] says why.
///
/// # Errors
/// As those of [`super::get`].
pub fn get_many(
    heap: &Heap,
    at: Offset,
    most: usize,
    deadline: Option<Instant>,
    keep: &mut Keep<'_>,
) -> Result<Vec<Got>> {
    let queue = Queue::at(heap, at)?;
    let mut found = queue.try_get_some(most)?;
    if found.is_empty() && most > 0 {
        let first = super::get(heap, at, deadline, keep)?;
        let is_plain = matches!(first, Got::Cell(_));
        found.push(first);
        if is_plain {
            found.extend(queue.try_get_some(most - 1)?);
        }
    }
    Ok(found)
}

impl Queue<'_> {
    /// Puts in as many as there is room for; `None`: there is none.
    fn try_put_some(&self, values: &[Value<'_>]) -> Result<Option<(usize, Put)>> {
        let me = self.me()?;
        if self.is_ordered() {
            let put = self.try_put(None, &values[0])?;
            return Ok(put.map(|put| (1, put)));
        }
        let values = &values[..values.len().min(PORTION)];
        let cells: Vec<_> = values.iter().map_while(Cell::inline).collect();
        let put = loop {
            let put = self.put_portion(me, &cells, values)?;
            match put {
                Some((0, Put::Full)) => self.grow(values.len())?,
                put => break put,
            }
        };
        if let Some((some @ 1.., _)) = put {
            self.tell_of_values(some);
        }
        Ok(put)
    }

    /// Puts the cells in, or the first values if these begin with one that needs memory. None, and
    /// [`Put::Full`]: the ring is to become larger.
    fn put_portion(
        &self,
        me: Holder,
        cells: &[Cell],
        values: &[Value<'_>],
    ) -> Result<Option<(usize, Put)>> {
        if !cells.is_empty() {
            return self.put_cells(me, cells);
        }
        if self.is_full() && !self.is_closed() {
            return Ok(None);
        }
        // What there is no room for would be stored in vain.
        let head = self.control.head.load(Acquire);
        let length = count(head, self.control.tail.load(Acquire));
        let most = values.len().min(self.limit().saturating_sub(length)).max(1);
        match self.put_stored(&values[..most]) {
            // One by one they may fit, as others take them out meanwhile.
            Err(Error::Full { .. }) if most > 1 => self.put_stored(&values[..1]),
            put => put,
        }
    }

    fn put_stored(&self, values: &[Value<'_>]) -> Result<Option<(usize, Put)>> {
        self.heap.change(|op| {
            let cells = values.iter().map(|value| value::store(op, value));
            let cells = cells.collect::<Result<Vec<_>>>()?;
            let put = self.put_cells(op.me(), &cells)?;
            for cell in &cells[put.map_or(0, |(some, _)| some)..] {
                // The others are in the queue, so this must not be undone any more. If it fails, the
                // collector finds what is left.
                let _ = value::discard(op, *cell);
            }
            Ok(put)
        })
    }

    /// As above, of cells.
    fn put_cells(&self, me: Holder, cells: &[Cell]) -> Result<Option<(usize, Put)>> {
        let locked = self.lock(&self.control.put_lock, me)?;
        if self.is_closed() {
            return Ok(Some((0, Put::Closed)));
        }
        let tail = self.control.tail.load(Relaxed);
        let head = self.control.head.load(Acquire);
        self.control.head_seen.store(head, Relaxed);
        let length = count(head, tail);
        let some = cells.len().min(self.limit().saturating_sub(length));
        if some == 0 {
            return Ok(None);
        }
        if length + some > Ring::of(self.head)?.room {
            drop(locked);
            return Ok(Some((0, Put::Full)));
        }
        let ring = Ring::of(self.head)?;
        let mut end = tail;
        for cell in &cells[..some] {
            ring.write(self.heap.segment(), end, *cell)?;
            end = end.wrapping_add(1);
        }
        self.publish(locked, end);
        Ok(Some((some, Put::Done)))
    }

    /// Takes out as many as there are, up to the first with objects in it.
    fn try_get_some(&self, most: usize) -> Result<Vec<Got>> {
        let me = self.me()?;
        if self.is_ordered() || most == 0 {
            return Ok(Vec::new());
        }
        let locked = self.lock(&self.control.get_lock, me)?;
        let head = self.control.head.load(Relaxed);
        let tail = self.control.tail.load(Acquire);
        self.control.tail_seen.store(tail, Relaxed);
        let ring = Ring::of(self.head)?;
        let length = count(head, tail);
        if length > ring.room {
            return Err(Error::Corrupt("a queue has more values than room"));
        }
        let segment = self.heap.segment();
        let mut cells = Vec::new();
        for index in 0..length.min(most) as u64 {
            let cell = ring.read(segment, head.wrapping_add(index))?;
            if !cell.is_whole() && !cell.has_only_block() {
                break;
            }
            cells.push(cell);
        }
        let busy =
            if cells.iter().all(|cell| cell.is_whole()) { None } else { self.heap.busy()? };
        if busy.is_none() {
            cells.truncate(cells.iter().take_while(|cell| cell.is_whole()).count());
        }
        // What cannot be had here stays where it is, with all behind it.
        let mut ready = Vec::with_capacity(cells.len());
        for cell in cells {
            let block = match cell.block().map(|block| Ok((block, value::prepare(segment, cell)?)))
            {
                None => None,
                Some(Ok(block)) => Some(block),
                Some(Err(error)) if ready.is_empty() => return Err(error),
                Some(Err(_)) => break,
            };
            ready.push((cell, block));
        }
        if ready.is_empty() {
            return Ok(Vec::new());
        }
        self.advance(locked, head.wrapping_add(ready.len() as u64));
        let mut found = Vec::with_capacity(ready.len());
        for (cell, block) in ready {
            found.push(match block {
                None => Got::Cell(cell),
                Some(((at, bytes), ready)) => {
                    let value = value::finish(segment, cell, ready)?;
                    memory::free(segment, &self.heap.hints, at, bytes)?;
                    Got::Value(value)
                }
            });
        }
        drop(busy);
        self.tell_of_room(found.len());
        Ok(found)
    }
}
