//! Texts, bytes, numbers, dicts and instances, as far as they are looked into.

#![cfg_attr(not(feature = "stacks"), allow(dead_code, reason = "only names need dicts"))]

use super::FreeThreaded;
use super::memory::torn;
use std::io;

/// Letters of a text, and entries of a dict, that are read at most.
const LETTERS: u64 = 4_096;
const ENTRIES: u64 = 1 << 16;

/// `PyCompactUnicodeObject` is so much longer than `PyASCIIObject`: a text that is not ASCII lies
/// behind it.
const COMPACT_BYTES: u64 = 16;
/// In `struct _dictkeysobject` (`Include/internal/pycore_dict.h`): `dk_log2_index_bytes`, `dk_kind`,
/// `dk_nentries`, `dk_indices`.
const LOG2_INDEX_BYTES: usize = 9;
const KIND: usize = 10;
const NUMBER_OF_ENTRIES: u64 = 24;
const INDICES: u64 = 32;
/// `dk_kind` of a dict whose keys are no texts, whose entries have a hash as well, and of one whose
/// values are elsewhere.
const GENERAL: u8 = 0;
const SPLIT: u8 = 2;
/// `struct _dictvalues.values`.
const VALUES: u64 = 8;
/// Before an instance, in a free-threaded build (`MANAGED_DICT_OFFSET` in
/// `Include/internal/pycore_object.h`): its dict, if it has been asked for.
const DICT_BEFORE: u64 = 8;
/// `Py_TPFLAGS_INLINE_VALUES`: attributes lie behind the instance, and their names in the type's
/// `ht_cached_keys`, which comes so many bytes behind the `PyTypeObject` (`struct _heaptypeobject`
/// in `Include/cpython/object.h`).
const INLINE_VALUES: u64 = 1 << 2;
const TYPE_TO_KEYS: u64 = 464;

impl FreeThreaded {
    /// The text at `address`.
    pub(super) fn text(&self, address: u64) -> io::Result<String> {
        let it = &self.offsets;
        let state = self.memory.half_word(address + it.text_state as u64)? >> it.text_kind_bit;
        let letters = self.memory.word(address + it.text_length as u64)?.min(LETTERS);
        let (kind, is_compact, is_ascii) = (state & 7, state & 8 != 0, state & 16 != 0);
        if !is_compact || !matches!(kind, 1 | 2 | 4) {
            return Err(torn());
        }
        let begin = it.text_ascii_bytes as u64 + if is_ascii { 0 } else { COMPACT_BYTES };
        let length = usize::try_from(letters * u64::from(kind)).map_err(|_| torn())?;
        let bytes = self.memory.bytes(address + begin, length)?;
        let letter = |unit: u32| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
        Ok(match kind {
            1 => bytes.into_iter().map(char::from).collect(),
            2 => bytes
                .chunks_exact(2)
                .map(|it| letter(u16::from_ne_bytes([it[0], it[1]]).into()))
                .collect(),
            _ => {
                let units = bytes.chunks_exact(4);
                units.map(|it| letter(u32::from_ne_bytes([it[0], it[1], it[2], it[3]]))).collect()
            }
        })
    }

    /// The bytes object at `address`, if it is not longer than `longest`.
    pub(super) fn bytes_object(&self, address: u64, longest: u64) -> io::Result<Vec<u8>> {
        let length = self.memory.word(address + self.offsets.bytes_length as u64)?;
        let length = usize::try_from(length).ok().filter(|_| length <= longest).ok_or_else(torn)?;
        self.memory.bytes(address + self.offsets.bytes_data as u64, length)
    }

    /// The number at `address`, if it is not negative and fits.
    pub(super) fn number(&self, address: u64) -> io::Result<u64> {
        // The digits, of 30 bits each, are counted above the sign and one more bit.
        let count = self.memory.word(address + self.offsets.long_tag as u64)? >> 3;
        if count > 3 {
            return Err(torn());
        }
        let mut number = 0_u64;
        for place in 0..count {
            let at = address + self.offsets.long_digits as u64 + place * 4;
            number |= u64::from(self.memory.half_word(at)?) << (30 * place);
        }
        Ok(number)
    }

    /// Keys and values of the dict at `address`, as addresses; those that are missing are 0.
    pub(super) fn entries(&self, address: u64) -> io::Result<Vec<(u64, u64)>> {
        let keys = self.memory.word(address + self.offsets.dict_keys as u64)?;
        let values = self.memory.word(address + self.offsets.dict_values as u64)?;
        self.entries_of(keys, (values != 0).then_some(values))
    }

    /// The same of these keys, with values that are elsewhere if they are.
    fn entries_of(&self, keys: u64, values: Option<u64>) -> io::Result<Vec<(u64, u64)>> {
        let head = self.memory.bytes(keys, 16)?;
        let count = self.memory.word(keys + NUMBER_OF_ENTRIES)?;
        let index_bits = head[LOG2_INDEX_BYTES];
        if count > ENTRIES || index_bits > 32 {
            return Err(torn());
        }
        let kind = head[KIND];
        let first = keys + INDICES + (1 << index_bits);
        let words_each = if kind == GENERAL { 3 } else { 2 };
        let bytes =
            self.memory.bytes(first, usize::try_from(count).unwrap_or(0) * words_each * 8)?;
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|bytes| bytes.try_into().map_or(0, u64::from_ne_bytes))
            .collect();
        let mut entries: Vec<_> = words
            .chunks_exact(words_each)
            .map(|it| (it[words_each - 2], it[words_each - 1]))
            .collect();
        if kind == SPLIT {
            let values = values.ok_or_else(torn)?;
            for (place, entry) in (0..).zip(&mut entries) {
                entry.1 = self.memory.word(values + VALUES + 8 * place)?;
            }
        }
        Ok(entries)
    }

    /// What `name` is mapped to, or 0.
    pub(super) fn found(&self, entries: &[(u64, u64)], name: &str) -> u64 {
        let is_it = |key: u64| key != 0 && self.text(key).is_ok_and(|text| text == name);
        entries.iter().find(|(key, _)| is_it(*key)).map_or(0, |(_, value)| *value)
    }

    /// The attribute of an instance of a class that Python code defines, or 0.
    pub(super) fn attribute(&self, object: u64, name: &str) -> io::Result<u64> {
        let it = &self.offsets;
        let dict = self.memory.word(object.wrapping_sub(DICT_BEFORE))?;
        if dict != 0 {
            return Ok(self.found(&self.entries(dict)?, name));
        }
        let of = self.memory.word(object + it.object_type as u64)?;
        if self.memory.word(of + it.type_flags as u64)? & INLINE_VALUES == 0 {
            return Ok(0);
        }
        let keys = self.memory.word(of + it.type_bytes as u64 + TYPE_TO_KEYS)?;
        let values = object + it.object_bytes as u64;
        Ok(self.found(&self.entries_of(keys, Some(values))?, name))
    }
}
