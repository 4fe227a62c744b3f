//! The times in tables, as nanoseconds of `CLOCK_MONOTONIC`.

use super::calibration::Calibration;
use crate::clock::{self, Reading};
use std::thread;
use std::time::Duration;
use ungil_core::tick::{Clock, Tick};

/// The length of a tick that a process begins with is right to one part in so many.
const EXACT_TO: u64 = 40_000;
/// Between two looks at the clocks while it is not: it takes one or two milliseconds.
const PAUSE: Duration = Duration::from_micros(500);

/// How long a tick of the counter is; `beginning` was read some time ago.
pub fn tick_since(beginning: Reading) -> Option<Tick> {
    loop {
        let now = clock::read_both_at_once();
        let ticks = now.ticks.wrapping_sub(beginning.ticks);
        // Each time was read at most half of its reading's width before or after.
        if u64::midpoint(beginning.width_ticks, now.width_ticks) <= ticks / EXACT_TO {
            return Tick::measured(ticks, now.ns - beginning.ns);
        }
        thread::sleep(PAUSE);
    }
}

/// Turns the times in tables into nanoseconds.
#[derive(Debug)]
pub struct Times {
    /// `None` if all times are of `CLOCK_MONOTONIC` itself.
    counter: Option<Calibration>,
}

impl Times {
    /// Of the counter as well, if both clocks were read at the beginning.
    pub fn new(beginning: Option<Reading>) -> Self {
        Self { counter: beginning.map(Calibration::new) }
    }

    /// Whether times of that clock can be told.
    pub fn know(&self, clock: Clock) -> bool {
        clock == Clock::Monotonic || self.counter.is_some()
    }

    /// Reads both clocks, which is to be done once in every round: the more often, the more exact.
    pub fn read(&mut self) {
        if let Some(counter) = &mut self.counter {
            counter.add(clock::read_both_at_once());
        }
    }

    /// When it was `ticks` by that clock.
    #[inline]
    pub fn ns(&mut self, clock: Clock, ticks: u64) -> u64 {
        match (clock, &mut self.counter) {
            (Clock::Counter, Some(counter)) => {
                // A moment since the last reading; a foreign table may also name one to come.
                if !counter.covers(ticks) {
                    counter.add(clock::read_both_at_once());
                }
                counter.ns(ticks)
            }
            _ => ticks,
        }
    }

    /// How long a tick of the counter is.
    pub fn tick(&self) -> Option<Tick> {
        self.counter.as_ref().and_then(Calibration::tick)
    }

    /// How far the times of a clock may be from `CLOCK_MONOTONIC`, 0 if they are its own.
    pub fn error_ns(&self, clock: Clock) -> u64 {
        match (clock, &self.counter) {
            (Clock::Counter, Some(counter)) => counter.error_ns(),
            _ => 0,
        }
    }

    /// A sentence about the counter, if the kernel has stopped using it since the beginning.
    pub fn complaint(&self) -> Option<String> {
        if self.counter.is_none() || clock::counter_is_trusted() {
            return None;
        }
        Some(format!(
            "during the recording the kernel stopped trusting the processor's counter and \
             switched to {}, so times may be wrong; UNGIL_CLOCK=monotonic records with the \
             kernel's own clock",
            clock::clock_source()
        ))
    }
}
