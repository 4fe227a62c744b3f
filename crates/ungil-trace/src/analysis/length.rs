//! Statistics of lengths of time, in nanoseconds and constant memory.

use crate::quantile;
use crate::report;
use sketches_ddsketch::{Config, DDSketch};

/// Relative error of the percentiles.
const RELATIVE_ERROR: f64 = 0.01;
/// Enough bins for every length from 1 ns to `u64::MAX` ns, so that a sketch never merges bins.
/// It allocates only those in use: 1 KiB for each factor of 13 between shortest and longest.
const BINS: u32 = 4096;

/// Number, total and maximum of some lengths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) total_ns: u64,
    pub(super) max_ns: u64,
}

impl Sum {
    #[inline]
    pub(super) fn add(&mut self, ns: u64) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(super) fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total_ns as f64 / self.count as f64 }
    }
}

/// A [`Sum`] with percentiles.
#[derive(Clone)]
pub(super) struct Lengths {
    pub(super) sum: Sum,
    /// `None` if nobody will ask for percentiles.
    sketch: Option<DDSketch>,
}

impl Default for Lengths {
    fn default() -> Self {
        // Lengths up to 1 ns count as zero.
        let sketch = DDSketch::new(Config::new(RELATIVE_ERROR, BINS, 1.0));
        Self { sum: Sum::default(), sketch: Some(sketch) }
    }
}

impl std::fmt::Debug for Lengths {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sum.fmt(formatter)
    }
}

impl Lengths {
    #[inline]
    pub(super) fn add(&mut self, ns: u64) {
        self.sum.add(ns);
        if let Some(sketch) = &mut self.sketch {
            sketch.add(ns as f64);
        }
    }

    /// Adds the lengths that another one has seen.
    pub(super) fn merge(&mut self, other: &Self) {
        self.sum.count = self.sum.count.saturating_add(other.sum.count);
        self.sum.total_ns = self.sum.total_ns.saturating_add(other.sum.total_ns);
        self.sum.max_ns = self.sum.max_ns.max(other.sum.max_ns);
        // All sketches are alike, so this cannot fail; without percentiles there is nothing to merge.
        if let Some((mine, theirs)) = self.sketch.as_mut().zip(other.sketch.as_ref()) {
            let _ = mine.merge(theirs);
        }
    }

    /// Without percentiles, which cost most of the time and memory; they are 0.
    pub(super) fn without_percentiles() -> Self {
        Self { sum: Sum::default(), sketch: None }
    }

    /// See [`quantile`]; 0 if none was seen.
    pub(super) fn quantile_ns(&self, q: f64) -> f64 {
        self.sketch.as_ref().and_then(|sketch| quantile(sketch, q)).unwrap_or(0.0)
    }

    pub(super) fn report(&self) -> report::Lengths {
        report::Lengths {
            count: self.sum.count,
            mean_us: self.sum.mean_ns() / 1e3,
            p50_us: self.quantile_ns(0.5) / 1e3,
            p99_us: self.quantile_ns(0.99) / 1e3,
            max_us: self.sum.max_ns as f64 / 1e3,
        }
    }
}

/// The part of `ns` that `some` is of `all`.
pub(super) fn part(ns: u64, some: u64, all: u64) -> u64 {
    let scaled = u128::from(ns) * u128::from(some) / u128::from(all.max(1));
    u64::try_from(scaled).unwrap_or(ns)
}

/// Nanoseconds in seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_within_one_percent_for_any_length(
            mut lengths in prop::collection::vec((0u32..64, any::<u64>()).prop_map(|(shift, ns)| ns >> shift), 1..300),
            q in 0.0f64..=1.0,
        ) {
            let mut measured = Lengths::default();
            for &ns in &lengths {
                measured.add(ns);
            }
            lengths.sort_unstable();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
            let rank = ((q * lengths.len() as f64).ceil() as usize).max(1);
            let exact = lengths[rank - 1] as f64;
            let estimate = measured.quantile_ns(q);
            prop_assert!((estimate - exact).abs() <= exact * 0.0101 + 1.0, "{estimate} for {exact}");
        }
    }

    #[test]
    fn of_few_lengths_the_longest_is_the_99th_percentile() {
        let mut measured = Lengths::default();
        measured.add(5_130_000);
        measured.add(10_900_000);
        let report = measured.report();
        assert!((report.p50_us - 5_130.0).abs() < 52.0, "{}", report.p50_us);
        assert!((report.p99_us - 10_900.0).abs() < 109.0, "{}", report.p99_us);
    }

    #[test]
    fn nothing_seen_is_all_zeroes() {
        let report = Lengths::default().report();
        assert_eq!((report.count, report.p50_us.to_bits(), report.mean_us.to_bits()), (0, 0, 0));
    }
}
