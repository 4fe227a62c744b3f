//! Appends a structure to a file: first what is inside, then what has it in it.
//!
//! Nothing is read back but to sort keys. In memory are the cells of the containers that are being
//! written (16 bytes for an item of a list, 40 for an entry of a dict, and the index of one dict at a
//! time), and texts that were written lately.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use memmap2::Mmap;
use ungil_heap::value::{self, Cell, Value};

use crate::header::{self, Header};
use crate::schema::{self, Schemas};
use crate::table::{Draft, Sorted};
use crate::texts::Texts;
use crate::{Error, Result, cell, order};

/// So many bytes are collected before they are written.
const BUFFER: usize = 1 << 20;
/// So many long keys of small dicts are remembered, so that the same key has the same cell.
const MOST_KEYS: usize = 1 << 16;

/// A file that is being written.
pub struct Writer {
    file: File,
    /// What is not in the file yet.
    buffer: Vec<u8>,
    /// Where the next byte goes.
    at: u64,
    checksum: crc32fast::Hasher,
    key: [u64; 2],
    uuid: u128,
    schemas: Schemas,
    texts: Texts,
    keys: HashMap<Box<[u8]>, Cell>,
}

impl Writer {
    /// Begins a structure in an empty file that can be read and written. `key` is the key of its
    /// hashes, which nobody who chooses keys should know; `uuid` tells it from any other.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(mut file: File, key: [u64; 2], uuid: u128) -> Result<Self> {
        file.write_all(&[0; header::SIZE]).map_err(Error::io(WRITING))?;
        Ok(Self {
            file,
            buffer: Vec::with_capacity(BUFFER),
            at: header::SIZE as u64,
            checksum: crc32fast::Hasher::new(),
            key,
            uuid,
            schemas: Schemas::default(),
            texts: Texts::new(),
            keys: HashMap::new(),
        })
    }

    /// Bytes so far.
    pub const fn written(&self) -> u64 {
        self.at
    }

    /// Writes a value that has no container in it, unless it fits in its cell.
    ///
    /// # Errors
    /// [`Error::TooDeep`] for tuples that are nested too deep; [`Error::Io`].
    pub fn value(&mut self, value: &Value) -> Result<Cell> {
        if let Some(cell) = Cell::inline(value) {
            return Ok(cell);
        }
        match value {
            Value::Str(text) => self.text(cell::STR, text),
            Value::Bytes(text) => self.text(cell::BYTES, text),
            Value::BigInt { negative, magnitude } => {
                self.append(if *negative { cell::NEGATIVE } else { cell::POSITIVE }, magnitude)
            }
            other => self.append(cell::CODED, &value::encode(other)?),
        }
    }

    fn text(&mut self, tag: u8, bytes: &[u8]) -> Result<Cell> {
        let hash = value::hash(self.key, &Value::Str(bytes.into()));
        if let Some(known) = self.texts.find(hash, tag, bytes) {
            return Ok(known);
        }
        let cell = self.append(tag, bytes)?;
        self.texts.remember(hash, bytes, cell);
        Ok(cell)
    }

    /// Writes a list, or a tuple, of these.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sequence(&mut self, tag: u8, cells: &[Cell]) -> Result<Cell> {
        self.align(8)?;
        let at = self.at;
        self.cells(cells)?;
        Ok(cell::to(tag, cells.len() as u64, at))
    }

    /// Begins a dict or a set of about so many entries.
    pub fn draft(&self, entries: usize, is_dict: bool) -> Draft {
        Draft::new(entries, is_dict && (1..=schema::MOST_KEYS).contains(&entries))
    }

    /// Puts a key into a dict, or a member into a set, that has none that equals it.
    ///
    /// # Errors
    /// As of [`Self::value`].
    pub fn key(&mut self, draft: &mut Draft, key: &Value) -> Result<()> {
        let hash = value::hash(self.key, key);
        let cell = match key {
            // Those of one schema are to have the same cells.
            Value::Str(text) if draft.texts.is_some() && Cell::inline(key).is_none() => {
                if let Some(known) = self.keys.get(&**text) {
                    *known
                } else {
                    let cell = self.value(key)?;
                    if self.keys.len() < MOST_KEYS {
                        self.keys.insert((**text).into(), cell);
                    }
                    cell
                }
            }
            _ => self.value(key)?,
        };
        draft.push(cell, hash, key);
        Ok(())
    }

    /// Writes a dict, each of whose keys was given a value.
    ///
    /// # Errors
    /// [`Error::TooMany`], [`Error::Io`].
    pub fn dict(&mut self, draft: &Draft) -> Result<Cell> {
        let texts = draft.texts.as_ref().filter(|texts| !texts.is_empty());
        if let Some(number) = texts.and_then(|texts| self.schemas.find(&draft.keys, texts)) {
            self.align(8)?;
            let at = self.at;
            self.cells(&draft.values)?;
            return Ok(cell::to(cell::RECORD, number.into(), at));
        }
        self.table(cell::DICT, draft)
    }

    /// Writes a set, or a frozenset.
    ///
    /// # Errors
    /// [`Error::TooMany`], [`Error::Io`].
    pub fn set(&mut self, tag: u8, draft: &Draft) -> Result<Cell> {
        self.table(tag, draft)
    }

    fn table(&mut self, tag: u8, draft: &Draft) -> Result<Cell> {
        let sorted = draft.sorted();
        let listed = if sorted == Sorted::Listed { self.listed(&draft.keys)? } else { Vec::new() };
        let index = draft.index(sorted)?;
        self.align(16)?;
        let at = self.at;
        self.push(&index)?;
        for bytes in draft.entries() {
            self.push(&bytes)?;
        }
        for number in listed {
            self.push(&number.to_le_bytes())?;
        }
        Ok(cell::to(tag, draft.keys.len() as u64, at))
    }

    /// The numbers of keys in their order.
    fn listed(&mut self, keys: &[Cell]) -> Result<Vec<u32>> {
        self.flush()?;
        // SAFETY: this process is about to have written the file, and nobody else has it to write to.
        let map =
            unsafe { Mmap::map(&self.file) }.map_err(Error::io("reading what was written"))?;
        let numbers = 0..u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let mut failed = None;
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable_by(|one, other| {
            let value = |number: u32| cell::value_in(&map, keys[number as usize], map.len());
            match (value(*one), value(*other)) {
                (Ok(one), Ok(other)) => {
                    order::compare(&one, &other).unwrap_or(std::cmp::Ordering::Equal)
                }
                (Err(error), _) | (_, Err(error)) => {
                    failed = Some(error);
                    std::cmp::Ordering::Equal
                }
            }
        });
        failed.map_or(Ok(numbers), Err)
    }

    fn append(&mut self, tag: u8, bytes: &[u8]) -> Result<Cell> {
        let at = self.at;
        self.push(bytes)?;
        Ok(cell::to(tag, bytes.len() as u64, at))
    }

    fn cells(&mut self, cells: &[Cell]) -> Result<()> {
        cells.iter().try_for_each(|cell| self.push(&cell::bytes(*cell)))
    }

    fn align(&mut self, to: u64) -> Result<()> {
        let padding = self.at.next_multiple_of(to) - self.at;
        self.push(&[0; 16][..usize::try_from(padding).unwrap_or(0)])
    }

    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        self.at += bytes.len() as u64;
        if self.at > cell::MOST {
            return Err(Error::TooMany("a frozen file has at most 64 PiB"));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.checksum.update(&self.buffer);
        self.file.write_all(&self.buffer).map_err(Error::io(WRITING))?;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the file with this as its structure. Only now it can be opened.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(mut self, root: Cell) -> Result<File> {
        let (schemas, schema_count) = std::mem::take(&mut self.schemas).finish();
        let at = self.at;
        self.push(&schemas)?;
        self.flush()?;
        let header = Header {
            length: self.at,
            root,
            key: self.key,
            uuid: self.uuid,
            schemas: at,
            schema_count,
            schema_checksum: crc32fast::hash(&schemas),
            checksum: self.checksum.finalize(),
        };
        self.file.seek(SeekFrom::Start(0)).map_err(Error::io(WRITING))?;
        self.file.write_all(&header.bytes()).map_err(Error::io(WRITING))?;
        Ok(self.file)
    }
}

const WRITING: &str = "writing a frozen structure";
