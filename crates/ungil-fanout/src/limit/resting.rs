//! Slots of items that were turned away.
//!
//! Who is turned away is told at once, and the next one in the same slot would be, too: eighteen slots
//! too many can have thousands of items a second refused. So such a slot rests for as long as an item
//! takes that is served.

use std::collections::VecDeque;

/// Until when slots rest, first to last.
#[derive(Debug, Default)]
pub(super) struct Resting(VecDeque<u64>);

impl Resting {
    /// How many rest.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// One more rests.
    pub fn rest(&mut self, until: u64) {
        // Almost in order: whoever is turned away was started lately.
        let last = self.0.back().copied().unwrap_or(0);
        self.0.push_back(until.max(last));
    }

    /// Those that have rested are to be used again.
    pub fn wake(&mut self, now: u64) {
        while self.0.front().is_some_and(|until| *until <= now) {
            self.0.pop_front();
        }
    }

    /// When the next one has rested.
    pub fn due(&self) -> Option<u64> {
        self.0.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_rest_until_their_time_has_come() {
        let mut resting = Resting::default();
        resting.rest(10);
        resting.rest(7);
        resting.rest(20);
        assert_eq!((resting.len(), resting.due()), (3, Some(10)));
        resting.wake(9);
        assert_eq!(resting.len(), 3);
        resting.wake(10);
        assert_eq!((resting.len(), resting.due()), (1, Some(20)));
        resting.wake(99);
        assert_eq!((resting.len(), resting.due()), (0, None));
    }
}
