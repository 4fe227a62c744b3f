//! Statistics of lengths of time, in constant memory.

use serde::Serialize;
use sketches_ddsketch::{Config, DDSketch};
use ungil_trace::quantile;

/// Relative error of the percentiles.
const RELATIVE_ERROR: f64 = 0.01;
/// Enough bins for every length from 1 ns to `u64::MAX` ns.
const BINS: u32 = 4096;

/// Some lengths of time as they are added.
#[derive(Clone)]
pub(crate) struct Lengths {
    total_ns: u64,
    max_ns: u64,
    sketch: DDSketch,
}

/// What is told of some lengths of time: percentiles within 1 %, the rest exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// Their mean, in microseconds; 0 if there are none, as for the others.
    pub mean_us: f64,
    /// Half of them are shorter.
    pub p50_us: f64,
    /// 99 of 100 are shorter.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Default for Lengths {
    fn default() -> Self {
        let sketch = DDSketch::new(Config::new(RELATIVE_ERROR, BINS, 1.0));
        Self { total_ns: 0, max_ns: 0, sketch }
    }
}

impl std::fmt::Debug for Lengths {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.summary().fmt(formatter)
    }
}

impl Lengths {
    pub(crate) fn add(&mut self, ns: u64) {
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sketch.add(ns as f64);
    }

    /// Adds all of another collection.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        // Both have the one configuration that there is.
        self.sketch.merge(&other.sketch).unwrap_or_default();
    }

    pub(crate) fn total_ns(&self) -> u64 {
        self.total_ns
    }

    pub(crate) fn summary(&self) -> Summary {
        let count = self.sketch.count() as u64;
        if count == 0 {
            return Summary::default();
        }
        let longest_us = self.max_ns as f64 / 1e3;
        let quantile_us = |q| (quantile(&self.sketch, q).unwrap_or(0.0) / 1e3).min(longest_us);
        Summary {
            count,
            mean_us: self.total_ns as f64 / count as f64 / 1e3,
            p50_us: quantile_us(0.5),
            p99_us: quantile_us(0.99),
            max_us: longest_us,
        }
    }
}

/// So many times `ns`, of which no more than a part of a nanosecond is lost.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of 1 of a length of time; a cast from float saturates"
)]
pub(crate) fn scaled(ns: u64, factor: f64) -> u64 {
    (ns as f64 * factor) as u64
}

/// Half of them are shorter; `None` if there are none.
pub(crate) fn median(all: impl Iterator<Item = u64>) -> Option<u64> {
    let mut all: Vec<_> = all.collect();
    let middle = all.len() / 2;
    (!all.is_empty()).then(|| *all.select_nth_unstable(middle).1)
}
