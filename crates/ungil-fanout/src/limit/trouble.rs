//! Items that were turned away: is it the limit, or are these hosts dead?
//!
//! A share of failures that was there at lower levels, too, is usual. If there are more the limit is
//! lowered. With a lower limit a service that was overloaded completes as much as before, and fewer
//! items fail. Hosts that are dead stay dead, and just as much less is completed: then the limit goes
//! back, and this share of failures is usual from then on.

/// The share of failures above the usual one that is not worth a reaction.
const TOLERATED: f32 = 0.05;

/// The step down by which it shows whether it is the limit.
const CONVINCING: f32 = 0.4;

/// How much of what was counted is still counted a round later.
const MEMORY: f32 = 0.7;

/// What is usual is made of about as many items.
const USUAL: f32 = 1000.0;

/// Of how many of the latest items it is known whether those that hang fail in the end.
const FATAL: f32 = 8.0;

/// For how many times as long as it takes until a service wants to be asked again a level is avoided
/// at which it has turned items away.
const ASKED: u64 = 8;

/// Rounds for which the level of the last trouble is not tried again, at first and at most.
const PATIENCE: (u32, u32) = (8, 128);

/// What to do about failures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    /// Go down to this level.
    Lower(f32),
    /// It was not the limit: go back to this level.
    Restore(f32),
}

/// A level and how much was completed at it, items a nanosecond.
#[derive(Clone, Copy, Debug)]
struct Yield {
    level: f32,
    rate: f32,
}

/// Items, how many of them were refused soon, and how many hang.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    items: f32,
    refused: f32,
    hanging: f32,
}

impl Tally {
    /// How many have failed, if of those that hang a share of `fatal` does.
    fn failed(self, fatal: f32) -> f32 {
        (self.refused + fatal * self.hanging).min(self.items)
    }

    /// From now on this counts as little.
    fn fade(&mut self, memory: f32) {
        self.items *= memory;
        self.refused *= memory;
        self.hanging *= memory;
    }

    fn add(&mut self, other: Self, share: f32) {
        self.items += share * other.items;
        self.refused += share * other.refused;
        self.hanging += share * other.hanging;
    }
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
    /// Since when the level has been about what it is, and what was completed.
    begun: u64,
    level: f32,
    completed: f32,
    completed_ns: f32,
    /// The highest level of this series of failures whose yield was measured.
    before: Option<Yield>,
    /// How often the limit was lowered without a quiet round after it.
    lowered: u32,
    /// The level to stay below, for so many rounds, and for how many the next time.
    fence: f32,
    fenced: u32,
    patience: u32,
    /// Whether it is known to a few items, as others were turned away at once.
    is_sharp: bool,
    /// Until when whoever refuses does not want to be tried.
    asked_until: u64,
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
            begun: now,
            level,
            completed: 0.0,
            completed_ns: 0.0,
            before: None,
            lowered: 0,
            fence: f32::INFINITY,
            fenced: 0,
            patience: PATIENCE.0,
            is_sharp: false,
            asked_until: 0,
        }
    }

    /// The level to stay below.
    pub fn fence(&self) -> f32 {
        self.fence
    }

    /// The share of items that fail whatever the limit.
    pub fn usual(&self) -> f32 {
        self.usual.failed(self.fatal) / self.usual.items.max(1.0)
    }

    pub fn started(&mut self) {
        self.now.items += 1.0;
    }

    pub fn completed(&mut self, latency_ns: f32) {
        self.completed += 1.0;
        self.completed_ns += latency_ns;
    }

    /// An item was turned away that had been started then, while `crowd` ran.
    pub fn refused(&mut self, started: u64, crowd: f32, now: u64) -> Option<Answer> {
        if started < self.since {
            // It was started before the limit was lowered.
            return None;
        }
        self.now.refused += 1.0;
        self.refused_ns += now.saturating_sub(started) as f32;
        if crowd > self.level / 2.0 {
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
        let until = now.saturating_add(after.saturating_mul(ASKED));
        self.asked_until = self.asked_until.max(until);
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
        if self.now.failed(self.fatal) <= self.tolerable() {
            return None;
        }
        let latency = if self.completed > 0.0 {
            self.completed_ns / self.completed
        } else {
            self.refused_ns / self.now.refused.max(1.0)
        };
        // A level gets the time to show what it yields.
        let elapsed = now.saturating_sub(self.begun) as f32;
        if self.lowered > 0 && elapsed < 2.0 * latency {
            return None;
        }
        let measured = (elapsed >= latency && self.completed > 0.0)
            .then(|| Yield { level: self.level, rate: self.completed / elapsed });
        let lower = self
            .before
            .zip(measured)
            .map(|(before, now)| (now.level / before.level, now.rate / before.rate, before.level));
        match lower {
            Some((level, rate, before)) if level < 0.5 && rate < level.sqrt() => {
                self.usual = self.now;
                (self.lowered, self.before, self.fence) = (0, None, f32::INFINITY);
                return Some(Answer::Restore(before));
            }
            _ => (),
        }
        // Little's law says how many of the slots were of use; and who is turned away at once was
        // too many for those that ran.
        let useful = measured.map(|now| now.rate * latency);
        let crowd = Some(0.95 * self.crowd).filter(|crowd| crowd.is_finite());
        let useful = [useful, crowd].into_iter().flatten().reduce(f32::min);
        let next = match (useful, self.before) {
            (Some(useful), _) if self.lowered == 0 => {
                useful.clamp(CONVINCING * self.level, 0.9 * self.level)
            }
            (_, Some(before)) => (CONVINCING * before.level).min(0.7 * self.level),
            _ => 0.7 * self.level,
        };
        if self.before.is_none_or(|before| before.level < self.level) {
            self.before = measured;
        }
        if self.level < self.fence * 1.3 {
            self.patience = (self.patience * 2).min(PATIENCE.1);
        }
        self.is_sharp = crowd.is_some();
        let fence = if self.lowered == 0 { next.max(crowd.unwrap_or(0.0)) } else { next };
        (self.fence, self.fenced) = (fence.clamp(1.0, (self.level * 0.95).max(1.0)), self.patience);
        self.lowered += 1;
        Some(Answer::Lower(next.max(1.0)))
    }

    /// How many failures of the items of late are no trouble.
    fn tolerable(&self) -> f32 {
        let items = self.now.items;
        // By chance, both now and in what is taken as usual (three times the standard error: there
        // is a look at each failure).
        let unknown = if self.is_said() { 0.1 } else { 1.0 };
        let share = (self.usual.failed(self.fatal) + unknown) / (self.usual.items + 10.0);
        let chance = (share * items * (1.0 + items / self.usual.items.max(10.0))).sqrt();
        let tolerated = if self.is_said() { TOLERATED / 5.0 } else { TOLERATED };
        (self.usual() + tolerated) * items + 2.5 + 3.0 * chance
    }

    /// Whether most of those that were refused were told that it is too much: that leaves no doubt.
    fn is_said(&self) -> bool {
        2.0 * self.said > self.now.refused
    }

    /// From now on the limit is `level`.
    pub fn changed(&mut self, level: f32, now: u64) {
        if (level / self.level).ln().abs() > 0.1 {
            (self.begun, self.level) = (now, level);
            (self.completed, self.completed_ns) = (0.0, 0.0);
        }
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
            // A fifth of it goes into what is usual, as it is seen in about five rounds.
            let memory = (USUAL / (self.usual.items + 1.0)).min(1.0);
            self.usual.fade(memory);
            self.usual.add(self.now, 1.0 - MEMORY);
        } else if self.now.failed(self.fatal) + 1.0 < (self.usual() + TOLERATED) * self.now.items {
            self.lowered = 0;
        }
        self.now.fade(MEMORY);
        self.refused_ns *= MEMORY;
        self.said *= MEMORY;
        self.completed *= MEMORY;
        self.completed_ns *= MEMORY;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "less than the time that has gone by"
        )]
        let kept = (now.saturating_sub(self.begun) as f32 * MEMORY) as u64;
        self.begun = now.saturating_sub(kept);
        if self.fence.is_finite() && self.lowered == 0 && now >= self.asked_until {
            self.fenced = self.fenced.saturating_sub(1);
            if self.fenced == 0 {
                // A little higher, and if that goes well, again soon.
                self.fence *= if self.is_sharp { 1.05 } else { 1.15 };
                self.patience = (self.patience / 2).max(PATIENCE.0);
                self.fenced = self.patience;
            }
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
}
