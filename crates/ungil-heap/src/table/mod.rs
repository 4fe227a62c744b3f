//! The hash table of dicts and sets: entries in the order of insertion, found through an index.
//!
//! A table is one block of the heap: an *index* of 2^b slots of 32 bits, then room for ⅝ · 2^b
//! *entries* of `WIDTH` words.
//!
//! | word of an entry | what |
//! |---|---|
//! | 0 | hash in the low half, stamp in the high |
//! | 1-2 | cell of the key; without a value if the entry was deleted |
//! | 3-4 | cell of the value, in a dict |
//!
//! The hash has 32 bits. The lowest b of them say at which slot the search begins; the slot holds
//! the others, and in their place the number of the entry plus 1, or it is 0. So a search rarely
//! looks at an entry that it does not want. It goes on slot by slot until it finds a 0. Deleting
//! leaves the slot to a dead entry, until a key of the same hash is inserted, so that a key which
//! comes and goes has one slot; a table whose entries are used up is rebuilt without dead ones.
//!
//! | word of the object's body | what |
//! |---|---|
//! | 0 | where the table is; b in the highest byte; 0: there is none |
//! | 1 | entries that live, in the low half; entries that are used, in the high |
//! | 2 | stamp of the next entry, in the low half; epoch of the stamps, in the high |
//!
//! Entries are not undone, because beyond those in use there is nothing to lose; slots and the body
//! are. A rebuilt table is a *draft* that nobody else sees until its place is stored.

mod change;
mod index;
mod walk;

use crate::atomic::{AtomicU64, Ordering::Relaxed};
use crate::object::{self, Kind, Owned, Visit};
use crate::segment::{Offset, Segment};
use crate::value::{self, Cell, Value};
use crate::{Error, Heap, Result};
use index::Index;

pub use walk::Cursor;
pub(crate) use walk::{batch, batch_back};

/// The smallest table has 2^3 slots.
const LEAST_BITS: u32 = 3;
/// The largest, 2^31: then an entry's number and a bit of the hash fill a slot.
const MOST_BITS: u32 = 31;
/// The word of an entry with the key.
const KEY: usize = 1;
/// The word of an entry with the value.
const VALUE: usize = 3;

/// Where a table is, and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    at: Offset,
    bits: u32,
}

impl Place {
    const fn word(self) -> u64 {
        (self.bits as u64) << 56 | self.at as u64
    }

    const fn from_word(word: u64) -> Result<Option<Self>> {
        if word == 0 {
            return Ok(None);
        }
        let place = Self { at: (word & ((1 << 56) - 1)) as usize, bits: (word >> 56) as u32 };
        if place.bits < LEAST_BITS || place.bits > MOST_BITS {
            return Err(Error::Corrupt("a table of an impossible size"));
        }
        Ok(Some(place))
    }

    /// How many entries there is room for.
    const fn capacity(self) -> usize {
        (1 << self.bits) / 8 * 5
    }

    const fn entries_at(self) -> Offset {
        self.at + (4 << self.bits)
    }

    const fn bytes(self, width: usize) -> usize {
        (4 << self.bits) + self.capacity() * width * 8
    }
}

/// The second and third word of the body, taken apart.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    live: u32,
    used: u32,
    stamp: u32,
    epoch: u32,
}

impl Counts {
    #[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
    const fn from_words(counts: u64, stamps: u64) -> Self {
        Self {
            live: counts as u32,
            used: (counts >> 32) as u32,
            stamp: stamps as u32,
            epoch: (stamps >> 32) as u32,
        }
    }

    const fn words(self) -> [u64; 2] {
        [(self.used as u64) << 32 | self.live as u64, (self.epoch as u64) << 32 | self.stamp as u64]
    }
}

/// An index in which a search does not end.
const ENDLESS: Error = Error::Corrupt("an index has no free slot");

#[inline]
fn cell_of(entry: &[AtomicU64], word: usize) -> Cell {
    Cell(entry[word].load(Relaxed), entry[word + 1].load(Relaxed))
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
fn hash_of(entry: &[AtomicU64]) -> u32 {
    entry[0].load(Relaxed) as u32
}

/// What a search looks for.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'p> {
    hash: u32,
    /// The only cell that the key can have, if so.
    cell: Cell,
    value: &'p Value<'p>,
}

/// The half of a hash that tables know.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both halves are in it")]
pub(crate) const fn folded(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

impl<'p> Probe<'p> {
    #[inline]
    pub(crate) fn new(heap: &Heap, value: &'p Value<'p>) -> Self {
        let hash = value::hash(heap.hash_key(), value);
        let is_nan = matches!(value, Value::Float(number) if number.is_nan());
        let cell = if is_nan { None } else { Cell::inline(value) };
        Self { hash: folded(hash), cell: cell.unwrap_or(Cell::NOTHING), value }
    }
}

/// Where a search ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    /// At the entry of this number.
    Entry(usize),
    /// The key is not there, and belongs into this slot: it is free, or that of a dead entry.
    Slot(u32),
}

/// The table of an object whose entries have `WIDTH` words, as it was when it was opened.
pub(crate) struct Table<'s, const WIDTH: usize> {
    segment: &'s Segment,
    object: Offset,
    place: Option<Place>,
    index: Index<'s>,
    entries: &'s [AtomicU64],
    counts: Counts,
    is_draft: bool,
}

impl<'s, const WIDTH: usize> Table<'s, WIDTH> {
    /// The table of the object at `object`, which may be changing.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "returned through memory, it takes as long as a search"
    )]
    pub(crate) fn open(segment: &'s Segment, object: Offset, kind: Kind) -> Result<Self> {
        let head = object::head(segment, object)?;
        if head.identity.load(Relaxed).to_le_bytes()[0] != kind as u8 {
            return Err(head.mistaken("an object is of another type than its handle says"));
        }
        let [place, counts, stamps, _] = &head.body;
        let counts = Counts::from_words(counts.load(Relaxed), stamps.load(Relaxed));
        Self::at(segment, object, Place::from_word(place.load(Relaxed))?, counts)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as above")]
    fn at(
        segment: &'s Segment,
        object: Offset,
        place: Option<Place>,
        counts: Counts,
    ) -> Result<Self> {
        let (index, entries): (&[AtomicU64], &[AtomicU64]) = match place {
            None => (&[], &[]),
            Some(place) => {
                let words = segment.words(place.at, place.bytes(WIDTH) / 8)?;
                words.split_at((4 << place.bits) / 8)
            }
        };
        if counts.used as usize * WIDTH > entries.len() || counts.live > counts.used {
            return Err(Error::Corrupt("a table has more entries than room"));
        }
        Ok(Self { segment, object, place, index: Index(index), entries, counts, is_draft: false })
    }

    /// The memory.
    pub(crate) const fn segment(&self) -> &'s Segment {
        self.segment
    }

    /// How many entries live.
    pub(crate) const fn len(&self) -> usize {
        self.counts.live as usize
    }

    fn capacity(&self) -> usize {
        self.entries.len() / WIDTH
    }

    /// The words of entry number `number`.
    #[inline]
    fn entry(&self, number: usize) -> Result<&'s [AtomicU64]> {
        let from = number.wrapping_mul(WIDTH);
        match self.entries.get(from..from.wrapping_add(WIDTH)) {
            Some(entry) => Ok(entry),
            None => Err(Error::Corrupt("a table names an entry that it has not")),
        }
    }

    fn entry_at(&self, number: usize) -> Offset {
        let entries = self.place.map_or(0, Place::entries_at);
        entries + number * WIDTH * 8
    }

    #[inline]
    fn cell(&self, number: usize, word: usize) -> Result<Cell> {
        Ok(cell_of(self.entry(number)?, word))
    }

    /// The cell of an entry's key.
    #[inline]
    pub(crate) fn key(&self, number: usize) -> Result<Cell> {
        self.cell(number, KEY)
    }

    /// Where the cell of an entry's value is, in a dict.
    #[inline]
    pub(crate) fn value_at(&self, number: usize) -> Offset {
        self.entry_at(number) + VALUE * 8
    }

    /// The cell of an entry's value, in a dict.
    #[inline]
    pub(crate) fn value(&self, number: usize) -> Result<Cell> {
        const { assert!(WIDTH > VALUE + 1) };
        self.cell(number, VALUE)
    }

    /// Looks for a key.
    #[inline]
    pub(crate) fn find(&self, probe: &Probe) -> Result<Found> {
        let mut dead = None;
        for (slot, content) in self.index.search(probe.hash) {
            if content == 0 {
                return Ok(Found::Slot(dead.unwrap_or(slot)));
            }
            let Some(number) = self.index.number(content, probe.hash) else { continue };
            let entry = self.entry(number)?;
            if hash_of(entry) == probe.hash {
                let key = cell_of(entry, KEY);
                if key.is_nothing() {
                    dead = Some(slot);
                } else if key == probe.cell || self.is_equal(key, probe)? {
                    return Ok(Found::Entry(number));
                }
            }
        }
        // Without a table there is no slot, and none is needed before there is one.
        if self.place.is_none() { Ok(Found::Slot(0)) } else { Err(ENDLESS) }
    }

    /// Looks for the entry whose key has this cell. `None`: there is none, but there may be another
    /// one whose key is equal.
    #[inline]
    pub(crate) fn find_cell(&self, hash: u32, key: Cell) -> Result<Option<usize>> {
        for (_, content) in self.index.search(hash) {
            if content == 0 {
                break;
            }
            if let Some(number) = self.index.number(content, hash)
                && self.key(number)? == key
            {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Whether a key is the wanted one, though its cell is another. Not inlined, because the search
    /// for a short key rarely comes here and would pay for what this needs.
    #[inline(never)]
    fn is_equal(&self, key: Cell, probe: &Probe) -> Result<bool> {
        value::equal(self.segment, key, probe.value)
    }

    /// The numbers of the entries that live, in order.
    pub(crate) fn live(&self) -> impl Iterator<Item = usize> + use<'s, WIDTH> {
        self.entries
            .chunks_exact(WIDTH)
            .take(self.counts.used as usize)
            .enumerate()
            .filter(|(_, entry)| !cell_of(entry, KEY).is_nothing())
            .map(|(number, _)| number)
    }

    /// The last entry that lives.
    pub(crate) fn last(&self) -> Result<Option<usize>> {
        let mut end = self.counts.used as usize;
        while end > 0 && self.counts.live > 0 {
            let key = self.key(end - 1)?;
            if !key.is_nothing() {
                return Ok(Some(end - 1));
            }
            // A dead entry may know of dead ones before it.
            let begin = usize::try_from(key.1).unwrap_or(0);
            end = if (1..end).contains(&begin) { begin } else { end - 1 };
        }
        Ok(None)
    }
}

/// Lists what a dict or set owns beside its common part.
pub(crate) fn owned<const WIDTH: usize>(
    segment: &Segment,
    at: Offset,
    kind: Kind,
    visit: &mut Visit<'_>,
) -> Result<()> {
    visit(Owned::Block { at, bytes: object::SIZE })?;
    let table = Table::<WIDTH>::open(segment, at, kind)?;
    let Some(place) = table.place else { return Ok(()) };
    visit(Owned::Block { at: place.at, bytes: place.bytes(WIDTH) })?;
    for number in table.live() {
        for word in (KEY..WIDTH).step_by(2) {
            value::owned(segment, table.cell(number, word)?, visit)?;
        }
    }
    Ok(())
}

/// Whether a table is one that its operations make: each entry is found by its hash, and the counts
/// are right. Nobody changes it meanwhile.
///
/// # Errors
/// [`Error::Corrupt`] if it is not.
pub(crate) fn check<const WIDTH: usize>(segment: &Segment, at: Offset, kind: Kind) -> Result<()> {
    let table = Table::<WIDTH>::open(segment, at, kind)?;
    let mut stamps = None;
    for number in 0..table.counts.used as usize {
        let word = table.entry(number)?[0].load(Relaxed);
        if stamps >= Some(word >> 32) || word >> 32 >= table.counts.stamp.into() {
            return Err(Error::Corrupt("the entries of a table are out of order"));
        }
        stamps = Some(word >> 32);
        if table.key(number)?.is_nothing() {
            continue;
        }
        let hash = hash_of(table.entry(number)?);
        let mut passed = table.index.search(hash).take_while(|(_, content)| *content != 0);
        if !passed.any(|(_, content)| table.index.number(content, hash) == Some(number)) {
            return Err(Error::Corrupt("an entry of a table is not in its index"));
        }
    }
    if table.live().count() != table.len() {
        return Err(Error::Corrupt("a table does not have as many entries as it says"));
    }
    let filled = table.index.search(0).filter(|(_, content)| *content != 0).count();
    if filled > table.counts.used as usize {
        return Err(Error::Corrupt("an index has slots without an entry"));
    }
    Ok(())
}
