//! How many items failed, and whether that is more than chance.

/// The share of failures above the usual one that is not worth a reaction.
pub(super) const TOLERATED: f32 = 0.05;

/// The same if whoever refuses says that it is too much: there is no other reason.
const TOLERATED_IF_SAID: f32 = TOLERATED / 5.0;

/// So many failures are none, whatever the share.
const NONE: f32 = 2.5;

/// A difference of so many standard errors may be chance: there is a look at each failure.
const CHANCE: f32 = 3.0;

/// What is usual is not better known than from so many items.
const KNOWN_FROM: f32 = 10.0;

/// How many of these are taken to have failed.
const UNKNOWN: f32 = 1.0;

/// The same if whoever refuses says that it is too much: dead hosts do not.
const UNKNOWN_IF_SAID: f32 = 0.1;

/// Items, how many of them were refused soon, and how many hang.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub items: f32,
    pub refused: f32,
    pub hanging: f32,
}

impl Tally {
    /// How many have failed, if of those that hang a share of `fatal` does.
    pub fn failed(self, fatal: f32) -> f32 {
        (self.refused + fatal * self.hanging).min(self.items)
    }

    /// The share that has failed.
    pub fn share(self, fatal: f32) -> f32 {
        self.failed(fatal) / self.items.max(1.0)
    }

    /// How many failures of `items` items are no trouble where this is usual. `is_said` if most of
    /// them were told that it is too much.
    pub fn tolerable(self, items: f32, fatal: f32, is_said: bool) -> f32 {
        // By chance, both now and in what is taken as usual.
        let (unknown, tolerated) =
            if is_said { (UNKNOWN_IF_SAID, TOLERATED_IF_SAID) } else { (UNKNOWN, TOLERATED) };
        let share = (self.failed(fatal) + unknown) / (self.items + KNOWN_FROM);
        let chance = (share * items * (1.0 + items / self.items.max(KNOWN_FROM))).sqrt();
        (self.share(fatal) + tolerated) * items + NONE + CHANCE * chance
    }

    /// From now on this counts as little.
    pub fn fade(&mut self, memory: f32) {
        self.items *= memory;
        self.refused *= memory;
        self.hanging *= memory;
    }

    pub fn add(&mut self, other: Self, share: f32) {
        self.items += share * other.items;
        self.refused += share * other.refused;
        self.hanging += share * other.hanging;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_ten_items_seven_may_fail_by_chance_and_three_that_say_why() {
        let tolerable = |is_said| Tally::default().tolerable(10.0, 0.0, is_said);
        assert!((tolerable(false) - 7.243).abs() < 1e-3, "{}", tolerable(false));
        assert!((tolerable(true) - 3.942).abs() < 1e-3, "{}", tolerable(true));
    }
}
