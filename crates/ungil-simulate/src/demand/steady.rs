//! What a thread would do over and over if the run went on: what it did in the middle of the run,
//! when all had started and nothing was about to end.
//!
//! All threads are cut at the same two moments. So one that waits for another finds it as far as it
//! was, in each round.

use super::Burst;
use std::ops::Range;

/// The middle of a run begins after this part of the time with more than one thread, in percent,
const FROM_PERCENT: u64 = 10;
/// and ends after this one.
const TO_PERCENT: u64 = 95;
/// A thread that was there for less than this part of the middle, in percent, was a short one.
const LIVED_PERCENT: u64 = 25;

/// The uses that a thread does again, and what lies between the last and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steady {
    /// Which of its uses; none if it does nothing again.
    pub uses: Range<usize>,
    /// For how long it is away between two rounds.
    pub away_ns: u64,
}

/// The middle of a run of which more than one thread was there in `company`.
pub(super) fn middle(company: &Range<u64>) -> Range<u64> {
    let lasts_ns = company.end.saturating_sub(company.start);
    let at = |percent| company.start + lasts_ns / 100 * percent;
    at(FROM_PERCENT)..at(TO_PERCENT)
}

impl Steady {
    /// What a thread does again that did these, the beginnings of which it wanted at
    /// `wanted_at_ns`, and was gone at `gone_ns`.
    pub(super) fn of(
        bursts: &[Burst],
        wanted_at_ns: &[u64],
        gone_ns: u64,
        middle: &Range<u64>,
    ) -> Self {
        let from = wanted_at_ns.partition_point(|at_ns| *at_ns < middle.start);
        let to = wanted_at_ns.partition_point(|at_ns| *at_ns < middle.end);
        let let_go_ns = |burst: usize| {
            let next_ns = wanted_at_ns.get(burst + 1).copied().unwrap_or(gone_ns);
            next_ns.saturating_sub(bursts[burst].away_ns)
        };
        let Some(began_ns) = wanted_at_ns.first() else { return Self::default() };
        let enough_ns = (middle.end - middle.start) / 100 * LIVED_PERCENT;
        if gone_ns < middle.end || to == 0 || gone_ns.saturating_sub(*began_ns) < enough_ns {
            return Self::default();
        }
        if from == to {
            // It used the GIL all the time, or not at all.
            let burst = to - 1;
            let uses = if let_go_ns(burst) >= middle.end { burst..to } else { 0..0 };
            return Self { uses, away_ns: 0 };
        }
        let before_ns = match from.checked_sub(1) {
            Some(before) => bursts[before].away_ns,
            None => u64::MAX,
        };
        let first_ns = wanted_at_ns[from].saturating_sub(middle.start).min(before_ns);
        let last_ns = middle.end.saturating_sub(let_go_ns(to - 1)).min(bursts[to - 1].away_ns);
        Self { uses: from..to, away_ns: first_ns.saturating_add(last_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses of 1 that begin at these times, until 1,000; the middle is from 100 to 950.
    fn steady(wanted_at_ns: &[u64]) -> Steady {
        let next = wanted_at_ns.iter().skip(1).chain([&1_000]);
        let lengths = wanted_at_ns.iter().zip(next).map(|(at, next)| next - at);
        let bursts = lengths.map(|ns| Burst { held_ns: 1, away_ns: ns - 1, ..Burst::default() });
        let bursts: Vec<_> = bursts.collect();
        Steady::of(&bursts, wanted_at_ns, 1_000, &middle(&(0..1_000)))
    }

    #[test]
    fn what_was_done_in_the_middle_is_done_again_at_the_same_pace() {
        let wanted_at_ns: Vec<_> = (0..100).map(|turn| turn * 10).collect();
        assert_eq!(steady(&wanted_at_ns), Steady { uses: 10..95, away_ns: 9 });
    }

    #[test]
    fn who_slept_all_the_time_does_nothing_again() {
        assert_eq!(steady(&[0, 50, 990]), Steady::default());
    }

    #[test]
    fn one_that_computed_all_the_time_goes_on_with_it() {
        let computes = [Burst { held_ns: 900, ..Burst::default() }];
        let found = Steady::of(&computes, &[50], 1_000, &middle(&(0..1_000)));
        assert_eq!(found, Steady { uses: 0..1, away_ns: 0 });
    }

    #[test]
    fn who_was_gone_before_the_end_does_nothing_again() {
        let uses = [Burst { held_ns: 1, away_ns: 9, ..Burst::default() }; 20];
        let wanted_at_ns: Vec<_> = (0..20).map(|turn| turn * 10).collect();
        let found = Steady::of(&uses, &wanted_at_ns, 200, &middle(&(0..1_000)));
        assert_eq!(found, Steady::default());
    }
}
