//! What day it was: from the clock of every time in a trace to the one on the wall.

use chrono::{DateTime, SecondsFormat};

/// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`, as read at one moment of a trace. A
/// clock that was set later does not change what earlier and later times mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    ahead_ns: i128,
}

impl WallClock {
    /// The two clocks at one moment, in nanoseconds.
    pub fn new(monotonic_ns: u64, realtime_ns: u64) -> Self {
        Self { ahead_ns: i128::from(realtime_ns) - i128::from(monotonic_ns) }
    }

    /// Nanoseconds since 1970 (UTC) at this time of `CLOCK_MONOTONIC`; negative before 1970.
    pub fn unix_ns(self, monotonic_ns: u64) -> i128 {
        i128::from(monotonic_ns) + self.ahead_ns
    }

    /// This time of `CLOCK_MONOTONIC` in ISO 8601: UTC, with milliseconds. `None` beyond the year
    /// 262,000, which only a corrupt trace contains.
    pub fn iso(self, monotonic_ns: u64) -> Option<String> {
        let ns = self.unix_ns(monotonic_ns);
        let seconds = i64::try_from(ns.div_euclid(1_000_000_000)).ok()?;
        let rest = u32::try_from(ns.rem_euclid(1_000_000_000)).ok()?;
        let time = DateTime::from_timestamp(seconds, rest)?;
        Some(time.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_in_utc_with_milliseconds() {
        let clock = WallClock::new(5_000_000_000, 1_000_000_000_250_000_000);
        let said = [5_000_000_000, 6_500_000_000, 0].map(|ns| clock.iso(ns).unwrap());
        assert_eq!(
            said,
            ["2001-09-09T01:46:40.250Z", "2001-09-09T01:46:41.750Z", "2001-09-09T01:46:35.250Z"]
        );
    }

    #[test]
    fn a_time_in_no_calendar_has_no_name() {
        assert_eq!(
            WallClock::new(0, u64::MAX).iso(u64::MAX),
            Some("3139-02-09T23:09:07.419Z".into())
        );
        assert_eq!(WallClock { ahead_ns: i128::from(u64::MAX) << 20 }.iso(0), None);
    }
}
