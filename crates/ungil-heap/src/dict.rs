//! A mapping in the order of insertion.
//!
//! Reading needs no lock and, for keys and values that fit in their cells, no memory. Each change
//! happens whole or not at all. The functions whose names end in `_in` are part of an operation
//! that the caller has begun: the place to take a reference to a shared object that a pop returns,
//! before the dict's own is lost.

use crate::brief::Seen;
use crate::object::{self, Kind, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::table::{self, Cursor, Found, Probe};
use crate::value::{self, Cell, Value};
use crate::{Heap, Result};

/// Hash and stamp, key, value.
const WIDTH: usize = 5;
type Table<'s> = table::Table<'s, WIDTH>;
/// A key and its value.
pub type Pair<'a> = (Value<'a>, Value<'a>);

#[inline]
fn open(segment: &Segment, at: Offset) -> Result<Table<'_>> {
    Table::open(segment, at, Kind::Dict)
}

/// Locks the dict for an operation.
#[inline]
fn lock<'h>(op: &mut Op<'h>, at: Offset) -> Result<Table<'h>> {
    op.lock(at)?;
    open(op.heap().segment(), at)
}

/// A new dict, that nobody refers to.
pub fn create(op: &mut Op) -> Result<Offset> {
    op.create(Kind::Dict, object::SIZE)
}

/// How many keys there are.
pub fn len(heap: &Heap, at: Offset) -> Result<usize> {
    heap.read(at, || Ok(open(heap.segment(), at)?.len()))
}

/// The cell with the value of the key with the cell `key`, if it is easily found; else nothing is in
/// it. `None`: ask [`get`].
#[inline]
pub fn glance(heap: &Heap, at: Offset, key: Cell) -> Option<Seen> {
    let segment = heap.segment();
    let hash = table::folded(value::hash_cell(heap.hash_key(), key)?);
    let look = || {
        let table = open(segment, at)?;
        match table.find_cell(hash, key)? {
            Some(number) => table.value(number),
            None => Ok(Cell::NOTHING),
        }
    };
    heap.glance_cell(at, look)
}

/// Puts a number in the place of one, if the key with the cell `key` is easily found and has one of
/// the same kind. False: ask [`set`].
#[inline]
pub fn replace_number(heap: &Heap, at: Offset, key: Cell, new: Cell) -> bool {
    let Some(hash) = value::hash_cell(heap.hash_key(), key).map(table::folded) else {
        return false;
    };
    let find = || {
        let table = open(heap.segment(), at)?;
        Ok(table.find_cell(hash, key)?.map(|number| table.value_at(number)))
    };
    heap.poke(at, find, |_| Some(new)).is_ok_and(|poked| poked.is_some())
}

/// The value of a key.
#[inline]
pub fn get(heap: &Heap, at: Offset, key: &Value) -> Result<Option<Value<'static>>> {
    let (segment, probe) = (heap.segment(), Probe::new(heap, key));
    // Only the cell and the bytes are copied, and become a value where the caller can take it apart
    // again: a value that is moved through memory takes as long as finding it.
    let mut block = Vec::new();
    let cell = heap.glance(at, || {
        let table = open(segment, at)?;
        let Found::Entry(number) = table.find(&probe)? else { return Ok(Cell::NOTHING) };
        let cell = table.value(number)?;
        if cell.has_block() {
            value::copy_block(segment, cell, &mut block)?;
        }
        Ok(cell)
    })?;
    match cell {
        Some(cell) if cell.is_nothing() => Ok(None),
        Some(cell) if cell.has_block() => value::from_block(cell, block).map(Some),
        Some(cell) => value::load(segment, cell).map(Some),
        None => get_again(heap, at, &probe),
    }
}

/// The same while somebody changes the dict.
#[cold]
fn get_again(heap: &Heap, at: Offset, probe: &Probe) -> Result<Option<Value<'static>>> {
    heap.read(at, || {
        let table = open(heap.segment(), at)?;
        match table.find(probe)? {
            Found::Entry(number) => value::load(heap.segment(), table.value(number)?).map(Some),
            Found::Slot(_) => Ok(None),
        }
    })
}

/// The value of a key, as an operation sees it.
pub fn get_in(op: &mut Op, at: Offset, key: &Value) -> Result<Option<Value<'static>>> {
    let probe = Probe::new(op.heap(), key);
    let table = lock(op, at)?;
    match table.find(&probe)? {
        Found::Entry(number) => value::load(op.heap().segment(), table.value(number)?).map(Some),
        Found::Slot(_) => Ok(None),
    }
}

/// Whether a key is there.
pub fn contains(heap: &Heap, at: Offset, key: &Value) -> Result<bool> {
    let probe = Probe::new(heap, key);
    heap.read(at, || Ok(matches!(open(heap.segment(), at)?.find(&probe)?, Found::Entry(_))))
}

/// Where the cell with the value of a key is, if the key is there.
#[inline]
fn find(heap: &Heap, at: Offset, probe: &Probe) -> Result<Option<Offset>> {
    let table = open(heap.segment(), at)?;
    Ok(match table.find(probe)? {
        Found::Entry(number) => Some(table.value_at(number)),
        Found::Slot(_) => None,
    })
}

/// Gives a key a value.
#[inline]
pub fn set(heap: &Heap, at: Offset, key: &Value, value: &Value) -> Result<()> {
    if let Some(new) = Cell::inline(value).filter(|new| new.is_number()) {
        let probe = Probe::new(heap, key);
        if heap.poke(at, || find(heap, at, &probe), |_| Some(new))?.is_some() {
            return Ok(());
        }
    }
    heap.change(|op| set_in(op, at, key, value))
}

/// As [`set`].
#[inline]
pub fn set_in(op: &mut Op, at: Offset, key: &Value, value: &Value) -> Result<()> {
    let probe = Probe::new(op.heap(), key);
    let mut table = lock(op, at)?;
    table.put(op, &probe, value, 0)?;
    table.publish(op)
}

/// Gives keys their values, all at once.
pub fn update(heap: &Heap, at: Offset, pairs: &[Pair]) -> Result<()> {
    heap.change(|op| update_in(op, at, pairs))
}

/// As [`update`].
pub fn update_in(op: &mut Op, at: Offset, pairs: &[Pair]) -> Result<()> {
    let probes: Vec<Probe> = pairs.iter().map(|(key, _)| Probe::new(op.heap(), key)).collect();
    let mut table = lock(op, at)?;
    table.prepare(op, pairs.len())?;
    for (done, (probe, (_, value))) in probes.iter().zip(pairs).enumerate() {
        table.put(op, probe, value, pairs.len() - done - 1)?;
    }
    table.publish(op)
}

/// Gives a key a value unless it has one, which is returned then.
pub fn set_default(
    heap: &Heap,
    at: Offset,
    key: &Value,
    default: &Value,
) -> Result<Option<Value<'static>>> {
    heap.change(|op| set_default_in(op, at, key, default))
}

/// As [`set_default`].
pub fn set_default_in(
    op: &mut Op,
    at: Offset,
    key: &Value,
    default: &Value,
) -> Result<Option<Value<'static>>> {
    let probe = Probe::new(op.heap(), key);
    let mut table = lock(op, at)?;
    match table.find(&probe)? {
        Found::Entry(number) => value::load(op.heap().segment(), table.value(number)?).map(Some),
        Found::Slot(slot) => {
            table.insert(op, slot, &probe, Some(default), 0)?;
            table.publish(op)?;
            Ok(None)
        }
    }
}

/// Adds to the value of a key, and returns the sum. A key that is not there has the value 0.
///
/// # Errors
/// [`crate::Error::Unfit`] if the value or `by` is no number.
pub fn increment(heap: &Heap, at: Offset, key: &Value, by: &Value) -> Result<Value<'static>> {
    let probe = Probe::new(heap, key);
    if let Some(sum) = heap.poke(at, || find(heap, at, &probe), |old| old.plus(by))? {
        return value::load(heap.segment(), sum);
    }
    let mut large = Value::None;
    let small = heap.change(|op| add(op, at, key, by, &mut large))?;
    Ok(small.map_or(large, Value::Int))
}

/// As [`increment`].
pub fn increment_in(op: &mut Op, at: Offset, key: &Value, by: &Value) -> Result<Value<'static>> {
    let mut large = Value::None;
    let small = add(op, at, key, by, &mut large)?;
    Ok(small.map_or(large, Value::Int))
}

/// Adds to the value of a key. A sum that is no small integer is put into `large`: most sums are,
/// and a whole value would be moved for them through every caller.
#[inline]
fn add(
    op: &mut Op,
    at: Offset,
    key: &Value,
    by: &Value,
    large: &mut Value<'static>,
) -> Result<Option<i64>> {
    let (segment, probe) = (op.heap().segment(), Probe::new(op.heap(), key));
    let mut table = lock(op, at)?;
    let found = table.find(&probe)?;
    let cell = match found {
        Found::Entry(number) => table.value(number)?,
        Found::Slot(_) => Cell::ZERO,
    };
    if let (Some(old), Value::Int(by)) = (cell.int(), by)
        && let Some(sum) = old.checked_add(*by)
        && let Found::Entry(number) = found
    {
        table.write_value(op, number, Cell::from(sum))?;
        return Ok(Some(sum));
    }
    let sum = value::plus(&value::load(segment, cell)?, by)?;
    match found {
        Found::Entry(number) => table.replace(op, number, &sum)?,
        Found::Slot(slot) => table.insert(op, slot, &probe, Some(&sum), 0)?,
    }
    table.publish(op)?;
    *large = sum;
    Ok(if let Value::Int(sum) = large { Some(*sum) } else { None })
}

/// Gives a key the value `new` (`None`: deletes it) if its value equals `old` (`None`: if it is not
/// there); returns whether it did.
pub fn compare_and_set(
    heap: &Heap,
    at: Offset,
    key: &Value,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<bool> {
    heap.change(|op| compare_and_set_in(op, at, key, old, new))
}

/// As [`compare_and_set`].
pub fn compare_and_set_in(
    op: &mut Op,
    at: Offset,
    key: &Value,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<bool> {
    let probe = Probe::new(op.heap(), key);
    let mut table = lock(op, at)?;
    match (table.find(&probe)?, old) {
        (Found::Entry(number), Some(old))
            if value::equal(op.heap().segment(), table.value(number)?, old)? =>
        {
            match new {
                Some(new) => table.replace(op, number, new)?,
                None => table.delete(op, number)?,
            }
        }
        (Found::Slot(slot), None) => {
            if let Some(new) = new {
                table.insert(op, slot, &probe, Some(new), 0)?;
            }
        }
        _ => return Ok(false),
    }
    table.publish(op)?;
    Ok(true)
}

/// Deletes a key; returns whether it was there.
pub fn delete(heap: &Heap, at: Offset, key: &Value) -> Result<bool> {
    heap.change(|op| delete_in(op, at, key))
}

/// As [`delete`].
pub fn delete_in(op: &mut Op, at: Offset, key: &Value) -> Result<bool> {
    let probe = Probe::new(op.heap(), key);
    let mut table = lock(op, at)?;
    match table.find(&probe)? {
        Found::Entry(number) => table.delete(op, number).map(|()| true),
        Found::Slot(_) => Ok(false),
    }
}

/// Deletes a key and returns the value that it had.
pub fn pop(heap: &Heap, at: Offset, key: &Value) -> Result<Option<Value<'static>>> {
    heap.change(|op| pop_in(op, at, key))
}

/// As [`pop`].
pub fn pop_in(op: &mut Op, at: Offset, key: &Value) -> Result<Option<Value<'static>>> {
    let probe = Probe::new(op.heap(), key);
    let mut table = lock(op, at)?;
    match table.find(&probe)? {
        Found::Entry(number) => {
            let value = value::load(op.heap().segment(), table.value(number)?)?;
            table.delete(op, number)?;
            Ok(Some(value))
        }
        Found::Slot(_) => Ok(None),
    }
}

/// Deletes the key that was put in last, and returns it with its value.
pub fn pop_item(heap: &Heap, at: Offset) -> Result<Option<Pair<'static>>> {
    heap.change(|op| pop_item_in(op, at))
}

/// As [`pop_item`].
pub fn pop_item_in(op: &mut Op, at: Offset) -> Result<Option<Pair<'static>>> {
    let mut table = lock(op, at)?;
    let Some(number) = table.last()? else { return Ok(None) };
    let pair = pair(&table, number)?;
    table.delete_last(op, number)?;
    Ok(Some(pair))
}

/// Deletes all keys.
pub fn clear(heap: &Heap, at: Offset) -> Result<()> {
    heap.change(|op| clear_in(op, at))
}

/// As [`clear`].
pub fn clear_in(op: &mut Op, at: Offset) -> Result<()> {
    lock(op, at)?.clear(op)
}

fn key(table: &Table<'_>, number: usize) -> Result<Value<'static>> {
    value::load(table.segment(), table.key(number)?)
}

fn pair(table: &Table<'_>, number: usize) -> Result<Pair<'static>> {
    Ok((key(table, number)?, value::load(table.segment(), table.value(number)?)?))
}

/// The next keys and values of a walk in the order of insertion, at most `max`; none: it has ended.
/// See [`Cursor`] for what it sees while others change the dict. All of one batch were there at the
/// same moment, so that a batch without limit is a snapshot.
pub fn batch(
    heap: &Heap,
    at: Offset,
    cursor: &mut Cursor,
    max: usize,
) -> Result<Vec<Pair<'static>>> {
    table::batch(heap, at, Kind::Dict, cursor, max, pair)
}

/// As [`batch`], without the values.
pub fn keys(
    heap: &Heap,
    at: Offset,
    cursor: &mut Cursor,
    max: usize,
) -> Result<Vec<Value<'static>>> {
    table::batch(heap, at, Kind::Dict, cursor, max, key)
}

/// As [`keys`], from the key that was put in last to the first one.
pub fn keys_back(
    heap: &Heap,
    at: Offset,
    cursor: &mut Cursor,
    max: usize,
) -> Result<Vec<Value<'static>>> {
    table::batch_back(heap, at, Kind::Dict, cursor, max, key)
}

/// As [`batch`], from the key that was put in last to the first one.
pub fn batch_back(
    heap: &Heap,
    at: Offset,
    cursor: &mut Cursor,
    max: usize,
) -> Result<Vec<Pair<'static>>> {
    table::batch_back(heap, at, Kind::Dict, cursor, max, pair)
}

/// Calls `visit` with everything that the dict owns, its own memory first.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    table::owned::<WIDTH>(segment, at, Kind::Dict, visit)
}

/// Whether the dict is sound. Nobody changes it meanwhile.
///
/// # Errors
/// [`crate::Error::Corrupt`] if it is not.
pub fn check(segment: &Segment, at: Offset) -> Result<()> {
    table::check::<WIDTH>(segment, at, Kind::Dict)
}
