//! Records that all become one trace: into the analysis, and from there into the file.

use crate::analysis::{Analysis, Least};
use crate::perfetto::{Incomplete, Writer};
use crate::record::Record;
use crate::report::{JudgedReport, Report};
use std::io;

/// A trace that is being recorded.
pub struct Whole {
    analysis: Analysis,
    judges: bool,
    writer: Option<Writer>,
    file_error: Option<Incomplete>,
}

impl Whole {
    /// Holds of at least `blame_after_ns` nanoseconds are listed one by one; see
    /// [`Analysis::judging`]. Without a writer there is no file.
    pub fn new(writer: Option<Writer>, blame_after_ns: u64, judged: Option<Least>) -> Self {
        let wall_clock = writer.as_ref().map(Writer::wall_clock);
        let analysis = Analysis::new(blame_after_ns).with_wall_clock(wall_clock);
        Self {
            analysis: analysis.judging(judged),
            judges: judged.is_some(),
            writer,
            file_error: None,
        }
    }

    /// Takes in one record.
    pub fn put(&mut self, record: &Record) {
        let culprit = self.analysis.push(record);
        self.try_file(|writer| writer.write(record, culprit));
    }

    /// Whether anything is judged.
    pub const fn judges(&self) -> bool {
        self.judges
    }

    /// What was judged since the last call.
    pub fn take_judged(&mut self) -> JudgedReport {
        self.analysis.take_judged()
    }

    /// Hands on to the file what was written so far.
    pub fn flush(&mut self) {
        self.try_file(Writer::flush);
    }

    /// A file that cannot be written any more (a full disk) ends the file, not the recording:
    /// what was written is kept and can be read.
    fn try_file(&mut self, work: impl FnOnce(&mut Writer) -> io::Result<()>) {
        if let Some(mut writer) = self.writer.take() {
            match work(&mut writer) {
                Ok(()) => self.writer = Some(writer),
                Err(error) => {
                    let path = writer.path().to_owned();
                    // That it lacks its end is no news; where it is may be.
                    let place = writer.finish().map_or_else(|lacking| lacking.place, |()| path);
                    self.file_error = Some(Incomplete { error, place });
                }
            }
        }
    }

    /// Ends the file and sums up.
    pub fn finish(mut self) -> (Report, Option<Incomplete>) {
        if let Some(writer) = self.writer.take() {
            self.file_error = writer.finish().err();
        }
        (self.analysis.report(), self.file_error)
    }
}
