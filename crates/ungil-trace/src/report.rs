//! The report: what a trace means, in numbers. Serialised, it is the public JSON, schema 1, which
//! `docs/report-schema.md` describes key by key.
//!
//! Keys may be added within a schema; none is renamed and none changes its unit.
//! Times named `*_s` with a `started`, `ended` or `start` are seconds since the start of the
//! trace; other `*_s`, `*_ms` and `*_us` are lengths. Numbers are finite and never negative.

use serde::{Serialize, Serializer};

/// Version of the JSON schema.
pub const SCHEMA: u32 = 1;

/// All that a trace says.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Python version of the first process in `processes` that has one, or empty.
    pub python: String,
    /// From the first process to the last word of the trace.
    pub duration_s: f64,
    /// Events lost because a ring was full, over all threads.
    pub lost_events: u64,
    /// Those that held and waited most first.
    pub processes: Vec<ProcessReport>,
    /// The ended processes that are not in `processes`, summed.
    pub other_processes: Option<OtherProcesses>,
    /// Strongest first; never empty.
    pub findings: Vec<Finding>,
    /// Sentences of the recorder, each once.
    pub notes: Vec<String>,
    /// When the trace began, in ISO 8601 (UTC); `None` if the trace does not tell.
    pub started_at: Option<String>,
    /// Which part of the trace this is about; `None` if it is about all of it.
    pub part: Option<PartReport>,
}

/// A part of a trace. Every number of the report is of this part.
#[derive(Clone, Debug, Serialize)]
pub struct PartReport {
    /// When it is.
    #[serde(flatten)]
    pub window: Window,
    /// Holds of which only the piece within the part is counted: they began before it, or ended
    /// after it.
    pub cut_holds: u64,
    /// Waits likewise.
    pub cut_waits: u64,
}

/// A stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Since the start of the trace.
    pub start_s: f64,
    /// Likewise.
    pub end_s: f64,
    /// When it began, in ISO 8601 (UTC); `None` if the trace does not tell.
    pub started_at: Option<String>,
}

/// The worst window of what went on for longer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstWindow {
    /// When it is.
    #[serde(flatten)]
    pub window: Window,
    /// What the finding cost in it.
    pub cost_s: f64,
}

/// One process image.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessReport {
    /// Kernel process id.
    pub pid: u32,
    /// That of its parent.
    pub parent_pid: u32,
    /// Command line.
    pub argv: Vec<String>,
    /// Python version, or empty.
    pub python: String,
    /// When it was first seen.
    pub started_s: f64,
    /// From then to its end, or to the last word of the trace.
    pub duration_s: f64,
    /// Why its GIL was not recorded, or `None`.
    pub not_recorded: Option<String>,
    /// Of a free-threaded build, which may run without a GIL; `None` for others.
    pub free_threaded: Option<FreeThreaded>,
    /// The policy that its last waiter waited under ("stock" is CPython's own); `None` if nobody
    /// ever waited or the process still runs.
    pub policy: Option<&'static str>,
    /// The switch interval or the policy's quantum as its waiters used it; `None` as above.
    pub switch_interval_ms: Option<f64>,
    /// Threads that found no slot and were not recorded.
    pub unrecorded_threads: u64,
    /// What a CPU limit did to it; `None` if that is not known, or the process still runs.
    pub throttled: Option<Throttled>,
    /// Shared libraries it had loaded that its user may have built (they are no part of Python, of
    /// an installed package or of the system), when a stack was last taken.
    pub libraries: Vec<String>,
    /// How far its times may be from `CLOCK_MONOTONIC`, 0 if they are readings of that clock;
    /// `None` if the process still runs.
    pub clock_error_us: Option<f64>,
    /// The main interpreter's GIL first.
    pub gils: Vec<GilReport>,
    /// From its start to the first use of a GIL by its second thread, mostly imports; `None` if
    /// there was no second thread, or no such time in what is reported.
    pub startup_s: Option<f64>,
}

/// What the CPU limit of a control group (a container, a service) did to its programs while one of
/// them was recorded.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Throttled {
    /// In how many periods of the limit it stopped them.
    pub times: u64,
    /// For how long, summed over processors.
    pub stopped_s: f64,
}

/// Whether a free-threaded build had a GIL.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FreeThreaded {
    /// "on" from the start, "off" but for imports of extension modules, "switched on" for good at
    /// some time; `None` if that is not known.
    pub gil: Option<&'static str>,
    /// When it was first seen to be on for good.
    pub gil_on_s: Option<f64>,
}

/// The ended processes that held and waited least, when there are too many to list.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct OtherProcesses {
    /// How many.
    pub processes: u64,
    /// Their time with a GIL.
    pub held_s: f64,
    /// Their time waiting for one.
    pub waited_s: f64,
}

/// One GIL.
#[derive(Clone, Debug, Serialize)]
pub struct GilReport {
    /// 0 is the main interpreter's.
    pub gil: u8,
    /// Time in which a thread held it.
    pub held_s: f64,
    /// The part of it during the start-up of the process, when nobody could wait.
    pub startup_held_s: f64,
    /// Time in which a thread held it and at least one waited.
    pub contended_s: f64,
    /// Acquires by another thread than the holder before.
    pub handoffs: u64,
    /// Releases nobody had asked for.
    pub voluntary: u64,
    /// Releases while a drop request was pending.
    pub forced: u64,
    /// How many threads wanted to run, on average: (held + waited) / duration of the process.
    pub wanting_mean: f64,
    /// Most waited + held first.
    pub threads: Vec<ThreadReport>,
    /// The ended threads that are not in `threads`, summed.
    pub others: Option<OtherThreads>,
    /// Who waited for whom, longest first.
    pub blame: Vec<BlameReport>,
    /// The longest, those that made somebody wait first.
    pub long_holds: Vec<LongHoldReport>,
    /// How many long holds there were, listed or not.
    pub long_holds_count: u64,
}

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

/// A party to a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A thread, by kernel thread id. JSON: the number.
    Thread(u32),
    /// Any of several threads that are not listed. JSON: `"others"`.
    Others,
    /// Unknown, because events were lost. JSON: `"unknown"`.
    Unknown,
    /// Nobody held: the GIL was on its way to the next holder. JSON: `null`.
    Nobody,
}

impl Serialize for Who {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Thread(tid) => serializer.serialize_u32(*tid),
            Self::Others => serializer.serialize_str("others"),
            Self::Unknown => serializer.serialize_str("unknown"),
            Self::Nobody => serializer.serialize_none(),
        }
    }
}

/// Wait time of one thread charged to one holder.
#[derive(Clone, Debug, Serialize)]
pub struct BlameReport {
    /// Who waited.
    pub victim: Who,
    /// Its name, if it is one listed thread.
    pub victim_name: Option<String>,
    /// Who held meanwhile.
    pub culprit: Who,
    /// Its name, if it is one listed thread.
    pub culprit_name: Option<String>,
    /// For how long.
    pub waited_s: f64,
}

/// A hold at least as long as the blame time.
#[derive(Clone, Debug, Serialize)]
pub struct LongHoldReport {
    /// The holder.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// When it began.
    pub start_s: f64,
    /// How long it lasted.
    pub duration_ms: f64,
    /// Whether anybody waited during it.
    pub contended: bool,
    /// How many threads waited during it.
    pub waiters_max: u64,
    /// Time that other threads waited during it, summed.
    pub waited_s: f64,
    /// Whether it ended because somebody asked.
    pub forced: bool,
    /// From the first drop request to the release; `None` without a request.
    pub drop_request_unanswered_ms: Option<f64>,
    /// For how long the holder ran; `None` if that is not known.
    pub cpu_ms: Option<f64>,
    /// For how long it wanted to run and the kernel did not run it, to within a quarter of the
    /// hold and never too much; `None` if that is not known.
    pub not_run_ms: Option<f64>,
    /// The holder's Python stack, innermost first, each `function (file:line)`; empty if none
    /// was taken. Of several samples one of those whose innermost frame is the most frequent.
    pub stack: Vec<String>,
    /// The innermost frame in it that is the user's own code, and not Python's or an installed
    /// package's; `None` if there is none.
    pub user_frame: Option<String>,
    /// How often the holder's stack was taken during the hold.
    pub samples: u64,
    /// How many of these samples have the innermost frame of `stack`.
    pub stack_samples: u64,
    /// Why `stack` is empty, in a clause in which "it" is the hold; `None` if it is not.
    pub stack_missing: Option<String>,
}

/// Something worth telling, in words and numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What it is, and the numbers behind it.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// A sentence, without a final dot.
    pub text: String,
    /// What to do about it, or `None`.
    pub advice: Option<String>,
    /// The process, or `None` if none was recorded.
    pub pid: Option<u32>,
    /// The GIL, or `None` if none was recorded.
    pub gil: Option<u8>,
    /// The threads it is about, worst first.
    pub threads: Vec<u32>,
    /// Wait time it explains, summed over the threads that waited.
    pub cost_s: f64,
    /// Whether it is about all of the run (or of the part asked for), or about one window of it.
    pub scope: Scope,
    /// The time that its sentence and its numbers are about; `None` if no GIL was recorded.
    pub window: Option<Window>,
    /// Where a finding about all of a longer run was at its worst.
    pub worst: Option<WorstWindow>,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All of the run, or of the part asked for.
    Run,
    /// One window, because the run as a whole does not show it.
    Window,
}

/// The kind of a finding with its own numbers; shares are of 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Evidence {
    /// Threads lose about a switch interval or more whenever they come back from a blocking call.
    Convoy {
        /// Blocking calls of the worst victim.
        calls: u64,
        /// Those after which it waited long.
        late: u64,
        /// What it waited after those.
        late_s: f64,
        /// Median of these waits.
        late_p50_ms: f64,
        /// What the worst victim waited after blocking calls.
        waited_s: f64,
        /// Who held meanwhile, worst first.
        culprits: Vec<u32>,
    },
    /// One thread has the GIL nearly all the time that anybody has it.
    Hog {
        /// Its share of that time.
        held_share: f64,
        /// How many threads waited for it.
        victims: u64,
    },
    /// Threads that always want the GIL get very different shares of it.
    Unfair {
        /// Jain's index of the shares: 1 is equal, 1/n is one thread having all.
        jain: f64,
        /// Largest share of its own life that a thread held.
        best_share: f64,
        /// Smallest.
        worst_share: f64,
        /// Longest gap of the thread with the smallest share.
        worst_gap_ms: f64,
    },
    /// A thread did not let go when asked: it was in native code.
    NativeHold {
        /// How many such holds.
        holds: u64,
        /// Time from drop request to release in them.
        unanswered_s: f64,
        /// The longest such time.
        longest_ms: f64,
        /// The innermost Python frame of most samples of them, if there are any.
        frame: Option<String>,
        /// The innermost frame of the user's own code in one of these samples, if there is any.
        user_frame: Option<String>,
        /// How many samples there are of these holds.
        samples: u64,
        /// How many of them have `frame`.
        frame_samples: u64,
    },
    /// The kernel did not run threads that had the GIL.
    Descheduled {
        /// For how long, summed over the threads.
        not_run_s: f64,
        /// How long they had it.
        held_s: f64,
        /// The longest time in one hold.
        longest_ms: f64,
        /// Whether a CPU limit explains at least half of it.
        limited: bool,
    },
    /// No GIL was recorded.
    NotRecorded {},
    /// Nothing wrong.
    None {
        /// Share of the time in which the GIL was held.
        held_share: f64,
        /// Share of the time in which somebody waited meanwhile.
        contended_share: f64,
        /// The most that any one thread waited.
        waited_max_s: f64,
    },
}
