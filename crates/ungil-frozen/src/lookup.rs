//! Finding keys: by their hash, and by their order.

use std::cmp::Ordering;

use ungil_heap::value::{self, Cell, Value};

use crate::frozen::{Frozen, Record, Table};
use crate::table::{HEAD, Sorted, first_place, tagged};
use crate::{Error, Result, cell, order};

const PLACES: Error = Error::Damaged("an index names an entry that is not there");

impl Frozen {
    /// The number of the entry with this key.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    #[inline]
    pub fn find(&self, table: &Table, key: &Value) -> Result<Option<usize>> {
        let hash = value::hash(self.header().key, key);
        let inline = Cell::inline(key);
        self.search(table, hash, |found| {
            // Equal words are equal values, but for NaN, which has a hash of its own each time.
            if inline == Some(found) {
                return Ok(true);
            }
            if inline.is_some() && is_of_own_form(found, key) {
                return Ok(false);
            }
            Ok(self.value(found, table.at)? == *key)
        })
    }

    /// The same of a key that is an integer or a string, and all of this cell.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    #[inline]
    pub fn find_cell(&self, table: &Table, key: Cell) -> Result<Option<usize>> {
        let Some(hash) = value::hash_cell(self.header().key, key) else {
            return match key.whole() {
                Some(key) => self.find(table, &key),
                None => Ok(None),
            };
        };
        let is_string = key.int().is_none();
        self.search(table, hash, |found| {
            if found == key {
                return Ok(true);
            }
            // A string equals strings, and aliases; an integer, any number that equals it.
            if found.is_whole() && (is_string || found.int().is_some()) {
                return Ok(false);
            }
            match key.whole() {
                Some(key) => Ok(self.value(found, table.at)? == key),
                None => Ok(false),
            }
        })
    }

    #[inline]
    fn search(
        &self,
        table: &Table,
        hash: u64,
        mut is_it: impl FnMut(Cell) -> Result<bool>,
    ) -> Result<Option<usize>> {
        let index = table.at + usize::try_from(HEAD).unwrap_or(0);
        let places = self.bytes().get(index..table.entries).ok_or(PLACES)?;
        let mut place = first_place(hash, table.mask);
        for _ in 0..=table.mask {
            let bytes =
                places.get(place * 8..).and_then(|rest| rest.first_chunk()).ok_or(PLACES)?;
            let known = u64::from_le_bytes(*bytes);
            if known == 0 {
                return Ok(None);
            }
            if tagged(known) == tagged(hash) {
                let number = usize::try_from(known & 0xffff_ffff).map_err(|_| PLACES)? - 1;
                if number >= table.len {
                    return Err(PLACES);
                }
                if is_it(self.key_of(table, number)?)? {
                    return Ok(Some(number));
                }
            }
            place = (place + 1) & table.mask;
        }
        Ok(None)
    }

    /// The cell of the key, or the member, of an entry.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    #[inline]
    pub fn key_of(&self, table: &Table, number: usize) -> Result<Cell> {
        self.cell(table.entries + number * table.width)
    }

    /// The cell of the value of an entry of a dict.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    #[inline]
    pub fn value_of(&self, table: &Table, number: usize) -> Result<Cell> {
        self.cell(table.entries + number * table.width + Cell::SIZE)
    }

    /// Which of the values of a record has this key.
    #[inline]
    pub fn find_field(&self, record: &Record, key: &Value) -> Option<usize> {
        let Value::Str(text) = key else {
            // A member of a StrEnum equals its string.
            return matches!(key, Value::Extension { .. })
                .then(|| self.position(record, |known| Value::Str(known.into()) == *key))?;
        };
        self.position(record, |known| *known == **text)
    }

    /// The same of a key that is all of a cell.
    #[inline]
    pub fn find_field_cell(&self, record: &Record, key: Cell) -> Option<usize> {
        let schema = self.schemas().get(record.schema)?;
        schema.keys.iter().position(|known| known.cell == Some(key))
    }

    fn position(&self, record: &Record, is_it: impl Fn(&[u8]) -> bool) -> Option<usize> {
        let schema = self.schemas().get(record.schema)?;
        schema.keys.iter().position(|known| is_it(&known.text))
    }

    /// The number of the entry whose key is the `rank`th of all in their order.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn ranked(&self, table: &Table, rank: usize) -> Result<usize> {
        if table.sorted != Sorted::Listed {
            return Ok(rank);
        }
        let at = table.entries + table.len * table.width + rank * 4;
        let bytes = self.bytes().get(at..).and_then(|rest| rest.first_chunk());
        let number = bytes.map(|bytes| u32::from_le_bytes(*bytes) as usize);
        number.filter(|number| *number < table.len).ok_or(PLACES)
    }

    /// How many keys of a table that is sorted, and not [`Sorted::Few`], come before `border`: those
    /// that equal it too, if it is `included`. `None` if a key does not compare with it.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn rank(&self, table: &Table, border: &Value, included: bool) -> Result<Option<usize>> {
        let (mut low, mut high) = (0, table.len);
        while low < high {
            let middle = low + (high - low) / 2;
            let key = self.key_of(table, self.ranked(table, middle)?)?;
            let Some(order) = order::compare(&self.value(key, table.at)?, border) else {
                return Ok(None);
            };
            if order == Ordering::Less || included && order == Ordering::Equal {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(Some(low))
    }
}

/// Whether the value of a cell is written in one way only, as the key is, so that other words are
/// another value.
#[inline]
fn is_of_own_form(found: Cell, key: &Value) -> bool {
    match key {
        Value::Str(_) | Value::Bytes(_) => found.is_whole() || cell::tag(found) < cell::CODED,
        Value::Int(_) => found.int().is_some(),
        _ => false,
    }
}
