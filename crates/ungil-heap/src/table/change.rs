//! What changes a table. The object is locked.

use super::{
    Counts, ENDLESS, Found, KEY, LEAST_BITS, MOST_BITS, Place, Probe, Table, VALUE, hash_of,
};
use crate::atomic::Ordering::Relaxed;
use crate::object::BODY;
use crate::op::Op;
use crate::value::{self, Cell, Value};
use crate::{Error, Result, fault};

/// So many insertions are never worth a new table.
const FEW: usize = 8;

impl<'s, const WIDTH: usize> Table<'s, WIDTH> {
    /// Puts an entry at the end, where a search for it ended. `more` says how many others are to
    /// follow: room is made for all of them, if for any.
    pub(crate) fn insert(
        &mut self,
        op: &mut Op<'s>,
        slot: u32,
        probe: &Probe,
        value: Option<&Value>,
        more: usize,
    ) -> Result<()> {
        let key = value::store(op, probe.value)?;
        let value = value.map_or(Ok(Cell::NOTHING), |value| value::store(op, value))?;
        let used = self.counts.used as usize;
        if used < self.capacity() && self.counts.stamp < u32::MAX {
            self.append(op, slot, probe.hash, &[key, value])?;
        } else {
            *self = self.rebuilt(op, more + 1)?;
            let slot = self.vacant(probe.hash)?;
            self.append(op, slot, probe.hash, &[key, value])?;
        }
        Ok(())
    }

    /// Puts an entry at the end; there is room for it.
    #[inline]
    fn append(&mut self, op: &mut Op, slot: u32, hash: u32, cells: &[Cell; 2]) -> Result<()> {
        let number = self.counts.used;
        let words = [cells[0].0, cells[0].1, cells[1].0, cells[1].1];
        let entry = self.entry(number as usize)?;
        entry[0].store(u64::from(self.counts.stamp) << 32 | u64::from(hash), Relaxed);
        for (word, value) in entry[KEY..].iter().zip(words) {
            word.store(value, Relaxed);
        }
        fault::point("table: entry written");
        self.counts = Counts {
            live: self.counts.live + 1,
            used: number + 1,
            stamp: self.counts.stamp + 1,
            ..self.counts
        };
        let (Some(place), Some((index, word))) =
            (self.place, self.index.with(slot, self.index.content(hash, number)))
        else {
            return Err(Error::Corrupt("an index has no such slot"));
        };
        if self.is_draft {
            self.index.0[index].store(word, Relaxed);
            return Ok(());
        }
        op.store(place.at + index * 8, word)?;
        op.store_all(self.object + BODY + 8, &self.counts.words())
    }

    /// The free slot that ends the search for a hash.
    fn vacant(&self, hash: u32) -> Result<u32> {
        let mut search = self.index.search(hash);
        search.find(|(_, content)| *content == 0).map(|(slot, _)| slot).ok_or(ENDLESS)
    }

    /// A draft with the entries that live, and room for `more`.
    pub(crate) fn rebuilt(&self, op: &mut Op<'s>, more: usize) -> Result<Self> {
        let live = self.len();
        // Half as many again, so that rebuilding costs each insertion the same, however many.
        let wanted = (live + more).max(live + live / 2);
        let bits = (LEAST_BITS..=MOST_BITS)
            .find(|&bits| Place { at: 0, bits }.capacity() >= wanted)
            .ok_or(Error::Full {
                wanted,
                limit: "a dict or set has at most 1.3 billion entries",
            })?;
        let bytes = Place { at: 0, bits }.bytes(WIDTH);
        let place = Place { at: op.take(bytes)?, bits };
        let begin =
            Counts { epoch: self.counts.epoch, stamp: self.counts.stamp, ..Counts::default() };
        let mut draft = Self::at(self.segment, self.object, Some(place), begin)?;
        draft.is_draft = true;
        for word in draft.index.0 {
            word.store(0, Relaxed);
        }
        for number in self.live() {
            let (to, from) = (draft.entry(draft.counts.used as usize)?, self.entry(number)?);
            for (to, from) in to.iter().zip(from) {
                to.store(from.load(Relaxed), Relaxed);
            }
            let hash = hash_of(to);
            let content = draft.index.content(hash, draft.counts.used);
            let (index, word) = draft.index.with(draft.vacant(hash)?, content).ok_or(ENDLESS)?;
            draft.index.0[index].store(word, Relaxed);
            draft.counts.used += 1;
        }
        draft.counts.live = draft.counts.used;
        if u32::MAX - draft.counts.stamp <= u32::try_from(wanted).unwrap_or(u32::MAX) {
            draft.renumber()?;
        }
        if let Some(old) = self.place {
            op.free(old.at, old.bytes(WIDTH));
        }
        fault::point("table: rebuilt aside");
        Ok(draft)
    }

    /// Begins the stamps anew, in a new epoch.
    fn renumber(&mut self) -> Result<()> {
        for number in 0..self.counts.used {
            let word = &self.entry(number as usize)?[0];
            let hash = word.load(Relaxed) & u64::from(u32::MAX);
            word.store(u64::from(number) << 32 | hash, Relaxed);
        }
        self.counts.stamp = self.counts.used;
        self.counts.epoch = self.counts.epoch.wrapping_add(1);
        Ok(())
    }

    /// Makes room for so many insertions if they are many, compared with what is there: building
    /// the table anew costs less then than remembering each step.
    pub(crate) fn prepare(&mut self, op: &mut Op<'s>, insertions: usize) -> Result<()> {
        if insertions > FEW && insertions >= self.counts.used as usize / 4 {
            *self = self.rebuilt(op, insertions)?;
        }
        Ok(())
    }

    /// Lets everybody see a draft.
    #[inline]
    pub(crate) fn publish(&mut self, op: &mut Op) -> Result<()> {
        if self.is_draft {
            self.is_draft = false;
            let [counts, stamps] = self.counts.words();
            let place = self.place.map_or(0, Place::word);
            op.store_all(self.object + BODY, &[place, counts, stamps])?;
        }
        Ok(())
    }

    /// Changes the value of an entry, where the old cell owns nothing and the new one is stored.
    #[inline]
    pub(crate) fn write_value(&self, op: &mut Op, number: usize, new: Cell) -> Result<()> {
        self.write(op, number, VALUE, new)
    }

    /// Changes the value of an entry.
    #[inline]
    pub(crate) fn replace(&mut self, op: &mut Op, number: usize, value: &Value) -> Result<()> {
        let old = self.value(number)?;
        let new = value::store(op, value)?;
        self.write(op, number, VALUE, new)?;
        value::discard(op, old)
    }

    #[inline]
    fn write(&self, op: &mut Op, number: usize, word: usize, cell: Cell) -> Result<()> {
        if self.is_draft {
            let entry = self.entry(number)?;
            entry[word].store(cell.0, Relaxed);
            entry[word + 1].store(cell.1, Relaxed);
            return Ok(());
        }
        op.store_all(self.entry_at(number) + word * 8, &cell.words())
    }

    /// Puts a value under a key, whether the key was there or not.
    #[inline]
    pub(crate) fn put(
        &mut self,
        op: &mut Op<'s>,
        probe: &Probe,
        value: &Value,
        more: usize,
    ) -> Result<()> {
        match self.find(probe)? {
            Found::Entry(number) => self.replace(op, number, value),
            Found::Slot(slot) => self.insert(op, slot, probe, Some(value), more),
        }
    }

    /// Deletes an entry.
    pub(crate) fn delete(&mut self, op: &mut Op, number: usize) -> Result<()> {
        for word in (KEY..WIDTH).step_by(2) {
            value::discard(op, self.cell(number, word)?)?;
        }
        self.write(op, number, KEY, Cell::NOTHING)?;
        self.counts.live = self
            .counts
            .live
            .checked_sub(1)
            .ok_or(Error::Corrupt("a table has fewer entries than are deleted from it"))?;
        op.store(self.object + BODY + 8, self.counts.words()[0])
    }

    /// Deletes the last entry that lives, which is number `number`.
    pub(crate) fn delete_last(&mut self, op: &mut Op, number: usize) -> Result<()> {
        self.delete(op, number)?;
        let last = (self.counts.used as usize).saturating_sub(1);
        if number == last {
            return Ok(());
        }
        // So that the next search from the end does not pass all of them again.
        self.write(op, last, KEY, Cell(0, number as u64))
    }

    /// Deletes all entries.
    pub(crate) fn clear(&mut self, op: &mut Op) -> Result<()> {
        for number in self.live() {
            for word in (KEY..WIDTH).step_by(2) {
                value::discard(op, self.cell(number, word)?)?;
            }
        }
        if let Some(place) = self.place {
            op.free(place.at, place.bytes(WIDTH));
        }
        let counts = Counts { live: 0, used: 0, ..self.counts };
        *self = Self::at(self.segment, self.object, None, counts)?;
        let [counts, stamps] = counts.words();
        op.store_all(self.object + BODY, &[0, counts, stamps])
    }
}
