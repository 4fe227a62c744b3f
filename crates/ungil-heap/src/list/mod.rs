//! Lists: a row of cells that has room to grow.
//!
//! The body: where the row is, how many cells of it are used, how many there are. A cell beyond the
//! used ones is written before it counts. Where more than a few cells would have to move, a new row
//! is made aside and published by one record of the body, so that undoing it costs nothing.
//!
//! Indices are Python's: below zero they count from the end, at the moment of the operation.

mod row;

use self::row::{LENGTH, Row, grow, head, lock, replace, row, splice};
use crate::atomic::Ordering::Relaxed;
use crate::brief::Seen;
use crate::cells::{self, place};
use crate::object::{self, Kind, Owned, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::slice::{self, Slice};
use crate::value::{self, Cell, Value};
use crate::{Error, Heap, Result, fault};

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

/// The cell with a value, if it can be had at once; nothing is in it if there is no such index.
/// `None`: ask [`get`].
#[inline]
pub fn glance(heap: &Heap, at: Offset, index: isize) -> Option<Seen> {
    let segment = heap.segment();
    let head = head(segment, at).ok()?;
    let look = || {
        let row = row(head)?;
        match slice::index(index, row.length) {
            Some(index) => Cell::read(segment, place(row.cells, index)),
            None => Ok(Cell::NOTHING),
        }
    };
    heap.glance_cell(at, look)
}

/// Puts a number in the place of one of the same kind, if that can be done at once. False: ask
/// [`set`].
#[inline]
pub fn replace_number(heap: &Heap, at: Offset, index: isize, new: Cell) -> bool {
    heap.poke(at, || place_of(heap, at, index), |_| Some(new)).is_ok_and(|poked| poked.is_some())
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
    cells::each(heap, at, |cells| copy(segment, &row(head)?, slice, cells), visit)
}

/// Adds copies of the cells of a slice to `cells`.
fn copy(segment: &Segment, row: &Row, slice: Slice, cells: &mut Vec<Cell>) -> Result<()> {
    let part = slice.within(row.length);
    if part.step == 1 {
        return cells::read(segment, place(row.cells, part.start), part.count, cells);
    }
    cells::check(segment, row.cells, row.length)?;
    for index in part.indices() {
        cells.push(Cell::read(segment, place(row.cells, index))?);
    }
    Ok(())
}

/// The cells of a slice, all of one moment, if each is all of its value. `None`: ask [`each`].
pub fn whole_cells(heap: &Heap, at: Offset, slice: Slice) -> Result<Option<Vec<Cell>>> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    let mut cells = Vec::new();
    heap.read(at, || {
        cells.clear();
        copy(segment, &row(head)?, slice, &mut cells)
    })?;
    Ok(cells.iter().all(|cell| cell.is_whole()).then_some(cells))
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

/// The version of the list, by which it is known whether somebody changed it: see [`snapshot`].
/// Read in an operation that has locked the list.
pub fn version(heap: &Heap, at: Offset) -> Result<u32> {
    Ok(head(heap.segment(), at)?.version.load(Relaxed) & !1)
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

/// Where the cell with an index is, if there is one.
#[inline]
fn place_of(heap: &Heap, at: Offset, index: isize) -> Result<Option<Offset>> {
    let row = row(head(heap.segment(), at)?)?;
    Ok(slice::index(index, row.length).map(|index| place(row.cells, index)))
}

/// Puts another value in the place of one; false: there is no such index.
#[inline]
pub fn set(heap: &Heap, at: Offset, index: isize, value: &Value<'_>) -> Result<bool> {
    if heap.poke(at, || place_of(heap, at, index), |_| Cell::inline(value))?.is_some() {
        return Ok(true);
    }
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
    if let Some(sum) = heap.poke(at, || place_of(heap, at, index), |old| old.plus(by))? {
        return value::load(heap.segment(), sum).map(Some);
    }
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
///
/// # Errors
/// [`Error::Untold`] if only the caller can tell.
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
        if self::version(op.heap(), at)? != version || order.len() != row.length {
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
///
/// # Errors
/// [`Error::Untold`] if only the caller can tell.
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
///
/// # Errors
/// [`Error::Untold`] if only the caller can tell.
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
        if value::found(segment, Cell::read(segment, place(row.cells, index))?, value)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
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
