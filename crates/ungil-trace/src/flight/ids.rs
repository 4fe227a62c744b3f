//! Tables by the ids of threads, which are looked at for every event.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose keys are ids: they count up, so they need no more than to be spread.
pub type ById<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Spreads numbers over 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread(u64);

/// 2^64 divided by the golden ratio: neighbours come to lie far apart.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(GOLDEN);
    }
}
