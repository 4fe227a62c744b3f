//! Dicts and sets: entries in the order of insertion, and an index over their hashes.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | the binary logarithm of the number of places of the index |
//! | 1 | how the sorted keys are found: see [`Sorted`] |
//! | 14 | zeros |
//! | 8 each | the places: the upper half of a hash, and below it the number of an entry plus 1; 0 is empty |
//! | 16 or 32 each | the entries: the key, and in a dict its value |
//! | 4 each | the numbers of the entries in the order of their keys, if they are not in that order |
//!
//! An entry is in the first empty place from the one that the lowest bits of its hash say.

use ungil_heap::value::{Cell, Value};

use crate::order::{self, Sort};
use crate::{Error, Result, cell};

/// Bytes before the index.
pub const HEAD: u64 = 16;
/// Bytes of a place of the index.
pub const PLACE: u64 = 8;
/// So few keys are sorted when they are asked for, and no order of them is kept.
pub const FEW: usize = 64;
/// One more entry than a table has at most.
const LIMIT: usize = 1 << 31;

/// How the keys are found in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorted {
    /// They stand in none, being of several types, or of one that has none.
    Not = 0,
    /// They were inserted in it.
    Already = 1,
    /// By the numbers behind the entries.
    Listed = 2,
    /// There are few: whoever wants them sorted sorts them.
    Few = 3,
}

impl Sorted {
    /// As it is written.
    #[must_use]
    pub fn of(byte: u8) -> Option<Self> {
        [Self::Not, Self::Already, Self::Listed, Self::Few]
            .into_iter()
            .find(|sorted| *sorted as u8 == byte)
    }
}

/// What is known of the order of keys as they come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    Ascending(Sort),
    OneSort(Sort),
    Mixed,
}

/// A dict or a set that is being written.
pub struct Draft {
    pub(crate) keys: Vec<Cell>,
    pub(crate) values: Vec<Cell>,
    hashes: Vec<u64>,
    seen: Seen,
    last: Option<Value<'static>>,
    /// The UTF-8 of each key, as long as it may get a schema.
    pub(crate) texts: Option<Vec<Vec<u8>>>,
}

impl Draft {
    /// One that will have about so many entries.
    pub(crate) fn new(entries: usize, may_have_schema: bool) -> Self {
        Self {
            keys: Vec::with_capacity(entries),
            values: Vec::new(),
            hashes: Vec::with_capacity(entries),
            seen: Seen::Nothing,
            last: None,
            texts: may_have_schema.then(Vec::new),
        }
    }

    pub(crate) fn push(&mut self, key: Cell, hash: u64, value: &Value) {
        self.keys.push(key);
        self.hashes.push(hash);
        match value {
            Value::Str(text) => {
                if let Some(texts) = &mut self.texts {
                    texts.push(text.to_vec());
                }
            }
            _ => self.texts = None,
        }
        let sort = order::sort(value);
        self.seen = match (self.seen, sort) {
            (Seen::Nothing, Some(sort)) => Seen::Ascending(sort),
            (Seen::Ascending(seen), Some(sort)) if seen == sort => {
                let last = self.last.as_ref().and_then(|last| order::compare(last, value));
                if last == Some(std::cmp::Ordering::Less) {
                    Seen::Ascending(sort)
                } else {
                    Seen::OneSort(sort)
                }
            }
            (Seen::OneSort(seen), Some(sort)) if seen == sort => Seen::OneSort(sort),
            _ => Seen::Mixed,
        };
        let is_wanted = matches!(self.seen, Seen::Ascending(_));
        self.last = is_wanted.then(|| value.clone().into_owned());
    }

    /// Gives the key that was put in last its value.
    pub fn value(&mut self, value: Cell) {
        self.values.push(value);
    }

    /// Whether the numbers of the entries must be sorted, and how else the order is found.
    pub(crate) fn sorted(&self) -> Sorted {
        match self.seen {
            Seen::Mixed => Sorted::Not,
            Seen::Nothing | Seen::Ascending(_) => Sorted::Already,
            Seen::OneSort(_) if self.keys.len() <= FEW => Sorted::Few,
            Seen::OneSort(_) => Sorted::Listed,
        }
    }

    /// The bytes before the entries.
    pub(crate) fn index(&self, sorted: Sorted) -> Result<Vec<u8>> {
        let count = self.keys.len();
        if count >= LIMIT {
            return Err(Error::TooMany("a frozen dict or set has at most 2,147,483,647 entries"));
        }
        // At most two thirds are taken, so that an empty place ends each search.
        let places = (count + count / 2 + 1).next_power_of_two().max(2);
        let mut index = vec![0_u64; places];
        for (number, hash) in self.hashes.iter().enumerate() {
            let mut place = first_place(*hash, places - 1);
            while index[place] != 0 {
                place = (place + 1) & (places - 1);
            }
            index[place] = tagged(*hash) | (number as u64 + 1);
        }
        let mut bytes = Vec::with_capacity(16 + places * 8);
        bytes.extend([places.ilog2().to_le_bytes()[0], sorted as u8]);
        bytes.resize(16, 0);
        for place in index {
            bytes.extend(place.to_le_bytes());
        }
        Ok(bytes)
    }

    /// The bytes of the entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = [u8; Cell::SIZE]> {
        let is_dict = !self.values.is_empty();
        self.keys.iter().enumerate().flat_map(move |(number, key)| {
            let value = is_dict.then(|| cell::bytes(self.values[number]));
            std::iter::once(cell::bytes(*key)).chain(value)
        })
    }
}

/// At which place the search for a hash begins.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the lowest bits are meant")]
pub const fn first_place(hash: u64, mask: usize) -> usize {
    hash as usize & mask
}

/// The upper half of a hash, as a place has it.
#[inline]
#[must_use]
pub const fn tagged(hash: u64) -> u64 {
    hash & !0xffff_ffff
}
