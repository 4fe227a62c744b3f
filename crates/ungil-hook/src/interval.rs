//! The switch interval, as the deadlines of waits show it.
//!
//! A waiter of `take_gil` (`Python/ceval_gil.c`) adds the interval to the time, and asks the holder
//! to let go then. What is left of the interval when this library sees the deadline is never more
//! than the interval, and less by how long the waiter took: half a microsecond, or far longer if
//! other programs had its CPU. So the longest of several is told; a shorter interval was set only
//! if none of them was as long as the one told so far.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// How many waits in a row must have been shorter.
const TIMES: u32 = 8;

/// What the waits since the last one that was as long as the interval told of.
#[derive(Debug)]
pub struct Shorter {
    longest_ns: AtomicU64,
    times: AtomicU32,
}

impl Shorter {
    pub const fn new() -> Self {
        Self { longest_ns: AtomicU64::new(0), times: AtomicU32::new(0) }
    }

    /// The interval, where `told_ns` was told so far, and a waiter has `left_ns` to its deadline.
    ///
    /// Waiters of one GIL have its mutex here. Those of several may undo each other's steps, which
    /// delays a shorter interval.
    pub fn interval_ns(&self, told_ns: u64, left_ns: u64) -> u64 {
        let longest_ns = self.longest_ns.load(Relaxed).max(left_ns);
        let times = self.times.load(Relaxed) + 1;
        if left_ns < told_ns && times < TIMES {
            self.longest_ns.store(longest_ns, Relaxed);
            self.times.store(times, Relaxed);
            return told_ns;
        }
        self.longest_ns.store(0, Relaxed);
        self.times.store(0, Relaxed);
        if left_ns < told_ns { longest_ns } else { left_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told after each of these waits.
    fn told(left_ns: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let shorter = Shorter::new();
        let mut told_ns = 0;
        let tell = |left_ns| {
            told_ns = shorter.interval_ns(told_ns, left_ns);
            told_ns
        };
        left_ns.into_iter().map(tell).collect()
    }

    #[test]
    fn a_waiter_that_lost_its_cpu_changes_nothing() {
        assert_eq!(told([4_990, 4_998, 1_700, 4_997, 20]), [4_990, 4_998, 4_998, 4_998, 4_998]);
    }

    #[test]
    fn a_longer_interval_is_told_at_once() {
        assert_eq!(told([5_000, 4_000, 20_000, 19_999]), [5_000, 5_000, 20_000, 20_000]);
    }

    #[test]
    fn a_shorter_interval_is_the_longest_of_the_waits_since() {
        let waits = [5_000].into_iter().chain([48, 49, 50, 12, 47, 49, 48, 46, 50, 49]);
        let told = told(waits);
        assert_eq!(told[..8], [5_000; 8]);
        assert_eq!(told[8..], [50, 50, 50]);
    }

    #[test]
    fn a_wait_as_long_as_before_ends_a_row_of_shorter_ones() {
        let some = [4_000; TIMES as usize - 1];
        let waits = [5_000].into_iter().chain(some).chain([5_000]).chain(some);
        assert!(told(waits).iter().all(|&told_ns| told_ns == 5_000));
    }
}
