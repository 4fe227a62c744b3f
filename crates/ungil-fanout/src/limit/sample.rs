//! What a limit is told of an attempt at an item.

/// Given out for each start, to be given back with its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// The round that it was started in.
    pub(super) round: u32,
    /// Whether its latency counts in that round.
    pub(super) is_member: bool,
    /// Those that it was started with, see [`overtaken`](super::overtaken).
    pub(super) cohort: u32,
    /// How many ran then, itself included.
    pub(super) crowd: u32,
}

/// How an attempt at an item ended, as far as a limit is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a value.
    Completed,
    /// With an error that has nothing to do with load.
    Failed,
    /// With an error that may come from load: a timeout, a refused or reset connection, no file
    /// descriptor left, "too many requests".
    Overloaded,
}

/// The end of an attempt. Times are nanoseconds of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What [`Adaptive::started`](super::Adaptive::started) has returned.
    pub ticket: Ticket,
    /// When it started.
    pub started: u64,
    /// When it ended.
    pub finished: u64,
    /// Processor time that the process has used so far, as of any recent moment; zero if unknown.
    pub cpu_so_far: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// After how long whoever has turned it away wants to be asked again, ns; zero if unknown.
    pub asked: u64,
    /// The host, site or service that it went to.
    pub group: Option<u64>,
}
