//! The level at which items failed, which is not tried again for a while.

/// Rounds for which it is not tried again, at least and at most. The first time it is twice the least.
const PATIENCE: (u32, u32) = (8, 128);

/// The fence is set to this share of the level at most, or it would keep nobody from it.
const BELOW: f32 = 0.95;

/// Trouble at up to so many times the fence is the same trouble again: patience doubles.
const SAME: f32 = 1.3;

/// The factor by which the fence is moved up when the time has come.
const HIGHER: f32 = 1.15;

/// The same if it is known to a few items, where it is.
const HIGHER_IF_SHARP: f32 = 1.05;

/// For how many times as long as it takes until a service wants to be asked again a level is avoided
/// at which it has turned items away.
const ASKED: u64 = 8;

/// The level to stay below.
#[derive(Debug)]
pub(super) struct Fence {
    pub level: f32,
    /// For so many rounds, and for how many the next time.
    rounds: u32,
    patience: u32,
    /// Whether it is known to a few items, as others were turned away at once.
    is_sharp: bool,
    /// Until when whoever refuses does not want to be tried.
    asked_until: u64,
}

impl Fence {
    /// There is none yet.
    pub fn none() -> Self {
        Self {
            level: f32::INFINITY,
            rounds: 0,
            patience: PATIENCE.0,
            is_sharp: false,
            asked_until: 0,
        }
    }

    /// There was no reason for it.
    pub fn remove(&mut self) {
        self.level = f32::INFINITY;
    }

    /// At `level` items failed, so it is to be at `fence`.
    pub fn set(&mut self, fence: f32, level: f32, is_sharp: bool) {
        if level < self.level * SAME {
            self.patience = (self.patience * 2).min(PATIENCE.1);
        }
        self.is_sharp = is_sharp;
        self.level = fence.clamp(1.0, (level * BELOW).max(1.0));
        self.rounds = self.patience;
    }

    /// Whoever refuses wants to be asked again in so many nanoseconds.
    pub fn asked(&mut self, after: u64, now: u64) {
        let until = now.saturating_add(after.saturating_mul(ASKED));
        self.asked_until = self.asked_until.max(until);
    }

    /// A round has gone well.
    pub fn judged(&mut self, now: u64) {
        if !self.level.is_finite() || now < self.asked_until {
            return;
        }
        self.rounds = self.rounds.saturating_sub(1);
        if self.rounds == 0 {
            // A little higher, and if that goes well, again soon.
            self.level *= if self.is_sharp { HIGHER_IF_SHARP } else { HIGHER };
            self.patience = (self.patience / 2).max(PATIENCE.0);
            self.rounds = self.patience;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_100(is_sharp: bool) -> Fence {
        let mut fence = Fence::none();
        fence.set(80.0, 100.0, is_sharp);
        fence
    }

    /// For how many good rounds a fence stands, and how far it is moved then.
    fn stands(fence: &mut Fence) -> (u32, f32) {
        let before = fence.level;
        let rounds = (1..1_000).find(|_| {
            fence.judged(0);
            fence.level > before
        });
        (rounds.expect("it is moved some time"), fence.level / before)
    }

    #[test]
    fn it_is_moved_after_16_rounds_and_less_far_if_it_is_sharp() {
        for (is_sharp, higher) in [(true, 1.05), (false, 1.15)] {
            let (rounds, moved) = stands(&mut at_100(is_sharp));
            assert_eq!(rounds, 16);
            assert!((moved - higher).abs() < 1e-4, "{moved}");
        }
    }

    #[test]
    fn it_is_always_below_the_level_at_which_items_failed() {
        let mut fence = Fence::none();
        fence.set(99.0, 100.0, true);
        assert!((fence.level - 95.0).abs() < 1e-4);
    }

    #[test]
    fn if_a_fence_that_was_moved_goes_well_the_next_one_is_moved_sooner() {
        let mut fence = at_100(true);
        assert_eq!(stands(&mut fence).0, 16);
        assert_eq!(stands(&mut fence).0, 8);
        assert_eq!(stands(&mut fence).0, 8);
    }

    #[test]
    fn the_same_trouble_again_doubles_the_rounds_and_that_ends_at_128() {
        for (level, expected) in [(80.0 * 1.25, 32), (80.0 * 1.35, 16)] {
            let mut fence = at_100(true);
            fence.set(80.0, level, true);
            assert_eq!(stands(&mut fence).0, expected, "{level}");
        }
        let mut fence = at_100(true);
        (0..10).for_each(|_| fence.set(80.0, 90.0, true));
        assert_eq!(stands(&mut fence).0, 128);
    }

    #[test]
    fn who_asks_for_some_time_gets_eight_times_as_long() {
        let mut fence = at_100(true);
        fence.asked(1_000, 0);
        (0..100).for_each(|_| fence.judged(7_999));
        assert!((fence.level - 80.0).abs() < 1e-4);
        (0..16).for_each(|_| fence.judged(8_000));
        assert!(fence.level > 80.0);
    }
}
