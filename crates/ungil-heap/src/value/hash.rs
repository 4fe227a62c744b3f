//! The hash of a value: the same in every process, and unknown to who chooses the keys.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::cell::{Cell, Tag};
use super::code::alias;
use super::number::{Number, number};
use super::{DEPTH, Value};

/// What is added to the hash of each type, so that values of different types differ.
const NONE: u64 = 0x9e37_79b9_7f4a_7c15;
const BYTES: u64 = 0xbf58_476d_1ce4_e5b9;
const TUPLE: u64 = 0x94d0_49bb_1331_11eb;
const FROZEN_SET: u64 = 0xd6e8_feb8_6659_fd93;
const EXTENSION: u64 = 0xa076_1d64_78bd_642f;
const OBJECT: u64 = 0xe703_7ed1_a0b4_28db;
const BIG: u64 = 0x8ebc_6af0_9c88_c6e3;
const REAL: u64 = 0x5899_65cc_7537_4cc3;
const COMPLEX: u64 = 0x1d8e_4e27_c47d_124f;

/// How many NaNs were hashed.
static NANS: AtomicU64 = AtomicU64::new(0);

/// The hash of a value under the heap's key ([`crate::Heap::hash_key`]). Equal values have equal
/// hashes.
#[inline]
pub fn hash(key: [u64; 2], value: &Value) -> u64 {
    match value {
        Value::Str(text) => string(key, text),
        Value::Int(number) => word(key, number.cast_unsigned()),
        other => hash_other(key, other, 0),
    }
}

/// The same of the value of a cell, if that is an integer or a string and the cell is all of it.
#[inline]
pub fn hash_cell(key: [u64; 2], cell: Cell) -> Option<u64> {
    match cell.tag() {
        Tag::SHORT_STR => Some(words(key, cell)),
        Tag::INT => Some(word(key, cell.1)),
        _ => None,
    }
}

fn hash_other(key: [u64; 2], value: &Value, depth: usize) -> u64 {
    if let Some(number) = number(value) {
        return hash_number(key, &number);
    }
    match value {
        Value::Str(text) => string(key, text),
        Value::Bytes(text) => string(key, text) ^ BYTES,
        Value::Tuple(items) if depth <= DEPTH => {
            items.iter().fold(word(key, TUPLE ^ items.len() as u64), |hash, item| {
                word(key, hash.rotate_left(5) ^ hash_other(key, item, depth + 1))
            })
        }
        Value::FrozenSet(members) if depth <= DEPTH => {
            let sum = members.iter().fold(0_u64, |sum, member| {
                sum.wrapping_add(word(key, FROZEN_SET ^ hash_other(key, member, depth + 1)))
            });
            word(key, sum ^ members.len() as u64)
        }
        Value::Extension { kind, key: bytes, .. } => match alias(value) {
            Some(meant) if depth <= DEPTH => hash_other(key, &meant, depth + 1),
            _ => sip(key, bytes) ^ EXTENSION.rotate_left((*kind).into()),
        },
        Value::Object(at) => word(key, OBJECT ^ *at as u64),
        _ => word(key, NONE),
    }
}

fn hash_number(key: [u64; 2], number: &Number) -> u64 {
    match number {
        Number::Int(number) => word(key, number.cast_unsigned()),
        Number::Big { negative, magnitude } => {
            sip(key, magnitude) ^ BIG.rotate_left((*negative).into())
        }
        // Equal to nothing, it need not be found; so many of them need not get into each other's way.
        Number::Real(number) if number.is_nan() => word(key, NANS.fetch_add(1, Relaxed)),
        Number::Real(number) => word(key, number.to_bits() ^ REAL),
        Number::Complex(real, imaginary) => {
            // Positive and negative zero are equal.
            word(key, word(key, (real + 0.0).to_bits() ^ COMPLEX) ^ (imaginary + 0.0).to_bits())
        }
    }
}

/// The hash of one word: the halves of a product of 128 bits, folded. Both factors depend on the
/// key, so that numbers that meet in one heap do not in another.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
const fn word(key: [u64; 2], word: u64) -> u64 {
    let product = (word ^ key[0]) as u128 * (key[1] | 1) as u128;
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a string. A short one is hashed as it lies in its cell: two words and no remainder.
#[inline]
fn string(key: [u64; 2], text: &[u8]) -> u64 {
    match Cell::short(text) {
        Some(cell) => words(key, cell),
        None => sip(key, text),
    }
}

#[inline]
fn words(key: [u64; 2], cell: Cell) -> u64 {
    let mut state = Sip::new(key);
    for word in cell.words() {
        state.take(word);
    }
    state.end()
}

/// SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012; the variant with
/// one round a word and three at the end, which CPython and Rust use for their own tables).
#[inline]
fn sip(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = Sip::new(key);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        state.take(u64::from_le_bytes(word.try_into().expect("eight of them")));
    }
    let rest = words.remainder();
    let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    state.take((bytes.len() as u64) << 56 | last);
    state.end()
}

struct Sip {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl Sip {
    #[inline]
    const fn new(key: [u64; 2]) -> Self {
        Self {
            v0: key[0] ^ 0x736f_6d65_7073_6575,
            v1: key[1] ^ 0x646f_7261_6e64_6f6d,
            v2: key[0] ^ 0x6c79_6765_6e65_7261,
            v3: key[1] ^ 0x7465_6462_7974_6573,
        }
    }

    #[inline]
    fn end(mut self) -> u64 {
        self.v2 ^= 0xff;
        for _ in 0..3 {
            self.round();
        }
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    #[inline]
    const fn take(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.v0 ^= word;
    }

    #[inline]
    const fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v2 = self.v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_string_hash_is_siphash_1_3() {
        // The standard library's hasher is SipHash-1-3 with a key of zeros; `write` adds nothing.
        use std::hash::Hasher;
        for length in 0..64_u8 {
            let bytes: Vec<u8> = (0..length).collect();
            let mut theirs = std::hash::DefaultHasher::new();
            theirs.write(&bytes);
            assert_eq!(sip([0, 0], &bytes), theirs.finish(), "{length} bytes");
        }
    }
}
