//! The unit of the times in a table.
//!
//! Reading `CLOCK_MONOTONIC` costs more than all the rest that a hooked call does, and the counter
//! of the processor, from which the kernel makes that clock, less than half of it. So where the
//! two are the same to the kernel, times are in ticks of the counter, and whoever reads them turns
//! them into nanoseconds.

/// Which clock the times in a table are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: a tick is a nanosecond.
    Monotonic = 0,
    /// The counter of the processor (x86: `rdtsc`), whatever its frequency and beginning.
    Counter = 1,
}

impl Clock {
    /// The clock with this number, if there is one.
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Monotonic,
            1 => Self::Counter,
            _ => return None,
        })
    }
}

/// How long a tick is.
///
/// Good for lengths. Moments need more, because the kernel makes its seconds a little longer or
/// shorter as NTP asks it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// In 2^-32 ns: of a counter of 5 GHz that is exact to one part in 850 million.
    fraction: u64,
}

impl Tick {
    /// That of `CLOCK_MONOTONIC`.
    pub const NANOSECOND: Self = Self { fraction: 1 << 32 };

    /// A tick of so many 2^-32 ns.
    pub const fn from_fraction(fraction: u64) -> Self {
        Self { fraction }
    }

    /// The tick of which `ticks` took `ns`, or `None` if there were none, or if it is too long
    /// for a counter.
    pub fn measured(ticks: u64, ns: u64) -> Option<Self> {
        let fraction = (u128::from(ns) << 32).checked_div(u128::from(ticks))?;
        u64::try_from(fraction).ok().map(Self::from_fraction)
    }

    /// Its length in 2^-32 ns.
    pub const fn fraction(self) -> u64 {
        self.fraction
    }

    /// How long so many ticks are, in ns: rounded to the nearest, at most `u64::MAX`.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the comparison before it")]
    pub const fn ns(self, ticks: u64) -> u64 {
        let product = self.fraction as u128 * ticks as u128 + (1 << 31);
        if product >> 96 == 0 { (product >> 32) as u64 } else { u64::MAX }
    }

    /// How many ticks take so many ns: rounded to the nearest, at most `u64::MAX`, which is also
    /// what it says if a tick takes no time.
    #[allow(clippy::cast_possible_truncation, reason = "the comparison before it")]
    pub const fn ticks(self, ns: u64) -> u64 {
        let half = (self.fraction / 2) as u128;
        match (((ns as u128) << 32) + half).checked_div(self.fraction as u128) {
            Some(ticks) if ticks >> 64 == 0 => ticks as u64,
            _ => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counters that processors have, in Hz.
    const FREQUENCIES: std::ops::RangeInclusive<u64> = 1_000_000_000..=5_000_000_000;

    proptest! {
        #[test]
        fn nanoseconds_are_their_own_number(ns: u64) {
            prop_assert_eq!(Tick::NANOSECOND.ns(ns), ns);
        }

        #[test]
        fn a_length_is_as_long_as_the_frequency_says(
            hertz in FREQUENCIES,
            ticks in 0u64..400_000_000_000_000_000,
        ) {
            let tick = Tick::measured(hertz, 1_000_000_000).unwrap();
            let exact = u128::from(ticks) * 1_000_000_000 / u128::from(hertz);
            // Half a nanosecond of rounding, and what the fraction cuts off.
            let allowed = 1 + exact / 800_000_000;
            prop_assert!(u128::from(tick.ns(ticks)).abs_diff(exact) <= allowed);
        }

        #[test]
        fn no_number_is_too_large(fraction: u64, ticks: u64) {
            let exact = (u128::from(fraction) * u128::from(ticks) + (1 << 31)) >> 32;
            let expected = u64::try_from(exact).unwrap_or(u64::MAX);
            prop_assert_eq!(Tick::from_fraction(fraction).ns(ticks), expected);
        }

        #[test]
        fn ticks_are_the_inverse_of_nanoseconds(fraction in 1u64.., ns: u64) {
            let tick = Tick::from_fraction(fraction);
            let ticks = tick.ticks(ns);
            // No other number of ticks is nearer to that length.
            let distance = |ticks: u64| {
                (u128::from(fraction) * u128::from(ticks)).abs_diff(u128::from(ns) << 32)
            };
            prop_assert!(distance(ticks) <= distance(ticks.saturating_sub(1)));
            prop_assert!(distance(ticks) <= distance(ticks.saturating_add(1)));
        }

        #[test]
        fn a_length_comes_back_to_the_nanosecond_from_a_counter(
            hertz in FREQUENCIES,
            ns in 0u64..40_000_000_000_000_000,
        ) {
            let tick = Tick::measured(hertz, 1_000_000_000).unwrap();
            prop_assert!(tick.ns(tick.ticks(ns)).abs_diff(ns) <= 1);
        }

        #[test]
        fn a_tick_survives_its_number(fraction: u64) {
            prop_assert_eq!(Tick::from_fraction(fraction).fraction(), fraction);
        }
    }

    #[test]
    fn no_ticks_have_no_length() {
        assert_eq!(Tick::measured(0, 1), None);
        assert_eq!(Tick::measured(1, u64::MAX), None, "it does not fit");
        assert_eq!(Tick::from_fraction(0).ticks(1), u64::MAX);
    }

    #[test]
    fn a_clock_survives_its_number() {
        for clock in [Clock::Monotonic, Clock::Counter] {
            assert_eq!(Clock::from_number(clock as u32), Some(clock));
        }
        assert_eq!(Clock::from_number(2), None);
    }
}
