//! What becomes of the records of a recording: one trace of all, or snapshots of the last seconds.

use super::flight::Flight;
use super::whole::Whole;
use crate::perfetto::Incomplete;
use crate::record::Record;
use crate::report::Report;

/// What a recording came to.
#[derive(Debug)]
pub struct Outcome {
    /// The report; `None` of a flight recorder, which keeps the last seconds only.
    pub report: Option<Report>,
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
}

impl Sink {
    /// Takes in one record.
    #[inline]
    pub fn put(&mut self, record: &Record) {
        match self {
            Self::Whole(whole) => whole.put(record),
            Self::Flight(flight) => flight.put(record),
        }
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
    pub fn finish(self) -> Outcome {
        match self {
            Self::Whole(whole) => {
                let (report, file_error) = whole.finish();
                Outcome { report: Some(report), file_error, staying: Vec::new() }
            }
            Self::Flight(flight) => {
                flight.finish();
                Outcome { report: None, file_error: None, staying: Vec::new() }
            }
        }
    }
}
