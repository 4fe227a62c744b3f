//! What is worth telling.

use super::native::NativeReport;
use super::window::{Window, WorstWindow};
use serde::Serialize;

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
    /// The place of a finding before it that tells the same of another process of the same command.
    pub same_as: Option<usize>,
}

impl Finding {
    /// One about all of the run: of no process, no GIL and no thread, until they are filled in.
    pub fn of_run(evidence: Evidence, text: String) -> Self {
        Self {
            evidence,
            text,
            advice: None,
            pid: None,
            gil: None,
            threads: Vec::new(),
            cost_s: 0.0,
            scope: Scope::Run,
            window: None,
            worst: None,
            same_as: None,
        }
    }

    /// Whether it says that a GIL is the limit of all threads alike: then it has an advice.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self.evidence, Evidence::None { .. }) && self.advice.is_some()
    }
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
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
        /// Which native function most samples of these holds show; `None` if none shows one.
        native: Option<NativeReport>,
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
        /// How long all threads waited for this GIL, for whatever reason.
        waited_s: f64,
    },
    /// Threads waited for a GIL that nobody had, because who was woken for it got no processor.
    LateWakeups {
        /// For how long, summed over the threads.
        unheld_s: f64,
        /// How long they waited in all.
        waited_s: f64,
        /// How often another thread got it than had it before.
        handoffs: u64,
        /// How many threads had the GIL or waited for it, on average.
        wanting: f64,
        /// How many processors the threads of the process used, on average over its life; `None`
        /// if some of them ran on.
        used: Option<f64>,
        /// Whether that is most of those that it may use: too many threads are its own.
        are_its_own: bool,
    },
    /// Threads of a free-threaded interpreter slept for one lock.
    Parked {
        /// Whose lock: "object", "lock" (of the program) or "internal".
        cause: &'static str,
        /// The type of the object; `None` if it is not known.
        of: Option<String>,
        /// How often threads parked for it.
        parks: u64,
        /// The longest time.
        longest_ms: f64,
        /// Who woke the thread that slept longest in all, most first.
        wakers: Vec<u32>,
        /// The innermost frame in which that thread slept mostly; `None` if that is not known.
        frame: Option<String>,
        /// The innermost frame of the user's own code there.
        user_frame: Option<String>,
        /// The innermost frame from which the first of these woke it.
        waker_frame: Option<String>,
    },
    /// Threads of a free-threaded interpreter slept while another one had stopped the world.
    WorldPauses {
        /// How often.
        pauses: u64,
        /// For how long in all.
        stopped_s: f64,
        /// The longest time.
        longest_ms: f64,
        /// How many of them were collections of garbage, as far as that is known.
        collections: u64,
    },
    /// The GIL of a free-threaded interpreter was switched on while it ran.
    GilSwitchedOn {
        /// The extension module that was loaded last then; `None` if that is not known.
        module: Option<String>,
        /// Its file.
        library: Option<String>,
        /// The user's own code that imported then, or else the innermost frame; `None` if not known.
        frame: Option<String>,
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
