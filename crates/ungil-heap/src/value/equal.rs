//! When values are equal, which is when Python says so.

use super::cell::{Cell, Tag, block_words, load};
use super::code::alias;
use super::hash::hash;
use super::number::number;
use super::{DEPTH, OPINION, Value};
use crate::atomic::Ordering::Relaxed;
use crate::object::{self, Kind};
use crate::segment::{Offset, Segment};
use crate::{Error, Result};

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

/// As [`equal`], for who looks for the value among others, as Python does in a list.
///
/// # Errors
/// [`Error::Untold`] where only the caller can tell, which has the objects.
#[inline]
pub fn found(segment: &Segment, cell: Cell, value: &Value) -> Result<bool> {
    match cell.tag() {
        Tag::CODED | Tag::LINKED => {
            let stored = load(segment, cell)?;
            if stored == *value { Ok(true) } else { other(has_opinion(segment, &stored, 0)?) }
        }
        Tag::OBJECT => match value {
            Value::Object(_) => equal(segment, cell, value),
            _ => other(cell.object().map_or(Ok(false), |at| is_opinionated(segment, at))?),
        },
        _ => equal(segment, cell, value),
    }
}

/// What to say of a value that is not the same.
const fn other(has_opinion: bool) -> Result<bool> {
    if has_opinion { Err(Error::Untold) } else { Ok(false) }
}

/// Whether a value, or one in it, may equal others than it says here.
fn has_opinion(segment: &Segment, value: &Value, depth: usize) -> Result<bool> {
    match value {
        _ if depth > DEPTH => Ok(false),
        Value::Extension { kind, .. } => Ok(kind & OPINION != 0),
        Value::Object(at) => is_opinionated(segment, *at),
        Value::Tuple(items) | Value::FrozenSet(items) => {
            for item in items {
                if has_opinion(segment, item, depth + 1)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}

/// Whether an object may equal a value: a struct by a method of its class, a buffer by its bytes.
fn is_opinionated(segment: &Segment, at: Offset) -> Result<bool> {
    Ok(matches!(object::head(segment, at)?.kind()?, Kind::Struct | Kind::Buffer))
}
