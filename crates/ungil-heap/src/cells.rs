//! Rows of cells, and single ones, wherever a container keeps them.

use std::sync::atomic::Ordering::Relaxed;

use crate::op::Op;
use crate::reclaim::Visit;
use crate::segment::{Offset, Segment};
use crate::value::{self, Cell, Value};
use crate::{Error, Result, chunk};

/// Where cell number `index` of a row is. Nonsense for what is no row; whoever reads it is told.
#[inline]
pub const fn place(row: Offset, index: usize) -> Offset {
    row.wrapping_add(index.wrapping_mul(Cell::SIZE))
}

/// Whether a row lies where the heap has memory.
#[inline]
pub fn check(segment: &Segment, row: Offset, count: usize) -> Result<()> {
    let end = segment.layout().chunk(chunk::count(segment));
    match count.checked_mul(Cell::SIZE).and_then(|bytes| row.checked_add(bytes)) {
        Some(last) if last <= end => Ok(()),
        _ => Err(Error::Corrupt("a row of values reaches beyond the heap")),
    }
}

/// Adds copies of the cells of a row to `cells`.
pub fn read(segment: &Segment, row: Offset, count: usize, cells: &mut Vec<Cell>) -> Result<()> {
    check(segment, row, count)?;
    // Only who damaged the heap could make this more than the process can have.
    cells.try_reserve(count).map_err(|_| Error::Corrupt("a row is larger than memory"))?;
    for words in segment.words(row, count * 2)?.chunks_exact(2) {
        cells.push(Cell(words[0].load(Relaxed), words[1].load(Relaxed)));
    }
    Ok(())
}

/// Writes a row where nobody looks yet.
pub fn write(
    segment: &Segment,
    row: Offset,
    cells: impl ExactSizeIterator<Item = Cell>,
) -> Result<()> {
    let words = segment.words(row, cells.len() * 2)?;
    for (words, cell) in words.chunks_exact(2).zip(cells) {
        words[0].store(cell.0, Relaxed);
        words[1].store(cell.1, Relaxed);
    }
    Ok(())
}

/// Copies a row to where nobody looks yet.
pub fn copy(segment: &Segment, from: Offset, to: Offset, count: usize) -> Result<()> {
    for (to, from) in segment.words(to, count * 2)?.iter().zip(segment.words(from, count * 2)?) {
        to.store(from.load(Relaxed), Relaxed);
    }
    Ok(())
}

/// The values of cells.
pub fn load(segment: &Segment, cells: &[Cell]) -> Result<Vec<Value<'static>>> {
    cells.iter().map(|cell| value::load(segment, *cell)).collect()
}

/// Puts values into the heap, for cells that will own them.
pub fn store(op: &mut Op<'_>, values: &[Value<'_>]) -> Result<Vec<Cell>> {
    values.iter().map(|value| value::store(op, value)).collect()
}

/// Gives a cell another value.
#[inline]
pub fn set(op: &mut Op<'_>, at: Offset, value: &Value<'_>) -> Result<()> {
    let old = Cell::read(op.heap().segment(), at)?;
    let new = value::store(op, value)?;
    op.store_all(at, &new.words())?;
    value::discard(op, old)
}

/// Adds to the number in a cell; returns the sum.
pub fn increment(op: &mut Op<'_>, at: Offset, by: &Value<'_>) -> Result<Value<'static>> {
    let segment = op.heap().segment();
    let sum = value::plus(&value::load(segment, Cell::read(segment, at)?)?, by)?;
    set(op, at, &sum)?;
    Ok(sum)
}

/// Gives a cell that holds `old` the value `new`; false: it held another.
pub fn compare_and_set(
    op: &mut Op<'_>,
    at: Offset,
    old: &Value<'_>,
    new: &Value<'_>,
) -> Result<bool> {
    let segment = op.heap().segment();
    let is_same = value::equal(segment, Cell::read(segment, at)?, old)?;
    if is_same {
        set(op, at, new)?;
    }
    Ok(is_same)
}

/// Calls `visit` with what the cells of a row own.
pub fn owned(segment: &Segment, row: Offset, count: usize, visit: &mut Visit<'_>) -> Result<()> {
    check(segment, row, count)?;
    for index in 0..count {
        value::owned(segment, Cell::read(segment, place(row, index))?, visit)?;
    }
    Ok(())
}

/// Whether a heap could hold so many cells.
pub fn fits(segment: &Segment, count: usize) -> bool {
    count <= segment.layout().end / Cell::SIZE
}

/// What to say where it could not.
pub const fn too_many(count: usize, times: usize) -> Error {
    let wanted = count.saturating_mul(times).saturating_mul(Cell::SIZE);
    Error::Full { wanted, limit: "it would be beyond its max_size" }
}
