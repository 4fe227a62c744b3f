//! A part of a trace, counted by itself.
//!
//! Holds and waits that cross an edge are cut there: the piece within the part counts, as a hold
//! or a wait of its length. So what was held and waited in parts that follow one another adds up to
//! what was held and waited in all; numbers of holds and waits do not, because one that is cut
//! counts in both parts.

use super::Analysis;
use super::ended::{Ended, Place};
use super::seat::Detail;
use super::sleeps::ProcessSleeps;
use super::tally::Tally;
use crate::record::{KernelCount, Park, ProcessId, Record};
use crate::report::{PartReport, Report};
use crate::wall_clock::WallClock;

/// From the start of a trace to its last word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    started_ns: Option<u64>,
    end_ns: u64,
}

impl Span {
    /// Takes in one record.
    pub fn push(&mut self, record: &Record) {
        if let Record::ProcessStarted(process) = record {
            let started_ns = self.started_ns.unwrap_or(u64::MAX).min(process.at_ns);
            self.started_ns = Some(started_ns);
        }
        if let Record::Snapshot { from_ns } = record {
            self.started_ns = Some(*from_ns);
        }
        self.end_ns = self.end_ns.max(record.at_ns().unwrap_or(0));
    }

    /// When the first process started.
    pub fn started_ns(&self) -> u64 {
        self.started_ns.unwrap_or(self.end_ns)
    }

    /// The latest time any record told.
    pub fn end_ns(&self) -> u64 {
        self.end_ns.max(self.started_ns())
    }
}

/// What is known of a part of a trace so far.
#[derive(Debug)]
pub struct Part {
    analysis: Analysis,
    from_ns: u64,
    pub(super) to_ns: u64,
    is_open: bool,
    /// Events that threads lost which did not live in the part alone.
    lost_outside: u64,
    tells_ended: bool,
}

impl Part {
    /// Counts what happens from `from_ns` on and before `to_ns`; see [`Analysis::new`].
    pub fn new(
        blame_after_ns: u64,
        wall_clock: Option<WallClock>,
        from_ns: u64,
        to_ns: u64,
    ) -> Self {
        let analysis = Analysis::new(blame_after_ns).with_wall_clock(wall_clock);
        Self {
            analysis: Analysis { windows: None, ..analysis },
            from_ns,
            to_ns,
            is_open: false,
            lost_outside: 0,
            tells_ended: false,
        }
    }

    /// Tells holds and waits of the part one by one, cut at its edges; see [`Self::take_ended`].
    #[must_use]
    pub fn telling_ended(mut self) -> Self {
        self.tells_ended = true;
        self
    }

    /// Hands over what has ended since the last call; see [`Analysis::take_ended`].
    pub fn take_ended(&mut self, take: impl FnMut(Place, &Ended)) {
        self.analysis.take_ended(take);
    }

    /// The sleeps of the part; see [`Analysis::sleeps`].
    pub fn sleeps(&self) -> (Vec<(ProcessId, ProcessSleeps)>, u64) {
        self.analysis.sleeps()
    }

    /// Ends what goes on at the end of the part; see [`Analysis::end`].
    pub fn end(&mut self) {
        self.analysis.end();
    }

    /// Takes in one record, of any time.
    pub fn push(&mut self, record: &Record) {
        let at_ns = record.at_ns();
        if !self.is_open && at_ns.is_some_and(|at_ns| at_ns >= self.from_ns) {
            self.open();
        }
        let is_after = at_ns.is_some_and(|at_ns| at_ns >= self.to_ns);
        match record {
            Record::ProcessEnded { process, totals, .. } if is_after => {
                if let Some(process) = self.analysis.tally.processes.get_mut(process.0) {
                    process.totals = *totals;
                }
            }
            Record::ThreadEnded { thread, totals, at_ns } => {
                let known = self.analysis.tally.threads.get(thread.0);
                let within = known.is_some_and(|known| known.started_ns > self.from_ns);
                if is_after || (self.is_open && !within) {
                    // Its totals are those of its whole life.
                    self.lost_outside = self.lost_outside.saturating_add(totals.lost_events);
                    if !is_after {
                        self.analysis.tally.end_thread(*thread, *at_ns, None);
                    }
                } else {
                    self.analysis.push(record);
                }
            }
            Record::Parked { thread, park } if is_after && self.is_open => {
                if park.since_ns < self.to_ns {
                    let park = Park { until_ns: self.to_ns, ..park.clone() };
                    self.analysis.push(&Record::Parked { thread: *thread, park });
                }
            }
            _ if is_after => {}
            Record::Stack { at_ns, .. }
            | Record::NoStack { at_ns, .. }
            | Record::Stopped { at_ns, .. }
            | Record::Look { at_ns, .. }
            | Record::KernelCount { count: KernelCount { at_ns, .. }, .. }
            | Record::Throttled { at_ns, .. }
                if *at_ns >= self.to_ns => {}
            _ => _ = self.analysis.push(record),
        }
    }

    fn open(&mut self) {
        self.is_open = true;
        let notes = std::mem::take(&mut self.analysis.tally.notes);
        let tally = Tally { notes, ..self.analysis.tally.reopened(self.from_ns, Detail::All) };
        self.analysis = Analysis { tally, windows: Some(Box::default()) };
        if self.tells_ended {
            self.analysis.tally.tell_ended();
        }
    }

    /// How many holds and waits go on at its beginning and at its end.
    fn cut(&self) -> (u64, u64) {
        let gils = self.analysis.tally.processes.iter().flat_map(|process| &process.gils);
        gils.fold((0, 0), |(holds, waits), gil| {
            (
                holds + gil.cut.holds + u64::from(gil.is_held()),
                waits + gil.cut.waits + gil.waiting() as u64,
            )
        })
    }

    /// The report of the part.
    pub fn report(&mut self) -> Report {
        if !self.is_open {
            self.open();
        }
        let (cut_holds, cut_waits) = self.cut();
        self.analysis.tally.now_ns = self.to_ns;
        let mut report = self.analysis.report();
        if self.lost_outside > 0 {
            report.notes.push(format!(
                "threads that lived before or after this part lost {} events; it is unknown how \
                 many of them belong to this part",
                self.lost_outside
            ));
        }
        report.part = Some(PartReport {
            window: self.analysis.tally.window(self.from_ns, self.to_ns),
            cut_holds,
            cut_waits,
        });
        report
    }
}
