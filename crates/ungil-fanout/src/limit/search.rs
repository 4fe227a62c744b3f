//! Where the knee is: at which level to look next, from what the rounds so far have found.
//!
//! Below the knee latencies do not depend on the level; beyond it they grow with it and the
//! throughput does not (Little's law: throughput = level / latency). So every level is compared with
//! a reference, what latencies are when nothing queues. That they are higher somewhere is congestion
//! only if they fall when the level does; if they do not, it is the hosts, and the reference was
//! wrong. Both cost a round at a lower level, which also keeps the reference fresh.

use super::round::{MOST, Place, Sampling};

/// By how much the level grows while nothing speaks against it. Less than two, so that from a level
/// at which latencies rise by less than can be seen they never double.
pub(super) const RAMP: f32 = 1.8;

/// By how much it grows in the neighbourhood of the knee.
const GENTLE: f32 = 1.15;

/// By how much latencies may be above the reference (a logarithm). In the middle, so to speak,
/// between three quarters of the throughput and twice the latency.
const TARGET: f32 = 0.15;

/// A rise beyond which a level is doubted.
const MUCH: f32 = 0.2;

/// A rise that is never taken for one.
const NOTHING: f32 = 0.06;

/// The reference is made of about as many of the latest members.
const MEMORY: f32 = 512.0;

/// Odds at which something is taken as known, as a logarithm.
const KNOWN: f32 = 2.2;

/// How far down the round goes in which a level is doubted at least, as a logarithm.
const LOWER: f32 = 0.3;

/// Rounds after which a level is doubted although it seems to be quick, at first and at most.
const PATIENCE: (u32, u32) = (2, 64);

/// A level, and what was found there.
#[derive(Clone, Copy, Debug)]
struct Found {
    place: Place,
    level: f32,
}

/// The search for the knee.
#[derive(Debug)]
pub(super) struct Search {
    /// What latencies are when nothing queues.
    reference: Option<Place>,
    /// The level that is doubted, while the round goes on at a lower one.
    doubted: Option<Found>,
    /// The latest rounds, as far as they were at about the same level.
    here: Option<Place>,
    /// The factor by which the level grows next.
    growth: f32,
    /// Evidence that the level makes no difference: the logarithm of the odds.
    flat: f32,
    /// Rounds since a level was doubted, and after how many one is again.
    undoubted: u32,
    patience: u32,
    /// What is not above this is as quick as the reference, and goes into it.
    safe: f32,
    /// The level last known to be slow. Forgotten little by little.
    slow: f32,
    knee: Option<f32>,
    /// The last round of the opening, if it was slow.
    slower: Option<Found>,
    backed_off: bool,
}

impl Search {
    pub fn new() -> Self {
        Self {
            reference: None,
            doubted: None,
            here: None,
            growth: RAMP,
            flat: 0.0,
            undoubted: 0,
            patience: PATIENCE.0,
            safe: 0.0,
            slow: f32::INFINITY,
            knee: None,
            slower: None,
            backed_off: false,
        }
    }

    /// The level that is doubted, while it is.
    pub fn doubted_level(&self) -> Option<f32> {
        self.doubted.map(|doubted| doubted.level)
    }

    /// Whether the latest step was back because of latency, and not just to have a look.
    pub fn backed_off(&self) -> bool {
        self.backed_off
    }

    /// The level beyond which the throughput does not grow, if one was seen.
    pub fn knee(&self) -> Option<f32> {
        self.knee
    }

    /// A latency without queues, ns.
    pub fn latency_ns(&self) -> Option<f32> {
        self.reference.as_ref().map(Place::latency_ns)
    }

    /// By how much items differ in what they take, as the standard deviation of a logarithm.
    pub fn noise(&self) -> f32 {
        self.reference.map_or(1.0, |reference| reference.noise())
    }

    /// Whether all items take about the same, so that those which start together end together.
    pub fn in_step(&self) -> bool {
        self.noise() < 0.3
    }

    /// Whether the level still grows in large steps.
    pub fn ramping(&self) -> bool {
        self.growth >= RAMP
    }

    /// The round at `level` has found `place`. At which level to go on; `cap` at most.
    pub fn judged(&mut self, place: Place, level: f32, cap: f32) -> f32 {
        self.backed_off = false;
        let found = Found { place, level };
        let next = match (self.reference, self.doubted.take()) {
            (None, _) => {
                self.reference = Some(place);
                self.safe = level;
                level * self.growth
            }
            (Some(reference), None) => self.looked(found, &reference, cap),
            (Some(reference), Some(high)) => self.looked_lower(found, &reference, high),
        };
        next.clamp(1.0, cap.max(1.0))
    }

    /// A level that was not doubted so far.
    fn looked(&mut self, found: Found, reference: &Place, cap: f32) -> f32 {
        let Found { place, level } = found;
        let before = self.here.filter(|here| (here.level / place.level).ln().abs() < 0.12);
        let here = before.map_or(place, |before| before.pooled(&place, 2.0 * place.weight));
        self.here = Some(here);
        self.slow *= 1.03;
        self.undoubted += 1;
        let (latest, gap) = (place.since(reference), here.since(reference));
        let ramping = self.ramping();
        // This may be chance: once more.
        let again = ramping && before.is_none() && gap.error > 0.1;
        let sure: f32 = if again { 3.0 } else { 1.5 };
        if latest.rise > MUCH + sure.max(2.0) * latest.error || gap.rise > MUCH + sure * gap.error {
            return self.doubt(here, level, gap.rise);
        }
        let fine = if self.knee.is_none() {
            (1.5 * gap.error).clamp(NOTHING, 0.25)
        } else {
            gap.error.clamp(NOTHING, TARGET)
        };
        if (ramping || level <= self.safe * 1.02) && gap.rise < fine {
            self.reference = Some(reference.pooled(&place, MEMORY));
        }
        if gap.rise < fine {
            if ramping {
                self.safe = self.safe.max(level);
            }
            if level > 0.97 * self.slow {
                self.slow = f32::INFINITY;
            }
            if level < cap {
                // No more than half of the way to what was slow.
                let halfway = (level * self.slow).sqrt().max(level * GENTLE);
                let next = (level * self.growth).min(halfway);
                let most = if self.knee.is_some() { GENTLE * GENTLE } else { RAMP };
                self.growth = (self.growth * self.growth).min(most);
                return next;
            }
        } else if ramping {
            if again {
                return level;
            }
            return self.doubt(here, level, gap.rise);
        } else if gap.rise > TARGET {
            self.growth = GENTLE;
        }
        if self.undoubted >= self.patience {
            return self.doubt(here, level, 0.0);
        }
        if self.knee.is_some() {
            self.knee = Some(level * (-gap.rise.max(0.0)).exp());
        }
        level * (0.7 * (TARGET - gap.rise).clamp(-0.3, 0.15)).exp()
    }

    /// Goes lower, to see whether it is the level.
    fn doubt(&mut self, place: Place, level: f32, rise: f32) -> f32 {
        self.doubted = Some(Found { place, level });
        self.undoubted = 0;
        level * (-rise.clamp(LOWER, RAMP.ln())).exp()
    }

    /// A level below `high`, which is doubted.
    fn looked_lower(&mut self, low: Found, reference: &Place, high: Found) -> f32 {
        let gap = low.place.since(reference);
        if gap.rise < -(3.0 * gap.error).max(0.1) {
            // What was taken for quick was slow itself, and perhaps this is, too.
            self.reference = Some(low.place);
            (self.growth, self.safe) = (GENTLE, low.level);
            return self.doubt(low.place, low.level, 0.0);
        }
        self.weigh(&low.place, &high.place, reference);
        let quick = gap.rise < (1.5 * gap.error).max(NOTHING);
        let base = if quick { reference.pooled(&low.place, MEMORY) } else { low.place };
        if self.flat > KNOWN {
            // The hosts are slower than those before, whatever the level.
            self.flat = 0.0;
            self.reference = Some(base.pooled(&high.place, MEMORY));
            self.safe = self.safe.max(high.level);
            self.patience = PATIENCE.0;
            self.knee = None;
            self.growth = self.growth.max(1.35);
            return high.level * self.growth;
        }
        let known = self.flat < -KNOWN;
        if gap.rise < -gap.error {
            self.patience = (self.patience / 2).max(PATIENCE.0);
        } else if known {
            self.patience = (self.patience * 2).min(PATIENCE.1);
        }
        if quick {
            self.reference = Some(base);
            self.safe = low.level;
            return self.between(low.level, high, &base, known);
        }
        if !known {
            return high.level;
        }
        // The lower level is slow as well.
        self.growth = GENTLE;
        self.safe = self.safe.min(low.level * 0.95);
        self.doubt(low.place, low.level, gap.rise)
    }

    /// Weighs whether the level made a difference: either `high` is slower than `low` by what it
    /// seems to be slower than the reference, or by nothing.
    fn weigh(&mut self, low: &Place, high: &Place, reference: &Place) {
        let apart = (high.level / low.level).ln();
        if apart < 0.1 {
            // So little was in flight that the limit was none.
            return;
        }
        let expected = high.since(reference).rise.clamp(0.1, apart);
        let pair = high.since(low);
        let evidence = (expected / 2.0 - pair.rise) * expected / pair.error.powi(2);
        self.flat = self.flat.clamp(-KNOWN, KNOWN) + evidence.clamp(-2.0 * KNOWN, 2.0 * KNOWN);
    }

    /// A level between `low`, which is quick, and `high`, which may not be.
    fn between(&mut self, low: f32, high: Found, reference: &Place, known: bool) -> f32 {
        let Found { place, level } = high;
        let gap = place.since(reference);
        if gap.rise <= MUCH + gap.error {
            if gap.rise < TARGET / 2.0 && !known {
                // There was no reason to doubt it.
                self.patience = (self.patience * 2).min(PATIENCE.1);
            }
            return level;
        }
        self.backed_off = true;
        self.safe = self.safe.min(level * 0.95);
        if known {
            self.growth = GENTLE;
            self.slow = level;
            self.knee = Some((level * (-gap.rise).exp()).max(low));
        }
        (level * (TARGET - gap.rise).exp()).clamp((low * 1.05).min(level), level)
    }

    /// A round of the opening has found `place` when `level` had been started. Says where to go back
    /// to if two in a row were slower than all before, and the second slower than the first.
    pub fn rung(&mut self, place: Place, level: f32) -> Option<f32> {
        let Some(reference) = self.reference else {
            self.reference = Some(place);
            self.safe = level;
            return None;
        };
        let gap = place.since(&reference);
        if gap.rise <= (2.5 * gap.error).max(0.25) {
            self.reference = Some(reference.pooled(&place, MEMORY));
            self.safe = level;
            self.slower = None;
            return None;
        }
        let first = self.slower.replace(Found { place, level });
        let first = first.filter(|first| place.since(&first.place).rise > 0.25)?;
        self.lowered();
        self.backed_off = true;
        self.slow = first.level;
        let rise = first.place.since(&reference).rise;
        let knee = (first.level * (-rise).exp()).max(self.safe);
        self.knee = Some(knee);
        Some(knee)
    }

    /// The level is lowered for another reason than latency.
    pub fn lowered(&mut self) {
        (self.doubted, self.here) = (None, None);
        self.growth = GENTLE;
    }

    /// The level goes back to what it was before it was lowered for no good reason.
    pub fn restored(&mut self) {
        (self.doubted, self.here) = (None, None);
        self.growth = RAMP;
    }

    /// How to sample the first round.
    pub fn first(few: usize) -> Sampling {
        Sampling { members: u32::try_from(few).unwrap_or(MOST), stride: 1, early: false, from: 0.0 }
    }

    /// How to sample the next round, which is at `level`, after one that has found `place`.
    pub fn sampling(&self, place: Option<&Place>, level: f32) -> Sampling {
        let needed = (place.map_or(1.0, Place::noise) / 0.15).powi(2);
        let ramping = self.ramping() && self.doubted.is_none();
        // Where there is much in flight a large round costs no time.
        let (members, early) = if ramping {
            if self.in_step() {
                // A few say it all, if they are those at the top.
                (needed.max(0.1 * level).max(8.0), false)
            } else if level > 200.0 {
                ((level / 4.0).max(100.0), true)
            } else {
                (needed.clamp(8.0, (level * 0.5).max(14.0)), false)
            }
        } else {
            (needed.clamp(12.0, (12.0 + 4.0 * level).min(192.0)).max(level / 5.0), false)
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 8 and a few hundred"
        )]
        let members = members.min(MOST as f32) as u32;
        // While the level rises only those count that were started near its top.
        let from = if ramping { (1.0 - members as f32 / level).clamp(0.75, 0.9) } else { 0.9 };
        Sampling { members, stride: 1, early, from }
    }
}
