//! A GIL: who waited for whom, and the longest holds.

use super::native::NativeReport;
use super::thread::{OtherThreads, ThreadReport};
use serde::{Serialize, Serializer};

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
    /// The same since there were several threads: without the start-up. Sentences and screens tell
    /// this one.
    pub wanting_busy_mean: f64,
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

impl GilReport {
    /// Time in which a thread held it once there were several threads.
    #[must_use]
    pub fn busy_held_s(&self) -> f64 {
        // Two sums of the same holds may differ by the last bit of one of them.
        (self.held_s - self.startup_held_s).max(0.0)
    }
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
    /// For how long ungil had stopped the holder to see its native frames, at most.
    pub stopped_ms: f64,
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
    /// In how many of these samples native code would have been seen.
    pub native_looks: u64,
    /// Which native function the holder was in; `None` if no sample shows one.
    pub native: Option<NativeReport>,
    /// Why `stack` is empty, in a clause in which "it" is the hold; `None` if it is not.
    pub stack_missing: Option<String>,
}
