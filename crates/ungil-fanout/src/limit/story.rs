//! What is remembered for the report.

use std::collections::VecDeque;

use super::report::{BackOff, Level, Report};

/// Levels are told apart by this logarithm.
const APART: f32 = 0.2;

/// Up to 300,000 in flight; the last is for what is more.
const LEVELS: usize = 64;

/// Of how many rounds the mean at a level is. The latest count most: services change.
const ROUNDS: f32 = 4.0;

/// A level, how often it was looked at, and the mean latency there.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    rounds: f32,
    level: f32,
    latency_ns: f32,
}

/// The back-offs and the levels of a run.
#[derive(Debug)]
pub(super) struct Story {
    pub highest: usize,
    pub finished: u64,
    levels: [Seen; LEVELS],
    back_offs: VecDeque<BackOff>,
    in_all: u64,
}

impl Story {
    pub fn new(limit: usize) -> Self {
        Self {
            highest: limit,
            finished: 0,
            levels: [Seen::default(); LEVELS],
            back_offs: VecDeque::with_capacity(Report::KEPT),
            in_all: 0,
        }
    }

    /// With about `level` in flight items took `latency_ns` on average.
    pub fn level(&mut self, level: f32, latency_ns: f32) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the logarithm of a count, limited just below"
        )]
        let place = (level.max(1.0).ln() / APART).round() as usize;
        let seen = &mut self.levels[place.min(LEVELS - 1)];
        seen.rounds = (seen.rounds + 1.0).min(ROUNDS);
        seen.level += (level - seen.level) / seen.rounds;
        seen.latency_ns += (latency_ns - seen.latency_ns) / seen.rounds;
    }

    pub fn back_off(&mut self, back_off: BackOff) {
        if back_off.to >= back_off.from {
            return;
        }
        if self.back_offs.len() == Report::KEPT {
            self.back_offs.pop_front();
        }
        self.back_offs.push_back(back_off);
        self.in_all += 1;
    }

    pub fn back_offs(&self) -> (Vec<BackOff>, u64) {
        (self.back_offs.iter().copied().collect(), self.in_all)
    }

    pub fn levels(&self) -> Vec<Level> {
        let seen = self.levels.iter().filter(|seen| seen.rounds > 0.0 && seen.latency_ns > 0.0);
        seen.map(|seen| Level {
            in_flight: f64::from(seen.level),
            // Little's law.
            throughput: f64::from(seen.level) / f64::from(seen.latency_ns) * 1e9,
            latency_ns: f64::from(seen.latency_ns),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Reason;
    use super::*;

    #[test]
    fn levels_a_fifth_apart_are_told_apart() {
        let mut story = Story::new(1);
        story.level(100.0, 1.0);
        story.level(105.0, 1.0);
        assert_eq!(story.levels().len(), 1);
        story.level(120.0, 1.0);
        assert_eq!(story.levels().len(), 2);
    }

    #[test]
    fn four_rounds_say_what_a_level_is_like() {
        let mut story = Story::new(1);
        (0..100).for_each(|_| story.level(100.0, 1e6));
        story.level(100.0, 2e6);
        assert!((story.levels()[0].latency_ns - 1.25e6).abs() < 1.0);
    }

    #[test]
    fn levels_of_more_than_a_few_hundred_thousand_are_one() {
        let mut story = Story::new(1);
        for level in [1e5, 1e6, 1e7] {
            story.level(level, 1.0);
        }
        assert_eq!(story.levels().len(), 2);
    }

    #[test]
    fn there_are_details_of_the_latest_16_back_offs() {
        let mut story = Story::new(1);
        let reason = Reason::Failures;
        (1..=20).for_each(|at| story.back_off(BackOff { at, from: 2, to: 1, reason }));
        let (back_offs, in_all) = story.back_offs();
        assert_eq!((back_offs[0].at, back_offs.len(), in_all), (5, 16, 20));
    }
}
