//! In which order values stand: as Python says, where it says anything.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use super::number::{Number, number};
use super::{DEPTH, Value};

/// Compares two values, so that any number of them has one order: numbers, then strings, then bytes,
/// then tuples, and all others, which stand where they are.
///
/// Within these, it is the order of Python; NaN is greater than all other numbers. Values between
/// which Python knows no order are equal here.
pub fn order(one: &Value<'_>, other: &Value<'_>) -> Ordering {
    compare(one, other, 0)
}

fn compare(one: &Value<'_>, other: &Value<'_>, depth: usize) -> Ordering {
    if depth > DEPTH {
        return Equal;
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
        _ => match (number(one), number(other)) {
            (Some(one), Some(other)) => compare_numbers(&one, &other),
            _ => rank(one).cmp(&rank(other)),
        },
    }
}

fn rank(value: &Value<'_>) -> u8 {
    match value {
        Value::Str(_) => 1,
        Value::Bytes(_) => 2,
        Value::Tuple(_) => 3,
        _ if number(value).is_some() => 0,
        _ => 4,
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
            Value::None,
        ];
        for (left, one) in ordered.iter().enumerate() {
            for (right, other) in ordered.iter().enumerate() {
                assert_eq!(order(one, other), left.cmp(&right), "{one:?} and {other:?}");
            }
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
