//! The rounds of an opening at which all is started at once, one for each step of the ramp.

use super::{Found, MEMORY, Place, Search};

/// A rung is slower than another if its latencies are above those by this, as a logarithm. They rise
/// by 0.59 from one to the next where the knee is below both.
const SLOWER: f32 = 0.25;

/// Nor is it slower within so many standard errors. To go back is expensive: all that run have been
/// started.
const CHANCE: f32 = 2.5;

impl Search {
    /// A round of the opening has found `place` when `level` had been started. Says where to go back
    /// to if two in a row were slower than all before, and the second slower than the first.
    pub fn rung(&mut self, place: Place, level: f32) -> Option<f32> {
        let Some(reference) = self.reference else {
            self.reference = Some(place);
            self.safe = level;
            return None;
        };
        let gap = place.since(&reference);
        if gap.rise <= (CHANCE * gap.error).max(SLOWER) {
            self.reference = Some(reference.pooled(&place, MEMORY));
            self.safe = level;
            self.slower = None;
            return None;
        }
        let first = self.slower.replace(Found { place, level });
        let first = first.filter(|first| place.since(&first.place).rise > SLOWER)?;
        self.lowered();
        self.backed_off = true;
        self.slow = first.level;
        let rise = first.place.since(&reference).rise;
        let knee = (first.level * (-rise).exp()).max(self.safe);
        self.knee = Some(knee);
        Some(knee)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where three rungs go back to, of which the first takes ten seconds and each other so many
    /// times as long as the one before.
    fn goes_back(times: f32, error: f32) -> Option<f32> {
        let mut search = Search::new();
        let rung = |level: f32, latency: f32| Place::known(level, latency * 1e9, error);
        assert_eq!(search.rung(rung(16.0, 10.0), 16.0), None);
        assert_eq!(search.rung(rung(29.0, 10.0 * times), 29.0), None);
        search.rung(rung(52.0, 10.0 * times * times), 52.0)
    }

    #[test]
    fn two_rungs_that_are_slower_by_a_quarter_each_end_the_opening() {
        assert_eq!(goes_back(1.2, 0.01), None);
        let knee = goes_back(1.35, 0.01).expect("they are slower");
        assert!((knee - 29.0 / 1.35).abs() < 0.1, "{knee}");
    }

    #[test]
    fn what_may_be_chance_does_not() {
        // One standard error of the difference is 0.28.
        assert_eq!(goes_back(1.9, 0.2), None);
        assert!(goes_back(2.1, 0.2).is_some());
    }
}
