//! When values are equal, which is when Python says so.

use std::borrow::Cow;

use super::cell::{Tag, block_words};
use super::{ALIAS, Cell, DEPTH, Value, code, hash, load};
use crate::Result;
use crate::atomic::Ordering::Relaxed;
use crate::segment::Segment;

/// A number in the one form that all numbers equal to it have.
#[derive(Debug, PartialEq)]
pub(super) enum Number<'a> {
    /// Any integer of 64 bits, whatever its type.
    Int(i64),
    /// An integer beyond, without zeros at its end.
    Big { negative: bool, magnitude: Cow<'a, [u8]> },
    /// Not an integer.
    Real(f64),
    /// Not on the real axis.
    Complex(f64, f64),
}

/// The number that a value is, if it is one.
pub(super) fn number<'v>(value: &'v Value) -> Option<Number<'v>> {
    Some(match value {
        Value::Bool(flag) => Number::Int((*flag).into()),
        Value::Int(number) => Number::Int(*number),
        Value::BigInt { negative, magnitude } => integer(*negative, magnitude),
        Value::Float(number) => real(*number),
        // Also -0.0; a NaN there is not zero.
        Value::Complex(number, imaginary) if *imaginary == 0.0 => real(*number),
        Value::Complex(number, imaginary) => Number::Complex(*number, *imaginary),
        _ => return None,
    })
}

/// An integer by its sign and magnitude, least significant byte first.
pub(super) fn integer(negative: bool, magnitude: &[u8]) -> Number<'_> {
    let magnitude = trimmed(magnitude);
    let mut bytes = [0; 8];
    if let Some(low) = bytes.get_mut(..magnitude.len()) {
        low.copy_from_slice(magnitude);
        let size = i128::from(u64::from_le_bytes(bytes));
        if let Ok(number) = i64::try_from(if negative { -size } else { size }) {
            return Number::Int(number);
        }
    }
    Number::Big { negative, magnitude: Cow::Borrowed(magnitude) }
}

/// A magnitude without zeros at its most significant end.
pub(super) fn trimmed(magnitude: &[u8]) -> &[u8] {
    let zeros = magnitude.iter().rev().take_while(|byte| **byte == 0).count();
    &magnitude[..magnitude.len() - zeros]
}

/// 2⁶³, beyond the largest integer of 64 bits.
const LIMIT: f64 = 9_223_372_036_854_775_808.0;
/// Bits of a float's mantissa that are stored.
const MANTISSA: u32 = 52;

fn real<'v>(number: f64) -> Number<'v> {
    if !number.is_finite() || number.fract() != 0.0 {
        return Number::Real(number);
    }
    if (-LIMIT..LIMIT).contains(&number) {
        #[expect(clippy::cast_possible_truncation, reason = "it was just checked")]
        return Number::Int(number as i64);
    }
    // An integer: its mantissa, shifted to the left by whole bytes and then by bits.
    let bits = number.abs().to_bits();
    let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
    let exponent = usize::try_from(bits >> MANTISSA).unwrap_or(0);
    let shift = exponent.saturating_sub(1023 + MANTISSA as usize);
    let mut magnitude = vec![0; shift / 8];
    magnitude.extend_from_slice(&(u128::from(mantissa) << (shift % 8)).to_le_bytes());
    magnitude.truncate(trimmed(&magnitude).len());
    Number::Big { negative: number < 0.0, magnitude: Cow::Owned(magnitude) }
}

/// The value that an alias equals.
pub(super) fn alias<'v>(value: &'v Value) -> Option<Value<'v>> {
    match value {
        Value::Extension { kind, key, .. } if kind & ALIAS != 0 => code::decode(key).ok(),
        _ => None,
    }
}

impl PartialEq for Value<'_> {
    /// Whether Python says that they are equal; NaN never is.
    fn eq(&self, other: &Self) -> bool {
        same(self, other, 0)
    }
}

fn same(one: &Value, other: &Value, depth: usize) -> bool {
    // What is nested deeper was never stored, so nothing in a heap equals it.
    if depth > DEPTH {
        return false;
    }
    if let Some(one) = alias(one) {
        return same(&one, other, depth + 1);
    }
    if let Some(other) = alias(other) {
        return same(one, &other, depth + 1);
    }
    match (one, other) {
        (Value::None, Value::None) => true,
        (Value::Str(one), Value::Str(other)) | (Value::Bytes(one), Value::Bytes(other)) => {
            **one == **other
        }
        (Value::Tuple(one), Value::Tuple(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same(one, other, depth + 1))
        }
        (Value::FrozenSet(one), Value::FrozenSet(other)) => same_members(one, other, depth),
        (
            Value::Extension { kind: one, key: one_key, .. },
            Value::Extension { kind: other, key: other_key, .. },
        ) => one == other && one_key == other_key,
        (Value::Object(one), Value::Object(other)) => one == other,
        _ => number(one).is_some_and(|one| Some(one) == number(other)),
    }
}

/// Whether each member of one is in the other, where no two members of one are equal.
fn same_members(one: &[Value], other: &[Value], depth: usize) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let sorted = |members: &[Value]| {
        let mut hashed: Vec<(u64, usize)> =
            members.iter().enumerate().map(|(at, member)| (hash([0, 0], member), at)).collect();
        hashed.sort_unstable();
        hashed
    };
    let theirs = sorted(other);
    sorted(one).iter().all(|(hash, at)| {
        let first = theirs.partition_point(|(theirs, _)| theirs < hash);
        theirs[first..]
            .iter()
            .take_while(|(theirs, _)| theirs == hash)
            .any(|(_, there)| same(&one[*at], &other[*there], depth + 1))
    })
}

/// Whether a cell holds a value that equals `value`. What it sees may be changing: see
/// [`crate::Heap::read`].
#[inline]
pub fn equal(segment: &Segment, cell: Cell, value: &Value) -> Result<bool> {
    match (cell.tag(), value) {
        (Tag::NOTHING, _) => Ok(false),
        (Tag::INT, Value::Int(number)) => Ok(cell.1 == number.cast_unsigned()),
        (Tag::SHORT_STR, Value::Str(text)) | (Tag::SHORT_BYTES, Value::Bytes(text)) => {
            Ok(*cell.text()? == **text)
        }
        (Tag::STR, Value::Str(text)) | (Tag::BYTES, Value::Bytes(text)) => {
            let (words, length) = block_words(segment, cell)?;
            Ok(length == text.len()
                && words
                    .iter()
                    .zip(text.chunks(8))
                    .all(|(word, bytes)| word.load(Relaxed).to_le_bytes()[..bytes.len()] == *bytes))
        }
        _ => Ok(load(segment, cell)? == *value),
    }
}
