//! How the next round is sampled: how many members, and from how many in flight on.
//!
//! A larger round is more certain and takes longer.

use super::Search;
use crate::limit::round::{MOST_MEMBERS, Place, Sampling, UNKNOWN_NOISE};

/// The standard error that a round should have, as a logarithm: about a rise that matters.
const WANTED_ERROR: f32 = 0.15;

/// By how much items differ in what they take, as the standard deviation of a logarithm, below which
/// they are in step.
const IN_STEP: f32 = 0.3;

/// Members at least.
const FEWEST: f32 = 8.0;

/// On the ramp, the share of the level that is sampled at least where all take about the same. A few
/// say it all, if they are those at the top.
const TOP_SHARE: f32 = 0.1;

/// On the ramp, the share of the level that is sampled at most where they differ: who starts later
/// starts near the top of the level.
const RAMP_SHARE: f32 = 0.5;

/// So many members it may always be, or a round at a low level would say nothing.
const RAMP_MOST: f32 = 14.0;

/// From this level on the ramp does not wait until a round is known well. There is much in flight,
/// so that a large round costs no time.
const MANY: f32 = 200.0;

/// Then the share of the level that is sampled.
const MANY_SHARE: f32 = 0.25;

/// Then the members at least: half of [`MANY`].
const MANY_FEWEST: f32 = 100.0;

/// Near the knee, members at least.
const NEAR_FEWEST: f32 = 12.0;

/// Near the knee, members at most for each in flight: so many latencies a round takes at most.
const NEAR_EACH: f32 = 4.0;

/// Near the knee, members at most.
const NEAR_MOST: f32 = 192.0;

/// Near the knee one in so many of those in flight is sampled at least.
const NEAR_ONE_IN: f32 = 5.0;

/// The share of the level that has to be in flight for a start to count.
const TOP: f32 = 0.9;

/// On the ramp it is less if there are many members, but never below this.
const RAMP_TOP: f32 = 0.75;

impl Search {
    /// By how much items differ in what they take, as the standard deviation of a logarithm.
    fn noise(&self) -> f32 {
        self.reference.map_or(UNKNOWN_NOISE, |reference| reference.noise())
    }

    /// Whether all items take about the same, so that those which start together end together.
    pub fn in_step(&self) -> bool {
        self.noise() < IN_STEP
    }

    /// How to sample the first round.
    pub fn first(few: usize) -> Sampling {
        let members = u32::try_from(few).unwrap_or(MOST_MEMBERS);
        Sampling { members, stride: 1, early: false, from: 0.0 }
    }

    /// How to sample the next round, which is at `level`, after one that has found `place`.
    pub fn sampling(&self, place: Option<&Place>, level: f32) -> Sampling {
        let needed = (place.map_or(UNKNOWN_NOISE, Place::noise) / WANTED_ERROR).powi(2);
        let ramping = self.ramping() && self.doubted.is_none();
        let (members, early) = if !ramping {
            let most = (NEAR_FEWEST + NEAR_EACH * level).min(NEAR_MOST);
            (needed.clamp(NEAR_FEWEST, most).max(level / NEAR_ONE_IN), false)
        } else if self.in_step() {
            (needed.max(TOP_SHARE * level).max(FEWEST), false)
        } else if level > MANY {
            ((MANY_SHARE * level).max(MANY_FEWEST), true)
        } else {
            (needed.clamp(FEWEST, (RAMP_SHARE * level).max(RAMP_MOST)), false)
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 8 and a few hundred"
        )]
        let members = members.min(MOST_MEMBERS as f32) as u32;
        // While the level rises only those count that were started near its top.
        let from = if ramping { (1.0 - members as f32 / level).clamp(RAMP_TOP, TOP) } else { TOP };
        Sampling { members, stride: 1, early, from }
    }
}
