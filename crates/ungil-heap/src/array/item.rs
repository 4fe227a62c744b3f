//! Single items of an array that are numbers: read, and changed in one step.
//!
//! Who changes an item has the array locked for a moment, so that what it changes is not about to be
//! moved; the item itself is changed by one instruction, because views look at no lock.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::{Seen, head, seen};
use crate::segment::{Offset, Segment};
use crate::{Error, Heap, Result, buffer, fault, slice};

/// What a number is in memory, in the byte order of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A byte, 0 or not.
    Bool,
    /// Of 1, 2, 4 or 8 bytes.
    Signed(usize),
    /// Of 1, 2, 4 or 8 bytes.
    Unsigned(usize),
    /// IEEE 754, 4 bytes.
    Single,
    /// IEEE 754, 8 bytes.
    Double,
}

/// A number that was read, or is to be written.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Item {
    /// Of a [`Number::Bool`].
    Bool(bool),
    /// Of a [`Number::Signed`], in whose range it is.
    Signed(i64),
    /// Of a [`Number::Unsigned`], in whose range it is.
    Unsigned(u64),
    /// Of a [`Number::Single`] or a [`Number::Double`].
    Float(f64),
}

impl Number {
    /// Of a format with a single code: in native order, of native size unless it begins with `=` or
    /// `<`. `None`: something else.
    pub fn of(format: &[u8]) -> Option<Self> {
        let (long, code) = match format {
            [b'@', code] | [code] => (size_of::<std::ffi::c_long>(), code),
            [b'=', code] => (4, code),
            [b'<', code] if cfg!(target_endian = "little") => (4, code),
            [b'>', code] if cfg!(target_endian = "big") => (4, code),
            _ => return None,
        };
        Some(match code {
            b'?' => Self::Bool,
            b'b' => Self::Signed(1),
            b'B' => Self::Unsigned(1),
            b'h' => Self::Signed(2),
            b'H' => Self::Unsigned(2),
            b'i' => Self::Signed(4),
            b'I' => Self::Unsigned(4),
            b'l' => Self::Signed(long),
            b'L' => Self::Unsigned(long),
            b'q' | b'n' => Self::Signed(8),
            b'Q' | b'N' => Self::Unsigned(8),
            b'f' => Self::Single,
            b'd' => Self::Double,
            _ => return None,
        })
    }

    /// How many bytes it has.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Signed(bytes) | Self::Unsigned(bytes) => bytes,
            Self::Single => 4,
            Self::Double => 8,
        }
    }

    /// The item, if it is of this kind and in its range. A float of 4 bytes is rounded to one.
    #[expect(clippy::cast_possible_truncation, reason = "rounded as C does it")]
    pub fn fitted(self, item: Item) -> Option<Item> {
        let shift = 64 - 8 * self.bytes();
        match (self, item) {
            (Self::Bool, Item::Bool(_)) | (Self::Double, Item::Float(_)) => Some(item),
            (Self::Single, Item::Float(number)) => Some(Item::Float(f64::from(number as f32))),
            (Self::Signed(_), Item::Signed(number)) => {
                (number << shift >> shift == number).then_some(item)
            }
            (Self::Unsigned(_), Item::Unsigned(number)) => {
                (number << shift >> shift == number).then_some(item)
            }
            _ => None,
        }
    }

    /// The sum of an item and another of the same kind; `None`: it is not in the range.
    pub fn sum(self, one: Item, other: Item) -> Option<Item> {
        let sum = match (one, other) {
            (Item::Signed(one), Item::Signed(other)) => Item::Signed(one.checked_add(other)?),
            (Item::Unsigned(one), Item::Unsigned(other)) => Item::Unsigned(one.checked_add(other)?),
            (Item::Float(one), Item::Float(other)) => Item::Float(one + other),
            _ => return None,
        };
        self.fitted(sum)
    }

    /// An item as it is in memory, in the first [`Self::bytes`] of these.
    pub fn in_memory(self, item: Item) -> [u8; 8] {
        let shift = if cfg!(target_endian = "big") { 64 - 8 * self.bytes() } else { 0 };
        (item.bits(self) << shift).to_ne_bytes()
    }

    /// An item from what is in memory.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "as many bits as it has")]
    fn item(self, bits: u64) -> Item {
        let shift = 64 - 8 * self.bytes();
        match self {
            Self::Bool => Item::Bool(bits != 0),
            Self::Signed(_) => Item::Signed((bits << shift).cast_signed() >> shift),
            Self::Unsigned(_) => Item::Unsigned(bits),
            Self::Single => Item::Float(f32::from_bits(bits as u32).into()),
            Self::Double => Item::Float(f64::from_bits(bits)),
        }
    }
}

impl Item {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it fits: see `Number::fitted`")]
    fn bits(self, number: Number) -> u64 {
        match self {
            Self::Bool(flag) => flag.into(),
            Self::Signed(value) => value.cast_unsigned(),
            Self::Unsigned(value) => value,
            Self::Float(value) if number == Number::Single => (value as f32).to_bits().into(),
            Self::Float(value) => value.to_bits(),
        }
    }
}

/// Which number of an array is meant.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The index on the first axis; below 0 from the end.
    pub row: isize,
    /// How many bytes a row has.
    pub row_bytes: usize,
    /// Where in the row the number is.
    pub inside: usize,
    /// What it is.
    pub number: Number,
}

impl Place {
    /// Where it is; `None`: there is no such row.
    #[inline]
    fn find(self, segment: &Segment, seen: Seen) -> Result<Option<Offset>> {
        let Some(row) = slice::index(self.row, seen.rows) else { return Ok(None) };
        let memory = buffer::memory(segment, seen.buffer)?;
        let inside = row.checked_mul(self.row_bytes).and_then(|row| row.checked_add(self.inside));
        let end = inside.and_then(|inside| inside.checked_add(self.number.bytes()));
        match (inside, end) {
            (Some(inside), Some(end))
                if end <= memory.bytes && inside.is_multiple_of(self.number.bytes()) =>
            {
                Ok(Some(memory.at + inside))
            }
            _ => Err(Error::Corrupt("an array is longer than its buffer")),
        }
    }
}

/// A number of the array at `at`; `None`: there is no such row.
#[inline]
pub fn get(heap: &Heap, at: Offset, place: Place) -> Result<Option<Item>> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    heap.read(at, || match place.find(segment, seen(head))? {
        Some(found) => change_at(segment, found, place.number, &mut |_| None).map(Some),
        None => Ok(None),
    })
}

/// Gives a number of the array at `at` the value that `change` makes of the old one, if it makes one;
/// the old one. `None`: there is no such row. May call `change` several times, and is undone with the
/// operation that it is a part of.
///
/// What `change` returns must fit, as [`Number::fitted`] says.
#[inline]
pub fn update(
    heap: &Heap,
    at: Offset,
    place: Place,
    mut change: impl FnMut(Item) -> Option<Item>,
) -> Result<Option<Item>> {
    let segment = heap.segment();
    head(segment, at)?;
    let done = heap.briefly(at, |head| match place.find(segment, seen(head))? {
        Some(found) => change_at(segment, found, place.number, &mut change).map(Some),
        None => Ok(None),
    })?;
    match done {
        Some(done) => Ok(done),
        None => update_in_turn(heap, at, place, &mut change),
    }
}

/// As above, where others are at it, or in a transaction.
#[cold]
fn update_in_turn(
    heap: &Heap,
    at: Offset,
    place: Place,
    change: &mut dyn FnMut(Item) -> Option<Item>,
) -> Result<Option<Item>> {
    let segment = heap.segment();
    let head = head(segment, at)?;
    heap.change(|op| {
        op.lock(at)?;
        let Some(found) = place.find(segment, seen(head))? else { return Ok(None) };
        if op.is_nested() {
            op.save(found / 8 * 8, 1)?;
        }
        change_at(segment, found, place.number, change).map(Some)
    })
}

/// Reads a number, and changes it to what `change` makes of it.
#[inline]
fn change_at(
    segment: &Segment,
    at: Offset,
    number: Number,
    change: &mut dyn FnMut(Item) -> Option<Item>,
) -> Result<Item> {
    let place = segment.pointer(at, number.bytes())?;
    let old = match number.bytes() {
        // SAFETY: a byte of the mapping, which stays as long as the segment. Views use it as they
        // use memory that threads share.
        1 => AtomicU8::change(unsafe { place.cast().as_ref() }, number, change),
        // SAFETY: as above; aligned, as `Place::find` has seen.
        2 => AtomicU16::change(unsafe { place.cast().as_ref() }, number, change),
        // SAFETY: as above.
        4 => AtomicU32::change(unsafe { place.cast().as_ref() }, number, change),
        // SAFETY: as above.
        _ => AtomicU64::change(unsafe { place.cast().as_ref() }, number, change),
    };
    fault::point("array: item changed");
    Ok(old)
}

/// An atomic of some size that holds a number.
trait Change {
    fn change(&self, number: Number, change: &mut dyn FnMut(Item) -> Option<Item>) -> Item;
}

macro_rules! change {
    ($($atomic:ty as $bits:ty),*) => {$(
        impl Change for $atomic {
            #[inline]
            #[expect(clippy::allow_attributes, reason = "not all sizes cut something off")]
            #[allow(clippy::cast_possible_truncation, reason = "as many bits as it has")]
            #[allow(clippy::unnecessary_cast, reason = "one of the sizes is that of the bits")]
            #[allow(trivial_numeric_casts, reason = "as above")]
            fn change(&self, number: Number, change: &mut dyn FnMut(Item) -> Option<Item>) -> Item {
                let mut old = self.load(Relaxed);
                loop {
                    let item = number.item(u64::from(old));
                    let Some(new) = change(item) else { return item };
                    let new = new.bits(number) as $bits;
                    match self.compare_exchange_weak(old, new, Relaxed, Relaxed) {
                        Ok(_) => return item,
                        Err(found) => old = found,
                    }
                }
            }
        }
    )*};
}
change!(AtomicU8 as u8, AtomicU16 as u16, AtomicU32 as u32, AtomicU64 as u64);
