//! What becomes of the records of a recording: one trace of all, snapshots of the last seconds, or
//! figures of what happens lately.

use super::flight::Flight;
use super::live::Live;
use super::whole::Whole;
use crate::perfetto::Incomplete;
use crate::record::Record;
use crate::report::{JudgedReport, Report};

/// What a recording came to.
#[derive(Debug)]
pub struct Outcome {
    /// The report; `None` of a flight recorder, which keeps the last seconds only; of live figures what
    /// was counted since the last look.
    pub report: Option<Report>,
    /// What was judged and nobody had asked for.
    pub judged: JudgedReport,
    /// Why the trace file is not whole, or not under its name, if so.
    pub file_error: Option<Incomplete>,
    /// Processes that joined while they ran, were asked to leave, and have had no occasion yet.
    pub staying: Vec<u32>,
}

/// Where records go.
pub enum Sink {
    /// Into one trace, and its analysis.
    Whole(Box<Whole>),
    /// Into memory, as long as they are among the last ones.
    Flight(Box<Flight>),
    /// Into figures that somebody looks at now and then.
    Live(Box<Live>),
}

impl Sink {
    /// Takes in one record.
    #[inline]
    pub fn put(&mut self, record: &Record) {
        match self {
            Self::Whole(whole) => whole.put(record),
            Self::Flight(flight) => flight.put(record),
            Self::Live(live) => live.put(record),
        }
    }

    /// What was judged since the last call.
    pub fn take_judged(&mut self) -> JudgedReport {
        match self {
            Self::Whole(whole) => whole.take_judged(),
            Self::Flight(_) | Self::Live(_) => JudgedReport::default(),
        }
    }

    /// Whether anything is judged.
    pub const fn judges(&self) -> bool {
        matches!(self, Self::Whole(whole) if whole.judges())
    }

    /// Hands on to the file what was written so far.
    pub fn flush(&mut self) {
        if let Self::Whole(whole) = self {
            whole.flush();
        }
    }

    /// To be called in every round. `last_words` tells what would be told if the recording ended.
    pub fn tick(&mut self, now_ns: u64, last_words: impl FnMut(u64) -> Vec<Record>) {
        if let Self::Flight(flight) = self {
            flight.tick(now_ns, last_words);
        }
    }

    /// Ends the file and sums up.
    pub fn finish(mut self) -> Outcome {
        let judged = self.take_judged();
        let (report, file_error) = match self {
            Self::Whole(whole) => {
                let (report, file_error) = whole.finish();
                (Some(report), file_error)
            }
            Self::Flight(flight) => {
                flight.finish();
                (None, None)
            }
            Self::Live(live) => (Some(live.finish()), None),
        };
        Outcome { report, judged, file_error, staying: Vec::new() }
    }
}
