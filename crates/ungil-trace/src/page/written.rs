//! Writes the page of a trace file.

use super::adviser::{Adviser, shortened};
use super::assembled::Page;
use super::collected::Collected;
use super::shell::Shell;
use crate::perfetto::{self, Ending, ReadError, temporary_name, what_is_cut};
use crate::report::Report;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// A page of this many bytes is still passed around.
const MOST_BYTES: usize = 20_000_000;
/// Traces up to so many bytes keep their nanoseconds, and up to so many tenths of microseconds.
const NANOSECONDS: u64 = 8_000_000;
const TENTHS: u64 = 50_000_000;
/// Records between two words on how far it is.
const PROGRESS: u64 = 65_536;

/// What page is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The trace.
    pub trace: &'a Path,
    /// The page, which is replaced if it exists.
    pub page: &'a Path,
    /// The page without data.
    pub shell: &'a str,
    /// Holds of at least this length are listed one by one; see [`crate::analysis::Analysis::new`].
    pub blame_after_ns: u64,
    /// From and to when, if it is about a part of the trace.
    pub part: Option<(u64, u64)>,
    /// The most that it may have, if that is less than 20 MB.
    pub most_bytes: Option<usize>,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The page cannot be written.
    #[error("{0}")]
    Write(#[source] io::Error),
    /// Nobody wants it any more.
    #[error("the page was cancelled")]
    Stopped,
    /// The page without data is not one.
    #[error("the page template of ungil is damaged; reinstall ungil")]
    Shell,
}

/// Writes the page of a trace, and returns its report, and what `adviser` advises about it.
///
/// `goes_on` is told now and then how many records were read, and says whether to go on. The page gets its name when it is
/// complete; until then it is a hidden file beside it, which is removed if anything fails.
pub fn write(
    options: &Options,
    mut adviser: Option<&mut dyn Adviser>,
    mut goes_on: impl FnMut(u64) -> bool,
) -> Result<(Report, Option<Value>), PageError> {
    let shell = Shell::parse(options.shell).ok_or(PageError::Shell)?;
    let most_bytes = options.most_bytes.unwrap_or(MOST_BYTES).min(MOST_BYTES);
    let clock = perfetto::wall_clock(options.trace).map_err(ReadError::Io)?;
    let size = fs::metadata(options.trace).map_err(ReadError::Io)?.len();
    let unit_ns = if size <= NANOSECONDS {
        1
    } else if size <= TENTHS {
        100
    } else {
        1_000
    };
    let mut collected =
        Collected::new(options.blame_after_ns, clock, options.part, unit_ns, most_bytes);
    let (mut records, mut is_wanted) = (0, true);
    let ending = perfetto::read(options.trace, |record| {
        if !is_wanted {
            return;
        }
        collected.push(&record);
        if let Some(adviser) = &mut adviser {
            adviser.push(&record);
        }
        records += 1;
        if records % PROGRESS == 0 {
            is_wanted = goes_on(records);
        }
    })?;
    if !is_wanted || !goes_on(records) {
        return Err(PageError::Stopped);
    }
    let mut report = collected.finish();
    if ending == Ending::Cut {
        let length_ns = collected.span.end_ns() - collected.span.started_ns();
        report.notes.insert(0, what_is_cut(options.trace, length_ns));
    }
    let advice = adviser.map(|it| it.advise(&report));
    let source = options.trace.file_name().unwrap_or_default().to_string_lossy();
    let shown = advice.as_ref().map(shortened);
    let page = Page::new(&source, options.blame_after_ns, shown.as_ref());
    let room = most_bytes.saturating_sub(shell.len());
    let whole_report = report.clone();
    let (summary, blocks) = page.assemble(collected, report, room).map_err(PageError::Write)?;
    let title = format!("ungil: {source}");
    save(options.page, |out| shell.write(out, &title, &summary, &blocks))
        .map_err(PageError::Write)?;
    Ok((whole_report, advice))
}

/// Writes a file beside `path`, and then gives it that name.
fn save(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    // What the path leads to is replaced, not a link that leads there.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = Temporary(temporary_name(&target, 0)?);
    let file = File::create(&temporary.0)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?;
    fs::rename(&temporary.0, &target)
}

/// A file that goes, unless it has got another name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
