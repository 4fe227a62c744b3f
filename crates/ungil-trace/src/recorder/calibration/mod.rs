//! What `CLOCK_MONOTONIC` said when the processor's counter stood at a number.
//!
//! The kernel makes that clock from the counter, now a little faster and now a little slower, as
//! NTP asks it to. Both are read at one moment in every round, and between two such *knots* the
//! clock is taken to be a straight line. That makes one function of the counter for the whole
//! recording, which is continuous and never decreases: what was first by the counter is first by
//! the clock, whichever thread read it and whenever the recorder saw it.
//!
//! How far it can be from the truth: at a knot, half the time that reading both clocks took;
//! between two knots, what the clock bends there ([`Pace::bend_ns`]).

mod pace;
#[cfg(test)]
mod tests;

use crate::clock::Reading;
use pace::{Knot, Pace};
use std::collections::VecDeque;
use ungil_core::tick::Tick;

/// Knots that are remembered, beside the first one: 40 s at a round each 5 ms, and an event is as
/// old as that only if its thread was stopped in the middle of noting it. Before them the line
/// goes straight to the first one.
const KNOTS: usize = 8_192;

/// The function.
#[derive(Debug)]
pub struct Calibration {
    /// In the order of time; never empty.
    knots: VecDeque<Knot>,
    /// The widest of all readings.
    widest_ticks: u64,
    pace: Pace,
}

impl Calibration {
    /// Knows one moment.
    pub fn new(reading: Reading) -> Self {
        let knot = Knot { ticks: reading.ticks, ns: reading.ns };
        Self {
            knots: VecDeque::from([knot]),
            widest_ticks: reading.width_ticks,
            pace: Pace::new(knot),
        }
    }

    /// Knows a later moment as well.
    pub fn add(&mut self, reading: Reading) {
        let last = self.last();
        let knot = Knot { ticks: reading.ticks, ns: reading.ns.max(last.ns) };
        if knot.ticks == last.ticks {
            return;
        }
        self.widest_ticks = self.widest_ticks.max(reading.width_ticks);
        if is_after(knot.ticks, last.ticks) {
            if self.knots.len() > KNOTS {
                self.knots.remove(1);
            }
            self.knots.push_back(knot);
            self.pace.goes_on(knot);
        } else {
            // The counter began anew, as it does when a computer was suspended.
            self.pace.begins_anew(last, knot);
            self.knots.clear();
            self.knots.push_back(knot);
        }
    }

    /// Whether this moment is not after the last knot.
    pub fn covers(&self, ticks: u64) -> bool {
        !is_after(ticks, self.last().ticks)
    }

    /// When that was, in ns of `CLOCK_MONOTONIC`. Nothing happens before the first knot or after
    /// the last one.
    pub fn ns(&self, ticks: u64) -> u64 {
        // Most events are of the last round or the one before.
        let latest = self.knots.iter().rev().take(4).position(|knot| !is_after(knot.ticks, ticks));
        let after = match latest {
            Some(from_last) => self.knots.len() - from_last,
            None => self.knots.partition_point(|knot| !is_after(knot.ticks, ticks)),
        };
        let Some(from) = after.checked_sub(1).map(|index| self.knots[index]) else {
            return self.knots[0].ns;
        };
        let Some(to) = self.knots.get(after) else { return from.ns };
        let part = ticks.wrapping_sub(from.ticks);
        from.ns + proportion(part, to.ns - from.ns, to.ticks.wrapping_sub(from.ticks))
    }

    /// How long a tick is, `None` if it is too early to say.
    pub fn tick(&self) -> Option<Tick> {
        self.pace.tick()
    }

    /// How far a time may be from what the clock said.
    pub fn error_ns(&self) -> u64 {
        // Before it is known: no counter is slower than that.
        let tick = self.tick().unwrap_or(Tick::NANOSECOND);
        let width_ns = tick.ns(self.widest_ticks);
        // The clock itself was cut off to whole nanoseconds, and so is a time between two knots.
        let bend_ns = self.pace.bend_ns(self.last());
        width_ns.div_ceil(2).saturating_add(bend_ns).saturating_add(2)
    }

    fn last(&self) -> Knot {
        *self.knots.back().expect("there is always a knot")
    }
}

/// Whether `ticks` is after `other`; the counter may begin again at 0 between the two.
fn is_after(ticks: u64, other: u64) -> bool {
    ticks.wrapping_sub(other).cast_signed() > 0
}

/// `part / whole` of `ns`, cut off; `part` is not larger than `whole`.
fn proportion(part: u64, ns: u64, whole: u64) -> u64 {
    // Almost always, and much quicker.
    if let Some(product) = part.checked_mul(ns) {
        return product / whole;
    }
    let exact = u128::from(part) * u128::from(ns) / u128::from(whole);
    u64::try_from(exact).unwrap_or(ns)
}
