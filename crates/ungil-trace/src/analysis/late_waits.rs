//! Waits of which those beyond a limit are counted and summed when the limit is known: the switch
//! interval is told at the end of a process.

use super::length::Sum;
use std::collections::BTreeMap;

/// A wait counts as late from this part of the switch interval: waiting threads time out a little
/// early or late, and one that began to wait while another thread's interval was running gets
/// its turn sooner.
pub(super) const LATE: f64 = 0.8;
/// From the shortest to the longest length of a class. What is within 1 % of the middle of one is
/// in it.
const WIDTH: f64 = 1.02;

/// Lengths in classes; those in use take some 40 bytes, a factor of 10 takes 117 of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    pub(super) total_ns: u64,
    classes: BTreeMap<u16, Sum>,
}

/// The waits that lasted at least some time, within 1 % of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Late {
    pub(super) count: u64,
    pub(super) total_ns: u64,
    /// Within 2 %.
    pub(super) median_ns: f64,
}

impl Waits {
    pub(super) fn add(&mut self, ns: u64) {
        self.total_ns = self.total_ns.saturating_add(ns);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a logarithm of at most 2,241"
        )]
        let class = (ns.max(1) as f64).log(WIDTH) as u16;
        self.classes.entry(class).or_default().add(ns);
    }

    /// Those of at least `ns`.
    pub(super) fn at_least(&self, ns: f64) -> Late {
        let late = self.classes.iter().rev();
        let late: Vec<&Sum> = late
            .take_while(|(class, _)| WIDTH.powf(f64::from(**class) + 0.5) >= ns)
            .map(|(_, sum)| sum)
            .collect();
        let count = late.iter().map(|sum| sum.count).sum();
        let mut seen = 0;
        let median = late.iter().find(|sum| {
            seen += sum.count;
            2 * seen >= count
        });
        Late {
            count,
            total_ns: late.iter().fold(0, |total, sum| total.saturating_add(sum.total_ns)),
            median_ns: median.map_or(0.0, |sum| sum.mean_ns()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn waits_around_a_limit_are_counted_and_summed(
            below in prop::collection::vec(0u64..3_960_000, 0..50),
            late in prop::collection::vec(4_040_000u64..400_000_000, 0..50),
        ) {
            let mut waits = Waits::default();
            below.iter().chain(&late).for_each(|&ns| waits.add(ns));
            let Late { count, total_ns, median_ns } = waits.at_least(4e6);
            prop_assert_eq!(count, late.len() as u64);
            prop_assert_eq!(total_ns, late.iter().sum::<u64>());
            prop_assert_eq!(waits.total_ns, below.iter().chain(&late).sum::<u64>());
            let mut sorted = late.clone();
            sorted.sort_unstable();
            let near = |ns: u64| (median_ns / ns as f64 - 1.0).abs() < 0.021;
            let middle = sorted.get(sorted.len() / 2).copied();
            prop_assert!(middle.is_none_or(near), "{median_ns} in {sorted:?}");
        }
    }

    #[test]
    fn any_length_has_a_class() {
        let mut waits = Waits::default();
        for ns in [0, 1, u64::MAX] {
            waits.add(ns);
        }
        assert_eq!(waits.at_least(0.0).count, 3);
        assert_eq!(Waits::default().at_least(0.0), Late::default());
    }
}
