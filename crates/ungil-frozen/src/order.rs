//! The order of the keys of a dict, which is Python's.

use std::cmp::Ordering;

use ungil_heap::value::{self, Value};

/// Among which values one stands in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Strings, by their code points.
    Str,
    /// Bytes.
    Bytes,
    /// Integers, bools and floats that are not NaN.
    Number,
}

/// Among which a value stands in an order, if among any.
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
    let is_common = sort(one).is_some() && sort(one) == sort(other);
    is_common.then(|| value::order(one, other))
}
