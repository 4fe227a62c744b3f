//! How often the recorder does what: a recording of minutes is exact to the millisecond, one that
//! runs for days takes less of a processor.

use std::time::Duration;

/// How often is read, watched, and looked.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two rounds, as long as no ring fills up.
    pub round: Duration,
    /// Between two rounds while a long hold may be about to make a thread wait.
    pub watch: Duration,
    /// Between two searches for new processes: their rings hold what they do meanwhile.
    pub discover_ns: u64,
    /// Between two looks at all threads of a process. A gap is long if one look finds it that an
    /// earlier one found, too.
    #[cfg_attr(not(feature = "stacks"), expect(dead_code, reason = "nothing is looked at"))]
    pub look_ns: u64,
    /// The part of a processor's time that reading the stacks of all threads may take is one in this.
    #[cfg_attr(not(feature = "stacks"), expect(dead_code, reason = "nothing is looked at"))]
    pub look_cost: u64,
}

/// For a recording of seconds or minutes.
pub const MINUTES: Pace = Pace {
    round: Duration::from_millis(5),
    watch: Duration::from_millis(1),
    discover_ns: 20_000_000,
    look_ns: 50_000_000,
    look_cost: 50,
};

/// For days.
pub const DAYS: Pace = Pace {
    round: Duration::from_millis(10),
    watch: Duration::from_millis(5),
    discover_ns: 100_000_000,
    look_ns: 500_000_000,
    look_cost: 1_000,
};
