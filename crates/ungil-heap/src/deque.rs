//! Deques: a ring of cells.
//!
//! The body: where the ring is, how many cells it has (a power of two), one word with the first
//! used cell in its low half and their number in the high, and the largest length plus 1, or 0 for
//! none. One store of the third word adds or takes a value at either end.

use crate::atomic::Ordering::Relaxed;
use crate::cells::{self, place};
use crate::object::{self, BODY, Head, Kind, Owned, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::slice;
use crate::value::{self, Cell, Value};
use crate::{Error, Heap, Result, fault};

/// Where the word with first cell and length is.
const SPAN: usize = BODY + 16;
/// The largest ring.
const MOST: usize = 1 << 31;
/// Rings of fewer cells stay as large as they are.
const SMALL: usize = 64;
/// So many values are added one by one.
const FEW: usize = 8;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where index 0 is.
    Left,
    /// Where index -1 is.
    Right,
}

/// The body of a deque.
#[derive(Clone, Copy)]
struct Ring {
    cells: Offset,
    room: usize,
    first: usize,
    length: usize,
    limit: usize,
}

impl Ring {
    /// Where the value with an index is; also one before the first and one behind the last.
    #[inline]
    const fn cell(&self, index: usize) -> Offset {
        place(self.cells, self.first.wrapping_add(index) & self.room.wrapping_sub(1))
    }

    /// The third word, with another first cell and length.
    #[inline]
    const fn span(&self, first: usize, length: usize) -> u64 {
        (length as u64) << 32 | (first & self.room.wrapping_sub(1)) as u64
    }
}

#[inline]
fn head(segment: &Segment, at: Offset) -> Result<&Head> {
    let head = object::head(segment, at)?;
    if head.is(Kind::Deque) { Ok(head) } else { Err(head.mistaken("an object is no deque")) }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
fn ring(head: &Head) -> Result<Ring> {
    let [cells, room, span, limit] = &head.body;
    let span = span.load(Relaxed);
    let ring = Ring {
        cells: cells.load(Relaxed) as usize,
        room: room.load(Relaxed) as usize,
        first: span as u32 as usize,
        length: (span >> 32) as usize,
        limit: limit.load(Relaxed).wrapping_sub(1) as usize,
    };
    let is_sound = ring.room == 0 || ring.room.is_power_of_two() && ring.room <= MOST;
    if is_sound && ring.length <= ring.room {
        Ok(ring)
    } else {
        Err(Error::Corrupt("a deque of an impossible size"))
    }
}

#[inline]
fn lock(op: &mut Op<'_>, at: Offset) -> Result<Ring> {
    let segment = op.heap().segment();
    let head = head(segment, at)?;
    op.lock(at)?;
    let ring = ring(head)?;
    cells::check(segment, ring.cells, ring.room)?;
    Ok(ring)
}

/// A new deque with nothing in it, that never has more than `limit` values.
pub fn create(op: &mut Op<'_>, limit: Option<usize>) -> Result<Offset> {
    let at = op.create(Kind::Deque, object::SIZE)?;
    let limit = limit.map_or(0, |limit| limit.saturating_add(1) as u64);
    object::head(op.heap().segment(), at)?.body[3].store(limit, Relaxed);
    Ok(at)
}

/// How many values it has.
#[inline]
pub fn len(heap: &Heap, at: Offset) -> Result<usize> {
    let head = head(heap.segment(), at)?;
    heap.read(at, || Ok(ring(head)?.length))
}

/// How many values it can have; `None`: any number.
#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only")]
pub fn limit(heap: &Heap, at: Offset) -> Result<Option<usize>> {
    let limit = head(heap.segment(), at)?.body[3].load(Relaxed);
    Ok(limit.checked_sub(1).map(|limit| limit as usize))
}

/// A value; `None`: there is no such index.
#[inline]
pub fn get(heap: &Heap, at: Offset, index: isize) -> Result<Option<Value<'static>>> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    cells::get(heap, at, || {
        let ring = ring(head)?;
        Ok(slice::index(index, ring.length).map(|index| ring.cell(index)))
    })
}

/// All values.
pub fn all(heap: &Heap, at: Offset) -> Result<Vec<Value<'static>>> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    heap.read(at, || cells::load(segment, &read(segment, ring(head)?)?))
}

/// All cells in their order.
fn read(segment: &Segment, ring: Ring) -> Result<Vec<Cell>> {
    let mut all = Vec::new();
    if ring.length > 0 {
        let first = ring.first & (ring.room - 1);
        let straight = ring.length.min(ring.room - first);
        cells::read(segment, place(ring.cells, first), straight, &mut all)?;
        cells::read(segment, ring.cells, ring.length - straight, &mut all)?;
    }
    Ok(all)
}

/// Puts another value in the place of one; false: there is no such index.
pub fn set(heap: &Heap, at: Offset, index: isize, value: &Value<'_>) -> Result<bool> {
    heap.change(|op| {
        let ring = lock(op, at)?;
        let Some(index) = slice::index(index, ring.length) else { return Ok(false) };
        cells::set(op, ring.cell(index), value)?;
        Ok(true)
    })
}

/// Adds a value at an end. If there are too many then, the one at the other end goes.
pub fn push(heap: &Heap, at: Offset, end: End, value: &Value<'_>) -> Result<()> {
    heap.change(|op| {
        let ring = lock(op, at)?;
        push_in(op, at, ring, end, value)
    })
}

/// Adds values at an end, one after the other.
pub fn extend(heap: &Heap, at: Offset, end: End, values: &[Value<'_>]) -> Result<()> {
    if values.len() > FEW && values.len() > len(heap, at)? {
        return extend_by_many(heap, at, end, values);
    }
    heap.change(|op| {
        for value in values {
            let ring = lock(op, at)?;
            push_in(op, at, ring, end, value)?;
        }
        Ok(())
    })
}

/// As above, where a new ring costs less than remembering each step.
fn extend_by_many(heap: &Heap, at: Offset, end: End, values: &[Value<'_>]) -> Result<()> {
    let limit = limit(heap, at)?.unwrap_or(usize::MAX);
    edit(heap, at, |op, all| {
        let new = cells::store(op, values)?;
        let surplus = (all.len() + new.len()).saturating_sub(limit);
        let surplus = match end {
            End::Left => {
                all.splice(..0, new.into_iter().rev());
                all.drain(all.len() - surplus..)
            }
            End::Right => {
                all.extend(new);
                all.drain(..surplus)
            }
        };
        for cell in surplus {
            value::discard(op, cell)?;
        }
        Ok(Some(()))
    })?;
    Ok(())
}

fn push_in(op: &mut Op<'_>, at: Offset, ring: Ring, end: End, value: &Value<'_>) -> Result<()> {
    if ring.limit == 0 {
        return Ok(());
    }
    let mut ring = ring;
    let mut length = ring.length + 1;
    if length > ring.limit {
        let last = if end == End::Left { ring.length - 1 } else { 0 };
        value::discard(op, Cell::read(op.heap().segment(), ring.cell(last))?)?;
        length -= 1;
        if end == End::Right {
            ring.first += 1;
        }
        ring.length -= 1;
    } else if length > ring.room {
        ring = resize(op, at, ring, length)?;
    }
    let cell = cells::store_one(op, value)?;
    let (first, place) = match end {
        End::Left => (ring.first.wrapping_sub(1), ring.cell(usize::MAX)),
        End::Right => (ring.first, ring.cell(ring.length)),
    };
    // The cell may be one that this operation has emptied, so that it counts again if it fails.
    op.store_all(place, &cell.words())?;
    op.store(at + SPAN, ring.span(first, length))
}

/// Takes the value at an end; `None`: there is none. About objects see [`crate::list::pop`].
pub fn pop(heap: &Heap, at: Offset, end: End) -> Result<Option<Value<'static>>> {
    heap.change(|op| {
        let ring = lock(op, at)?;
        let Some(length) = ring.length.checked_sub(1) else { return Ok(None) };
        let (index, first) = match end {
            End::Left => (0, ring.first + 1),
            End::Right => (length, ring.first),
        };
        let cell = Cell::read(op.heap().segment(), ring.cell(index))?;
        let value = value::load(op.heap().segment(), cell)?;
        value::discard(op, cell)?;
        op.store(at + SPAN, ring.span(first, length))?;
        if ring.room > SMALL && length < ring.room / 4 {
            match resize(op, at, self::ring(head(op.heap().segment(), at)?)?, length.max(1)) {
                // It stays as large as it is.
                Err(Error::Full { .. }) => {}
                resized => _ = resized?,
            }
        }
        Ok(Some(value))
    })
}

/// Changes all at once: `edit` gets the cells in their order. What they own is its affair.
fn edit<T>(
    heap: &Heap,
    at: Offset,
    mut edit: impl FnMut(&mut Op<'_>, &mut Vec<Cell>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    heap.change(|op| {
        let ring = lock(op, at)?;
        let mut all = read(op.heap().segment(), ring)?;
        let done = edit(op, &mut all)?;
        if done.is_some() {
            publish(op, at, ring, &all)?;
        }
        Ok(done)
    })
}

/// Adds a value before an index; beyond the ends, at the end meant. False: there is no room for
/// one more.
pub fn insert(heap: &Heap, at: Offset, index: isize, value: &Value<'_>) -> Result<bool> {
    let limit = limit(heap, at)?;
    let done = edit(heap, at, |op, all| {
        if limit.is_some_and(|limit| all.len() >= limit) {
            return Ok(None);
        }
        all.insert(slice::clamp(index, all.len()), value::store(op, value)?);
        Ok(Some(()))
    })?;
    Ok(done.is_some())
}

/// Takes a value out; false: there is no such index.
pub fn delete(heap: &Heap, at: Offset, index: isize) -> Result<bool> {
    let done = edit(heap, at, |op, all| {
        let Some(index) = slice::index(index, all.len()) else { return Ok(None) };
        value::discard(op, all.remove(index)).map(Some)
    })?;
    Ok(done.is_some())
}

/// Takes the first value out that equals `value`; false: there is none.
///
/// # Errors
/// [`Error::Untold`] if only the caller can tell.
pub fn remove(heap: &Heap, at: Offset, value: &Value<'_>) -> Result<bool> {
    remove_by(heap, at, value, value::found)
}

/// As [`remove`], for a caller that has compared the objects itself, and found this value.
pub fn remove_told(heap: &Heap, at: Offset, value: &Value<'_>) -> Result<bool> {
    remove_by(heap, at, value, value::equal)
}

fn remove_by(heap: &Heap, at: Offset, value: &Value<'_>, is_same: Same) -> Result<bool> {
    let done = edit(heap, at, |op, all| match find(op.heap().segment(), all, value, is_same)? {
        Some(index) => value::discard(op, all.remove(index)).map(Some),
        None => Ok(None),
    })?;
    Ok(done.is_some())
}

/// Takes everything out.
pub fn clear(heap: &Heap, at: Offset) -> Result<()> {
    edit(heap, at, |op, all| {
        for cell in all.drain(..) {
            value::discard(op, cell)?;
        }
        Ok(Some(()))
    })?;
    Ok(())
}

/// Turns the order around.
pub fn reverse(heap: &Heap, at: Offset) -> Result<()> {
    edit(heap, at, |_, all| {
        all.reverse();
        Ok(Some(()))
    })?;
    Ok(())
}

/// Takes `steps` values from the right end and adds them at the left; the other way for less than 0.
pub fn rotate(heap: &Heap, at: Offset, steps: isize) -> Result<()> {
    edit(heap, at, |_, all| {
        let Ok(length @ 1..) = isize::try_from(all.len()) else { return Ok(None) };
        all.rotate_right(steps.rem_euclid(length).unsigned_abs());
        Ok(Some(()))
    })?;
    Ok(())
}

/// Repeats the values so often in all; for 0, takes everything out. If there are too many then, those
/// at the left end go.
pub fn repeat(heap: &Heap, at: Offset, times: usize) -> Result<()> {
    let limit = limit(heap, at)?;
    edit(heap, at, |op, all| {
        let segment = op.heap().segment();
        let count = all.len();
        let total = count.saturating_mul(times).min(limit.unwrap_or(usize::MAX));
        if total == count {
            return Ok(None);
        }
        if times == 0 {
            all.drain(..).try_for_each(|cell| value::discard(op, cell))?;
            return Ok(Some(()));
        }
        if !cells::fits(segment, total) {
            return Err(cells::too_many(count, times));
        }
        let values = cells::load(segment, all)?;
        // The values there stay, at the right end, where counting backwards needs no knowledge of
        // how many there would be without a limit.
        let mut new = Vec::with_capacity(total.saturating_sub(count));
        for place in (count..total).rev() {
            new.push(value::store(op, &values[count - 1 - place % count])?);
        }
        all.splice(..0, new);
        Ok(Some(()))
    })?;
    Ok(())
}

/// The index of the first value in a part of the deque that equals `value`. The bounds are clamped.
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
        let all = read(segment, ring(head)?)?;
        let (start, stop) = (slice::clamp(start, all.len()), slice::clamp(stop, all.len()));
        let Some(part) = all.get(start..stop) else { return Ok(None) };
        Ok(find(segment, part, value, value::found)?.map(|index| start + index))
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
        let mut count = 0;
        for cell in read(segment, ring(head)?)? {
            count += usize::from(value::found(segment, cell, value)?);
        }
        Ok(count)
    })
}

/// Whether a cell holds a value.
type Same = fn(&Segment, Cell, &Value<'_>) -> Result<bool>;

fn find(
    segment: &Segment,
    cells: &[Cell],
    value: &Value<'_>,
    is_same: Same,
) -> Result<Option<usize>> {
    for (index, cell) in cells.iter().enumerate() {
        if is_same(segment, *cell, value)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Moves all to a ring with room for `length` cells and as many more. Where the heap is too full for that
/// nothing is moved: the old ring may be too short.
#[cold]
fn resize(op: &mut Op<'_>, at: Offset, ring: Ring, length: usize) -> Result<Ring> {
    let all = read(op.heap().segment(), ring)?;
    let room = (length + length / 2).next_power_of_two().max(4);
    let cells = take(op, room)?;
    install(op, at, ring, &all, (cells, room))?;
    self::ring(head(op.heap().segment(), at)?)
}

/// Puts other cells in the place of all.
fn publish(op: &mut Op<'_>, at: Offset, ring: Ring, all: &[Cell]) -> Result<()> {
    let room = if all.is_empty() { 0 } else { all.len().next_power_of_two().max(4) };
    match take(op, room) {
        Err(Error::Full { .. }) if all.len() <= ring.room => write_over(op, at, ring, all),
        cells => install(op, at, ring, all, (cells?, room)),
    }
}

/// Memory for a ring with so much room.
fn take(op: &mut Op<'_>, room: usize) -> Result<Offset> {
    match room {
        0 => Ok(0),
        _ if room > MOST => {
            Err(Error::Full { wanted: room, limit: "a deque has at most 2^31 values" })
        }
        _ => op.take(room * Cell::SIZE),
    }
}

/// Puts `all` into a new ring of so much room.
fn install(
    op: &mut Op<'_>,
    at: Offset,
    old: Ring,
    all: &[Cell],
    (cells, room): (Offset, usize),
) -> Result<()> {
    cells::write(op.heap().segment(), cells, all.iter().copied())?;
    fault::point("deque: new ring written");
    op.store_all(at + BODY, &[cells as u64, room as u64, (all.len() as u64) << 32])?;
    if old.room > 0 {
        op.free(old.cells, old.room * Cell::SIZE);
    }
    Ok(())
}

/// The same in place, through the log: what is left where a heap is full.
#[cold]
fn write_over(op: &mut Op<'_>, at: Offset, old: Ring, all: &[Cell]) -> Result<()> {
    cells::write_over(op, old.cells, all)?;
    op.store(at + SPAN, old.span(0, all.len()))
}

/// Calls `visit` with all that the deque at `at` owns.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    visit(Owned::Block { at, bytes: object::SIZE })?;
    let ring = ring(head(segment, at)?)?;
    if ring.room == 0 {
        return Ok(());
    }
    cells::check(segment, ring.cells, ring.room)?;
    visit(Owned::Block { at: ring.cells, bytes: ring.room * Cell::SIZE })?;
    for index in 0..ring.length {
        value::owned(segment, Cell::read(segment, ring.cell(index))?, visit)?;
    }
    Ok(())
}
