//! A thread at one GIL, and those that are not listed.

use super::look::{EventLoop, HeldIn, OffGil};
use serde::Serialize;

/// One thread at one GIL.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadReport {
    /// Kernel thread id. The kernel may have used it again for a later thread.
    pub tid: u32,
    /// The best name known.
    pub name: String,
    /// Whether it is the main thread of its process.
    pub main: bool,
    /// When it first touched a GIL.
    pub started_s: f64,
    /// When it ended; `None` while it runs.
    pub ended_s: Option<f64>,
    /// CPU time; `None` while it runs.
    pub cpu_s: Option<f64>,
    /// Time with the GIL.
    pub held_s: f64,
    /// The part of it during the start-up of the process.
    pub startup_held_s: f64,
    /// Time waiting for it.
    pub waited_s: f64,
    /// Acquire to release.
    pub holds: Lengths,
    /// Asked, not yet got.
    pub waits: Lengths,
    /// Release to the next acquire.
    pub gaps: Gaps,
    /// Releases nobody had asked for.
    pub voluntary: u64,
    /// Releases while a drop request was pending.
    pub forced: u64,
    /// Times it asked the holder to let go.
    pub drop_requests: u64,
    /// What became of it after voluntary releases.
    pub blocking: Blocking,
    /// Its holds in which a drop request stayed unanswered.
    pub unanswered: Unanswered,
    /// The same without the time in which the kernel did not run it.
    pub kept: Unanswered,
    /// Time with the GIL in which the kernel did not run it.
    pub descheduled: Descheduled,
    /// Where it held while others waited, as far as it was looked at: most waiters first.
    pub held_in: Vec<HeldIn>,
    /// How it computed while it ran an event loop; `None` if no look found it in one.
    pub event_loop: Option<EventLoop>,
    /// What it did in gaps that were looked at, longest in all first.
    pub off_gil: Vec<OffGil>,
    /// `None` while it runs.
    pub context_switches: Option<ContextSwitches>,
    /// Events of it that were lost.
    pub lost_events: u64,
}

/// Statistics of many lengths of time. Percentiles are within 1 %, the rest is exact.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Lengths {
    /// How many.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Longest.
    pub max_us: f64,
}

/// Lengths of time between two moments a thread ran.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Gaps {
    /// Arithmetic mean.
    pub mean_ms: f64,
    /// Longest.
    pub max_ms: f64,
}

/// A thread that lets go of its own accord does so to block; this is how it got back.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Blocking {
    /// Acquires whose last release before was voluntary: finished blocking calls.
    pub calls: u64,
    /// Time waited at those acquires.
    pub waited_s: f64,
    /// How many of those waits lasted at least 0.8 switch intervals (within 1 %).
    pub late: u64,
    /// What the late waits lasted, summed.
    pub late_s: f64,
    /// Median of the late waits.
    pub late_p50_ms: f64,
}

/// Holds that went on for at least the blame time after somebody asked the holder to let go.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Unanswered {
    /// How many such holds.
    pub holds: u64,
    /// Time from drop request to release in them.
    pub total_s: f64,
    /// The longest such time.
    pub max_ms: f64,
    /// What other threads waited in that time, summed.
    pub waited_s: f64,
}

/// Time in which a thread had the GIL, wanted to run, and the kernel did not run it; at least, for
/// only holds of 2 ms and longer are looked at.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Descheduled {
    /// All of it.
    pub not_run_s: f64,
    /// The most in one hold.
    pub max_ms: f64,
    /// What other threads waited in that time, summed.
    pub waited_s: f64,
}

/// Counters of the kernel.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ContextSwitches {
    /// The thread blocked.
    pub voluntary: u64,
    /// The kernel took the processor away.
    pub involuntary: u64,
}

/// The ended threads that waited and held least, when there are too many to list.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct OtherThreads {
    /// How many.
    pub threads: u64,
    /// CPU time.
    pub cpu_s: f64,
    /// Time with the GIL.
    pub held_s: f64,
    /// Time waiting for it.
    pub waited_s: f64,
    /// Number of holds.
    pub holds: u64,
    /// Number of waits.
    pub waits: u64,
    /// Releases nobody had asked for.
    pub voluntary: u64,
    /// Releases while a drop request was pending.
    pub forced: u64,
    /// Drop requests made.
    pub drop_requests: u64,
    /// Events lost.
    pub lost_events: u64,
}
