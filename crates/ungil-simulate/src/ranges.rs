//! How far a prediction may be off.
//!
//! A range holds what the simulation says with other chances, and with threads that wake up twice
//! as fast or half as fast as recorded. It is then widened by the factor by which the simulation
//! of the recorded rules misses what was recorded: it cannot be trusted to miss less elsewhere.
//!
//! Under other rules than the recorded ones more is different: caches are warmer, sleeps shorter.
//! There a range is wider by [`OTHER_RULES`] and [`WAKE_UP_US`], with which nine of ten medians of
//! real runs of six programs are in it (`bench/simulate.py`, `docs/simulate.md`).

use crate::figures::{Figures, ThreadFigures};
use serde::Serialize;
use std::collections::HashMap;

/// A simulation that misses by more is of no use, whatever the factor.
const WIDEST: f64 = 1_000.0;
/// Times below this are equal as far as a range is concerned, in microseconds.
pub(crate) const EQUAL_US: f64 = 5.0;

/// By which factor a range is wider under other rules,
const OTHER_RULES: f64 = 1.5;
/// and by how many microseconds: what a thread takes to wake up.
pub const WAKE_UP_US: f64 = 50.0;

/// By which factor a range of how long a batch takes is wider under other rules (`bench/batches.py`).
const OTHER_DURATION: f64 = 4.0 / 3.0;

/// From the least to the most that a figure may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// The ranges of some [`Figures`], by the same names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranges {
    /// See [`Figures::duration_s`].
    pub duration_s: Range,
    /// See [`Figures::cpu_per_s`].
    pub cpu_per_s: Range,
    /// The median of [`Figures::waits`].
    pub wait_p50_us: Range,
    /// Its 99th percentile.
    pub wait_p99_us: Range,
    /// The median of [`Figures::returns`].
    pub return_p50_us: Range,
    /// Its 99th percentile.
    pub return_p99_us: Range,
    /// Of each thread, in the order of [`Figures::threads`].
    pub threads: Vec<ThreadRanges>,
}

/// The ranges of some [`ThreadFigures`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadRanges {
    /// See [`ThreadFigures::waited_s`].
    pub waited_s: Range,
    /// The median of [`ThreadFigures::waits`].
    pub wait_p50_us: Range,
    /// The median of [`ThreadFigures::returns`].
    pub return_p50_us: Range,
}

/// Of several simulations of the same rules, widened by how `reproduced` misses `recorded`, and
/// if the rules are `other` ones than those of the recording.
pub(crate) fn ranges(
    runs: &[&Figures],
    recorded: &Figures,
    reproduced: &Figures,
    other: bool,
) -> Ranges {
    let of = |figure: fn(&Figures) -> f64, equal: f64| {
        let missed = missed_by(figure(reproduced), figure(recorded), equal);
        Range::of(runs.iter().map(|run| figure(run))).widened(missed)
    };
    let under = |range: Range, wake_up: f64| {
        if other { range.under_other_rules(wake_up) } else { range }
    };
    let of_waits = |figure| under(of(figure, EQUAL_US), WAKE_UP_US);
    let first = runs.first().map_or(&[][..], |run| &run.threads);
    // A copy of a thread, or one beside those that are left out, has a place of its own.
    let (reproduced, recorded) = (by_tid(reproduced), by_tid(recorded));
    let none = ThreadFigures::default();
    let threads = first.iter().enumerate().map(|(index, thread)| {
        let [reproduced, recorded] =
            [&reproduced, &recorded].map(|all| *all.get(&thread.tid).unwrap_or(&&none));
        let of = |figure: fn(&ThreadFigures) -> f64, equal: f64| {
            let missed = missed_by(figure(reproduced), figure(recorded), equal);
            let all = runs.iter().filter_map(|run| run.threads.get(index)).map(figure);
            Range::of(all).widened(missed)
        };
        let of_waits = |figure| under(of(figure, EQUAL_US), WAKE_UP_US);
        ThreadRanges {
            waited_s: under(of(|it| it.waited_s, 1e-3), 0.0),
            wait_p50_us: of_waits(|it| it.waits.p50_us),
            return_p50_us: of_waits(|it| it.returns.p50_us),
        }
    });
    Ranges {
        duration_s: Range::of(runs.iter().map(|run| run.duration_s)),
        cpu_per_s: of(|it| it.cpu_per_s, 1e-3),
        wait_p50_us: of_waits(|it| it.waits.p50_us),
        wait_p99_us: of_waits(|it| it.waits.p99_us),
        return_p50_us: of_waits(|it| it.returns.p50_us),
        return_p99_us: of_waits(|it| it.returns.p99_us),
        threads: threads.collect(),
    }
}

/// The first of its threads with each kernel id.
fn by_tid(figures: &Figures) -> HashMap<u32, &ThreadFigures> {
    figures.threads.iter().rev().map(|thread| (thread.tid, thread)).collect()
}

/// The factor between two figures, where those below `equal` are the same.
pub(crate) fn missed_by(reproduced: f64, recorded: f64, equal: f64) -> f64 {
    let (one, other) = (reproduced.max(equal), recorded.max(equal));
    (one.max(other) / one.min(other)).min(WIDEST)
}

impl Range {
    fn of(all: impl Iterator<Item = f64>) -> Self {
        let none = Self { low: f64::INFINITY, high: 0.0 };
        let range =
            all.fold(none, |Self { low, high }, it| Self { low: low.min(it), high: high.max(it) });
        Self { low: range.low.min(range.high), ..range }
    }

    fn widened(self, factor: f64) -> Self {
        Self { low: self.low / factor, high: self.high * factor }
    }

    /// What a wait may be that lasts this long in a simulation of other rules than those of the
    /// recording; `wake_up` in the same unit, 0 for a sum of waits. Where nobody waits there are no
    /// wake-ups.
    #[must_use]
    pub fn under_other_rules(self, wake_up: f64) -> Self {
        let Self { low, high } = self.widened(OTHER_RULES);
        let late = if high > 0.0 { wake_up } else { 0.0 };
        Self { low: (low - late).max(0.0), high: high + late }
    }

    /// How long a batch may take that takes so long in a simulation of other rules.
    #[must_use]
    pub fn of_other_duration(self) -> Self {
        self.widened(OTHER_DURATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lengths::Summary;

    fn with_median(p50_us: f64) -> Figures {
        let waits = Summary { p50_us, ..Summary::default() };
        Figures { waits, ..Figures::default() }
    }

    #[test]
    fn a_range_has_all_runs_and_is_wider_by_what_the_recording_was_missed_by() {
        let runs = [with_median(100.0), with_median(200.0)];
        let runs: Vec<_> = runs.iter().collect();
        let ranges = ranges(&runs, &with_median(50.0), &with_median(75.0), false);
        assert_eq!(ranges.wait_p50_us, Range { low: 100.0 / 1.5, high: 300.0 });
    }

    #[test]
    fn under_other_rules_a_range_is_wider_by_a_factor_and_a_wake_up() {
        let runs = [with_median(300.0), with_median(600.0)];
        let runs: Vec<_> = runs.iter().collect();
        let recorded = with_median(5_000.0);
        let ranges = ranges(&runs, &recorded, &recorded, true);
        assert_eq!(ranges.wait_p50_us, Range { low: 150.0, high: 950.0 });
        assert_eq!(ranges.return_p50_us, Range { low: 0.0, high: 0.0 });
    }

    #[test]
    fn what_is_next_to_nothing_in_both_is_missed_by_nothing() {
        assert_eq!(missed_by(0.0, 4.0, EQUAL_US).to_bits(), 1f64.to_bits());
        assert_eq!(missed_by(0.0, 50.0, EQUAL_US).to_bits(), 10f64.to_bits());
    }
}
