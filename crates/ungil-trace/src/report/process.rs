//! A process, and those that are not listed.

use super::gil::GilReport;
use super::native::StoppedReport;
use super::parks::{LockReport, ParkedAt, ParksReport};
use crate::record;
use serde::Serialize;

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
    /// What its threads waited for while it had no GIL; `None` if none did.
    pub parks: Option<ParksReport>,
    /// What its threads waited for in locks while it had a GIL, and who ended that: one row for each
    /// thread at each lock.
    pub lock_waits: Vec<ParkedAt>,
    /// The locks among these that threads took in turn, those for which they waited longest first.
    pub locks: Vec<LockReport>,
    /// The policy that its last waiter waited under ("stock" is CPython's own); `None` if nobody
    /// ever waited or the process still runs.
    pub policy: Option<&'static str>,
    /// The switch interval or the policy's quantum as its waiters used it; `None` as above.
    pub switch_interval_ms: Option<f64>,
    /// Threads that found no slot and were not recorded.
    pub unrecorded_threads: u64,
    /// What a CPU limit did to it; `None` if that is not known, or the process still runs.
    pub throttled: Option<Throttled>,
    /// The processors that it may use; `None` if that is not known.
    pub processors: Option<Processors>,
    /// Shared libraries it had loaded that its user may have built (they are no part of Python, of
    /// an installed package or of the system), when a stack was last taken.
    pub libraries: Vec<String>,
    /// How long its threads stood still so that their native frames could be seen; `None` if none
    /// was stopped.
    pub stopped: Option<StoppedReport>,
    /// How far its times may be from `CLOCK_MONOTONIC`, 0 if they are readings of that clock;
    /// `None` if the process still runs.
    pub clock_error_us: Option<f64>,
    /// The main interpreter's GIL first.
    pub gils: Vec<GilReport>,
    /// From its start to the first use of a GIL by its second thread, mostly imports; `None` if
    /// there was no second thread, or no such time in what is reported.
    pub startup_s: Option<f64>,
}

impl ProcessReport {
    /// How long there were several threads; without a second one, all of its time.
    #[must_use]
    pub fn busy_s(&self) -> f64 {
        self.duration_s - self.startup_s.unwrap_or(0.0)
    }
}

/// The processors that a process may use, as it was when the process was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Processors {
    /// On how many it may run: those of its affinity.
    pub allowed: u32,
    /// The lowest CPU limit of its control groups, in processors; `None` if it has none.
    pub limit: Option<f64>,
}

impl Processors {
    /// How many it can keep busy at most.
    pub fn usable(self) -> f64 {
        let allowed = f64::from(self.allowed);
        self.limit.map_or(allowed, |limit| limit.min(allowed))
    }

    /// The same as a whole number, of at least 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, positive")]
    pub fn whole(self) -> usize {
        self.usable().round().max(1.0) as usize
    }
}

impl From<record::Processors> for Processors {
    fn from(known: record::Processors) -> Self {
        let limit = known.limit_thousandths.map(|it| f64::from(it) / 1e3);
        Self { allowed: known.allowed, limit }
    }
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreeThreaded {
    /// "on" from the start, "off" but for imports of extension modules, "switched on" for good at
    /// some time; `None` if that is not known.
    pub gil: Option<&'static str>,
    /// When it was first seen to be on for good.
    pub gil_on_s: Option<f64>,
    /// Of one that was switched on: the extension module that was loaded last then, as an import
    /// names it as far as its file tells. `None` if that is not known.
    pub module: Option<String>,
    /// The file of that module.
    pub library: Option<String>,
    /// The user's own code that imported then, or else the innermost frame; `None` if that is not
    /// known.
    pub frame: Option<String>,
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
