//! The report: what a trace means, in numbers. Serialised, it is the public JSON, schema 1, which
//! `docs/report-schema.md` describes key by key.
//!
//! Keys may be added within a schema; none is renamed and none changes its unit.
//! Times named `*_s` with a `started`, `ended` or `start` are seconds since the start of the
//! trace; other `*_s`, `*_ms` and `*_us` are lengths. Numbers are finite and never negative.

mod window;
mod look;
mod thread;
mod native;
mod gil;
mod judged;
mod parks;
mod process;
mod spawned;
mod finding;
mod measures;
mod lost;

pub use finding::{Evidence, Finding, Scope};
pub use gil::{BlameReport, GilReport, LongHoldReport, Who};
pub use judged::{JudgedHoldReport, JudgedReport, JudgedThreadReport, JudgedWaitReport};
pub use look::{ComputedIn, EventLoop, HeldIn, OffGil, What};
pub(crate) use lost::lost_share;
pub use measures::{GilMeasures, GroupMeasures, Measures, ProcessMeasures, Stretch};
pub use native::{NativeReport, StoppedReport, is_collector};
pub use parks::{
    DidWithLock, LockReport, ParkedAt, ParkedBy, ParkedIn, ParkedThread, ParksReport, Waker,
    WorldPauses,
};
pub use process::{FreeThreaded, OtherProcesses, ProcessReport, Processors, Throttled};
pub use thread::{
    Blocking, ContextSwitches, Descheduled, Gaps, Lengths, OtherThreads, ThreadReport, Unanswered,
};
pub use window::{PartReport, Window, WorstWindow};

use serde::Serialize;

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
    /// The part (of 1) that they are of all events; 0 if that is not known.
    pub lost_share: f64,
    /// Those whose threads waited most first.
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
