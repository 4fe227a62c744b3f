//! What a container holds: values as a process has them, and the cells in which the heap keeps them.
//!
//! A [`Value`] lives in one process and knows nothing of the heap; a [`Cell`] is 16 bytes of the
//! heap. [`store`] makes the one of the other, [`load`] goes back. What cannot change is copied
//! both ways; only [`Value::Object`] stays a reference, to something that is shared.
//!
//! Values are equal, and hash alike, as Python's are: `1 == 1.0 == True == 1+0j`, also inside of
//! tuples, and `0.0 == -0.0`. NaN equals nothing, not even itself, because the identity by which
//! Python finds one again does not reach into another process.

mod cell;
mod code;
mod equal;
mod hash;
mod number;
mod order;
mod sum;

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use crate::Error;
use crate::segment::Offset;

pub use cell::{Cell, discard, load, owned, store};
pub(crate) use cell::{copy_block, finish, from_block, prepare};
pub use code::{decode, encode};
pub use equal::{equal, found};
pub use hash::{hash, hash_cell};
pub use order::{has_order, order};
pub use sum::plus;

/// Bytes of a string that fits in a cell.
pub const SHORT: usize = 14;
/// How deep tuples, frozensets and aliases can be nested.
pub const DEPTH: usize = 128;
/// What to say of what is nested deeper.
pub const NESTED_TOO_DEEP: Error =
    Error::TooDeep("tuples and frozensets can be nested 128 deep in a heap, not deeper");
/// The bit of an extension's kind that makes it an *alias*: its key is a value, as [`encode`] made
/// it, and the extension equals that value and hashes like it. So `Decimal(1)` is found as `1`, and
/// a member of a `StrEnum` as its string. Any other extension equals those of its kind and key.
pub const ALIAS: u8 = 0x80;
/// The bit of an extension's kind whose objects may equal others than their kind and key say, as a
/// frozen tuple equals an ordinary one: only the caller can compare them.
pub const OPINION: u8 = 0x10;

/// A Python value outside of the heap.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of at most 64 bits.
    Int(i64),
    /// An integer of any size; see [`Value::integer`].
    BigInt {
        /// Whether it is below zero.
        negative: bool,
        /// Its absolute value, the least significant byte first.
        magnitude: Cow<'a, [u8]>,
    },
    /// A `float`.
    Float(f64),
    /// A `complex`: real and imaginary part.
    Complex(f64, f64),
    /// A `str`, in UTF-8; a surrogate that stands alone is encoded like any other code point.
    Str(Text<'a>),
    /// A `bytes`.
    Bytes(Text<'a>),
    /// A `tuple`.
    Tuple(Vec<Value<'a>>),
    /// A `frozenset`, its members in no particular order.
    FrozenSet(Vec<Value<'a>>),
    /// A value of another immutable type, which only the caller understands.
    Extension {
        /// Which type, and whether it is an [`ALIAS`].
        kind: u8,
        /// What decides about equality: the same for equal values.
        key: Cow<'a, [u8]>,
        /// Whatever else the value is made of.
        payload: Cow<'a, [u8]>,
    },
    /// A shared object: equal only to itself.
    Object(Offset),
}

impl Value<'_> {
    /// The same value, which borrows nothing.
    pub fn into_owned(self) -> Value<'static> {
        let all = |values: Vec<Value>| values.into_iter().map(Value::into_owned).collect();
        match self {
            Value::None => Value::None,
            Value::Bool(flag) => Value::Bool(flag),
            Value::Int(number) => Value::Int(number),
            Value::BigInt { negative, magnitude } => {
                Value::BigInt { negative, magnitude: Cow::Owned(magnitude.into_owned()) }
            }
            Value::Float(number) => Value::Float(number),
            Value::Complex(real, imaginary) => Value::Complex(real, imaginary),
            Value::Str(text) => Value::Str(text.into_owned()),
            Value::Bytes(text) => Value::Bytes(text.into_owned()),
            Value::Tuple(items) => Value::Tuple(all(items)),
            Value::FrozenSet(members) => Value::FrozenSet(all(members)),
            Value::Extension { kind, key, payload } => Value::Extension {
                kind,
                key: Cow::Owned(key.into_owned()),
                payload: Cow::Owned(payload.into_owned()),
            },
            Value::Object(at) => Value::Object(at),
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Str(Text::from(text.as_bytes()))
    }
}

/// The bytes of a string: borrowed, in place if there are at most [`SHORT`], or owned.
#[derive(Clone)]
pub struct Text<'a>(Place<'a>);

#[derive(Clone)]
enum Place<'a> {
    Borrowed(&'a [u8]),
    /// So many bytes of the array; at most [`SHORT`].
    Here(u8, [u8; SHORT + 2]),
    Owned(Vec<u8>),
}

impl Text<'_> {
    /// The first `length` bytes of an array; at most [`SHORT`].
    pub(crate) const fn here(length: u8, bytes: [u8; SHORT + 2]) -> Text<'static> {
        assert!(length as usize <= SHORT);
        Text(Place::Here(length, bytes))
    }

    /// The same bytes, borrowed from nobody.
    pub fn into_owned(self) -> Text<'static> {
        Text(match self.0 {
            Place::Borrowed(bytes) => Place::Owned(bytes.to_owned()),
            Place::Here(length, bytes) => Place::Here(length, bytes),
            Place::Owned(bytes) => Place::Owned(bytes),
        })
    }
}

impl Deref for Text<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Borrowed(bytes) => bytes,
            Place::Here(length, bytes) => &bytes[..usize::from(*length)],
            Place::Owned(bytes) => bytes,
        }
    }
}

impl<'a> From<&'a [u8]> for Text<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(Place::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Text<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Place::Owned(bytes))
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}
