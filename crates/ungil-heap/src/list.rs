//! Lists: a row of cells that has room to grow.
//!
//! The body: where the row is, how many cells of it are used, how many there are. A cell beyond the
//! used ones is written before it counts. Where more than a few cells would have to move, a new row
//! is made aside and published by one record of the body, so that undoing it costs nothing.
//!
//! Indices are Python's: below zero they count from the end, at the moment of the operation.

use std::sync::atomic::Ordering::Relaxed;

use crate::cells::{self, place};
use crate::object::{self, BODY, Head, Kind};
use crate::op::Op;
use crate::reclaim::{Owned, Visit};
use crate::segment::{Offset, Segment};
use crate::slice::{self, Slice};
use crate::value::{self, Cell, Value};
use crate::{Error, Heap, Result, fault, memory};

/// Where the number of used cells is.
const LENGTH: usize = BODY + 8;
/// So many cells are moved in place, through the log; more are moved to a new row.
const MOVED: usize = 24;
/// Lists with fewer cells keep their room.
const SMALL: usize = 64;

/// The body of a list.
#[derive(Clone, Copy)]
struct Row {
    cells: Offset,
    length: usize,
    room: usize,
}

#[inline]
fn head(segment: &Segment, at: Offset) -> Result<&Head> {
    let head = object::head(segment, at)?;
    if head.is(Kind::List) { Ok(head) } else { Err(Error::Corrupt("an object is no list")) }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
fn row(head: &Head) -> Result<Row> {
    let [cells, length, room, _] = &head.body;
    let row = Row {
        cells: cells.load(Relaxed) as usize,
        length: length.load(Relaxed) as usize,
        room: room.load(Relaxed) as usize,
    };
    if row.length <= row.room {
        Ok(row)
    } else {
        Err(Error::Corrupt("a list has more values than room"))
    }
}

/// Locks a list to change it.
#[inline]
fn lock(op: &mut Op<'_>, at: Offset) -> Result<Row> {
    let segment = op.heap().segment();
    let head = head(segment, at)?;
    op.lock(at)?;
    let row = row(head)?;
    cells::check(segment, row.cells, row.room)?;
    Ok(row)
}

/// A new list with nothing in it.
pub fn create(op: &mut Op<'_>) -> Result<Offset> {
    op.create(Kind::List, object::SIZE)
}

/// How many values it has.
#[inline]
pub fn len(heap: &Heap, at: Offset) -> Result<usize> {
    let head = head(heap.segment(), at)?;
    heap.read(at, || Ok(row(head)?.length))
}

/// A value; `None`: there is no such index.
#[inline]
pub fn get(heap: &Heap, at: Offset, index: isize) -> Result<Option<Value<'static>>> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    cells::get(heap, at, || {
        let row = row(head)?;
        Ok(slice::index(index, row.length).map(|index| place(row.cells, index)))
    })
}

/// Calls `visit` with each value of a slice, all of one moment. Its error ends the walk.
pub fn each(
    heap: &Heap,
    at: Offset,
    slice: Slice,
    visit: impl FnMut(Value<'static>) -> Result<()>,
) -> Result<()> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    let copy = |cells: &mut Vec<Cell>| {
        let row = row(head)?;
        let part = slice.within(row.length);
        if part.step == 1 {
            return cells::read(segment, place(row.cells, part.start), part.count, cells);
        }
        cells::check(segment, row.cells, row.length)?;
        for index in part.indices() {
            cells.push(Cell::read(segment, place(row.cells, index))?);
        }
        Ok(())
    };
    cells::each(heap, at, copy, visit)
}

/// The values of a slice.
pub fn get_slice(heap: &Heap, at: Offset, slice: Slice) -> Result<Vec<Value<'static>>> {
    let mut values = Vec::new();
    each(heap, at, slice, |value| {
        values.push(value);
        Ok(())
    })?;
    Ok(values)
}

/// All values, and the version of the list that they are from: see [`reorder`].
pub fn snapshot(heap: &Heap, at: Offset) -> Result<(Vec<Value<'static>>, u32)> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    let mut cells = Vec::new();
    heap.read(at, || {
        let row = row(head)?;
        cells.clear();
        cells::read(segment, row.cells, row.length, &mut cells)?;
        Ok((cells::load(segment, &cells)?, head.version.load(Relaxed) & !1))
    })
}

/// Puts another value in the place of one; false: there is no such index.
#[inline]
pub fn set(heap: &Heap, at: Offset, index: isize, value: &Value<'_>) -> Result<bool> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let Some(index) = slice::index(index, row.length) else { return Ok(false) };
        cells::set(op, place(row.cells, index), value)?;
        Ok(true)
    })
}

/// Adds to a number in the list and returns the sum; `None`: there is no such index.
///
/// # Errors
/// [`Error::Unfit`] if there is no number at that index.
pub fn increment(
    heap: &Heap,
    at: Offset,
    index: isize,
    by: &Value<'_>,
) -> Result<Option<Value<'static>>> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let Some(index) = slice::index(index, row.length) else { return Ok(None) };
        cells::increment(op, place(row.cells, index), by).map(Some)
    })
}

/// Puts `new` in the place of `old`, if that is there; `None`: there is no such index.
pub fn compare_and_set(
    heap: &Heap,
    at: Offset,
    index: isize,
    old: &Value<'_>,
    new: &Value<'_>,
) -> Result<Option<bool>> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let Some(index) = slice::index(index, row.length) else { return Ok(None) };
        cells::compare_and_set(op, place(row.cells, index), old, new).map(Some)
    })
}

/// Adds a value at the end.
#[inline]
pub fn append(heap: &Heap, at: Offset, value: &Value<'_>) -> Result<()> {
    heap.change(|op| {
        let mut row = lock(op, at)?;
        if row.length == row.room {
            row = grow(op, at, row, row.length + 1)?;
        }
        let cell = cells::store_one(op, value)?;
        let end = place(row.cells, row.length);
        if op.is_nested() {
            // The transaction may have taken a value away from here, and may fail yet.
            op.save(end, 2)?;
        }
        cells::write(op.heap().segment(), end, std::iter::once(cell))?;
        fault::point("list: cell written");
        op.store(at + LENGTH, row.length as u64 + 1)
    })
}

/// Adds values at the end.
pub fn extend(heap: &Heap, at: Offset, values: &[Value<'_>]) -> Result<()> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let new = cells::store(op, values)?;
        splice(op, at, row, row.length, 0, &new)
    })
}

/// Adds a value before an index; beyond the ends, at the end meant.
pub fn insert(heap: &Heap, at: Offset, index: isize, value: &Value<'_>) -> Result<()> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let new = value::store(op, value)?;
        splice(op, at, row, slice::clamp(index, row.length), 0, &[new])
    })
}

/// Takes a value out and returns it; `None`: there is no such index.
///
/// An object loses the list's reference when the outermost operation ends: who wants to keep it
/// begins one, and takes a reference of its own before that ends.
pub fn pop(heap: &Heap, at: Offset, index: isize) -> Result<Option<Value<'static>>> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let Some(index) = slice::index(index, row.length) else { return Ok(None) };
        let segment = op.heap().segment();
        let value = value::load(segment, Cell::read(segment, place(row.cells, index))?)?;
        splice(op, at, row, index, 1, &[])?;
        Ok(Some(value))
    })
}

/// Puts values in the place of a slice. `Err` inside: nothing is done, because the slice has a step
/// and so many values, not as many as there are new ones.
pub fn set_slice(
    heap: &Heap,
    at: Offset,
    slice: Slice,
    values: &[Value<'_>],
) -> Result<std::result::Result<(), usize>> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let part = slice.within(row.length);
        if part.step == 1 {
            let new = cells::store(op, values)?;
            return splice(op, at, row, part.start, part.count, &new).map(Ok);
        }
        if part.count != values.len() {
            return Ok(Err(part.count));
        }
        for (index, value) in part.indices().zip(values) {
            cells::set(op, place(row.cells, index), value)?;
        }
        Ok(Ok(()))
    })
}

/// Takes the values of a slice out.
pub fn delete_slice(heap: &Heap, at: Offset, slice: Slice) -> Result<()> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let part = slice.within(row.length);
        if part.step == 1 || part.count == 0 {
            return splice(op, at, row, part.start, part.count, &[]);
        }
        let mut goes = part.ascending().peekable();
        let segment = op.heap().segment();
        let mut kept = Vec::new();
        let mut all = Vec::new();
        cells::read(segment, row.cells, row.length, &mut all)?;
        for (index, cell) in all.into_iter().enumerate() {
            if goes.next_if_eq(&index).is_some() {
                value::discard(op, cell)?;
            } else {
                kept.push(cell);
            }
        }
        replace(op, at, row, &kept)
    })
}

/// Takes the first value out that equals `value`; false: there is none.
pub fn remove(heap: &Heap, at: Offset, value: &Value<'_>) -> Result<bool> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let Some(index) = find(op.heap().segment(), row, value, 0, row.length)? else {
            return Ok(false);
        };
        splice(op, at, row, index, 1, &[])?;
        Ok(true)
    })
}

/// Takes everything out.
pub fn clear(heap: &Heap, at: Offset) -> Result<()> {
    heap.change(|op| {
        let row = lock(op, at)?;
        splice(op, at, row, 0, row.length, &[])
    })
}

/// Turns the order around.
pub fn reverse(heap: &Heap, at: Offset) -> Result<()> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let mut all = Vec::new();
        cells::read(op.heap().segment(), row.cells, row.length, &mut all)?;
        all.reverse();
        replace(op, at, row, &all)
    })
}

/// Gives the values another order, which the caller found for [`snapshot`]: value number
/// `order[i]` comes to place `i`. False: somebody changed the list since, or tried to, and it stays
/// as it is.
///
/// # Errors
/// [`Error::Misuse`] if `order` does not name each place once.
pub fn reorder(heap: &Heap, at: Offset, version: u32, order: &[usize]) -> Result<bool> {
    heap.change(|op| {
        let row = lock(op, at)?;
        let now = head(op.heap().segment(), at)?.version.load(Relaxed) & !1;
        if now != version || order.len() != row.length {
            return Ok(false);
        }
        let mut all = Vec::new();
        cells::read(op.heap().segment(), row.cells, row.length, &mut all)?;
        let mut ordered = Vec::with_capacity(all.len());
        for &index in order {
            match all.get_mut(index).map(std::mem::take) {
                Some(cell) if !cell.is_nothing() => ordered.push(cell),
                _ => return Err(Error::Misuse("an order names each place once")),
            }
        }
        replace(op, at, row, &ordered)?;
        Ok(true)
    })
}

/// Repeats the values so often in all; for 0, takes everything out.
pub fn repeat(heap: &Heap, at: Offset, times: usize) -> Result<()> {
    heap.change(|op| {
        let row = lock(op, at)?;
        if times == 0 {
            return splice(op, at, row, 0, row.length, &[]);
        }
        let segment = op.heap().segment();
        let total = row.length.checked_mul(times).filter(|sum| cells::fits(segment, *sum));
        let Some(total) = total else { return Err(cells::too_many(row.length, times)) };
        let mut all = Vec::new();
        cells::read(segment, row.cells, row.length, &mut all)?;
        let values = cells::load(segment, &all)?;
        let mut new = Vec::with_capacity(total - row.length);
        for _ in 1..times {
            new.extend(cells::store(op, &values)?);
        }
        splice(op, at, row, row.length, 0, &new)
    })
}

/// The index of the first value in a part of the list that equals `value`. The bounds are clamped.
pub fn index(
    heap: &Heap,
    at: Offset,
    value: &Value<'_>,
    start: isize,
    stop: isize,
) -> Result<Option<usize>> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    heap.read(at, || {
        let row = row(head)?;
        let (start, stop) = (slice::clamp(start, row.length), slice::clamp(stop, row.length));
        find(segment, row, value, start, stop)
    })
}

/// How many values equal `value`.
pub fn count(heap: &Heap, at: Offset, value: &Value<'_>) -> Result<usize> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    heap.read(at, || {
        let row = row(head)?;
        let mut count = 0;
        let mut from = 0;
        while let Some(found) = find(segment, row, value, from, row.length)? {
            count += 1;
            from = found + 1;
        }
        Ok(count)
    })
}

fn find(
    segment: &Segment,
    row: Row,
    value: &Value<'_>,
    start: usize,
    stop: usize,
) -> Result<Option<usize>> {
    cells::check(segment, row.cells, row.room)?;
    for index in start..stop {
        if value::equal(segment, Cell::read(segment, place(row.cells, index))?, value)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Puts `new` in the place of `gone` cells from `from` on, which give up what they own.
fn splice(
    op: &mut Op<'_>,
    at: Offset,
    row: Row,
    from: usize,
    gone: usize,
    new: &[Cell],
) -> Result<()> {
    let segment = op.heap().segment();
    for index in from..from + gone {
        value::discard(op, Cell::read(segment, place(row.cells, index))?)?;
    }
    let behind = from + gone;
    let tail = row.length - behind;
    let length = row.length - gone + new.len();
    if length <= row.room && !is_wasteful(length, row.room) {
        if tail == 0 && gone == 0 && (new.len() <= MOVED || !op.is_nested()) {
            let end = place(row.cells, from);
            if op.is_nested() {
                op.save(end, new.len() * 2)?;
            }
            cells::write(segment, end, new.iter().copied())?;
            fault::point("list: cells written");
            return op.store(at + LENGTH, length as u64);
        }
        if new.len() + tail <= MOVED {
            let mut words = [0; MOVED * 2];
            let moved = segment.words(place(row.cells, behind), tail * 2)?;
            let moved = moved.iter().map(|word| word.load(Relaxed));
            let new = new.iter().flat_map(|cell| cell.words());
            let mut count = 0;
            for (to, word) in words.iter_mut().zip(new.chain(moved)) {
                *to = word;
                count += 1;
            }
            if count > 0 {
                op.store_all(place(row.cells, from), &words[..count])?;
            }
            return op.store(at + LENGTH, length as u64);
        }
    }
    let (fresh, room) =
        if length > row.room { take_more(op, row, length) } else { take(op, length) }?;
    cells::copy(segment, row.cells, fresh, from)?;
    cells::write(segment, place(fresh, from), new.iter().copied())?;
    cells::copy(segment, place(row.cells, behind), place(fresh, from + new.len()), tail)?;
    publish(op, at, row, Row { cells: fresh, length, room })
}

/// Puts other cells in the place of all. What the old ones own is the new ones' or is given up.
fn replace(op: &mut Op<'_>, at: Offset, row: Row, new: &[Cell]) -> Result<()> {
    let (cells, room) = take(op, new.len())?;
    cells::write(op.heap().segment(), cells, new.iter().copied())?;
    publish(op, at, row, Row { cells, length: new.len(), room })
}

/// Moves a list to a row with room for `length` cells and some more.
#[cold]
fn grow(op: &mut Op<'_>, at: Offset, row: Row, length: usize) -> Result<Row> {
    let (cells, room) = take_more(op, row, length)?;
    cells::copy(op.heap().segment(), row.cells, cells, row.length)?;
    let grown = Row { cells, length: row.length, room };
    publish(op, at, row, grown)?;
    Ok(grown)
}

/// Takes a row that is larger than the present one, and has room for more values to come.
fn take_more(op: &mut Op<'_>, row: Row, length: usize) -> Result<(Offset, usize)> {
    // Many lists are filled once. Those that grow do it by a quarter: a value is moved four times
    // in its life, on average.
    take(op, if row.room == 0 { length.max(4) } else { length + length / 4 + 3 })
}

/// Takes a row for at least `length` cells; returns it and how many there are.
fn take(op: &mut Op<'_>, length: usize) -> Result<(Offset, usize)> {
    if length == 0 {
        return Ok((0, 0));
    }
    let bytes = memory::rounded(length * Cell::SIZE);
    Ok((op.take(bytes)?, bytes / Cell::SIZE))
}

fn publish(op: &mut Op<'_>, at: Offset, old: Row, new: Row) -> Result<()> {
    fault::point("list: new row written");
    op.store_all(at + BODY, &[new.cells as u64, new.length as u64, new.room as u64])?;
    if old.room > 0 {
        op.free(old.cells, old.room * Cell::SIZE);
    }
    Ok(())
}

/// Whether most of the room would be empty.
const fn is_wasteful(length: usize, room: usize) -> bool {
    room > SMALL && length < room / 4
}

/// Calls `visit` with all that the list at `at` owns.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    visit(Owned::Block { at, bytes: object::SIZE })?;
    let row = row(head(segment, at)?)?;
    if row.room == 0 {
        return Ok(());
    }
    cells::check(segment, row.cells, row.room)?;
    visit(Owned::Block { at: row.cells, bytes: row.room * Cell::SIZE })?;
    cells::owned(segment, row.cells, row.length, visit)
}
