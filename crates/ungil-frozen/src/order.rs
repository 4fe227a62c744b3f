//! The order of the keys of a dict, which is Python's.
//!
//! Code points in UTF-8 compare as their bytes do, also those of surrogates that stand alone.

use std::cmp::Ordering;

use ungil_heap::value::Value;

/// In which of the orders a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Strings, by their code points.
    Str,
    /// Bytes.
    Bytes,
    /// Integers, bools and floats that are not NaN.
    Number,
}

/// In which order a value stands, if in any.
#[must_use]
pub fn sort(value: &Value) -> Option<Sort> {
    match value {
        Value::Str(_) => Some(Sort::Str),
        Value::Bytes(_) => Some(Sort::Bytes),
        Value::Bool(_) | Value::Int(_) | Value::BigInt { .. } => Some(Sort::Number),
        Value::Float(number) if !number.is_nan() => Some(Sort::Number),
        _ => None,
    }
}

/// How two values compare; `None` if they stand in no common order.
#[must_use]
pub fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Str(one), Value::Str(other)) | (Value::Bytes(one), Value::Bytes(other)) => {
            Some((**one).cmp(&**other))
        }
        _ => compare_numbers(one, other),
    }
}

/// A real number: its integer part, rounded down, and what is above that.
enum Real<'v> {
    Small(i64),
    /// An integer beyond 64 bits: whether it is below zero, and its magnitude.
    Large(bool, &'v [u8]),
    Float(f64),
}

fn real<'v>(value: &'v Value) -> Option<Real<'v>> {
    Some(match value {
        Value::Bool(flag) => Real::Small((*flag).into()),
        Value::Int(number) => Real::Small(*number),
        Value::BigInt { negative, magnitude } => Real::Large(*negative, magnitude),
        Value::Float(number) if !number.is_nan() => Real::Float(*number),
        _ => return None,
    })
}

fn compare_numbers(one: &Value, other: &Value) -> Option<Ordering> {
    Some(match (real(one)?, real(other)?) {
        (Real::Small(one), Real::Small(other)) => one.cmp(&other),
        (Real::Float(one), Real::Float(other)) => one.partial_cmp(&other)?,
        (Real::Small(one), Real::Float(other)) => small_and_float(one, other),
        (Real::Float(one), Real::Small(other)) => small_and_float(other, one).reverse(),
        (Real::Small(_), Real::Large(negative, _)) => beyond(negative).reverse(),
        (Real::Large(negative, _), Real::Small(_)) => beyond(negative),
        (Real::Large(one, left), Real::Large(other, right)) => large(one, left, other, right),
        (Real::Large(negative, magnitude), Real::Float(other)) => {
            large_and_float(negative, magnitude, other)
        }
        (Real::Float(one), Real::Large(negative, magnitude)) => {
            large_and_float(negative, magnitude, one).reverse()
        }
    })
}

/// How what is beyond 64 bits compares to what is not.
fn beyond(negative: bool) -> Ordering {
    if negative { Ordering::Less } else { Ordering::Greater }
}

/// 2⁶³, beyond the largest integer of 64 bits.
const LIMIT: f64 = 9_223_372_036_854_775_808.0;

fn small_and_float(one: i64, other: f64) -> Ordering {
    if other >= LIMIT {
        return Ordering::Less;
    }
    if other < -LIMIT {
        return Ordering::Greater;
    }
    let floor = other.floor();
    #[expect(clippy::cast_possible_truncation, reason = "it was just checked")]
    let whole = floor as i64;
    one.cmp(&whole).then(if other > floor { Ordering::Less } else { Ordering::Equal })
}

fn large(one: bool, left: &[u8], other: bool, right: &[u8]) -> Ordering {
    let by_size = || {
        let by_length = left.len().cmp(&right.len());
        by_length.then_with(|| left.iter().rev().cmp(right.iter().rev()))
    };
    match (one, other) {
        (false, false) => by_size(),
        (true, true) => by_size().reverse(),
        _ => beyond(one),
    }
}

fn large_and_float(negative: bool, magnitude: &[u8], other: f64) -> Ordering {
    if other.is_infinite() || (other < 0.0) != negative || other.abs() < LIMIT {
        return if other.is_infinite() { beyond(other > 0.0) } else { beyond(negative) };
    }
    // A float as large as this is an integer: 53 bits, shifted to the left.
    let bits = other.abs().to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let shift = usize::try_from((bits >> 52).saturating_sub(1_075)).unwrap_or(0);
    let mut whole = vec![0; shift / 8];
    whole.extend_from_slice(&(u128::from(mantissa) << (shift % 8)).to_le_bytes());
    whole.truncate(whole.len() - whole.iter().rev().take_while(|byte| **byte == 0).count());
    large(negative, magnitude, negative, &whole)
}
