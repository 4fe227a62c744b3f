//! Items that hang: they hold a slot while others that were started after them have long come back.
//!
//! A level is about items that are worked on. One that waits for its timeout is not, so its slot is
//! given to another and it counts no more (Little's law: the slots that are needed are those of items
//! that answer plus, for each second that the others hang, their share of the starts of a second).
//! Items that wait in a line are not overtaken: whoever came later waits as well.

use std::collections::VecDeque;

/// How many times as long as usual an item runs before it may count as one that hangs. Of
/// exponential latencies, whose usual one is 0.56 of the mean, one in 90 is longer.
const PATIENCE: f32 = 8.0;

/// What is never long: a moment in which this process was not scheduled.
const MOMENT_NS: u64 = 4_000_000;

/// How many that were started later have to have come back: one alone may have jumped a line.
const LATER: u64 = 4;

/// What is usual is made of about as many of the latest items.
const USUAL: f32 = 32.0;

/// A cohort lasts for one of so many parts of the patience: it is let go when the last of it hangs, so
/// the first waits for longer by that.
const PARTS: u64 = 8;

/// Items that were started at about the same time.
#[derive(Clone, Copy, Debug)]
struct Cohort {
    first_start: u64,
    last_start: u64,
    running: usize,
    /// How many have come back.
    back: u64,
}

/// Who runs, by the time of the start.
#[derive(Debug, Default)]
pub(super) struct Overtaken {
    /// Those that do not hang, oldest first. Never more than a few: see [`Self::started`].
    cohorts: VecDeque<Cohort>,
    /// The number of the oldest. All before it hang.
    oldest: u32,
    /// How many items hang.
    hanging: usize,
    /// How many of `cohorts` have come back.
    back: u64,
    /// The logarithm of a usual latency in ns, and of how many items, up to [`USUAL`].
    usual: f32,
    known: f32,
}

impl Overtaken {
    /// How many items hang.
    pub fn hanging(&self) -> usize {
        self.hanging
    }

    /// An item starts. Gives the number of its cohort.
    pub fn started(&mut self, now: u64) -> u32 {
        let span = self.patience_ns() / PARTS;
        match self.cohorts.back_mut() {
            Some(cohort) if now.saturating_sub(cohort.first_start) <= span => {
                cohort.running += 1;
                cohort.last_start = now;
            }
            _ => self.cohorts.push_back(Cohort {
                first_start: now,
                last_start: now,
                running: 1,
                back: 0,
            }),
        }
        let newest = u32::try_from(self.cohorts.len() - 1).unwrap_or(u32::MAX);
        self.oldest.wrapping_add(newest)
    }

    /// An item of this cohort has ended: after `latency_ns`, if that says how long items take.
    /// Says whether it was one of those that hang.
    pub fn ended(&mut self, cohort: u32, latency_ns: Option<f32>) -> bool {
        let place = cohort.wrapping_sub(self.oldest) as usize;
        let known = self.cohorts.get_mut(place);
        let hung = known.is_none();
        if let Some(cohort) = known {
            cohort.running = cohort.running.saturating_sub(1);
            cohort.back += 1;
            self.back += 1;
        } else {
            self.hanging = self.hanging.saturating_sub(1);
        }
        if let Some(latency_ns) = latency_ns.filter(|_| !hung) {
            // Of logarithms, because a few that take very long are what is looked for.
            self.known = (self.known + 1.0).min(USUAL);
            self.usual += (latency_ns.ln() - self.usual) / self.known;
        }
        hung
    }

    /// After this time without coming back an item hangs, if it was overtaken.
    fn patience_ns(&self) -> u64 {
        if self.known == 0.0 {
            return u64::MAX;
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and beyond the range the conversion saturates"
        )]
        let patience = (PATIENCE * self.usual.exp()) as u64;
        patience.max(MOMENT_NS)
    }

    /// Some who hang by now, if there are any: when they were started, and how many.
    pub fn lets_go(&mut self, now: u64) -> Option<(u64, usize)> {
        let (oldest, due) = (*self.cohorts.front()?, self.due()?);
        if now < due {
            return None;
        }
        self.back -= oldest.back;
        self.hanging += oldest.running;
        self.oldest = self.oldest.wrapping_add(1);
        self.cohorts.pop_front();
        Some((oldest.first_start, oldest.running))
    }

    /// When time alone lets some go.
    pub fn due(&self) -> Option<u64> {
        let oldest = self.cohorts.front()?;
        if oldest.running == 0 && self.cohorts.len() > 1 {
            return Some(0);
        }
        (self.back - oldest.back >= LATER)
            .then(|| oldest.last_start.saturating_add(self.patience_ns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn lets_all_go(overtaken: &mut Overtaken, now: u64) {
        while overtaken.lets_go(now).is_some() {}
    }

    /// For so many milliseconds an item starts in each, and comes back after one.
    fn pass(overtaken: &mut Overtaken, from: u64, milliseconds: u64) {
        for at in from..from + milliseconds {
            let cohort = overtaken.started(at * MS);
            overtaken.ended(cohort, Some(MS as f32));
            lets_all_go(overtaken, (at + 1) * MS);
        }
    }

    #[test]
    fn an_item_hangs_when_others_that_started_later_have_long_come_back() {
        let mut overtaken = Overtaken::default();
        pass(&mut overtaken, 0, 10);
        let slow = overtaken.started(10 * MS);
        pass(&mut overtaken, 11, 7);
        assert_eq!(overtaken.hanging(), 0);
        pass(&mut overtaken, 18, 2);
        assert_eq!(overtaken.hanging(), 1);
        assert!(overtaken.ended(slow, None));
        assert_eq!(overtaken.hanging(), 0);
    }

    #[test]
    fn items_that_wait_for_those_before_them_do_not_hang() {
        let mut overtaken = Overtaken::default();
        pass(&mut overtaken, 0, 10);
        let line: Vec<u32> = (0..100).map(|number| overtaken.started((10 + number) * MS)).collect();
        for (at, cohort) in (1_000..).step_by(100).zip(line) {
            assert!(!overtaken.ended(cohort, Some(MS as f32)));
            lets_all_go(&mut overtaken, at * MS);
            assert_eq!(overtaken.hanging(), 0);
        }
    }

    #[test]
    fn nobody_hangs_when_the_process_was_stopped_for_a_while() {
        let mut overtaken = Overtaken::default();
        pass(&mut overtaken, 0, 10);
        let waiting: Vec<u32> = (0..20).map(|_| overtaken.started(10 * MS)).collect();
        for cohort in waiting {
            assert!(!overtaken.ended(cohort, Some(MS as f32)));
            lets_all_go(&mut overtaken, 5_000 * MS);
        }
        assert_eq!(overtaken.hanging(), 0);
    }

    #[test]
    fn it_keeps_no_more_than_a_few_cohorts() {
        let mut overtaken = Overtaken::default();
        pass(&mut overtaken, 0, 10_000);
        assert!(overtaken.cohorts.len() < 12, "{}", overtaken.cohorts.len());
    }

    /// When an item that started now would hang if many others had come back.
    fn patience_ms(overtaken: &Overtaken) -> u64 {
        overtaken.patience_ns() / MS
    }

    #[test]
    fn the_latest_32_items_say_what_is_usual() {
        let mut overtaken = Overtaken::default();
        pass(&mut overtaken, 0, 100);
        assert_eq!(patience_ms(&overtaken), 8);
        for _ in 0..32 {
            let cohort = overtaken.started(100 * MS);
            overtaken.ended(cohort, Some(10.0 * MS as f32));
        }
        // All but 1/e of the way from 1 ms to 10 ms, in logarithms.
        assert_eq!(patience_ms(&overtaken), 34);
    }

    #[test]
    fn what_takes_no_longer_than_4_ms_never_hangs() {
        let mut overtaken = Overtaken::default();
        let cohort = overtaken.started(0);
        overtaken.ended(cohort, Some(1_000.0));
        assert_eq!(patience_ms(&overtaken), 4);
    }

    #[test]
    fn four_that_started_later_have_to_have_come_back() {
        let mut overtaken = Overtaken::default();
        pass(&mut overtaken, 0, 10);
        overtaken.started(20 * MS);
        lets_all_go(&mut overtaken, 20 * MS);
        for number in 1..=4 {
            assert_eq!(overtaken.due(), None, "{number}");
            let cohort = overtaken.started((20 + 2 * number) * MS);
            overtaken.ended(cohort, Some(MS as f32));
        }
        assert_eq!(overtaken.due().map(|due| due / MS), Some(28));
    }

    #[test]
    fn items_of_an_eighth_of_the_patience_are_a_cohort() {
        let mut overtaken = Overtaken::default();
        pass(&mut overtaken, 0, 10);
        let first = overtaken.started(100 * MS);
        assert_eq!(overtaken.started(101 * MS), first);
        assert_eq!(overtaken.started(101 * MS + MS / 2), first + 1);
    }
}
