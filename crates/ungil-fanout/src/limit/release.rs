//! Slots that are added near the knee, opened one after the other.
//!
//! Items of equal length that start together end together, and so do those that take their place:
//! what is too much for the service then waits for a whole item instead of a moment. So what is
//! added is spread over the time that an item takes.

/// How far the limit has come on its way up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    /// The limit now.
    pub open: usize,
    /// The limit that is wanted.
    pub wanted: usize,
    /// When the next slot is opened, and after how long the one after it.
    next: u64,
    step_ns: u64,
}

impl Release {
    pub fn at(limit: usize) -> Self {
        Self { open: limit, wanted: limit, next: 0, step_ns: 0 }
    }

    /// From now on `wanted`, reached within `spread_ns` if that is more than now.
    pub fn set(&mut self, wanted: usize, spread_ns: u64, now: u64) {
        self.wanted = wanted;
        if wanted <= self.open || spread_ns == 0 {
            self.open = wanted;
            return;
        }
        let slots = u64::try_from(wanted - self.open).unwrap_or(u64::MAX);
        self.step_ns = (spread_ns / slots).max(1);
        self.next = now.saturating_add(self.step_ns);
    }

    /// Opens the slots that are due.
    pub fn advance(&mut self, now: u64) {
        if self.open >= self.wanted || now < self.next {
            return;
        }
        let due = (now - self.next) / self.step_ns + 1;
        let slots = usize::try_from(due).unwrap_or(usize::MAX);
        self.open = self.open.saturating_add(slots).min(self.wanted);
        self.next = self.next.saturating_add(due.saturating_mul(self.step_ns));
    }

    /// When the next slot is due.
    pub fn due(&self) -> Option<u64> {
        (self.open < self.wanted).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_opened_evenly_and_all_of_them() {
        let mut slots = Release::at(10);
        slots.set(14, 100, 1_000);
        assert_eq!((slots.open, slots.due()), (10, Some(1_025)));
        slots.advance(1_024);
        assert_eq!(slots.open, 10);
        slots.advance(1_060);
        assert_eq!((slots.open, slots.due()), (12, Some(1_075)));
        slots.advance(9_000);
        assert_eq!((slots.open, slots.due()), (14, None));
    }

    #[test]
    fn fewer_slots_are_fewer_at_once() {
        let mut slots = Release::at(10);
        slots.set(20, 100, 0);
        slots.set(7, 100, 50);
        assert_eq!((slots.open, slots.due()), (7, None));
    }

    #[test]
    fn more_slots_than_nanoseconds_are_no_division_by_zero() {
        let mut slots = Release::at(1);
        slots.set(1_000, 3, 0);
        slots.advance(1_000);
        assert_eq!(slots.open, 1_000);
    }
}
