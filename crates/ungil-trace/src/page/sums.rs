//! What stays of a chunk of holds that is left out: who waited for whom, and how long holds and
//! waits were.

use super::table::{Packed, pack};
use std::collections::HashMap;

/// Pairs kept of one chunk; of those beyond, the culprit is the others.
const PAIRS: usize = 4_096;
/// Bins of lengths for each factor of two, from a microsecond on.
const BINS: u32 = 8;

/// Sums of one chunk, or of several.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// Nanoseconds by victim and culprit + 1 (0: nobody).
    blame: HashMap<(u32, u32), u64>,
    /// How many holds (0) and waits (1), by bin.
    lengths: HashMap<(u8, u32), u64>,
}

impl Sums {
    /// The lane `victim` waited so long for `culprit`; nobody if it is `None`.
    pub(super) fn charge(&mut self, victim: u32, culprit: Option<u32>, ns: u64) {
        let mut culprit = culprit.map_or(0, |lane| lane + 1);
        if self.blame.len() >= PAIRS && !self.blame.contains_key(&(victim, culprit)) {
            culprit = super::lanes::OTHERS + 1;
        }
        let sum = self.blame.entry((victim, culprit)).or_default();
        *sum = sum.saturating_add(ns);
    }

    /// A hold was so long.
    pub(super) fn hold(&mut self, ns: u64) {
        *self.lengths.entry((0, bin(ns))).or_default() += 1;
    }

    /// A wait was so long.
    pub(super) fn wait(&mut self, ns: u64) {
        *self.lengths.entry((1, bin(ns))).or_default() += 1;
    }

    /// Takes in another.
    pub(super) fn absorb(&mut self, other: &Self) {
        for (&pair, &ns) in &other.blame {
            let sum = self.blame.entry(pair).or_default();
            *sum = sum.saturating_add(ns);
        }
        for (&bin, &count) in &other.lengths {
            *self.lengths.entry(bin).or_default() += count;
        }
    }

    /// The tables `blame` and `lengths`, in units.
    pub(super) fn pack(&self, unit_ns: u64) -> [Packed; 2] {
        let mut blame: Vec<_> = self.blame.iter().map(|(pair, ns)| (*pair, *ns)).collect();
        blame.sort_unstable();
        let mut lengths: Vec<_> = self.lengths.iter().map(|(bin, count)| (*bin, *count)).collect();
        lengths.sort_unstable();
        let victims: Vec<_> = blame.iter().map(|((victim, _), _)| u64::from(*victim)).collect();
        let culprits: Vec<_> = blame.iter().map(|((_, culprit), _)| u64::from(*culprit)).collect();
        let waited: Vec<_> = blame.iter().map(|(_, ns)| (ns + unit_ns / 2) / unit_ns).collect();
        let what: Vec<_> = lengths.iter().map(|((what, _), _)| u64::from(*what)).collect();
        let bins: Vec<_> = lengths.iter().map(|((_, bin), _)| u64::from(*bin)).collect();
        let counts: Vec<_> = lengths.iter().map(|(_, count)| *count).collect();
        [
            pack(&[("victim", &victims), ("culprit", &culprits), ("waited", &waited)]),
            pack(&[("what", &what), ("bin", &bins), ("count", &counts)]),
        ]
    }
}

/// The bin of a length: bin b is about 2^(b/8) to 2^((b+1)/8) microseconds, 0 also about less.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a logarithm of a positive number that fits into 64 bits"
)]
fn bin(ns: u64) -> u32 {
    let us = ns as f64 / 1e3;
    if us <= 1.0 { 0 } else { (us.log2() * f64::from(BINS)) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::table::unpack;

    #[test]
    fn lengths_are_in_the_bin_that_begins_below_them() {
        assert_eq!(
            [0, 999, 1_000, 2_000, 2_180, 2_182, 1_024_000].map(bin),
            [0, 0, 0, 8, 8, 9, 80]
        );
    }

    #[test]
    fn sums_of_several_chunks_add_up() {
        let (mut sums, mut other) = (Sums::default(), Sums::default());
        sums.charge(1, Some(2), 30);
        sums.charge(1, None, 5);
        sums.wait(2_000);
        other.charge(1, Some(2), 12);
        other.wait(2_000);
        other.hold(1);
        sums.absorb(&other);
        let [blame, lengths] = sums.pack(1);
        assert_eq!(unpack(&blame), [[1, 1], [0, 3], [5, 42]]);
        assert_eq!(unpack(&lengths), [[0, 1], [0, 8], [1, 2]]);
    }

    #[test]
    fn pairs_beyond_the_bound_are_charged_to_the_others() {
        let mut sums = Sums::default();
        for victim in 0..2 * u32::try_from(PAIRS).unwrap() {
            sums.charge(7, Some(victim), 1);
        }
        assert_eq!(sums.blame.len(), PAIRS);
        assert_eq!(sums.blame.values().sum::<u64>(), 2 * PAIRS as u64);
    }
}
