//! In which order values stand: as Python says, where it says anything.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use super::code::{alias, decode};
use super::number::{Number, number, real};
use super::{DEPTH, Value};

/// The kinds of extensions that [`order`] understands. The caller makes them: `python/ungil/share/
/// _values.py` has their keys.
mod kinds {
    /// A date, a time, a datetime, a timedelta, a UUID: their keys stand in their order.
    pub const BY_KEY: [u8; 5] = [1, 2, 3, 4, 8];
    /// A number that no other value equals: its key is a fraction, or a sign, digits and an exponent.
    pub const NUMBER: u8 = 7;
}

/// Compares two values, so that any number of them has one order: numbers, then strings, then bytes,
/// then tuples, then times and UUIDs, and all others, which stand where they are.
///
/// Within these, it is the order of Python; NaN is greater than all other numbers. A fraction that is
/// no float stands where the nearest float does. Values between which Python knows no order are equal
/// here.
pub fn order(one: &Value<'_>, other: &Value<'_>) -> Ordering {
    compare(one, other, 0)
}

/// Whether a value has a place of its own in [`order`], or is `None`, which comes after all that have.
/// A tuple stands where its first item does.
pub fn has_order(value: &Value<'_>) -> bool {
    if let Some(equal) = alias(value) {
        return has_order(&equal);
    }
    match value {
        Value::None => true,
        Value::Complex(_, imaginary) => *imaginary == 0.0,
        Value::Tuple(items) => items.first().is_none_or(has_order),
        other => rank(other) < UNORDERED,
    }
}

fn compare(one: &Value<'_>, other: &Value<'_>, depth: usize) -> Ordering {
    if depth > DEPTH {
        return Equal;
    }
    if let Some(one) = alias(one) {
        return compare(&one, other, depth + 1);
    }
    if let Some(other) = alias(other) {
        return compare(one, &other, depth + 1);
    }
    match (one, other) {
        (Value::Str(one), Value::Str(other)) | (Value::Bytes(one), Value::Bytes(other)) => {
            // UTF-8 has the order of its code points.
            (**one).cmp(&**other)
        }
        (Value::Tuple(one), Value::Tuple(other)) => {
            let pairs = one.iter().zip(other);
            pairs
                .map(|(one, other)| compare(one, other, depth + 1))
                .find(|order| *order != Equal)
                .unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (
            Value::Extension { kind: one, key: one_key, .. },
            Value::Extension { kind: other, key: other_key, .. },
        ) if one == other && kinds::BY_KEY.contains(one) => {
            match (decode(one_key), decode(other_key)) {
                (Ok(one), Ok(other)) => compare(&one, &other, depth + 1),
                _ => Equal,
            }
        }
        _ => match (place(one), place(other)) {
            (Some(one), Some(other)) => compare_numbers(&one, &other),
            _ => rank(one).cmp(&rank(other)),
        },
    }
}

/// The rank of `None`, and of all values between which Python knows no order.
const UNORDERED: u8 = u8::MAX;

fn rank(value: &Value<'_>) -> u8 {
    match value {
        Value::Str(_) => 1,
        Value::Bytes(_) => 2,
        Value::Tuple(_) => 3,
        Value::Extension { kind, .. } if kinds::BY_KEY.contains(kind) => 3 + kind,
        _ if place(value).is_some() => 0,
        _ => UNORDERED,
    }
}

/// The number at whose place a value stands.
fn place<'v>(value: &'v Value<'_>) -> Option<Number<'v>> {
    let Value::Extension { kind: kinds::NUMBER, key, .. } = value else { return number(value) };
    let Value::Tuple(parts) = decode(key).ok()? else { return None };
    let nearest = match &parts[..] {
        [above, below] => {
            let ((above, more), (below, less)) = (scaled(above)?, scaled(below)?);
            let exponent = more - less;
            // In two steps: a power of two that is too large alone may not be too large here.
            let half = exponent / 2;
            above / below * 2_f64.powi(half) * 2_f64.powi(exponent - half)
        }
        [Value::Int(negative), Value::Str(digits), Value::Int(exponent)] => {
            let sign = if *negative == 0 { "" } else { "-" };
            let digits = std::str::from_utf8(digits).ok()?;
            format!("{sign}{digits}e{exponent}").parse().ok()?
        }
        _ => return None,
    };
    Some(real(nearest))
}

/// An integer as a float and a power of two.
#[expect(clippy::cast_precision_loss, reason = "the nearest float is what it is for")]
fn scaled(value: &Value<'_>) -> Option<(f64, i32)> {
    match value {
        Value::Int(number) => Some((*number as f64, 0)),
        Value::BigInt { negative, magnitude } => {
            let rest = magnitude.len().saturating_sub(16);
            let mut high = [0; 16];
            high[..magnitude.len() - rest].copy_from_slice(&magnitude[rest..]);
            let size = u128::from_le_bytes(high) as f64;
            let exponent = i32::try_from(rest).ok()?.checked_mul(8)?;
            Some((if *negative { -size } else { size }, exponent))
        }
        _ => None,
    }
}

fn compare_numbers(one: &Number<'_>, other: &Number<'_>) -> Ordering {
    let sign = |negative: &bool| if *negative { Less } else { Greater };
    match (one, other) {
        (Number::Int(one), Number::Int(other)) => one.cmp(other),
        (Number::Real(one), Number::Real(other)) => {
            one.partial_cmp(other).unwrap_or_else(|| one.is_nan().cmp(&other.is_nan()))
        }
        (Number::Int(number), Number::Real(real)) => compare_with_real(*number, *real),
        (Number::Real(real), Number::Int(number)) => compare_with_real(*number, *real).reverse(),
        (
            Number::Big { negative, magnitude: one },
            Number::Big { negative: other_negative, magnitude: other },
        ) => match other_negative.cmp(negative) {
            Equal => {
                let size = one.len().cmp(&other.len());
                let order = size.then_with(|| one.iter().rev().cmp(other.iter().rev()));
                if *negative { order.reverse() } else { order }
            }
            order => order,
        },
        (Number::Big { .. }, Number::Real(real)) if !real.is_finite() => {
            if *real == f64::NEG_INFINITY { Greater } else { Less }
        }
        (Number::Real(real), Number::Big { .. }) if !real.is_finite() => {
            if *real == f64::NEG_INFINITY { Less } else { Greater }
        }
        (Number::Big { negative, .. }, Number::Int(_) | Number::Real(_)) => sign(negative),
        (Number::Int(_) | Number::Real(_), Number::Big { negative, .. }) => {
            sign(negative).reverse()
        }
        (Number::Complex(..), Number::Complex(..)) => Equal,
        (Number::Complex(..), _) => Greater,
        (_, Number::Complex(..)) => Less,
    }
}

/// Compares an integer with a number that is none.
#[expect(clippy::cast_possible_truncation, reason = "what is not finite was sorted out before")]
fn compare_with_real(number: i64, real: f64) -> Ordering {
    if real.is_finite() {
        // What is no integer is small.
        if number <= real.floor() as i64 { Less } else { Greater }
    } else if real == f64::NEG_INFINITY {
        Greater
    } else {
        Less
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{ALIAS, encode};
    use super::*;

    fn text(text: &str) -> Value<'static> {
        Value::Str(text.as_bytes().to_vec().into())
    }

    fn big(negative: bool, last: u8) -> Value<'static> {
        let magnitude = vec![0, 0, 0, 0, 0, 0, 0, 0, last];
        Value::BigInt { negative, magnitude: magnitude.into() }
    }

    #[test]
    fn values_stand_in_one_order_whichever_are_compared() {
        let ordered = [
            Value::Float(f64::NEG_INFINITY),
            big(true, 9),
            big(true, 2),
            Value::Int(i64::MIN),
            Value::Float(-1.5),
            Value::Int(-1),
            Value::Bool(false),
            Value::Float(0.5),
            Value::Bool(true),
            Value::Int(2),
            Value::Int(i64::MAX),
            big(false, 2),
            big(false, 9),
            Value::Float(f64::INFINITY),
            Value::Float(f64::NAN),
            text(""),
            text("a"),
            text("b"),
            Value::Bytes(b"a".to_vec().into()),
            Value::Tuple(vec![]),
            Value::Tuple(vec![Value::Int(1)]),
            Value::Tuple(vec![Value::Int(1), text("x")]),
            Value::Tuple(vec![Value::Float(1.5)]),
            extension(1, &Value::Int(9)),
            extension(3, &Value::Int(-9)),
            extension(3, &Value::Int(2)),
            extension(3, &Value::Tuple(vec![Value::Int(1)])),
            extension(8, &Value::Bytes(b"a".to_vec().into())),
            Value::None,
        ];
        for (left, one) in ordered.iter().enumerate() {
            for (right, other) in ordered.iter().enumerate() {
                assert_eq!(order(one, other), left.cmp(&right), "{one:?} and {other:?}");
            }
        }
    }

    fn extension(kind: u8, key: &Value<'_>) -> Value<'static> {
        Value::Extension { kind, key: encode(key).unwrap().into(), payload: Vec::new().into() }
    }

    #[test]
    fn a_member_of_an_enum_stands_where_its_value_does() {
        let member = |value: &Value<'_>| extension(ALIAS | 0b1010, value);
        for (less, more) in [(1, 2), (-5, 0)] {
            let (one, other) = (Value::Int(less), Value::Int(more));
            assert_eq!(order(&member(&one), &member(&other)), Less);
            assert_eq!(order(&member(&other), &one), Greater);
            assert_eq!(order(&one, &member(&one)), Equal);
        }
        assert_eq!(order(&member(&text("a")), &text("b")), Less);
        assert!(has_order(&member(&Value::Int(1))));
        assert!(!has_order(&extension(10, &text("RED"))));
    }

    #[test]
    fn a_fraction_stands_between_its_neighbours_however_large_its_parts_are() {
        let fraction = |above: Value<'static>, below: Value<'static>| {
            extension(7, &Value::Tuple(vec![above, below]))
        };
        let decimal = |negative: i64, digits: &str, exponent: i64| {
            let digits = text(digits);
            extension(7, &Value::Tuple(vec![Value::Int(negative), digits, Value::Int(exponent)]))
        };
        let huge = |length: usize| {
            let mut magnitude = vec![0; length];
            magnitude[length - 1] = 1;
            Value::BigInt { negative: false, magnitude: magnitude.into() }
        };
        let ordered = [
            decimal(1, "5", 6_000),
            fraction(Value::Int(-1), Value::Int(10)),
            decimal(1, "1", -6_000_000),
            fraction(huge(200), huge(201)),
            fraction(Value::Int(1), Value::Int(10)),
            Value::Float(0.2),
            fraction(huge(301), huge(300)),
            Value::Int(257),
            fraction(huge(101), Value::Int(3)),
            decimal(0, "5", 6_000),
        ];
        for (left, one) in ordered.iter().enumerate() {
            assert!(has_order(one), "{one:?}");
            for (right, other) in ordered.iter().enumerate() {
                assert_eq!(order(one, other), left.cmp(&right), "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn what_only_python_can_compare_has_no_order_nor_has_a_tuple_that_begins_with_it() {
        let object = || Value::Object(64);
        let ordered = [
            Value::None,
            Value::Int(1),
            text("a"),
            Value::Tuple(vec![]),
            Value::Tuple(vec![Value::Int(1), object()]),
        ];
        for value in &ordered {
            assert!(has_order(value), "{value:?}");
        }
        let nested = Value::Tuple(vec![Value::Tuple(vec![object()]), Value::Int(1)]);
        let imaginary = Value::Complex(1.0, 2.0);
        for value in [object(), imaginary, Value::Tuple(vec![object(), Value::Int(1)]), nested] {
            assert!(!has_order(&value), "{value:?}");
        }
    }

    #[test]
    fn what_python_calls_equal_or_cannot_compare_is_equal() {
        for (one, other) in [
            (Value::Int(1), Value::Float(1.0)),
            (Value::Int(1), Value::Bool(true)),
            (Value::None, Value::Object(64)),
            (
                Value::Tuple(vec![Value::Int(1), Value::None]),
                Value::Tuple(vec![Value::Int(1), Value::Object(64)]),
            ),
        ] {
            assert_eq!(order(&one, &other), Equal, "{one:?} and {other:?}");
        }
    }
}
