//! Rows of cells, and single ones, wherever a container keeps them.

use crate::atomic::Ordering::Relaxed;
use crate::object::Visit;
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::value::{self, Cell, Value};
use crate::{Error, Heap, Result, chunk};

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

/// Writes a row over another one, which comes back if the operation fails.
pub fn write_over(op: &mut Op<'_>, row: Offset, cells: &[Cell]) -> Result<()> {
    let words: Vec<u64> = cells.iter().flat_map(|cell| cell.words()).collect();
    op.store_all(row, &words)
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

/// Loads the value of a cell whose place `find` says, without a lock: see [`Heap::read`].
#[inline]
pub fn get(
    heap: &Heap,
    at: Offset,
    mut find: impl FnMut() -> Result<Option<Offset>>,
) -> Result<Option<Value<'static>>> {
    let segment = heap.segment();
    let mut read = || match find()? {
        Some(place) => Cell::read(segment, place),
        None => Ok(Cell::NOTHING),
    };
    let cell = heap.read(at, &mut read)?;
    if cell.is_nothing() {
        return Ok(None);
    }
    if cell.has_block() {
        get_block(heap, at, &mut read)
    } else {
        value::load(segment, cell).map(Some)
    }
}

/// The same where the value has a block, which can be freed at any time: the cell is read again,
/// and the block with it.
#[cold]
fn get_block(
    heap: &Heap,
    at: Offset,
    read: &mut dyn FnMut() -> Result<Cell>,
) -> Result<Option<Value<'static>>> {
    heap.read(at, || match read()? {
        Cell::NOTHING => Ok(None),
        cell => value::load(heap.segment(), cell).map(Some),
    })
}

/// Calls `visit` with the values of the cells that `copy` copies, all of one moment: see
/// [`Heap::read`].
pub fn each(
    heap: &Heap,
    at: Offset,
    mut copy: impl FnMut(&mut Vec<Cell>) -> Result<()>,
    mut visit: impl FnMut(Value<'static>) -> Result<()>,
) -> Result<()> {
    let segment = heap.segment();
    let mut cells = Vec::new();
    heap.read(at, || {
        cells.clear();
        copy(&mut cells)
    })?;
    if !cells.iter().any(|cell| cell.has_block()) {
        return cells.iter().try_for_each(|cell| visit(value::load(segment, *cell)?));
    }
    let values = heap.read(at, || {
        cells.clear();
        copy(&mut cells)?;
        load(segment, &cells)
    })?;
    values.into_iter().try_for_each(visit)
}

/// Puts a value into the heap, for a cell that will own it. Quick if the cell is all of it.
#[inline]
pub fn store_one(op: &mut Op<'_>, value: &Value<'_>) -> Result<Cell> {
    match Cell::inline(value) {
        Some(cell) => Ok(cell),
        None => value::store(op, value),
    }
}

/// Gives a cell another value.
#[inline]
pub fn set(op: &mut Op<'_>, at: Offset, value: &Value<'_>) -> Result<()> {
    let old = Cell::read(op.heap().segment(), at)?;
    let new = store_one(op, value)?;
    op.store_all(at, &new.words())?;
    value::discard(op, old)
}

/// Adds to the number in a cell; returns the sum.
pub fn increment(op: &mut Op<'_>, at: Offset, by: &Value<'_>) -> Result<Value<'static>> {
    let segment = op.heap().segment();
    let old = Cell::read(segment, at)?;
    if let Value::Int(by) = by
        && !old.has_block()
        && let Value::Int(number) = value::load(segment, old)?
        && let Some(sum) = number.checked_add(*by)
    {
        // The other word says that it is an integer, and stays.
        op.store(at + 8, sum.cast_unsigned())?;
        return Ok(Value::Int(sum));
    }
    let sum = value::plus(&value::load(segment, old)?, by)?;
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
