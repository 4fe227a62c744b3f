//! The row of a list, and how it changes.

use crate::atomic::Ordering::Relaxed;
use crate::cells::{self, place};
use crate::object::{self, BODY, Head, Kind};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::value::{self, Cell};
use crate::{Error, Result, fault, memory};

/// Where the number of used cells is.
pub(super) const LENGTH: usize = BODY + 8;
/// So many cells are moved in place, through the log; more are moved to a new row.
const MOVED: usize = 24;
/// Lists with fewer cells keep their room.
const SMALL: usize = 64;

/// The body of a list.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Where it is.
    pub(super) cells: Offset,
    /// How many cells are used.
    pub(super) length: usize,
    /// How many there are.
    pub(super) room: usize,
}

/// The head of a list.
#[inline]
pub(super) fn head(segment: &Segment, at: Offset) -> Result<&Head> {
    let head = object::head(segment, at)?;
    if head.is(Kind::List) { Ok(head) } else { Err(head.mistaken("an object is no list")) }
}

/// The body of a list, as it may be changing.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
pub(super) fn row(head: &Head) -> Result<Row> {
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
pub(super) fn lock(op: &mut Op<'_>, at: Offset) -> Result<Row> {
    let segment = op.heap().segment();
    let head = head(segment, at)?;
    op.lock(at)?;
    let row = row(head)?;
    cells::check(segment, row.cells, row.room)?;
    Ok(row)
}

/// Puts `new` in the place of `gone` cells from `from` on, which give up what they own.
pub(super) fn splice(
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
    let fits = length <= row.room;
    let (fresh, room) = match if fits { take(op, length) } else { take_more(op, row, length) } {
        Err(Error::Full { .. }) if fits => {
            let mut cells = new.to_vec();
            cells::read(segment, place(row.cells, behind), tail, &mut cells)?;
            return write_over(op, at, row, from, &cells);
        }
        taken => taken?,
    };
    cells::copy(segment, row.cells, fresh, from)?;
    cells::write(segment, place(fresh, from), new.iter().copied())?;
    cells::copy(segment, place(row.cells, behind), place(fresh, from + new.len()), tail)?;
    publish(op, at, row, Row { cells: fresh, length, room })
}

/// Puts other cells in the place of all. What the old ones own is the new ones' or is given up.
pub(super) fn replace(op: &mut Op<'_>, at: Offset, row: Row, new: &[Cell]) -> Result<()> {
    let (cells, room) = match take(op, new.len()) {
        Err(Error::Full { .. }) if new.len() <= row.room => return write_over(op, at, row, 0, new),
        taken => taken?,
    };
    cells::write(op.heap().segment(), cells, new.iter().copied())?;
    publish(op, at, row, Row { cells, length: new.len(), room })
}

/// Puts `new` in the place of all cells from `from` on, through the log: what is left where a heap
/// is full. What the old ones own is the caller's affair.
#[cold]
fn write_over(op: &mut Op<'_>, at: Offset, row: Row, from: usize, new: &[Cell]) -> Result<()> {
    cells::write_over(op, place(row.cells, from), new)?;
    op.store(at + LENGTH, (from + new.len()) as u64)
}

/// Moves a list to a row with room for `length` cells and some more.
#[cold]
pub(super) fn grow(op: &mut Op<'_>, at: Offset, row: Row, length: usize) -> Result<Row> {
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
