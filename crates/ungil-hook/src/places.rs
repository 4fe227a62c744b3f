//! Tables in which threads leave each other word of a semaphore: its place there goes by its address.

use libc::sem_t;

/// How many places such a table has.
pub const PLACES: usize = 1 << 12;

/// A number that differs between addresses most of all in its upper bits.
#[inline]
pub const fn hash(address: usize) -> usize {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The place of `sem` in a table.
#[inline]
pub fn place_of<T>(table: &'static [T; PLACES], sem: *mut sem_t) -> &'static T {
    // The heaps that malloc makes for threads are alike, but for the upper half of an address.
    &table[hash(sem as usize) >> (usize::BITS - PLACES.ilog2())]
}
