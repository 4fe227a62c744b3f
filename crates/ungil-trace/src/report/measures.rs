//! What two runs are compared by: sums and percentiles of threads whose names are alike, in
//! processes whose command lines are.

use super::Report;
use serde::Serialize;

/// A run as `ungil diff` sees it.
#[derive(Clone, Debug, Serialize)]
pub struct Measures {
    /// The report of all of it.
    pub report: Report,
    /// All of it.
    pub whole: Stretch,
    /// Parts of equal length that follow one another, from the moment on at which a process first
    /// had two threads. Holds and waits that cross an edge are cut there.
    pub parts: Vec<Stretch>,
}

/// A part of a run, or all of it. `start_s` and `end_s` are seconds since the start of the trace.
#[derive(Clone, Debug, Serialize)]
pub struct Stretch {
    /// When it begins.
    pub start_s: f64,
    /// When it ends.
    pub end_s: f64,
    /// Processes with one command line are one entry.
    pub processes: Vec<ProcessMeasures>,
}

/// Processes with one command line, apart from the numbers in it.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessMeasures {
    /// The command line without folders, with `*` for each number; what they are told apart by.
    pub pattern: String,
    /// The command line of the first of them.
    pub argv: Vec<String>,
    /// Their process ids.
    pub pids: Vec<u32>,
    /// What they lived after their start-up, summed.
    pub busy_s: f64,
    /// Each GIL, by its number; those of one number are summed.
    pub gils: Vec<GilMeasures>,
}

/// The GILs of one number.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GilMeasures {
    /// Which; 0 is the main interpreter's.
    pub gil: u8,
    /// Time in which a thread held it, after the start-up.
    pub held_s: f64,
    /// Time in which a thread held it and another waited.
    pub contended_s: f64,
    /// Acquires by another thread than the holder before.
    pub handoffs: u64,
    /// Threads by their names.
    pub groups: Vec<GroupMeasures>,
}

/// Threads whose names are alike but for the numbers in them, summed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GroupMeasures {
    /// The name, with `*` for each number; `None` for threads that are not listed one by one.
    pub pattern: Option<String>,
    /// The name, if all of them have the same.
    pub name: Option<String>,
    /// How many.
    pub threads: u64,
    /// Time with the GIL, after the start-up.
    pub held_s: f64,
    /// Time waiting for it.
    pub waited_s: f64,
    /// CPU time of those that have ended; 0 in a part of a run.
    pub cpu_s: f64,
    /// How many of them that is of.
    pub cpu_threads: u64,
    /// Number of holds.
    pub holds: u64,
    /// Number of waits.
    pub waits: u64,
    /// Median of the waits; `None` without any.
    pub wait_p50_us: Option<f64>,
    /// 99th percentile of the waits; `None` without any.
    pub wait_p99_us: Option<f64>,
    /// Releases nobody had asked for.
    pub voluntary: u64,
    /// Releases while a drop request was pending.
    pub forced: u64,
    /// Drop requests made.
    pub drop_requests: u64,
    /// Acquires after a voluntary release: finished blocking calls, without those of the start-up.
    pub blocking_calls: u64,
    /// What was waited at those.
    pub blocking_waited_s: f64,
    /// Time asleep for locks of the program that threads took in turn.
    pub lock_waited_s: f64,
    /// Time with the GIL in which the kernel did not run them.
    pub not_run_s: f64,
    /// Events lost.
    pub lost_events: u64,
}
