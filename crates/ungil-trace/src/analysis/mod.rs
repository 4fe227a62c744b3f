//! From records to the report, one record at a time, in memory that does not grow with the
//! length of the trace.
//!
//! What is measured, per GIL:
//! * a *hold* is a thread's acquire to its release, a *wait* its wait event to its acquire, a
//!   *gap* its release to its next acquire;
//! * *contended* is the time with a holder and at least one waiter;
//! * a *handoff* is an acquire by another thread than the holder before;
//! * *blame*: each wait is charged, interval by interval, to whoever held meanwhile, and to
//!   nobody while nobody held (a successor that the kernel has not run yet). The charges of one
//!   victim add up to what it waited;
//! * holds and waits that have not ended are counted up to the end of the thread, of the
//!   process, or of what is known so far;
//! * totals that a thread kept itself replace those counted from its events, because they miss
//!   nothing when events are lost. A thread that used several GILs keeps its events' totals: its
//!   own do not tell the GILs apart.
//!
//! All this is counted in a tally (`tally.rs`). What is said of it is judged in windows of ten
//! seconds (`windows.rs`), each a tally of its own, so that idle time does not hide an incident. A
//! part of a trace is counted by itself (`part.rs`).
//!
//! What bounds the memory: of the threads that have ended about a thousand keep their details
//! (those that held and waited most), the others are summed, and so are processes; percentiles
//! are sketches; past holds are kept only while a running wait needs them (`history.rs`).

mod length;
mod order;
mod late_waits;
mod kernel_counts;
mod run_time;
mod natives;
mod samples;
mod known_functions;
mod called;
mod functions;
mod forked;
mod off_gil;
mod native_loop;
mod on_loop;
mod looks;
mod long_holds;
mod history;
mod seat;
mod short_gaps;
mod hold;
mod ended;
mod charges;
mod catching_up;
mod judged;
mod park_stacks;
mod parks;
mod behind_locks;
mod sleeps;
mod gil;
mod hold_ends;
mod process;
mod tally;
mod fold;
mod summary;
mod held;
mod findings;
mod incidents;
mod windows;
mod verdict;
mod part;
mod rolling;
mod groups;
mod measured;

#[cfg(test)]
mod tests;

pub use ended::{Ended, EndedHold, EndedWait, Ending, Place};
pub use findings::words;
pub use held::{Held, held, movable};
pub use judged::Least;
pub use known_functions::NATIVE_LOOP;
pub use measured::{Busy, Measured};
pub use order::weight;
pub use part::{Part, Span};
pub use rolling::{Rolling, WorstWait};
pub use sleeps::{ProcessSleeps, Sleep};

use crate::record::{Record, ThreadId};
use crate::report::{JudgedReport, Report};
use crate::wall_clock::WallClock;
use tally::Tally;
use verdict::verdict;
use windows::{Passed, Windows};

/// What is known of a trace so far.
#[derive(Debug)]
pub struct Analysis {
    tally: Tally,
    /// The worst of it by when it happened; `None` if nobody will ask.
    windows: Option<Box<Windows>>,
}

impl Analysis {
    /// Knows nothing yet. Holds of at least `blame_after_ns` nanoseconds are listed one by one,
    /// and a drop request that stays unanswered for so long means native code.
    pub fn new(blame_after_ns: u64) -> Self {
        Self { tally: Tally::new(blame_after_ns), windows: Some(Box::default()) }
    }

    /// As [`Self::new`], for whoever asks for no report: it says who held longest during a wait
    /// ([`Self::push`]), and costs less.
    pub fn without_findings(blame_after_ns: u64) -> Self {
        Self { windows: None, ..Self::new(blame_after_ns) }
    }

    /// Lets the report say at what time of day things happened.
    #[must_use]
    pub fn with_wall_clock(mut self, wall_clock: Option<WallClock>) -> Self {
        self.tally.wall_clock = wall_clock;
        self
    }

    /// Tells holds and waits of at least this length one by one, by what was the holders' own
    /// doing; see [`Self::take_judged`].
    #[must_use]
    pub fn judging(mut self, least: Option<Least>) -> Self {
        self.tally.judged = least;
        self
    }

    /// The holds and waits that have ended since the last call.
    pub fn take_judged(&mut self) -> JudgedReport {
        self.tally.take_judged()
    }

    /// Tells holds and waits one by one; see [`Self::take_ended`].
    #[must_use]
    pub fn telling_ended(mut self) -> Self {
        self.tally.tell_ended();
        self
    }

    /// Hands over the holds and waits that have ended since the last call. They are in memory until
    /// then.
    pub fn take_ended(&mut self, mut take: impl FnMut(Place, &Ended)) {
        self.tally.take_ended(&mut take);
    }

    /// Ends what goes on, as the last report has counted it, so that it can be taken, too.
    pub fn end(&mut self) {
        self.tally.end_running(self.tally.now_ns);
    }

    /// Takes in one record. For an acquire that ended a wait: the thread that held longest
    /// meanwhile, if any did.
    ///
    /// A record that names an unknown process or thread, or one that has ended, is ignored.
    #[inline]
    pub fn push(&mut self, record: &Record) -> Option<ThreadId> {
        let Self { tally, windows } = self;
        let Some(windows) = windows else { return tally.push(record) };
        windows.before(tally, record);
        if let Record::Snapshot { .. } = record {
            **windows = Windows::default();
        }
        let culprit = tally.push(record);
        windows.after(tally);
        culprit
    }

    /// The report of all so far; holds and waits that have not ended are counted up to the
    /// latest time any record told. Costs time in proportion to the number of threads, so it can
    /// be called while the program runs.
    pub fn report(&self) -> Report {
        let Self { tally, .. } = self;
        let processes = tally.processes_until(tally.now_ns, tally);
        let findings = verdict(tally, &self.passed(), &processes);
        tally.report(processes, findings)
    }

    /// The windows that may be the worst.
    fn passed(&self) -> Vec<Passed<'_>> {
        self.windows.as_ref().map_or_else(Vec::new, |windows| windows.all(&self.tally))
    }
}
