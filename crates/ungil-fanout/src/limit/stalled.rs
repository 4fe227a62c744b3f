//! Nothing has ended for long: whatever runs may hang for good, and others must not wait for it.

use super::{Adaptive, Release, whole, whole_ns};

/// After how long without an end more are started, at least, ns: a person would not wait for longer.
const STALLED_NS: u64 = 2_000_000_000;

/// And after how many times as long as an item takes.
const PATIENCE: f32 = 8.0;

/// The factor by which the limit grows then.
const GROWTH: f32 = 1.25;

/// The same as long as nothing has ended at all, and so nothing is known that speaks against it.
const GROWTH_IN_THE_DARK: f32 = 2.0;

/// The patience doubles each time, but not more often than this: by then it is weeks.
const MOST_DOUBLED: u32 = 20;

/// How long nothing has ended.
#[derive(Debug)]
pub(super) struct Stalled {
    /// When an item ended last.
    pub last_end: u64,
    /// How often more were started since.
    times: u32,
}

impl Stalled {
    pub fn new(now: u64) -> Self {
        Self { last_end: now, times: 0 }
    }

    /// An item has ended.
    pub fn ended(&mut self, now: u64) {
        *self = Self::new(now);
    }
}

impl Adaptive {
    /// When more are started if nothing ends until then.
    pub(super) fn stalled_at(&self) -> u64 {
        let wait = self.search.latency_ns().unwrap_or(0.0);
        let patience = STALLED_NS.max(whole_ns(PATIENCE * wait));
        let doubled = self.stalled.times.min(MOST_DOUBLED);
        self.stalled.last_end.saturating_add(patience.saturating_mul(1 << doubled))
    }

    /// Has more started.
    pub(super) fn goes_on_without_an_end(&mut self, now: u64) {
        self.stalled.times += 1;
        let growth = if self.story.finished == 0 { GROWTH_IN_THE_DARK } else { GROWTH };
        self.opening = None;
        let limit = whole(self.slots.open as f32 * growth, self.ceiling);
        self.slots = Release::at(limit.max(self.slots.open + 1).min(self.ceiling));
        self.story.highest = self.story.highest.max(self.slots.open);
        self.next_round(None, now);
    }
}
