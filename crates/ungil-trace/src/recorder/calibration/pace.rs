//! How fast the clock goes, seen from the counter, and how far it bends between two knots.
//!
//! The kernel changes its pace once a second at most (`second_overflow` in `kernel/time/ntp.c`),
//! and here slopes are compared over stretches of 10 ms or somewhat more. If it changed in one
//! stretch but not in its neighbour, the difference of their slopes is at least the part of the
//! change that came after it, so the clock was off by no more than that difference times the
//! stretch. Where there is no such neighbour, because the recorder did not run for long or has just
//! begun, the pace may have changed by as much as NTP may ask for.

use ungil_core::tick::Tick;

/// Slopes are compared over stretches of at least this long: over shorter ones the inexactness of
/// the readings would be all that is seen.
const STRETCH_NS: u64 = 10_000_000;
/// In less than that the kernel changes the pace of its clock once at most, with a neighbour's.
const PACE_NS: u64 = 500_000_000;
/// No stretch is faster or slower than usual by more than this part, but for one in which the
/// computer was suspended: the kernel refuses more (`timekeeping_check_update`).
const CREDIBLE: f64 = 0.125;
/// What a stretch counts in the mean of them.
const WEIGHT: f64 = 1.0 / 16.0;
/// By how much NTP makes the clock faster or slower at most (`MAXFREQ` in `include/linux/timex.h`).
const MOST_SLEW: f64 = 500e-6;

/// What both clocks said at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Knot {
    /// The processor's counter.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`.
    pub ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    ticks: u64,
    ns: u64,
}

/// The pace of the clock so far.
#[derive(Debug)]
pub struct Pace {
    /// The farthest that the clock may have been from a straight line.
    bend_ns: u64,
    /// The same of a stretch that has had no neighbour yet.
    lonely_bend_ns: u64,
    /// Where the stretch begins that is not over.
    stretch_from: Knot,
    /// The one before it.
    stretch: Option<Stretch>,
    /// How long a tick is, in ns: a mean of the latest stretches.
    tick_ns: Option<f64>,
}

impl Pace {
    /// Knows where the clock begins.
    pub fn new(knot: Knot) -> Self {
        Self { bend_ns: 0, lonely_bend_ns: 0, stretch_from: knot, stretch: None, tick_ns: None }
    }

    /// The clock has come to `knot`, where the stretch ends if it is long enough.
    pub fn goes_on(&mut self, knot: Knot) {
        let now = Stretch::between(self.stretch_from, knot);
        if now.ns < STRETCH_NS {
            return;
        }
        self.stretch_from = knot;
        if let Some(before) = self.stretch.replace(now) {
            let bend_ns = now.bend_ns(Some(before)).max(before.bend_ns(Some(now)));
            self.bend_ns = self.bend_ns.max(bend_ns);
            self.lonely_bend_ns = 0;
        } else {
            self.lonely_bend_ns = now.bend_ns(None);
        }
        let tick_ns = self.tick_ns.get_or_insert(now.slope());
        // Beyond that it was not NTP: the computer was suspended.
        if (now.slope() / *tick_ns - 1.0).abs() < CREDIBLE {
            *tick_ns += (now.slope() - *tick_ns) * WEIGHT;
        }
    }

    /// The counter began anew between these two.
    pub fn begins_anew(&mut self, last: Knot, knot: Knot) {
        self.bend_ns = self.bend_ns.max(knot.ns - last.ns);
        (self.stretch_from, self.stretch) = (knot, None);
        self.lonely_bend_ns = 0;
    }

    /// How long a tick is, `None` if it is too early to say.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    pub fn tick(&self) -> Option<Tick> {
        self.tick_ns.map(|ns| Tick::from_fraction((ns * 2f64.powi(32)).round() as u64))
    }

    /// How far the clock may have been from a straight line between two knots, of which `last` is
    /// the last one so far.
    pub fn bend_ns(&self, last: Knot) -> u64 {
        let unfinished = Stretch::between(self.stretch_from, last);
        unfinished.bend_ns(self.stretch).max(self.lonely_bend_ns).max(self.bend_ns)
    }
}

impl Stretch {
    fn between(from: Knot, to: Knot) -> Self {
        Self { ticks: to.ticks.wrapping_sub(from.ticks), ns: to.ns - from.ns }
    }

    /// Nanoseconds for each tick.
    fn slope(self) -> f64 {
        self.ns as f64 / self.ticks as f64
    }

    /// How far the clock may have been from a straight line in it.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
    fn bend_ns(self, neighbour: Option<Self>) -> u64 {
        if self.ticks == 0 {
            return 0;
        }
        let mut bend_ns = neighbour
            .map_or(0.0, |neighbour| (self.slope() - neighbour.slope()).abs() * self.ticks as f64);
        if neighbour.is_none() || self.ns > PACE_NS {
            bend_ns += self.ns as f64 * MOST_SLEW;
        }
        // The clock does not go back, so nothing is further off than both ends are apart.
        (bend_ns.ceil() as u64).min(self.ns)
    }
}
