//! Where the knee is: at which level to look next, from what the rounds so far have found.
//!
//! Below the knee latencies do not depend on the level; beyond it they grow with it and the
//! throughput does not (Little's law: throughput = level / latency). So every level is compared with
//! a reference, what latencies are when nothing queues. That they are higher somewhere is congestion
//! only if they fall when the level does; if they do not, it is the hosts, and the reference was
//! wrong. Both cost a round at a lower level, which also keeps the reference fresh.
//!
//! Rises and distances between levels are natural logarithms: 0.1 is about 10 %.

mod lower;
mod opening;
mod sampling;

use super::round::Place;

/// The factor by which the level grows in a round while nothing speaks against it. Less than two, so
/// that from a level at which latencies rise by less than can be seen they never double.
pub(super) const RAMP: f32 = 1.8;

/// The factor by which it grows in the neighbourhood of the knee, at first. About [`TARGET`], so that
/// one step too many costs no more than where the search would stay anyway.
const GENTLE: f32 = 1.15;

/// The largest factor once a knee has been seen: two gentle steps, after some rounds that went well.
const FAMILIAR: f32 = GENTLE * GENTLE;

/// By how much latencies may be above the reference. In the middle, so to speak, between three
/// quarters of the throughput and twice the latency.
const TARGET: f32 = 0.15;

/// A rise beyond which a level is doubted. A little above [`TARGET`], where the search stays.
const MUCH: f32 = 0.2;

/// A rise that is never taken for one.
const NOTHING: f32 = 0.06;

/// A rise that is always taken for one before a knee was seen, however uncertain it is.
const SOMETHING: f32 = 0.25;

/// A rise of so many standard errors may be chance.
const CHANCE: f32 = 1.5;

/// The same of a single round, when earlier ones at this level say something else.
const CHANCE_OF_ONE: f32 = 2.0;

/// The same where a mistake is expensive: on the ramp, and where the reference is given up.
const RARE_CHANCE: f32 = 3.0;

/// A standard error beyond which the ramp looks at a level twice before it turns.
const BLURRED: f32 = 0.1;

/// Rounds at levels this close, as a logarithm, are about the same level. Less than a gentle step.
const SAME_LEVEL: f32 = 0.12;

/// Of the rounds at one level, all before the latest count as at most so many.
const EARLIER_ROUNDS: f32 = 2.0;

/// A level up to so many times the highest that was as quick as the reference is so, too.
const AS_SAFE: f32 = 1.02;

/// A level of this share of one that was slow is not known to be quick any more.
const UNSAFE: f32 = 0.95;

/// A level of this share of one that was slow, and is quick, says that it is not slow any more.
const NOT_SLOW: f32 = 0.97;

/// The factor by which the level that was slow is moved up each round: it is forgotten in about
/// twenty, because services recover.
const FORGOTTEN: f32 = 1.03;

/// The share of the way to [`TARGET`] that one step goes near the knee. Less than one, because what
/// was measured is uncertain, too.
const STEER: f32 = 0.7;

/// How far above [`TARGET`] latencies may be for a step to be in proportion. If they are higher, one
/// round says too little for a larger step.
const STEERED: f32 = 0.3;

/// The reference is made of about as many of the latest members.
const MEMORY: f32 = 512.0;

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
        let before = self.here.filter(|here| (here.level / place.level).ln().abs() < SAME_LEVEL);
        let here =
            before.map_or(place, |before| before.pooled(&place, EARLIER_ROUNDS * place.weight));
        self.here = Some(here);
        self.slow *= FORGOTTEN;
        self.undoubted += 1;
        let (latest, gap) = (place.since(reference), here.since(reference));
        let ramping = self.ramping();
        // This may be chance: once more.
        let again = ramping && before.is_none() && gap.error > BLURRED;
        let sure = if again { RARE_CHANCE } else { CHANCE };
        let sure_of_one = sure.max(CHANCE_OF_ONE);
        if latest.rise > MUCH + sure_of_one * latest.error || gap.rise > MUCH + sure * gap.error {
            return self.doubt(here, level, gap.rise);
        }
        let fine = if self.knee.is_none() {
            (CHANCE * gap.error).clamp(NOTHING, SOMETHING)
        } else {
            gap.error.clamp(NOTHING, TARGET)
        };
        if (ramping || level <= self.safe * AS_SAFE) && gap.rise < fine {
            self.reference = Some(reference.pooled(&place, MEMORY));
        }
        if gap.rise < fine {
            if ramping {
                self.safe = self.safe.max(level);
            }
            if level > NOT_SLOW * self.slow {
                self.slow = f32::INFINITY;
            }
            if level < cap {
                // No more than half of the way to what was slow.
                let halfway = (level * self.slow).sqrt().max(level * GENTLE);
                let next = (level * self.growth).min(halfway);
                let most = if self.knee.is_some() { FAMILIAR } else { RAMP };
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
        level * (STEER * (TARGET - gap.rise).max(-STEERED)).exp()
    }

    /// Goes lower, to see whether it is the level.
    fn doubt(&mut self, place: Place, level: f32, rise: f32) -> f32 {
        self.doubted = Some(Found { place, level });
        self.undoubted = 0;
        level * (-rise.clamp(LOWER, RAMP.ln())).exp()
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: f32 = 1e9;

    /// A round in which an item took so long.
    fn place(level: f32, latency_ns: f32) -> Place {
        Place::known(level, latency_ns, 0.01)
    }

    #[test]
    fn a_level_is_no_longer_safe_if_it_is_slow_nor_is_one_just_below() {
        let mut search = Search::new();
        search.judged(place(100.0, 10.0 * S), 100.0, 1e6);
        assert!((search.safe - 100.0).abs() < 0.1);
        // It is doubted, and that is right: the lower level is quicker, but slow as well.
        let lower = search.judged(place(180.0, 22.0 * S), 180.0, 1e6);
        search.judged(place(lower, 15.0 * S), lower, 1e6);
        assert!((search.safe - 95.0).abs() < 0.1, "{}", search.safe);
    }

    #[test]
    fn two_percent_above_a_safe_level_is_as_good() {
        let reference = |level| {
            let mut search = Search::new();
            search.judged(place(100.0, 10.0 * S), 100.0, 1e6);
            search.lowered();
            search.judged(place(level, 10.0 * S), level, 1e6);
            search.reference.expect("there is one").weight
        };
        assert!(reference(101.5) > reference(103.0));
    }
}
