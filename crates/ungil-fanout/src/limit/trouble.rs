//! Items that were turned away: is it the limit, or are these hosts dead?
//!
//! With a lower limit a service that was overloaded completes as much as before. Hosts that are dead
//! are dead at any limit, and with a lower one just as much less is completed. So the limit goes
//! down, and if the completions go down with it, it goes back and this share of failures is usual.

/// The share of failures above the usual one that is not worth a reaction.
const TOLERATED: f32 = 0.05;

/// How far the limit has to go down before it may be said that it was not the limit.
const CONVINCING: f32 = 0.45;

/// How much of what was counted is still counted a round later.
const MEMORY: f32 = 0.7;

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

/// The failures of late, and what the level of late has yielded.
#[derive(Debug)]
pub(super) struct Trouble {
    /// The share of items that fail whatever the limit.
    usual: f32,
    /// The first round whose items count.
    since: u32,
    started: f32,
    refused: f32,
    refused_ns: f32,
    /// Since when the level has been about what it is, and what was completed.
    begun: u64,
    level: f32,
    completed: f32,
    completed_ns: f32,
    /// The highest level of this series of failures whose yield was measured.
    before: Option<Yield>,
    /// Whether the limit was lowered and no quiet round has followed.
    lowered: bool,
    /// The level to stay below, for so many rounds, and for how many the next time.
    fence: f32,
    fenced: u32,
    patience: u32,
}

impl Trouble {
    pub fn new(level: f32, now: u64) -> Self {
        Self {
            usual: 0.0,
            since: 0,
            started: 0.0,
            refused: 0.0,
            refused_ns: 0.0,
            begun: now,
            level,
            completed: 0.0,
            completed_ns: 0.0,
            before: None,
            lowered: false,
            fence: f32::INFINITY,
            fenced: 0,
            patience: PATIENCE.0,
        }
    }

    /// The level to stay below.
    pub fn fence(&self) -> f32 {
        self.fence
    }

    /// The share of items that fail whatever the limit.
    pub fn usual(&self) -> f32 {
        self.usual
    }

    pub fn started(&mut self) {
        self.started += 1.0;
    }

    pub fn completed(&mut self, latency_ns: f32) {
        self.completed += 1.0;
        self.completed_ns += latency_ns;
    }

    /// An item that was started in `round` was turned away after `latency_ns`.
    pub fn refused(&mut self, round: u32, latency_ns: f32, now: u64) -> Option<Answer> {
        if round < self.since {
            // It was started before the limit was lowered.
            return None;
        }
        self.refused += 1.0;
        self.refused_ns += latency_ns;
        let by_chance = 2.5 + 2.0 * (self.usual * self.started).sqrt();
        if self.refused <= (self.usual + TOLERATED) * self.started + by_chance {
            return None;
        }
        let latency = if self.completed > 0.0 {
            self.completed_ns / self.completed
        } else {
            self.refused_ns / self.refused
        };
        // A level gets the time to show what it yields.
        let elapsed = now.saturating_sub(self.begun) as f32;
        if self.lowered && elapsed < 2.0 * latency {
            return None;
        }
        let measured = (elapsed >= latency && self.completed > 0.0)
            .then(|| Yield { level: self.level, rate: self.completed / elapsed });
        if let (Some(before), Some(now)) = (self.before, measured) {
            let lower = now.level / before.level;
            if lower < CONVINCING && now.rate / before.rate < lower.sqrt() {
                self.usual = (self.refused / self.started).min(1.0);
                (self.lowered, self.before, self.fence) = (false, None, f32::INFINITY);
                return Some(Answer::Restore(before.level));
            }
        }
        // Little's law says how many of the slots were of use.
        let useful = measured.map(|now| now.rate * latency);
        let next = match useful {
            Some(useful) if !self.lowered => useful.clamp(0.3 * self.level, 0.9 * self.level),
            _ => 0.7 * self.level,
        };
        self.before = self.before.or(measured);
        if self.level < self.fence * 1.3 {
            self.patience = (self.patience * 2).min(PATIENCE.1);
        }
        (self.fence, self.fenced) = ((self.level * 0.95).max(1.0), self.patience);
        self.lowered = true;
        Some(Answer::Lower(next.max(1.0)))
    }

    /// From now on the limit is `level`.
    pub fn changed(&mut self, level: f32, now: u64) {
        if (level / self.level).ln().abs() > 0.1 {
            (self.begun, self.level) = (now, level);
            (self.completed, self.completed_ns) = (0.0, 0.0);
        }
    }

    /// What was started before `round` does not count any more.
    pub fn forget(&mut self, round: u32) {
        self.since = round;
        (self.started, self.refused, self.refused_ns) = (0.0, 0.0, 0.0);
    }

    /// A round was judged without trouble.
    pub fn quiet(&mut self, now: u64) {
        if self.started >= 20.0 {
            self.usual = self.usual.min(self.refused / self.started);
        }
        (self.lowered, self.before) = (false, None);
        self.started *= MEMORY;
        self.refused *= MEMORY;
        self.refused_ns *= MEMORY;
        self.completed *= MEMORY;
        self.completed_ns *= MEMORY;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "less than the time that has gone by"
        )]
        let kept = (now.saturating_sub(self.begun) as f32 * MEMORY) as u64;
        self.begun = now.saturating_sub(kept);
        if self.fence.is_finite() {
            self.fenced = self.fenced.saturating_sub(1);
            if self.fenced == 0 {
                // A little higher, and if that goes well, again soon.
                self.fence *= 1.15;
                self.patience = (self.patience / 2).max(PATIENCE.0);
                self.fenced = self.patience;
            }
        }
    }
}
