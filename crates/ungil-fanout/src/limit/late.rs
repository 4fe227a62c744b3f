//! A late event loop, or a late GIL: this process has more to do than it can.

use super::{Adaptive, Reason, whole_ns};

/// A loop that comes late by less than this is not late, ns.
const LATE_NS: u64 = 20_000_000;

/// How often in a row it has to be late: once may be anything, such as a collection of garbage.
const IN_A_ROW: u32 = 2;

/// How many times as many as would be in proportion may go on running: the loop is late by chance
/// as well.
const MORE: f32 = 1.2;

/// It is not lowered to less than this share at once: what made the loop late may be over.
const MOST_STEP: f32 = 0.5;

/// It is not lowered below this share of those that keep the processor busy: the processor would be
/// idle with fewer, so something else makes the loop late.
const BUSY: f32 = 0.5;

/// For so many times as long as an item takes now, lateness is no news after the limit was lowered:
/// until what was started before has ended, and as long again.
const SETTLED: u64 = 2;

/// How late the loop has been.
#[derive(Debug, Default)]
pub(super) struct Late {
    in_a_row: u32,
    /// Until when that is no news.
    no_news_until: u64,
}

impl Adaptive {
    /// The event loop came `lag` nanoseconds late, or a thread got the GIL so late.
    pub fn lagged(&mut self, now: u64, lag: u64) {
        let wait = self.wait_ns();
        if lag < LATE_NS || (lag as f32) < wait {
            self.late.in_a_row = 0;
            return;
        }
        self.late.in_a_row += 1;
        let limit = self.slots.wanted as f32;
        let mut lower = if self.story.finished == 0 {
            // Nothing is known but that the starts alone are too much.
            self.in_flight as f32
        } else if self.late.in_a_row < IN_A_ROW || now < self.late.no_news_until {
            return;
        } else {
            limit * (MORE * wait / (wait + lag as f32)).max(MOST_STEP)
        };
        if let Some(little) = self.little() {
            lower = lower.max(BUSY * little);
        }
        if lower < limit {
            self.late.no_news_until = now.saturating_add(SETTLED * (whole_ns(wait) + lag));
            self.opening = None;
            self.search.lowered();
            self.set(lower, Reason::Lag(lag), now);
            self.next_round(None, now);
        }
    }
}
