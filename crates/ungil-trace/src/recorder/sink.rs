//! What becomes of the records of a recording: one trace of all, or figures of what happens lately.

use super::live::Live;
use super::whole::Whole;
use crate::perfetto::Incomplete;
use crate::record::Record;
use crate::report::Report;

/// What a recording came to.
#[derive(Debug)]
pub struct Outcome {
    /// The report; of live figures what was counted since the last look.
    pub report: Report,
    /// Why the trace file is not whole, or not under its name, if so.
    pub file_error: Option<Incomplete>,
    /// Processes that joined while they ran, were asked to leave, and have had no occasion yet.
    pub staying: Vec<u32>,
}

/// Where records go.
pub enum Sink {
    /// Into one trace, and its analysis.
    Whole(Box<Whole>),
    /// Into figures that somebody looks at now and then.
    Live(Box<Live>),
}

impl Sink {
    /// Takes in one record.
    #[inline]
    pub fn put(&mut self, record: &Record) {
        match self {
            Self::Whole(whole) => whole.put(record),
            Self::Live(live) => live.put(record),
        }
    }

    /// Hands on to the file what was written so far.
    pub fn flush(&mut self) {
        if let Self::Whole(whole) = self {
            whole.flush();
        }
    }

    /// Ends the file and sums up.
    pub fn finish(self) -> Outcome {
        let (report, file_error) = match self {
            Self::Whole(whole) => whole.finish(),
            Self::Live(live) => (live.finish(), None),
        };
        Outcome { report, file_error, staying: Vec::new() }
    }
}
