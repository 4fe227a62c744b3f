//! A look at a lower level: was it the level that was slow, or the hosts?

use super::{
    CHANCE, Found, GENTLE, MEMORY, MUCH, NOTHING, PATIENCE, Place, RAMP, RARE_CHANCE, Search,
    TARGET, UNSAFE,
};

/// Odds at which something is taken as known, as a logarithm: nine to one.
const KNOWN: f32 = 2.2;

/// What one round may say at most, as a logarithm of odds: enough to turn what was known into its
/// contrary, and no more.
const MOST_EVIDENCE: f32 = 2.0 * KNOWN;

/// Two levels that are closer than this, as a logarithm, cannot be told apart by their latencies;
/// nor is a rise of less expected between two that are not.
const APART: f32 = 0.1;

/// By how much a lower level has to be quicker than the reference for that to be wrong.
const QUICKER: f32 = 0.1;

/// The factor by which the level grows, at least, when it turned out that it was the hosts. Half of
/// the way from [`GENTLE`] to [`RAMP`], about: what was lost is to be made up for.
const REGAINED: f32 = 1.35;

/// The step up from a level that is quick to one that may not be is at least by this factor, because
/// the search would stop otherwise.
const UP: f32 = 1.05;

impl Search {
    /// A level below `high`, which is doubted.
    pub(super) fn looked_lower(&mut self, low: Found, reference: &Place, high: Found) -> f32 {
        let gap = low.place.since(reference);
        if gap.rise < -(RARE_CHANCE * gap.error).max(QUICKER) {
            // What was taken for quick was slow itself, and perhaps this is, too.
            self.reference = Some(low.place);
            (self.growth, self.safe) = (GENTLE, low.level);
            return self.doubt(low.place, low.level, 0.0);
        }
        self.weigh(&low.place, &high.place, reference);
        let quick = gap.rise < (CHANCE * gap.error).max(NOTHING);
        let base = if quick { reference.pooled(&low.place, MEMORY) } else { low.place };
        if self.flat > KNOWN {
            // The hosts are slower than those before, whatever the level.
            self.flat = 0.0;
            self.reference = Some(base.pooled(&high.place, MEMORY));
            self.safe = self.safe.max(high.level);
            self.patience = PATIENCE.0;
            self.knee = None;
            self.growth = self.growth.max(REGAINED);
            return high.level * self.growth;
        }
        if low.level <= 1.0 && !quick {
            // Nothing is lower: this is what latencies are when nothing queues.
            self.reference = Some(low.place);
            (self.flat, self.safe, self.growth) = (0.0, low.level, RAMP);
            return low.level * RAMP;
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
        self.safe = self.safe.min(low.level * UNSAFE);
        self.doubt(low.place, low.level, gap.rise)
    }

    /// Weighs whether the level made a difference: either `high` is slower than `low` by what it
    /// seems to be slower than the reference, or by nothing.
    fn weigh(&mut self, low: &Place, high: &Place, reference: &Place) {
        let apart = (high.level / low.level).ln();
        if apart < APART {
            // So little was in flight that the limit was none.
            return;
        }
        let expected = high.since(reference).rise.clamp(APART, apart);
        let pair = high.since(low);
        let evidence = (expected / 2.0 - pair.rise) * expected / pair.error.powi(2);
        self.flat = self.flat.clamp(-KNOWN, KNOWN) + evidence.clamp(-MOST_EVIDENCE, MOST_EVIDENCE);
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
        self.safe = self.safe.min(level * UNSAFE);
        if known {
            self.growth = GENTLE;
            self.slow = level;
            self.knee = Some((level * (-gap.rise).exp()).max(low));
        }
        (level * (TARGET - gap.rise).exp()).clamp((low * UP).min(level), level)
    }
}
