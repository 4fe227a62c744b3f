//! Items that were turned away: is it the limit, or are these hosts dead?
//!
//! A share of failures that was there at lower levels, too, is usual. If there are more the limit is
//! lowered. With a lower limit a service that was overloaded completes as much as before, and fewer
//! items fail. Hosts that are dead stay dead, and just as much less is completed: then the limit goes
//! back, and this share of failures is usual from then on.

mod fence;
mod tally;
mod yields;

use fence::Fence;
use tally::{TOLERATED, Tally};
use yields::{Yield, Yields};

/// A step down to this share of the level shows whether it is the limit: see [`Yield::refutes`].
const CONVINCING: f32 = 0.4;

/// A first step down is to this share of the level at most, however much of it was of use: a smaller
/// one would be refused again.
const LEAST_STEP: f32 = 0.9;

/// A step down is to this share of the level if it is not known what was of use.
const BLIND_STEP: f32 = 0.7;

/// The level to go to is this share of what ran when the first was turned away, so that chance does
/// not bring as many to the service again.
const BELOW_CROWD: f32 = 0.95;

/// One that is turned away says how many are too many if more than this share of the level ran. If
/// it was less, it was turned away for another reason.
const CROWDED: f32 = 0.5;

/// A level that was lowered has so many latencies to show what it yields: one until what was started
/// before has ended, and one more.
const SHOWN: f32 = 2.0;

/// The share of what was counted that still counts a round later. Failures are seen soon, and rounds
/// are short.
const MEMORY: f32 = 0.7;

/// What is usual is made of about as many of the latest items: a share of 5 % is known to 0.7 %.
const USUAL: f32 = 1000.0;

/// Of how many of the latest items it is known whether those that hang fail in the end.
const FATAL: f32 = 8.0;

/// What to do about failures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    /// Go down to this level.
    Lower(f32),
    /// It was not the limit: go back to this level.
    Restore(f32),
}

/// The failures of late, and what the level of late has yielded.
#[derive(Debug)]
pub(super) struct Trouble {
    usual: Tally,
    /// When the first items that count were started.
    since: u64,
    now: Tally,
    /// The share of those that hang which fail in the end. They do so long after their start, so
    /// that they are hanging is what counts, for those that were started with them.
    fatal: f32,
    refused_ns: f32,
    /// The least that ran when one was refused at once, and how many of them have said why.
    crowd: f32,
    said: f32,
    yields: Yields,
    /// The highest level of this series of failures whose yield was measured.
    before: Option<Yield>,
    /// How often the limit was lowered without a quiet round after it.
    lowered: u32,
    fence: Fence,
}

impl Trouble {
    pub fn new(level: f32, now: u64) -> Self {
        Self {
            usual: Tally::default(),
            since: 0,
            now: Tally::default(),
            fatal: 0.0,
            refused_ns: 0.0,
            crowd: f32::INFINITY,
            said: 0.0,
            yields: Yields::new(level, now),
            before: None,
            lowered: 0,
            fence: Fence::none(),
        }
    }

    /// The level to stay below.
    pub fn fence(&self) -> f32 {
        self.fence.level
    }

    /// The share of items that fail whatever the limit.
    pub fn usual(&self) -> f32 {
        self.usual.share(self.fatal)
    }

    pub fn started(&mut self) {
        self.now.items += 1.0;
    }

    pub fn completed(&mut self, latency_ns: f32) {
        self.yields.completed(latency_ns);
    }

    /// An item was turned away that had been started then, while `crowd` ran.
    pub fn refused(&mut self, started: u64, crowd: f32, now: u64) -> Option<Answer> {
        if started < self.since {
            // It was started before the limit was lowered.
            return None;
        }
        self.now.refused += 1.0;
        self.refused_ns += now.saturating_sub(started) as f32;
        if crowd > CROWDED * self.yields.level {
            self.crowd = self.crowd.min(crowd);
        }
        self.answer(now)
    }

    /// Whoever refuses wants to be asked again in so many nanoseconds. The level at which that
    /// happened is not tried again for some times as long.
    pub fn asked(&mut self, after: u64, now: u64) {
        if after == 0 {
            return;
        }
        self.said += 1.0;
        self.fence.asked(after, now);
    }

    /// Whether more are refused than usual.
    pub fn is_unusual(&self) -> bool {
        self.now.failed(self.fatal) > (self.usual() + TOLERATED) * self.now.items
    }

    /// So many items that were started then hang.
    pub fn hang(&mut self, started: u64, items: usize) {
        if started >= self.since {
            self.now.hanging += items as f32;
        }
    }

    /// An item has ended that was hanging, `failed` or not after all.
    pub fn hung(&mut self, failed: bool, now: u64) -> Option<Answer> {
        self.fatal += (f32::from(failed) - self.fatal) / FATAL;
        if failed { self.answer(now) } else { None }
    }

    /// What to do if there are too many failures.
    fn answer(&mut self, now: u64) -> Option<Answer> {
        let tolerable = self.usual.tolerable(self.now.items, self.fatal, self.is_said());
        if self.now.failed(self.fatal) <= tolerable {
            return None;
        }
        let level = self.yields.level;
        let latency = self.yields.latency_ns();
        let latency = latency.unwrap_or(self.refused_ns / self.now.refused.max(1.0));
        // A level gets the time to show what it yields.
        let elapsed = self.yields.elapsed_ns(now);
        if self.lowered > 0 && elapsed < SHOWN * latency {
            return None;
        }
        let measured = self.yields.measured(now).filter(|_| elapsed >= latency);
        if let Some(before) =
            self.before.zip(measured).and_then(|(before, now)| now.refutes(before))
        {
            self.usual = self.now;
            (self.lowered, self.before) = (0, None);
            self.fence.remove();
            return Some(Answer::Restore(before));
        }
        // Little's law says how many of the slots were of use; and who is turned away at once was
        // too many for those that ran.
        let useful = measured.map(|now| now.rate * latency);
        let crowd = Some(BELOW_CROWD * self.crowd).filter(|crowd| crowd.is_finite());
        let useful = [useful, crowd].into_iter().flatten().reduce(f32::min);
        let next = match (useful, self.before) {
            (Some(useful), _) if self.lowered == 0 => {
                useful.clamp(CONVINCING * level, LEAST_STEP * level)
            }
            (_, Some(before)) => (CONVINCING * before.level).min(BLIND_STEP * level),
            _ => BLIND_STEP * level,
        };
        if self.before.is_none_or(|before| before.level < level) {
            self.before = measured;
        }
        let fence = if self.lowered == 0 { next.max(crowd.unwrap_or(0.0)) } else { next };
        self.fence.set(fence, level, crowd.is_some());
        self.lowered += 1;
        Some(Answer::Lower(next.max(1.0)))
    }

    /// Whether most of those that were refused were told that it is too much: that leaves no doubt.
    fn is_said(&self) -> bool {
        2.0 * self.said > self.now.refused
    }

    /// From now on the limit is `level`.
    pub fn changed(&mut self, level: f32, now: u64) {
        self.yields.changed(level, now);
    }

    /// What was started before `now` does not count any more.
    pub fn forget(&mut self, now: u64) {
        self.since = now;
        (self.now, self.refused_ns) = (Tally::default(), 0.0);
        (self.crowd, self.said) = (f32::INFINITY, 0.0);
    }

    /// A round was judged.
    pub fn judged(&mut self, now: u64) {
        if self.lowered == 0 {
            // So much of it goes into what is usual that each item is counted once in all.
            let memory = (USUAL / (self.usual.items + 1.0)).min(1.0);
            self.usual.fade(memory);
            self.usual.add(self.now, 1.0 - MEMORY);
        } else if self.now.failed(self.fatal) + 1.0 < (self.usual() + TOLERATED) * self.now.items {
            self.lowered = 0;
        }
        self.now.fade(MEMORY);
        self.refused_ns *= MEMORY;
        self.said *= MEMORY;
        self.yields.fade(MEMORY, now);
        if self.lowered == 0 {
            self.fence.judged(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: u64 = 1_000;

    /// For so many latencies `slots` items at a time are started, of which as many as `room` are
    /// completed and the others refused; and `dead` of a hundred are refused anyway.
    fn run(
        trouble: &mut Trouble,
        now: &mut u64,
        (slots, room, dead): (u64, u64, u64),
        latencies: u64,
    ) -> Option<Answer> {
        for _ in 0..latencies {
            *now += LATENCY;
            for number in 0..slots {
                trouble.started();
                // The dead are spread evenly: 61 and 100 have no divisor in common.
                if number < room && (*now / LATENCY * 7 + number) * 61 % 100 >= dead {
                    trouble.completed(LATENCY as f32);
                } else if let Some(answer) = trouble.refused(*now, LATENCY as f32, *now) {
                    return Some(answer);
                }
            }
        }
        None
    }

    #[test]
    fn a_few_failures_are_no_trouble() {
        let (mut trouble, mut now) = (Trouble::new(100.0, 0), 0);
        assert_eq!(run(&mut trouble, &mut now, (100, 1_000, 3), 50), None);
        assert!(trouble.fence().is_infinite());
    }

    #[test]
    fn failures_beyond_a_level_lower_the_limit_and_fence_it_off() {
        let (mut trouble, mut now) = (Trouble::new(100.0, 0), 0);
        let answer = run(&mut trouble, &mut now, (100, 50, 0), 50);
        assert!(matches!(answer, Some(Answer::Lower(level)) if level < 100.0), "{answer:?}");
        assert!((trouble.fence() - 95.0).abs() < 0.1);
    }

    #[test]
    fn a_share_of_failures_that_was_there_at_a_lower_level_is_usual() {
        let (mut trouble, mut now) = (Trouble::new(20.0, 0), 0);
        for _ in 0..20 {
            // What is not yet known to be usual is no more than chance at first.
            assert_eq!(run(&mut trouble, &mut now, (20, 1_000, 12), 1), None);
            trouble.judged(now);
        }
        assert!((trouble.usual() - 0.12).abs() < 0.05, "{}", trouble.usual());
        trouble.changed(200.0, now);
        assert_eq!(run(&mut trouble, &mut now, (200, 1_000, 12), 20), None);
    }

    #[test]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a level is a small number above zero"
    )]
    fn if_less_is_completed_with_a_lower_limit_it_was_not_the_limit() {
        let (mut trouble, mut now) = (Trouble::new(100.0, 0), 0);
        // The first rounds of a run were without failures.
        for _ in 0..3 {
            run(&mut trouble, &mut now, (100, 1_000, 0), 1);
            trouble.judged(now);
        }
        let mut level = 100;
        for _ in 0..10 {
            match run(&mut trouble, &mut now, (level, 1_000, 40), 20) {
                Some(Answer::Lower(lower)) => {
                    trouble.changed(lower, now);
                    trouble.forget(now);
                    level = lower as u64;
                }
                Some(Answer::Restore(restored)) => {
                    assert!((restored - 100.0).abs() < 0.1, "{restored}");
                    assert!((trouble.usual() - 0.4).abs() < 0.1, "{}", trouble.usual());
                    return;
                }
                None => panic!("two of five fail"),
            }
        }
        panic!("the limit is {level}");
    }

    #[test]
    fn what_was_started_before_the_limit_was_lowered_does_not_count() {
        let mut trouble = Trouble::new(100.0, 0);
        trouble.forget(7);
        for now in 7..1_000 {
            assert_eq!(trouble.refused(6, 1.0, now), None);
        }
    }

    #[test]
    fn hosts_that_hung_from_the_beginning_are_usual_when_they_time_out() {
        let mut trouble = Trouble::new(100.0, 0);
        for now in 0..100 {
            (0..100).for_each(|_| trouble.started());
            trouble.hang(now, 20);
            trouble.judged(now);
        }
        for now in 100..200 {
            (0..100).for_each(|_| trouble.started());
            trouble.hang(now, 20);
            (0..20).for_each(|_| assert_eq!(trouble.hung(true, now), None));
            trouble.judged(now);
        }
        assert!((trouble.usual() - 0.2).abs() < 0.05, "{}", trouble.usual());
    }

    #[test]
    fn if_more_hang_and_time_out_than_before_the_limit_is_lowered() {
        let mut trouble = Trouble::new(100.0, 0);
        for now in 0..100 {
            (0..100).for_each(|_| trouble.started());
            trouble.hang(now, 5);
            assert_eq!(trouble.hung(true, now), None);
            trouble.judged(now);
        }
        (0..100).for_each(|_| trouble.started());
        trouble.hang(100, 60);
        assert!(matches!(trouble.hung(true, 100), Some(Answer::Lower(_))));
    }

    #[test]
    fn eight_that_hung_say_whether_those_who_hang_fail_in_the_end() {
        let mut trouble = Trouble::new(100.0, 0);
        for now in 0..8 {
            trouble.hung(true, now);
        }
        // All but 1/e.
        assert!((trouble.fatal - 0.656).abs() < 1e-3, "{}", trouble.fatal);
    }
}
