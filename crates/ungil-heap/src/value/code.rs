//! Values as bytes: what a block holds for a tuple, a frozenset, a complex number or an extension.
//!
//! A tag, and then what it takes; numbers have eight bytes, the least significant first, and
//! strings are preceded by their length, sequences by their number of items.

use std::borrow::Cow;

use super::{ALIAS, DEPTH, NESTED_TOO_DEEP, Text, Value};
use crate::object::{Owned, Visit};
use crate::segment::Offset;
use crate::{Error, Result, stack};

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
/// [`Error::TooDeep`] for what is nested deeper than [`DEPTH`], or than the stack allows.
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
        return Err(NESTED_TOO_DEEP);
    }
    if depth > stack::SHALLOW {
        stack::check(depth)?;
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
/// [`Error::Corrupt`] for bytes that [`encode`] does not make; [`Error::TooDeep`] where the stack has
/// no room for a value that is nested like this one, whatever is done with it next.
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
    if depth > stack::SHALLOW {
        stack::check(depth)?;
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

/// Lists the objects in a value that is given as bytes: what nests in it needs no stack here, so
/// that whatever is in a heap can be freed by any thread.
pub(super) fn objects(code: &[u8], visit: &mut Visit<'_>) -> Result<()> {
    let mut left = code;
    let mut items = 1_usize;
    while items > 0 {
        items -= 1;
        let [tag] = *array(&mut left)?;
        match tag {
            NONE | FALSE | TRUE => {}
            INT | FLOAT => _ = array::<8>(&mut left)?,
            COMPLEX => _ = array::<16>(&mut left)?,
            POSITIVE | NEGATIVE | STR | BYTES => _ = string(&mut left)?,
            TUPLE | FROZEN_SET => {
                let count = count(&mut left)?;
                // An item takes at least a byte.
                if count > left.len() {
                    return Err(MALFORMED);
                }
                items += count;
            }
            EXTENSION => {
                array::<1>(&mut left)?;
                string(&mut left)?;
                string(&mut left)?;
            }
            OBJECT => visit(Owned::Object(count(&mut left)?))?,
            _ => return Err(MALFORMED),
        }
    }
    if left.is_empty() { Ok(()) } else { Err(MALFORMED) }
}

/// The value that an alias equals.
#[inline]
pub(super) fn alias<'v>(value: &'v Value) -> Option<Value<'v>> {
    match value {
        Value::Extension { kind, key, .. } if kind & ALIAS != 0 => decode(key).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_in_a_value_are_found_however_deep_they_are() {
        let key = || Cow::Borrowed(&b"key"[..]);
        let mut value = Value::Object(64);
        for at in 0..DEPTH {
            let extension = Value::Extension { kind: 1, key: key(), payload: key() };
            let big = Value::BigInt { negative: true, magnitude: key() };
            let others = [Value::None, Value::Complex(1.0, 2.0), Value::Float(0.5), extension, big];
            let mut items = others.to_vec();
            items.extend([Value::from("text"), Value::Int(1), value, Value::Object(at)]);
            value = if at % 2 == 0 { Value::Tuple(items) } else { Value::FrozenSet(items) };
        }
        let code = encode(&value).unwrap();
        let mut found = Vec::new();
        let mut visit = |owned| {
            found.push(owned);
            Ok(())
        };
        objects(&code, &mut visit).unwrap();
        assert_eq!(found.len(), DEPTH + 1);
        assert_eq!(found[0], Owned::Object(64));
        assert_eq!(found[DEPTH], Owned::Object(DEPTH - 1));
        for cut in 0..code.len() {
            assert!(objects(&code[..cut], &mut |_| Ok(())).is_err(), "cut off at {cut}");
        }
    }
}
