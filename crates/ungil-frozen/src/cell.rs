//! What the sixteen bytes of a value mean.
//!
//! A value that fits in a cell is kept as the heap keeps it ([`ungil_heap::value::Cell`]). Any other
//! cell has a tag in its lowest byte, a count in the seven others of its first word, and in its
//! second word the offset of what it refers to.

use ungil_heap::value::{Cell, Value, decode};

use crate::{Error, Result};

/// A `str` of so many bytes.
pub const STR: u8 = 8;
/// A `bytes` of so many bytes.
pub const BYTES: u8 = 9;
/// An integer above 64 bits, by its magnitude of so many bytes.
pub const POSITIVE: u8 = 10;
/// One below.
pub const NEGATIVE: u8 = 11;
/// Any other value, of so many bytes as [`ungil_heap::value::encode`] made them.
pub const CODED: u8 = 12;
/// A list of so many cells.
pub const LIST: u8 = 16;
/// A tuple of so many cells.
pub const TUPLE: u8 = 17;
/// A set of so many members.
pub const SET: u8 = 18;
/// A frozenset of so many members.
pub const FROZEN_SET: u8 = 19;
/// A dict of so many entries.
pub const DICT: u8 = 20;
/// A dict with the keys of the schema of this number; its values lie one after the other.
pub const RECORD: u8 = 21;

/// What is said of an offset, or of a length, that leads astray.
pub(crate) const OUTSIDE: Error =
    Error::Damaged("a part lies outside the file, or outside the part that contains it");

/// The largest count of a cell.
pub const MOST: u64 = (1 << 56) - 1;

/// The cell that refers to something.
#[must_use]
pub const fn to(tag: u8, count: u64, at: u64) -> Cell {
    Cell(tag as u64 | count << 8, at)
}

/// What a cell holds.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the lowest byte is meant")]
pub const fn tag(cell: Cell) -> u8 {
    cell.0 as u8
}

/// Its count.
#[inline]
#[must_use]
pub const fn count(cell: Cell) -> u64 {
    cell.0 >> 8
}

/// As it lies in the file.
#[must_use]
pub fn bytes(cell: Cell) -> [u8; Cell::SIZE] {
    (u128::from(cell.1) << 64 | u128::from(cell.0)).to_le_bytes()
}

/// The cell of these bytes.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "one half each")]
pub const fn of(bytes: [u8; Cell::SIZE]) -> Cell {
    let word = u128::from_le_bytes(bytes);
    Cell(word as u64, (word >> 64) as u64)
}

/// The value of a cell that has to end before `below`.
///
/// # Errors
/// [`Error::Damaged`], also for a container.
#[inline]
pub fn value_in(bytes: &[u8], found: Cell, below: usize) -> Result<Value<'_>> {
    if let Some(value) = found.whole() {
        return Ok(value);
    }
    let at = usize::try_from(found.1).map_err(|_| OUTSIDE)?;
    let size = usize::try_from(count(found)).ok();
    let end = size.and_then(|size| at.checked_add(size)).filter(|end| *end <= below);
    let bytes = end.and_then(|end| bytes.get(at..end)).ok_or(OUTSIDE)?;
    Ok(match tag(found) {
        STR => Value::Str(bytes.into()),
        BYTES => Value::Bytes(bytes.into()),
        POSITIVE | NEGATIVE => {
            Value::BigInt { negative: tag(found) == NEGATIVE, magnitude: bytes.into() }
        }
        CODED => decode(bytes)?,
        _ => return Err(Error::Damaged("a value is of an unknown type")),
    })
}
