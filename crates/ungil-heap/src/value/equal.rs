//! When values are equal, which is when Python says so.

use super::cell::{Cell, Tag, block_words, load};
use super::code::alias;
use super::hash::hash;
use super::number::number;
use super::{DEPTH, Value};
use crate::Result;
use crate::atomic::Ordering::Relaxed;
use crate::segment::Segment;

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
