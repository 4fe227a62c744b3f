//! Sixteen bytes of the heap that hold a value or say where it is.
//!
//! | tag | bytes 1-7 | bytes 8-15 |
//! |---|---|---|
//! | nothing | zeros | zeros |
//! | `None` | zeros | zeros |
//! | bool, int, float | zeros | 0 or 1; two's complement; IEEE 754 |
//! | short str, short bytes | length, then 14 bytes in all | |
//! | object | zeros | offset |
//! | any other | length in bytes | offset of a block with so many bytes |
//!
//! A block belongs to one cell and is freed when the cell is overwritten. It holds the bytes of a
//! string, the magnitude of an integer, or what [`super::encode`] made.

use super::number::{self, Number};
use super::{SHORT, Text, Value, code};
use crate::atomic::{AtomicU64, Ordering::Relaxed};
use crate::header::CHUNK;
use crate::object::{Owned, Visit};
use crate::op::Op;
use crate::segment::{Offset, Segment};
use crate::{Error, Result, chunk, fault};

/// What a cell holds, in its lowest byte.
#[derive(Clone, Copy)]
pub(super) struct Tag;

impl Tag {
    pub(super) const NOTHING: u8 = 0;
    pub(super) const NONE: u8 = 1;
    pub(super) const BOOL: u8 = 2;
    pub(super) const INT: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const SHORT_STR: u8 = 5;
    pub(super) const SHORT_BYTES: u8 = 6;
    pub(super) const OBJECT: u8 = 7;
    /// Beginning with this one, there is a block.
    pub(super) const STR: u8 = 8;
    pub(super) const BYTES: u8 = 9;
    pub(super) const POSITIVE: u8 = 10;
    pub(super) const NEGATIVE: u8 = 11;
    /// Encoded, with no object in it.
    pub(super) const CODED: u8 = 12;
    /// Encoded, with objects in it that it refers to.
    pub(super) const LINKED: u8 = 13;
}

/// A value in the heap. Two cells of the same words hold equal values, unless they hold NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell(pub u64, pub u64);

impl Cell {
    /// Where there is no value.
    pub const NOTHING: Self = Self(0, 0);
    /// The cell of the integer 0.
    pub(crate) const ZERO: Self = Self(Tag::INT as u64, 0);
    /// Bytes of a cell.
    pub const SIZE: usize = 16;

    /// The cell at `at`.
    #[inline]
    pub fn read(segment: &Segment, at: Offset) -> Result<Self> {
        let [first, second] = segment.words(at, 2)? else {
            return Err(Error::Corrupt("a cell is cut off"));
        };
        Ok(Self(first.load(Relaxed), second.load(Relaxed)))
    }

    /// The sum of two small integers, if it is one too.
    #[inline]
    pub(crate) fn plus(self, by: &Value) -> Option<Self> {
        match (self.int(), by) {
            (Some(number), Value::Int(by)) => number.checked_add(*by).map(Self::from),
            _ => None,
        }
    }

    /// As it is stored.
    #[inline]
    pub const fn words(self) -> [u64; 2] {
        [self.0, self.1]
    }

    /// Whether it holds no value.
    #[inline]
    pub const fn is_nothing(self) -> bool {
        self.tag() == Tag::NOTHING
    }

    /// Whether it owns a block, so that taking its value out means to look elsewhere.
    #[inline]
    pub const fn has_block(self) -> bool {
        self.tag() >= Tag::STR
    }

    /// The value that it is all of, if it refers to nothing else.
    pub fn whole(self) -> Option<Value<'static>> {
        Some(match self.tag() {
            Tag::NONE => Value::None,
            Tag::BOOL => Value::Bool(self.1 != 0),
            Tag::INT => Value::Int(self.1.cast_signed()),
            Tag::FLOAT => Value::Float(f64::from_bits(self.1)),
            Tag::SHORT_STR => Value::Str(self.text().ok()?),
            Tag::SHORT_BYTES => Value::Bytes(self.text().ok()?),
            _ => return None,
        })
    }

    /// Whether it is.
    #[inline]
    pub const fn is_whole(self) -> bool {
        self.tag() != Tag::NOTHING && self.tag() < Tag::OBJECT
    }

    /// Whether it holds a number, or a bool, whose second word is all of it.
    #[inline]
    pub(crate) const fn is_number(self) -> bool {
        matches!(self.tag(), Tag::BOOL | Tag::INT | Tag::FLOAT)
    }

    /// The integer of at most 64 bits that it holds, if it holds one.
    #[inline]
    pub const fn int(self) -> Option<i64> {
        if self.tag() == Tag::INT { Some(self.1.cast_signed()) } else { None }
    }

    /// The object that it refers to, if it holds nothing else.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "offsets fit")]
    pub const fn object(self) -> Option<Offset> {
        if self.tag() == Tag::OBJECT { Some(self.1 as usize) } else { None }
    }

    /// The cell that refers to an object, which is counted by who stores it.
    pub(crate) const fn to(at: Offset) -> Self {
        Self(Tag::OBJECT as u64, at as u64)
    }

    /// The cell of a value that needs no block and refers to nothing.
    #[inline]
    pub fn inline(value: &Value) -> Option<Self> {
        Some(match value {
            Value::None => Self(Tag::NONE.into(), 0),
            Value::Bool(flag) => Self(Tag::BOOL.into(), u64::from(*flag)),
            Value::Int(number) => Self::from(*number),
            Value::Float(number) => Self(Tag::FLOAT.into(), number.to_bits()),
            Value::Str(text) => return Self::short(text),
            Value::Bytes(text) => {
                let Self(first, second) = Self::short(text)?;
                Self(first ^ u64::from(Tag::SHORT_STR ^ Tag::SHORT_BYTES), second)
            }
            _ => return None,
        })
    }

    /// The cell of a `str` with these bytes in UTF-8, if they are few enough.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "one half each")]
    pub fn short(text: &[u8]) -> Option<Self> {
        if text.len() > SHORT {
            return None;
        }
        let word = packed(text) << 16 | (text.len() as u128) << 8 | u128::from(Tag::SHORT_STR);
        Some(Self(word as u64, (word >> 64) as u64))
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lowest byte is meant")]
    pub(super) const fn tag(self) -> u8 {
        self.0 as u8
    }

    /// Whether it owns a block, and refers to nothing else.
    #[inline]
    pub(crate) const fn has_only_block(self) -> bool {
        self.has_block() && self.tag() != Tag::LINKED
    }

    /// The block that it owns, if it does: where it is, and how long.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "offsets fit")]
    pub(crate) const fn block(self) -> Option<(Offset, usize)> {
        if self.has_block() { Some((self.1 as usize, (self.0 >> 8) as usize)) } else { None }
    }

    /// The bytes of a short string.
    #[inline]
    pub(super) fn text(self) -> Result<Text<'static>> {
        let length = self.0.to_le_bytes()[1];
        if usize::from(length) > SHORT {
            return Err(Error::Corrupt("a short string is too long"));
        }
        let word = u128::from(self.1) << 64 | u128::from(self.0);
        Ok(Text::here(length, (word >> 16).to_le_bytes()))
    }
}

impl From<f64> for Cell {
    #[inline]
    fn from(number: f64) -> Self {
        Self(Tag::FLOAT.into(), number.to_bits())
    }
}

impl From<i64> for Cell {
    #[inline]
    fn from(number: i64) -> Self {
        Self(Tag::INT.into(), number.cast_unsigned())
    }
}

/// At most sixteen bytes as a number. Two loads that may overlap are faster than a loop.
#[inline]
fn packed(bytes: &[u8]) -> u128 {
    let shift = |bytes: &[u8], width: usize| (bytes.len() - width) * 8;
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        return u128::from(first) | u128::from(last) << shift(bytes, 8);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u128::from(first) | u128::from(last) << shift(bytes, 4);
    }
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte))
}

/// Puts a value into the heap, for a cell that will own it. Objects get a reference.
///
/// # Errors
/// [`Error::TooDeep`] for what is nested deeper than [`super::DEPTH`], or than the stack allows.
pub fn store(op: &mut Op, value: &Value) -> Result<Cell> {
    if let Some(cell) = Cell::inline(value) {
        return Ok(cell);
    }
    match value {
        Value::Object(at) => {
            op.retain(*at)?;
            Ok(Cell::to(*at))
        }
        Value::Str(text) => block(op, Tag::STR, text),
        Value::Bytes(text) => block(op, Tag::BYTES, text),
        Value::BigInt { negative, magnitude } => {
            if let Number::Int(number) = number::integer(*negative, magnitude) {
                return Ok(Cell::from(number));
            }
            let tag = if *negative { Tag::NEGATIVE } else { Tag::POSITIVE };
            block(op, tag, number::trimmed(magnitude))
        }
        _ => {
            let (code, objects) = code::encode_with_objects(value)?;
            for &object in &objects {
                op.retain(object)?;
            }
            block(op, if objects.is_empty() { Tag::CODED } else { Tag::LINKED }, &code)
        }
    }
}

fn block(op: &mut Op, tag: u8, bytes: &[u8]) -> Result<Cell> {
    let at = op.take(bytes.len())?;
    let words = op.heap().segment().words(at, bytes.len().div_ceil(8))?;
    let mut whole = bytes.chunks_exact(8);
    for (word, bytes) in words.iter().zip(&mut whole) {
        word.store(u64::from_le_bytes(bytes.try_into().expect("eight of them")), Relaxed);
    }
    if let (rest @ [_, ..], Some(word)) = (whole.remainder(), words.last()) {
        word.store(partial(rest), Relaxed);
    }
    fault::point("value: block written");
    Ok(Cell(u64::from(tag) | (bytes.len() as u64) << 8, at as u64))
}

/// Fewer than eight bytes as a word.
fn partial(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Takes a value out of a cell. What it sees may be changing: see [`crate::Heap::read`].
#[inline]
pub fn load(segment: &Segment, cell: Cell) -> Result<Value<'static>> {
    Ok(match cell.tag() {
        Tag::NONE => Value::None,
        Tag::BOOL => Value::Bool(cell.1 != 0),
        Tag::INT => Value::Int(cell.1.cast_signed()),
        Tag::FLOAT => Value::Float(f64::from_bits(cell.1)),
        Tag::SHORT_STR => Value::Str(cell.text()?),
        Tag::SHORT_BYTES => Value::Bytes(cell.text()?),
        Tag::OBJECT => Value::Object(usize::try_from(cell.1).unwrap_or(usize::MAX)),
        _ => load_block(segment, cell)?,
    })
}

#[cold]
fn load_block(segment: &Segment, cell: Cell) -> Result<Value<'static>> {
    let mut bytes = Vec::new();
    copy_block(segment, cell, &mut bytes)?;
    from_block(cell, bytes)
}

/// A value whose cell may be given up: nothing of [`finish`] can fail any more in a sound heap.
pub(crate) enum Ready {
    /// It is here.
    Loaded(Value<'static>),
    /// There is memory for a copy of it.
    Room(Vec<u8>),
}

/// Does all that can fail of loading a cell with a block, and leaves to [`finish`] what only takes
/// time.
pub(crate) fn prepare(segment: &Segment, cell: Cell) -> Result<Ready> {
    if !matches!(cell.tag(), Tag::STR | Tag::BYTES) {
        // What is nested may be too deep for the stack of this thread.
        return Ok(Ready::Loaded(load(segment, cell)?));
    }
    let mut bytes = Vec::new();
    reserve(&mut bytes, block_words(segment, cell)?.0.len() * 8)?;
    Ok(Ready::Room(bytes))
}

/// Loads the cell that is prepared.
pub(crate) fn finish(segment: &Segment, cell: Cell, ready: Ready) -> Result<Value<'static>> {
    match ready {
        Ready::Loaded(value) => Ok(value),
        Ready::Room(mut bytes) => {
            copy_block(segment, cell, &mut bytes)?;
            from_block(cell, bytes)
        }
    }
}

fn reserve(bytes: &mut Vec<u8>, length: usize) -> Result<()> {
    // A length that nobody wrote may be beyond what the process can have.
    let reserved = bytes.try_reserve_exact(length);
    reserved.map_err(|_| Error::Corrupt("a value is larger than memory"))
}

/// Copies the block of a cell. What it sees may be changing.
#[inline(never)]
pub(crate) fn copy_block(segment: &Segment, cell: Cell, bytes: &mut Vec<u8>) -> Result<()> {
    let (words, length) = block_words(segment, cell)?;
    bytes.clear();
    reserve(bytes, words.len() * 8)?;
    bytes.resize(words.len() * 8, 0);
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes());
    }
    bytes.truncate(length);
    Ok(())
}

/// The value of a cell with a block of these bytes.
pub(crate) fn from_block(cell: Cell, bytes: Vec<u8>) -> Result<Value<'static>> {
    Ok(match cell.tag() {
        Tag::STR => Value::Str(bytes.into()),
        Tag::BYTES => Value::Bytes(bytes.into()),
        tag @ (Tag::POSITIVE | Tag::NEGATIVE) => {
            Value::BigInt { negative: tag == Tag::NEGATIVE, magnitude: bytes.into() }
        }
        _ => code::decode(&bytes)?.into_owned(),
    })
}

/// The words of the block of a cell, and how many bytes of them count.
pub(super) fn block_words(segment: &Segment, cell: Cell) -> Result<(&[AtomicU64], usize)> {
    let Some((at, length)) = cell.block() else {
        return Err(Error::Corrupt("a cell has no block"));
    };
    if cell.tag() > Tag::LINKED {
        return Err(Error::Corrupt("a value of an unknown type"));
    }
    // Beyond the last chunk there is no memory yet, and touching it could fail.
    if length.div_ceil(CHUNK) > chunk::count(segment) {
        return Err(Error::Corrupt("a value is longer than the heap"));
    }
    chunk::number(segment, at)?;
    if at + length > segment.layout().chunk(chunk::count(segment)) {
        return Err(Error::Corrupt("a value reaches beyond the heap"));
    }
    Ok((segment.words(at, length.div_ceil(8))?, length))
}

/// Gives up what a cell owns, when the operation has succeeded.
#[inline]
pub fn discard(op: &mut Op, cell: Cell) -> Result<()> {
    if cell.tag() < Tag::OBJECT {
        return Ok(());
    }
    let segment = op.heap().segment();
    owned(segment, cell, &mut |owned| {
        match owned {
            Owned::Block { at, bytes } => op.free(at, bytes),
            Owned::Object(at) => op.forgo(at),
        }
        Ok(())
    })
}

/// Lists what a cell owns and refers to.
pub fn owned(segment: &Segment, cell: Cell, visit: &mut Visit<'_>) -> Result<()> {
    if let Some(at) = cell.object() {
        return visit(Owned::Object(at));
    }
    let Some((at, length)) = cell.block() else { return Ok(()) };
    if cell.tag() == Tag::LINKED {
        let mut bytes = Vec::new();
        copy_block(segment, cell, &mut bytes)?;
        code::objects(&bytes, visit)?;
    } else {
        block_words(segment, cell)?;
    }
    visit(Owned::Block { at, bytes: length })
}
