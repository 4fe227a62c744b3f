//! Objects of a class that Python declared: a fixed row of fields behind the head.
//!
//! The flags are the number of fields. The first word of the body is the hash of the schema: who
//! knows the class by other fields or other types is refused, instead of reading one field for
//! another.

use crate::atomic::Ordering::Relaxed;
use crate::cells::{self, place};
use crate::object::{self, Head, Kind, Owned, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::value::{self, Cell, Value};
use crate::{Error, Heap, Result, fault};

/// The largest number of fields.
pub const MOST: usize = 4096;

/// Bytes of an object with so many fields.
const fn size(fields: usize) -> usize {
    object::SIZE + fields * Cell::SIZE
}

#[inline]
fn head(segment: &Segment, at: Offset) -> Result<&Head> {
    let head = object::head(segment, at)?;
    if head.is(Kind::Struct) { Ok(head) } else { Err(head.mistaken("an object has no fields")) }
}

/// Where a field is, for who knows the object by this schema.
#[inline]
fn field(head: &Head, at: Offset, schema: u64, field: usize) -> Result<Offset> {
    if head.body[0].load(Relaxed) != schema {
        return Err(Error::Unfit("the object is of a class with other fields"));
    }
    if field >= (head.flags() as usize).min(MOST) {
        return Err(Error::Unfit("the object has no such field"));
    }
    Ok(place(at + object::SIZE, field))
}

/// A new object with these values.
///
/// # Errors
/// [`Error::Unfit`] for more than [`MOST`] of them.
pub fn create(op: &mut Op<'_>, schema: u64, fields: &[Value<'_>]) -> Result<Offset> {
    if fields.len() > MOST {
        return Err(Error::Unfit("a class has at most 4096 shared fields"));
    }
    let cells = cells::store(op, fields)?;
    let at = op.create(Kind::Struct, size(fields.len()))?;
    let segment = op.heap().segment();
    let head = object::head(segment, at)?;
    head.set_flags(u32::try_from(fields.len()).unwrap_or(0));
    head.body[0].store(schema, Relaxed);
    cells::write(segment, at + object::SIZE, cells.into_iter())?;
    fault::point("struct: fields written");
    Ok(at)
}

/// By which schema the object is known, and how many fields it has.
pub fn schema(heap: &Heap, at: Offset) -> Result<(u64, usize)> {
    let head = head(heap.segment(), at)?;
    Ok((head.body[0].load(Relaxed), head.flags() as usize))
}

/// The cell of a field, if it can be had at once and is all of the value. `None`: ask [`get`].
#[inline]
pub fn glance(heap: &Heap, at: Offset, schema: u64, field: usize) -> Option<Cell> {
    let segment = heap.segment();
    let place = self::field(head(segment, at).ok()?, at, schema, field).ok()?;
    heap.glance(at, || Cell::read(segment, place)).ok()?.filter(|cell| cell.is_whole())
}

/// The value of a field.
///
/// # Errors
/// [`Error::Unfit`] here and below if the object has another schema, or no such field.
pub fn get(heap: &Heap, at: Offset, schema: u64, field: usize) -> Result<Value<'static>> {
    let place = self::field(head(heap.segment(), at)?, at, schema, field)?;
    cells::get(heap, at, || Ok(Some(place)))?.ok_or(Error::Corrupt("a field with no value"))
}

/// The values of all fields, of one moment.
pub fn all(heap: &Heap, at: Offset, schema: u64) -> Result<Vec<Value<'static>>> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    let count = head.flags() as usize;
    if count == 0 {
        return Ok(Vec::new());
    }
    field(head, at, schema, count - 1)?;
    let mut cells = Vec::with_capacity(count);
    heap.read(at, || {
        cells.clear();
        cells::read(segment, at + object::SIZE, count, &mut cells)?;
        cells::load(segment, &cells)
    })
}

/// Changes a field, whose place `work` gets, while the object is locked.
#[inline]
fn change<T>(
    heap: &Heap,
    at: Offset,
    schema: u64,
    field: usize,
    mut work: impl FnMut(&mut Op<'_>, Offset) -> Result<T>,
) -> Result<T> {
    let place = self::field(head(heap.segment(), at)?, at, schema, field)?;
    heap.change(|op| {
        op.lock(at)?;
        work(op, place)
    })
}

/// Gives a field another value.
#[inline]
pub fn set(heap: &Heap, at: Offset, schema: u64, field: usize, value: &Value<'_>) -> Result<()> {
    let place = self::field(head(heap.segment(), at)?, at, schema, field)?;
    if heap.poke(at, || Ok(Some(place)), |_| Cell::inline(value))?.is_some() {
        return Ok(());
    }
    change(heap, at, schema, field, |op, place| cells::set(op, place, value))
}

/// Adds to the number in a field and returns the sum.
///
/// # Errors
/// [`Error::Unfit`] if there is no number in it.
pub fn increment(
    heap: &Heap,
    at: Offset,
    schema: u64,
    field: usize,
    by: &Value<'_>,
) -> Result<Value<'static>> {
    let place = self::field(head(heap.segment(), at)?, at, schema, field)?;
    if let Some(sum) = heap.poke(at, || Ok(Some(place)), |old| old.plus(by))? {
        return value::load(heap.segment(), sum);
    }
    change(heap, at, schema, field, |op, place| cells::increment(op, place, by))
}

/// Gives a field that holds `old` the value `new`; false: it held another.
pub fn compare_and_set(
    heap: &Heap,
    at: Offset,
    schema: u64,
    field: usize,
    old: &Value<'_>,
    new: &Value<'_>,
) -> Result<bool> {
    change(heap, at, schema, field, |op, place| cells::compare_and_set(op, place, old, new))
}

/// Calls `visit` with all that the object at `at` owns.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    let fields = head(segment, at)?.flags() as usize;
    if fields > MOST {
        return Err(Error::Corrupt("an object with too many fields"));
    }
    visit(Owned::Block { at, bytes: size(fields) })?;
    cells::owned(segment, at + object::SIZE, fields, visit)
}
