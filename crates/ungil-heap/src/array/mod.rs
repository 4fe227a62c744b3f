//! Numbers or records in a row, with any number of axes, of which the first can grow.
//!
//! The items are in a buffer ([`crate::buffer`]), which views refer to. An array that grows beyond its
//! buffer gets another one; views of the old one keep that, with what was in it. So a view is never of
//! memory that somebody else uses by now, and never longer or shorter than it was made.
//!
//! | word of the body | what |
//! |---|---|
//! | 0 | the buffer |
//! | 1 | rows: the length of the first axis |
//! | 2 | rows for which the buffer has room |
//!
//! Behind the head is what never changes: the bytes of an item, the lengths of the other axes, and the
//! format, as a string of PEP 3118. The flags are the number of these axes, and the length of the
//! format from bit 8 on.

mod item;

use crate::atomic::Ordering::Relaxed;
use crate::buffer::{self, Fill};
use crate::object::{self, BODY, Head, Kind, Owned, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::{Error, Heap, Result, fault};

pub use item::{Item, Number, Place, get, update};

/// Axes beside the first, at most: those of a `memoryview` are 64.
pub const MOST_AXES: usize = 63;
/// Bytes of a format, at most.
pub const LONGEST_FORMAT: usize = (1 << 16) - 1;

/// Where the word with the rows is.
const ROWS: usize = BODY + 8;

/// What all rows of an array have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What an item is, as PEP 3118 writes it.
    pub format: Vec<u8>,
    /// Bytes of an item.
    pub item_bytes: usize,
    /// How long the axes beside the first are.
    pub others: Vec<usize>,
}

impl Layout {
    /// Bytes of a row; `None`: more than there can be.
    pub fn row_bytes(&self) -> Option<usize> {
        self.others.iter().try_fold(self.item_bytes, |bytes, &axis| bytes.checked_mul(axis))
    }

    /// Bytes of so many rows.
    fn bytes(&self, rows: usize) -> Result<usize> {
        let bytes = self.row_bytes().and_then(|row| row.checked_mul(rows));
        let limit = "no heap is so large";
        bytes.filter(|&bytes| bytes >> 48 == 0).ok_or(Error::Full { wanted: usize::MAX, limit })
    }

    /// Bytes of an array with this layout, its items aside.
    const fn size(axes: usize, format: usize) -> usize {
        object::SIZE + 8 + axes * 8 + format.next_multiple_of(8)
    }
}

/// Where the items of an array are at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The buffer that they are in.
    pub buffer: Offset,
    /// The length of the first axis.
    pub rows: usize,
    /// Rows for which the buffer has room.
    pub room: usize,
}

#[inline]
fn head(segment: &Segment, at: Offset) -> Result<&Head> {
    let head = object::head(segment, at)?;
    if head.is(Kind::Array) { Ok(head) } else { Err(head.mistaken("an object is no array")) }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
fn seen(head: &Head) -> Seen {
    let [buffer, rows, room, _] = &head.body;
    Seen {
        buffer: buffer.load(Relaxed) as Offset,
        rows: rows.load(Relaxed) as usize,
        room: room.load(Relaxed) as usize,
    }
}

/// A new array of `rows`, with room for at least `room` of them. `fill` writes its items, all of them,
/// from there on; it may be called in an operation that fails.
///
/// # Errors
/// [`Error::Unfit`] for more than [`MOST_AXES`] or [`LONGEST_FORMAT`].
pub fn create(
    op: &mut Op<'_>,
    layout: &Layout,
    rows: usize,
    room: usize,
    fill: Fill<'_>,
) -> Result<Offset> {
    if layout.others.len() > MOST_AXES {
        return Err(Error::Unfit("an array has at most 64 axes"));
    }
    if layout.format.len() > LONGEST_FORMAT || layout.item_bytes == 0 {
        return Err(Error::Unfit("an item of an array has a format of 1 to 65535 characters"));
    }
    let room = room.max(rows);
    let buffer = buffer::create(op, layout.bytes(room)?, true, fill)?;
    op.retain(buffer)?;
    let at = op.create(Kind::Array, Layout::size(layout.others.len(), layout.format.len()))?;
    let segment = op.heap().segment();
    let head = object::head(segment, at)?;
    let axes = layout.others.len() | layout.format.len() << 8;
    head.set_flags(u32::try_from(axes).unwrap_or(0));
    for (word, value) in head.body.iter().zip([buffer, rows, room]) {
        word.store(value as u64, Relaxed);
    }
    let numbers = std::iter::once(layout.item_bytes).chain(layout.others.iter().copied());
    let texts = layout.format.chunks(8).map(|bytes| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    });
    let values = numbers.map(|number| number as u64).chain(texts);
    let words = Layout::size(layout.others.len(), layout.format.len()) - object::SIZE;
    for (word, value) in segment.words(at + object::SIZE, words / 8)?.iter().zip(values) {
        word.store(value, Relaxed);
    }
    fault::point("array: made");
    Ok(at)
}

/// What the rows of an array have in common.
#[expect(clippy::cast_possible_truncation, reason = "64-bit machines only; checked where used")]
pub fn layout(heap: &Heap, at: Offset) -> Result<Layout> {
    let segment = heap.segment();
    let (axes, length) = lengths(head(segment, at)?);
    let words =
        segment.words(at + object::SIZE, (Layout::size(axes, length) - object::SIZE) / 8)?;
    let mut numbers = words[..=axes].iter().map(|word| word.load(Relaxed) as usize);
    let item_bytes = numbers.next().unwrap_or(0);
    let others: Vec<usize> = numbers.collect();
    let mut format: Vec<u8> =
        words[axes + 1..].iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
    format.truncate(length);
    let layout = Layout { format, item_bytes, others };
    if item_bytes == 0 || layout.row_bytes().is_none() {
        return Err(Error::Corrupt("an array has items of no size"));
    }
    Ok(layout)
}

/// How many axes there are beside the first, and how long the format is.
fn lengths(head: &Head) -> (usize, usize) {
    let flags = head.flags() as usize;
    ((flags & 0xff).min(MOST_AXES), flags >> 8)
}

/// Where the items are now.
#[inline]
pub fn look(heap: &Heap, at: Offset) -> Result<Seen> {
    let head = head(heap.segment(), at)?;
    heap.read(at, || Ok(seen(head)))
}

/// Adds rows at the end, which `fill` writes from there on, all of them. It may be called twice, and
/// in an operation that fails; nobody sees the rows before they are written.
pub fn extend(heap: &Heap, at: Offset, layout: &Layout, more: usize, fill: Fill<'_>) -> Result<()> {
    heap.change(|op| {
        let seen = lock(op, at)?;
        let rows = seen.rows.checked_add(more);
        let rows = rows.ok_or(Error::Full { wanted: more, limit: "no heap is so large" })?;
        // Half as much again: to add rows one by one takes a constant time each.
        append(op, at, layout, seen, rows, rows.saturating_add(rows / 2), fill)
    })
}

/// Gives the first axis another length: rows at the end go, or come with nothing but zeros.
pub fn resize(heap: &Heap, at: Offset, layout: &Layout, rows: usize) -> Result<()> {
    heap.change(|op| {
        let seen = lock(op, at)?;
        if rows <= seen.rows {
            return op.store(at + ROWS, rows as u64);
        }
        let bytes = layout.bytes(rows)? - layout.bytes(seen.rows)?;
        append(op, at, layout, seen, rows, rows, &mut |first| {
            // SAFETY: so many bytes from there on are the new rows', which nobody sees yet.
            unsafe { first.write_bytes(0, bytes) };
            Ok(())
        })
    })
}

/// Makes room for so many rows in all, so that views stay views of the array until it has more.
pub fn reserve(heap: &Heap, at: Offset, layout: &Layout, rows: usize) -> Result<()> {
    heap.change(|op| {
        let seen = lock(op, at)?;
        if rows > seen.room { move_to(op, at, layout, seen, rows).map(drop) } else { Ok(()) }
    })
}

fn lock(op: &mut Op<'_>, at: Offset) -> Result<Seen> {
    let head = head(op.heap().segment(), at)?;
    op.lock(at)?;
    Ok(seen(head))
}

/// Makes it `rows` long, those that come written by `fill`; if it moves, with room for `room` of them
/// where that can be had.
fn append(
    op: &mut Op<'_>,
    at: Offset,
    layout: &Layout,
    old: Seen,
    rows: usize,
    room: usize,
    fill: Fill<'_>,
) -> Result<()> {
    let (first, end) = (layout.bytes(old.rows)?, layout.bytes(rows)?);
    let buffer = if rows <= old.room {
        let memory = buffer::memory(op.heap().segment(), old.buffer)?;
        if op.is_nested() && end > first && end <= memory.bytes {
            // An earlier part of the operation may have made the array shorter: what was there is
            // there again if it fails.
            let from = memory.at + first / 8 * 8;
            op.save(from, (memory.at + end - from).div_ceil(8))?;
        }
        old.buffer
    } else {
        match move_to(op, at, layout, old, room) {
            Err(Error::Full { .. }) => move_to(op, at, layout, old, rows)?,
            moved => moved?,
        }
    };
    let segment = op.heap().segment();
    let memory = buffer::memory(segment, buffer)?;
    if end > memory.bytes || end < first {
        return Err(Error::Corrupt("an array is longer than its buffer"));
    }
    if end > first {
        fill(segment.pointer(memory.at + first, end - first)?)?;
    }
    fault::point("array: rows written");
    op.store(at + ROWS, rows as u64)
}

/// Moves the items to another buffer with room for so many rows; where that is.
fn move_to(op: &mut Op<'_>, at: Offset, layout: &Layout, old: Seen, room: usize) -> Result<Offset> {
    let segment = op.heap().segment();
    let used = layout.bytes(old.rows)?;
    let memory = buffer::memory(segment, old.buffer)?;
    if used > memory.bytes {
        return Err(Error::Corrupt("an array is longer than its buffer"));
    }
    let from = segment.pointer(memory.at, used)?;
    let wanted = layout.bytes(room)?;
    // What is taken anyway is room as well.
    let row_bytes = layout.row_bytes().unwrap_or(0);
    let room = buffer::roomy(wanted).checked_div(row_bytes).unwrap_or(room).max(room);
    let buffer = buffer::create(op, layout.bytes(room)?, true, &mut |to| {
        // SAFETY: both are as long as the rows that are used, and memory that was just taken is not
        // that of a buffer. Views may write meanwhile, as they may at any time.
        unsafe { to.copy_from_nonoverlapping(from, used) };
        Ok(())
    })?;
    op.retain(buffer)?;
    op.store_all(at + BODY, &[buffer as u64, old.rows as u64, room as u64])?;
    op.forgo(old.buffer);
    fault::point("array: moved");
    Ok(buffer)
}

/// Calls `visit` with all that the array at `at` owns.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    let head = head(segment, at)?;
    let (axes, length) = lengths(head);
    visit(Owned::Block { at, bytes: Layout::size(axes, length) })?;
    visit(Owned::Object(seen(head).buffer))
}
