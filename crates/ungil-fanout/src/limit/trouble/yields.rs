//! What a level yields: how much is completed while it holds.

/// A level that is less than this away, as a logarithm, is the same level.
const SAME_LEVEL: f32 = 0.1;

/// A level that is lower than this share of another shows whether as much is completed as there.
const TELLING: f32 = 0.5;

/// A level and how much was completed at it, items a nanosecond.
#[derive(Clone, Copy, Debug)]
pub(super) struct Yield {
    pub level: f32,
    pub rate: f32,
}

impl Yield {
    /// The level `before`, if this lower one shows that it was not too much for whoever failed: then
    /// as much would be completed as there, and not as much less as the level is lower.
    pub fn refutes(self, before: Self) -> Option<f32> {
        let (level, rate) = (self.level / before.level, self.rate / before.rate);
        (level < TELLING && rate < level.sqrt()).then_some(before.level)
    }
}

/// What was completed since the level has been about what it is.
#[derive(Debug)]
pub(super) struct Yields {
    pub level: f32,
    begun: u64,
    completed: f32,
    completed_ns: f32,
}

impl Yields {
    pub fn new(level: f32, now: u64) -> Self {
        Self { level, begun: now, completed: 0.0, completed_ns: 0.0 }
    }

    /// From now on the limit is `level`.
    pub fn changed(&mut self, level: f32, now: u64) {
        if (level / self.level).ln().abs() > SAME_LEVEL {
            *self = Self::new(level, now);
        }
    }

    pub fn completed(&mut self, latency_ns: f32) {
        self.completed += 1.0;
        self.completed_ns += latency_ns;
    }

    /// How long an item takes that is completed, ns.
    pub fn latency_ns(&self) -> Option<f32> {
        (self.completed > 0.0).then(|| self.completed_ns / self.completed)
    }

    /// For how long the level has been what it is, ns.
    pub fn elapsed_ns(&self, now: u64) -> f32 {
        now.saturating_sub(self.begun) as f32
    }

    /// What the level yields, if anything was completed.
    pub fn measured(&self, now: u64) -> Option<Yield> {
        let rate = self.completed / self.elapsed_ns(now);
        (self.completed > 0.0).then_some(Yield { level: self.level, rate })
    }

    /// From now on what was completed so far counts as little.
    pub fn fade(&mut self, memory: f32, now: u64) {
        self.completed *= memory;
        self.completed_ns *= memory;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "less than the time that has gone by"
        )]
        let kept = (self.elapsed_ns(now) * memory) as u64;
        self.begun = now.saturating_sub(kept);
    }
}
