//! Members without an order that a program may rely on; in fact that of insertion.
//!
//! As in [`crate::dict`], reading needs no lock, each change happens whole or not at all, and the
//! functions whose names end in `_in` are part of the caller's operation.

use crate::object::{self, Kind, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::table::{self, Cursor, Found, Probe};
use crate::value::{self, Value};
use crate::{Heap, Result};

/// Hash and stamp, member.
const WIDTH: usize = 3;
type Table<'s> = table::Table<'s, WIDTH>;

fn open(segment: &Segment, at: Offset) -> Result<Table<'_>> {
    Table::open(segment, at, Kind::Set)
}

/// Locks the set for an operation.
fn lock<'h>(op: &mut Op<'h>, at: Offset) -> Result<Table<'h>> {
    op.lock(at)?;
    open(op.heap().segment(), at)
}

fn probes<'v>(op: &Op, members: &'v [Value]) -> Vec<Probe<'v>> {
    members.iter().map(|member| Probe::new(op.heap(), member)).collect()
}

/// A new set, that nobody refers to.
pub fn create(op: &mut Op) -> Result<Offset> {
    op.create(Kind::Set, object::SIZE)
}

/// How many members there are.
pub fn len(heap: &Heap, at: Offset) -> Result<usize> {
    heap.read(at, || Ok(open(heap.segment(), at)?.len()))
}

/// Whether a value is a member.
pub fn contains(heap: &Heap, at: Offset, member: &Value) -> Result<bool> {
    let probe = Probe::new(heap, member);
    heap.read(at, || Ok(matches!(open(heap.segment(), at)?.find(&probe)?, Found::Entry(_))))
}

/// Makes a value a member; returns whether it was none.
pub fn add(heap: &Heap, at: Offset, member: &Value) -> Result<bool> {
    heap.change(|op| add_in(op, at, member))
}

/// As [`add`].
pub fn add_in(op: &mut Op, at: Offset, member: &Value) -> Result<bool> {
    let probe = Probe::new(op.heap(), member);
    let mut table = lock(op, at)?;
    let Found::Slot(slot) = table.find(&probe)? else { return Ok(false) };
    table.insert(op, slot, &probe, None, 0)?;
    table.publish(op)?;
    Ok(true)
}

/// Makes a value no member; returns whether it was one.
pub fn discard(heap: &Heap, at: Offset, member: &Value) -> Result<bool> {
    heap.change(|op| discard_in(op, at, member))
}

/// As [`discard`].
pub fn discard_in(op: &mut Op, at: Offset, member: &Value) -> Result<bool> {
    let probe = Probe::new(op.heap(), member);
    let mut table = lock(op, at)?;
    match table.find(&probe)? {
        Found::Entry(number) => table.delete(op, number).map(|()| true),
        Found::Slot(_) => Ok(false),
    }
}

/// Takes any member out.
pub fn pop(heap: &Heap, at: Offset) -> Result<Option<Value<'static>>> {
    heap.change(|op| pop_in(op, at))
}

/// As [`pop`].
pub fn pop_in(op: &mut Op, at: Offset) -> Result<Option<Value<'static>>> {
    let mut table = lock(op, at)?;
    let Some(number) = table.last()? else { return Ok(None) };
    let member = member(&table, number)?;
    table.delete_last(op, number)?;
    Ok(Some(member))
}

/// Takes all members out.
pub fn clear(heap: &Heap, at: Offset) -> Result<()> {
    heap.change(|op| clear_in(op, at))
}

/// As [`clear`].
pub fn clear_in(op: &mut Op, at: Offset) -> Result<()> {
    lock(op, at)?.clear(op)
}

/// Makes values members, all at once.
pub fn update(heap: &Heap, at: Offset, members: &[Value]) -> Result<()> {
    heap.change(|op| update_in(op, at, members))
}

/// As [`update`].
pub fn update_in(op: &mut Op, at: Offset, members: &[Value]) -> Result<()> {
    let probes = probes(op, members);
    let mut table = lock(op, at)?;
    insert_all(op, &mut table, &probes)
}

fn insert_all<'h>(op: &mut Op<'h>, table: &mut Table<'h>, probes: &[Probe]) -> Result<()> {
    table.prepare(op, probes.len())?;
    for (done, probe) in probes.iter().enumerate() {
        if let Found::Slot(slot) = table.find(probe)? {
            table.insert(op, slot, probe, None, probes.len() - done - 1)?;
        }
    }
    table.publish(op)
}

/// Keeps only members that are among these values, all at once.
pub fn intersection_update(heap: &Heap, at: Offset, members: &[Value]) -> Result<()> {
    heap.change(|op| intersection_update_in(op, at, members))
}

/// As [`intersection_update`].
pub fn intersection_update_in(op: &mut Op, at: Offset, members: &[Value]) -> Result<()> {
    let probes = probes(op, members);
    let mut table = lock(op, at)?;
    let kept = numbers(&table, &probes)?;
    for number in table.live() {
        if kept.binary_search(&number).is_err() {
            table.delete(op, number)?;
        }
    }
    Ok(())
}

/// Takes these values out, all at once.
pub fn difference_update(heap: &Heap, at: Offset, members: &[Value]) -> Result<()> {
    heap.change(|op| difference_update_in(op, at, members))
}

/// As [`difference_update`].
pub fn difference_update_in(op: &mut Op, at: Offset, members: &[Value]) -> Result<()> {
    let probes = probes(op, members);
    let mut table = lock(op, at)?;
    for number in numbers(&table, &probes)? {
        table.delete(op, number)?;
    }
    Ok(())
}

/// Takes those of these values out that are members, and makes the others members, all at once.
pub fn symmetric_difference_update(heap: &Heap, at: Offset, members: &[Value]) -> Result<()> {
    heap.change(|op| symmetric_difference_update_in(op, at, members))
}

/// As [`symmetric_difference_update`].
pub fn symmetric_difference_update_in(op: &mut Op, at: Offset, members: &[Value]) -> Result<()> {
    let mut probes = probes(op, members);
    let mut table = lock(op, at)?;
    let common = numbers(&table, &probes)?;
    let mut failure = None;
    probes.retain(|probe| match table.find(probe) {
        Ok(found) => matches!(found, Found::Slot(_)),
        Err(error) => {
            failure = Some(error);
            false
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    for number in common {
        table.delete(op, number)?;
    }
    insert_all(op, &mut table, &probes)
}

/// The numbers of the entries that hold these values, in order, each once.
fn numbers(table: &Table<'_>, probes: &[Probe]) -> Result<Vec<usize>> {
    let mut numbers = Vec::new();
    for probe in probes {
        if let Found::Entry(number) = table.find(probe)? {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn member(table: &Table<'_>, number: usize) -> Result<Value<'static>> {
    value::load(table.segment(), table.key(number)?)
}

/// The next members of a walk, at most `max`; none: it has ended. See [`Cursor`] for what it sees
/// while others change the set. All of one batch were there at the same moment, so that a batch
/// without limit is a snapshot.
pub fn batch(
    heap: &Heap,
    at: Offset,
    cursor: &mut Cursor,
    max: usize,
) -> Result<Vec<Value<'static>>> {
    table::batch(heap, at, Kind::Set, cursor, max, member)
}

/// Calls `visit` with everything that the set owns, its own memory first.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    table::owned::<WIDTH>(segment, at, Kind::Set, visit)
}

/// Whether the set is sound. Nobody changes it meanwhile.
///
/// # Errors
/// [`crate::Error::Corrupt`] if it is not.
pub fn check(segment: &Segment, at: Offset) -> Result<()> {
    table::check::<WIDTH>(segment, at, Kind::Set)
}
