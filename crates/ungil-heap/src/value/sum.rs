//! The sum of two numbers, as Python has it: exact for integers of any size.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::Value;
use super::number::trimmed;
use crate::{Error, Result};

/// The sum of two numbers.
///
/// # Errors
/// [`Error::Unfit`] if one of them is no number, or an integer is too large to become a float.
pub fn plus(one: &Value, other: &Value) -> Result<Value<'static>> {
    if let (Value::Int(one), Value::Int(other)) = (one, other)
        && let Some(sum) = one.checked_add(*other)
    {
        return Ok(Value::Int(sum));
    }
    if matches!(one, Value::Complex(..)) || matches!(other, Value::Complex(..)) {
        let ((real, imaginary), (more, further)) = (complex(one)?, complex(other)?);
        return Ok(Value::Complex(real + more, imaginary + further));
    }
    if matches!(one, Value::Float(_)) || matches!(other, Value::Float(_)) {
        return Ok(Value::Float(float(one)? + float(other)?));
    }
    let ((one_negative, one), (other_negative, other)) = (magnitude(one)?, magnitude(other)?);
    let (negative, sum) = if one_negative == other_negative {
        (one_negative, added(&one, &other))
    } else {
        match compared(&one, &other) {
            Ordering::Less => (other_negative, subtracted(&other, &one)),
            _ => (one_negative, subtracted(&one, &other)),
        }
    };
    Ok(Value::integer(negative, &sum).into_owned())
}

const NO_NUMBER: Error = Error::Unfit("only numbers can be added");

fn complex(value: &Value) -> Result<(f64, f64)> {
    match value {
        Value::Complex(real, imaginary) => Ok((*real, *imaginary)),
        other => Ok((float(other)?, 0.0)),
    }
}

fn float(value: &Value) -> Result<f64> {
    match value {
        Value::Float(number) => Ok(*number),
        Value::Int(number) => Ok(*number as f64),
        Value::Bool(flag) => Ok(f64::from(u8::from(*flag))),
        Value::BigInt { negative, magnitude } => {
            let size = rounded(trimmed(magnitude));
            if size.is_infinite() {
                return Err(Error::Unfit("an integer is too large to become a float"));
            }
            Ok(if *negative { -size } else { size })
        }
        _ => Err(NO_NUMBER),
    }
}

/// The nearest float, the even one of two.
fn rounded(magnitude: &[u8]) -> f64 {
    // More bits than a float has are enough to round if the lowest tells of those below.
    let split = magnitude.len().saturating_sub(15);
    let (low, high) = magnitude.split_at(split);
    let mut bytes = [0; 16];
    bytes[..high.len()].copy_from_slice(high);
    let sticky = u128::from(low.iter().any(|byte| *byte != 0));
    let scale = i32::try_from(split * 8).unwrap_or(i32::MAX);
    (u128::from_le_bytes(bytes) | sticky) as f64 * 2_f64.powi(scale)
}

fn magnitude<'v>(value: &'v Value) -> Result<(bool, Cow<'v, [u8]>)> {
    match value {
        Value::Bool(flag) => Ok((false, Cow::Owned(vec![u8::from(*flag)]))),
        Value::Int(number) => {
            Ok((*number < 0, Cow::Owned(number.unsigned_abs().to_le_bytes().to_vec())))
        }
        Value::BigInt { negative, magnitude } => Ok((*negative, Cow::Borrowed(magnitude))),
        _ => Err(NO_NUMBER),
    }
}

fn compared(one: &[u8], other: &[u8]) -> Ordering {
    let (one, other) = (trimmed(one), trimmed(other));
    one.len().cmp(&other.len()).then_with(|| one.iter().rev().cmp(other.iter().rev()))
}

fn added(one: &[u8], other: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let digit = |digits: &[u8], at: usize| u16::from(digits.get(at).copied().unwrap_or(0));
    let mut sum = Vec::with_capacity(one.len().max(other.len()) + 1);
    for at in 0..=one.len().max(other.len()) {
        let [low, high] = (digit(one, at) + digit(other, at) + carry).to_le_bytes();
        sum.push(low);
        carry = high.into();
    }
    sum
}

/// The difference, where the first is not the smaller one.
fn subtracted(large: &[u8], small: &[u8]) -> Vec<u8> {
    let mut borrow = false;
    large
        .iter()
        .enumerate()
        .map(|(at, digit)| {
            let less = small.get(at).copied().unwrap_or(0);
            let (rest, first) = digit.overflowing_sub(less);
            let (rest, second) = rest.overflowing_sub(borrow.into());
            borrow = first || second;
            rest
        })
        .collect()
}
