//! The keys that many dicts have in common.
//!
//! A schema is written as the number of its keys (4 bytes) and each key as its length (4 bytes) and
//! its UTF-8.

use std::collections::HashMap;

use ungil_heap::value::Cell;

use crate::{Error, Result};

/// So many keys a dict with a schema has at most.
pub const MOST_KEYS: usize = 64;
/// So many schemas a file has at most.
const MOST_SCHEMAS: usize = 4_096;
/// So many lists of keys are remembered that occurred once.
const MOST_SEEN: usize = 1 << 16;

/// The schemas of a file that is written.
#[derive(Default)]
pub struct Schemas {
    /// By the cells of their keys: their number, or `None` if they occurred once.
    known: HashMap<Box<[Cell16]>, Option<u32>>,
    bytes: Vec<u8>,
    count: u32,
}

/// A cell, which has no hash of its own.
type Cell16 = [u64; 2];

impl Schemas {
    /// The number of the schema with these keys, from their second occurrence on; `text` has the
    /// UTF-8 of each.
    pub fn find(&mut self, keys: &[Cell], text: &[Vec<u8>]) -> Option<u32> {
        let cells: Box<[Cell16]> = keys.iter().map(|key| key.words()).collect();
        match self.known.get_mut(&cells) {
            Some(Some(number)) => Some(*number),
            Some(number @ None) if (self.count as usize) < MOST_SCHEMAS => {
                let made = self.count;
                *number = Some(made);
                self.count += 1;
                self.bytes.extend(length(text.len()));
                for text in text {
                    self.bytes.extend(length(text.len()));
                    self.bytes.extend(text);
                }
                Some(made)
            }
            Some(None) => None,
            None => {
                if self.known.len() < MOST_SEEN {
                    self.known.insert(cells, None);
                }
                None
            }
        }
    }

    /// As they are written, and how many there are.
    pub fn finish(self) -> (Vec<u8>, u32) {
        (self.bytes, self.count)
    }
}

/// A length as it is written; keys of 4 GiB have no schema.
fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

/// A schema of a file that is read.
#[derive(Debug)]
pub struct Schema {
    /// Its keys, in their order.
    pub keys: Vec<Key>,
}

/// A key of a schema.
#[derive(Debug)]
pub struct Key {
    /// Its UTF-8.
    pub text: Box<[u8]>,
    /// Its cell, if it fits in one.
    pub cell: Option<Cell>,
}

/// Reads so many schemas, and there must be nothing else.
pub fn read(mut bytes: &[u8], count: u32) -> Result<Vec<Schema>> {
    let mut schemas = Vec::new();
    for _ in 0..count {
        let mut keys = Vec::new();
        let length = take_length(&mut bytes)?;
        if length > MOST_KEYS {
            return Err(Error::Damaged("a schema has too many keys"));
        }
        for _ in 0..length {
            let length = take_length(&mut bytes)?;
            let (text, rest) = bytes.split_at_checked(length).ok_or(CUT_OFF)?;
            bytes = rest;
            keys.push(Key { text: text.into(), cell: Cell::short(text) });
        }
        schemas.push(Schema { keys });
    }
    if bytes.is_empty() { Ok(schemas) } else { Err(Error::Damaged("something is behind it")) }
}

const CUT_OFF: Error = Error::Damaged("its schemas are cut off");

fn take_length(bytes: &mut &[u8]) -> Result<usize> {
    let (length, rest) = bytes.split_first_chunk().ok_or(CUT_OFF)?;
    *bytes = rest;
    usize::try_from(u32::from_le_bytes(*length)).map_err(|_| CUT_OFF)
}
