//! Values as bytes: what a block holds for a tuple, a frozenset, a complex number or an extension.
//!
//! A tag, and then what it takes; numbers have eight bytes, the least significant first, and
//! strings are preceded by their length, sequences by their number of items.

use std::borrow::Cow;

use super::{DEPTH, Text, Value};
use crate::reclaim::{Owned, Visit};
use crate::segment::Offset;
use crate::{Error, Result};

const NONE: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const POSITIVE: u8 = 4;
const NEGATIVE: u8 = 5;
const FLOAT: u8 = 6;
const COMPLEX: u8 = 7;
const STR: u8 = 8;
const BYTES: u8 = 9;
const TUPLE: u8 = 10;
const FROZEN_SET: u8 = 11;
const EXTENSION: u8 = 12;
const OBJECT: u8 = 13;

/// A value as bytes: what [`decode`] reads, and the key of an alias ([`super::ALIAS`]).
///
/// # Errors
/// [`Error::Unfit`] for what is nested deeper than [`DEPTH`].
pub fn encode(value: &Value) -> Result<Vec<u8>> {
    Ok(encode_with_objects(value)?.0)
}

/// A value as bytes, and the objects in it.
pub(super) fn encode_with_objects(value: &Value) -> Result<(Vec<u8>, Vec<Offset>)> {
    let (mut code, mut objects) = (Vec::new(), Vec::new());
    write(value, &mut code, &mut objects, 0)?;
    Ok((code, objects))
}

fn write(value: &Value, code: &mut Vec<u8>, objects: &mut Vec<Offset>, depth: usize) -> Result<()> {
    if depth > DEPTH {
        return Err(Error::Unfit("tuples and frozensets can be nested 128 deep, not deeper"));
    }
    let string = |code: &mut Vec<u8>, bytes: &[u8]| {
        code.extend((bytes.len() as u64).to_le_bytes());
        code.extend(bytes);
    };
    match value {
        Value::None => code.push(NONE),
        Value::Bool(flag) => code.push(if *flag { TRUE } else { FALSE }),
        Value::Int(number) => {
            code.push(INT);
            code.extend(number.to_le_bytes());
        }
        Value::BigInt { negative, magnitude } => {
            code.push(if *negative { NEGATIVE } else { POSITIVE });
            string(code, magnitude);
        }
        Value::Float(number) => {
            code.push(FLOAT);
            code.extend(number.to_le_bytes());
        }
        Value::Complex(real, imaginary) => {
            code.push(COMPLEX);
            code.extend(real.to_le_bytes());
            code.extend(imaginary.to_le_bytes());
        }
        Value::Str(text) => {
            code.push(STR);
            string(code, text);
        }
        Value::Bytes(text) => {
            code.push(BYTES);
            string(code, text);
        }
        Value::Tuple(items) | Value::FrozenSet(items) => {
            code.push(if matches!(value, Value::Tuple(_)) { TUPLE } else { FROZEN_SET });
            code.extend((items.len() as u64).to_le_bytes());
            for item in items {
                write(item, code, objects, depth + 1)?;
            }
        }
        Value::Extension { kind, key, payload } => {
            code.extend([EXTENSION, *kind]);
            string(code, key);
            string(code, payload);
        }
        Value::Object(at) => {
            code.push(OBJECT);
            code.extend((*at as u64).to_le_bytes());
            objects.push(*at);
        }
    }
    Ok(())
}

/// The value that bytes stand for.
///
/// # Errors
/// [`Error::Corrupt`] for bytes that [`encode`] does not make.
pub fn decode(code: &[u8]) -> Result<Value<'_>> {
    let mut left = code;
    let value = read(&mut left, 0)?;
    if left.is_empty() { Ok(value) } else { Err(MALFORMED) }
}

const MALFORMED: Error = Error::Corrupt("a value is encoded as none is");

fn read<'c>(left: &mut &'c [u8], depth: usize) -> Result<Value<'c>> {
    if depth > DEPTH {
        return Err(MALFORMED);
    }
    let [tag] = *array(left)?;
    Ok(match tag {
        NONE => Value::None,
        FALSE => Value::Bool(false),
        TRUE => Value::Bool(true),
        INT => Value::Int(i64::from_le_bytes(*array(left)?)),
        POSITIVE | NEGATIVE => {
            Value::BigInt { negative: tag == NEGATIVE, magnitude: Cow::Borrowed(string(left)?) }
        }
        FLOAT => Value::Float(f64::from_le_bytes(*array(left)?)),
        COMPLEX => {
            Value::Complex(f64::from_le_bytes(*array(left)?), f64::from_le_bytes(*array(left)?))
        }
        STR => Value::Str(Text::from(string(left)?)),
        BYTES => Value::Bytes(Text::from(string(left)?)),
        TUPLE => Value::Tuple(sequence(left, depth)?),
        FROZEN_SET => Value::FrozenSet(sequence(left, depth)?),
        EXTENSION => {
            let [kind] = *array(left)?;
            Value::Extension {
                kind,
                key: Cow::Borrowed(string(left)?),
                payload: Cow::Borrowed(string(left)?),
            }
        }
        OBJECT => Value::Object(count(left)?),
        _ => return Err(MALFORMED),
    })
}

fn sequence<'c>(left: &mut &'c [u8], depth: usize) -> Result<Vec<Value<'c>>> {
    let count = count(left)?;
    // An item takes at least a byte.
    if count > left.len() {
        return Err(MALFORMED);
    }
    (0..count).map(|_| read(left, depth + 1)).collect()
}

fn array<'c, const N: usize>(left: &mut &'c [u8]) -> Result<&'c [u8; N]> {
    let (first, rest) = left.split_first_chunk().ok_or(MALFORMED)?;
    *left = rest;
    Ok(first)
}

fn count(left: &mut &[u8]) -> Result<usize> {
    usize::try_from(u64::from_le_bytes(*array(left)?)).map_err(|_| MALFORMED)
}

fn string<'c>(left: &mut &'c [u8]) -> Result<&'c [u8]> {
    let count = count(left)?;
    let (first, rest) = left.split_at_checked(count).ok_or(MALFORMED)?;
    *left = rest;
    Ok(first)
}

/// Lists the objects in a value.
pub(super) fn objects(value: &Value, visit: &mut Visit<'_>) -> Result<()> {
    match value {
        Value::Object(at) => visit(Owned::Object(*at)),
        Value::Tuple(items) | Value::FrozenSet(items) => {
            items.iter().try_for_each(|item| objects(item, visit))
        }
        _ => Ok(()),
    }
}
