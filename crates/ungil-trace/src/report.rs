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
    /// The policy that its last waiter waited under ("stock" is CPython's own); `None` if nobody
    /// ever waited or the process still runs.
    pub policy: Option<&'static str>,
    /// The switch interval or the policy's quantum as its waiters used it; `None` as above.
    pub switch_interval_ms: Option<f64>,
    /// Threads that found no slot and were not recorded.
    pub unrecorded_threads: u64,
    /// How far its times may be from `CLOCK_MONOTONIC`, 0 if they are readings of that clock;
    /// `None` if the process still runs.
    pub clock_error_us: Option<f64>,
    /// The main interpreter's GIL first.
    pub gils: Vec<GilReport>,
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
    /// The holder's Python stack, innermost first, each `function (file:line)`; empty if none
    /// was taken.
    pub stack: Vec<String>,
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
        /// Innermost Python frame in the longest of them that has a stack.
        frame: Option<String>,
    },
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
