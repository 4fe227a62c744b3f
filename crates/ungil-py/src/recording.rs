//! The recorder and the reader of traces, as Python sees them.

use crate::advising::WithAdvice;
pub use crate::json::as_json;
use crate::{attaching, hook};
use pyo3::exceptions::{PyLookupError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ungil_simulate::Collector;
use ungil_trace::analysis::{Analysis, Least, Part, Span};
use ungil_trace::flight::{Condition, Limit};
use ungil_trace::perfetto::{
    self, Ending, Incomplete, Overwrite, ReadError, Unfinished, what_is_cut,
};
use ungil_trace::recorder::{
    self, Ask, AskError, CreateError, Exchange, FlightOptions, MOST_BYTES, RecorderOptions,
};
use ungil_trace::report::{JudgedReport, Report};
use ungil_trace::timeline::Timeline;

/// A recording; see `_native.pyi`.
#[pyclass(module = "ungil._native")]
pub struct Recorder {
    recorder: recorder::Recorder,
    incomplete: Option<Incomplete>,
    /// What was judged when it stopped.
    judged: JudgedReport,
    /// What it reported when it stopped.
    report: Option<Report>,
}

#[pymethods]
impl Recorder {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    #[expect(clippy::fn_params_excessive_bools, reason = "Python gives them by name")]
    #[pyo3(signature = (
        path, *, overwrite, blame_after_ms, follow_children, counter=true, judged_from_ms=None,
        flight=None, native=false
    ))]
    fn new(
        path: Option<PathBuf>,
        overwrite: bool,
        blame_after_ms: f64,
        follow_children: bool,
        counter: bool,
        judged_from_ms: Option<(f64, f64)>,
        flight: Option<Flight>,
        native: bool,
    ) -> PyResult<Self> {
        let least = |(hold_ms, wait_ms)| {
            PyResult::Ok(Least { hold_ns: nanoseconds(hold_ms)?, wait_ns: nanoseconds(wait_ms)? })
        };
        let options = RecorderOptions {
            path,
            overwrite: if overwrite { Overwrite::Replace } else { Overwrite::Refuse },
            blame_after_ns: nanoseconds(blame_after_ms)?,
            follow_children,
            hook: hook::path()?,
            counter,
            native,
            judged: judged_from_ms.map(least).transpose()?,
            flight: flight.map(flight_options).transpose()?,
        };
        let recorder = recorder::Recorder::create(options).map_err(unprepared)?;
        let judged = JudgedReport::default();
        Ok(Self { recorder, incomplete: None, judged, report: None })
    }

    fn environment(
        &self,
        mut base: HashMap<String, OsString>,
    ) -> PyResult<HashMap<String, OsString>> {
        let preload = base.get("LD_PRELOAD").map(OsString::as_os_str);
        let variables = self.recorder.environment(preload).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
            _ => error.into(),
        })?;
        for (name, value) in variables {
            base.insert(name.to_string_lossy().into_owned(), value);
        }
        Ok(base)
    }

    fn start(&mut self, executable: PathBuf) -> PyResult<()> {
        Ok(self.recorder.start(executable)?)
    }

    /// This very process joins, and is recorded from now on.
    fn join(&mut self) -> PyResult<()> {
        let request = self.recorder.request(std::process::id()).map_err(unprepared)?;
        let hook = hook::Hook::get().map_err(PyRuntimeError::new_err)?;
        hook.request(&request).map_err(PyRuntimeError::new_err)?;
        Ok(self.recorder.start(std::env::current_exe()?)?)
    }

    /// A process that runs joins, and is recorded from now on.
    fn attach(&mut self, py: Python<'_>, pid: u32) -> PyResult<Option<f64>> {
        attaching::attach(py, &mut self.recorder, pid)
    }

    fn status(&self) -> PyResult<String> {
        serde_json::to_string(&self.recorder.status())
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    fn judged(&mut self, py: Python<'_>) -> PyResult<String> {
        let judged = py.detach(|| self.recorder.judged());
        as_json(&judged.unwrap_or_else(|| std::mem::take(&mut self.judged)))
    }

    fn snapshots(&self) -> Snapshots {
        Snapshots(self.recorder.exchange())
    }

    fn stop(&mut self, py: Python<'_>) -> PyResult<String> {
        let outcome = py
            .detach(|| self.recorder.stop())
            .ok_or_else(|| PyRuntimeError::new_err("the recorder is not running"))?;
        self.incomplete = outcome.file_error;
        attaching::leave(py, outcome.staying);
        self.judged = outcome.judged;
        self.report = outcome.report;
        as_json(&self.report)
    }

    /// The report with the advice that needs no simulation.
    fn with_causes(&self, py: Python<'_>) -> PyResult<String> {
        let report = self.report.as_ref();
        let report = report.ok_or_else(|| PyRuntimeError::new_err("there is no report"))?;
        as_json(&py.detach(|| WithAdvice::of_causes(report)))
    }

    /// Why the trace file is not whole or not under its name, and where it is.
    #[getter]
    fn incomplete(&self) -> Option<(String, OsString)> {
        self.incomplete.as_ref().map(|it| (it.error.to_string(), it.place.clone().into_os_string()))
    }
}

/// The snapshots of a flight recorder; see `_native.pyi`.
#[pyclass(module = "ungil._native", frozen)]
pub struct Snapshots(Arc<Exchange>);

#[pymethods]
impl Snapshots {
    #[pyo3(signature = (path=None))]
    fn take(&self, py: Python<'_>, path: Option<PathBuf>) -> PyResult<String> {
        let written = py
            .detach(|| self.0.ask_and_wait(path))
            .ok_or_else(|| PyRuntimeError::new_err("no flight recorder is running"))?;
        as_json(&written)
    }

    fn ask(&self) {
        self.0.ask(Ask { path: None, answer: None });
    }

    fn next(&self, py: Python<'_>, patience_s: f64) -> PyResult<Option<String>> {
        let patience = Duration::try_from_secs_f64(patience_s)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.detach(|| self.0.next(patience)).map(|written| as_json(&written)).transpose()
    }
}

impl Recorder {
    /// Through what snapshots are asked for.
    pub fn exchange(&self) -> Arc<Exchange> {
        self.recorder.exchange()
    }
}

/// What a flight recorder keeps: seconds, conditions as name and milliseconds, how many files stay,
/// and whether stalls are written.
type Flight = (f64, Vec<(String, f64)>, Option<usize>, bool);

fn flight_options((last_s, conditions, max_files, writes): Flight) -> PyResult<FlightOptions> {
    let condition = |(limit, ms): (String, f64)| {
        let limit = match limit.as_str() {
            "wait" => Limit::Wait,
            "hold" => Limit::Hold,
            other => {
                let what = format!("{other:?} is neither \"wait\" nor \"hold\"");
                return Err(PyValueError::new_err(what));
            }
        };
        Ok(Condition { limit, over_ns: nanoseconds(ms)? })
    };
    Ok(FlightOptions {
        last_ns: nanoseconds(last_s * 1e3)?,
        conditions: conditions.into_iter().map(condition).collect::<PyResult<_>>()?,
        max_files,
        writes_stalls: writes,
        most_bytes: MOST_BYTES,
    })
}

/// Asks another process's recorder for a snapshot; see `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
#[pyo3(signature = (pid, path=None))]
pub fn ask_for_snapshot(py: Python<'_>, pid: u32, path: Option<PathBuf>) -> PyResult<String> {
    py.detach(|| recorder::ask_for_snapshot(pid, path.as_deref())).map_err(|error| match error {
        AskError::Silent { .. } => PyOSError::new_err(error.to_string()),
        other => PyLookupError::new_err(other.to_string()),
    })
}

/// Removes sessions whose recorder was killed; where they were, and how many bytes they took.
#[pyfunction]
pub fn remove_dead_sessions() -> Vec<(OsString, u64)> {
    let removed = recorder::remove_dead_sessions().into_iter();
    removed.map(|it| (it.path.into_os_string(), it.bytes)).collect()
}

/// The unfinished traces that were to be called `path`, the latest first, and whether their
/// recorders live.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn unfinished_traces(path: PathBuf) -> Vec<(OsString, bool)> {
    let found = Unfinished::beside(&path).into_iter();
    found.map(|it| (it.path.into_os_string(), it.is_being_written)).collect()
}

/// The report of a trace file, or of a part of it; see `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
#[expect(clippy::similar_names, reason = "a part of a path's trace")]
#[pyo3(signature = (
    path, blame_after_ms, part=None, *, advise=false, simulate=true, advise_within_s=None
))]
pub fn read_trace(
    py: Python<'_>,
    path: PathBuf,
    blame_after_ms: f64,
    part: Option<(u64, u64)>,
    advise: bool,
    simulate: bool,
    advise_within_s: Option<f64>,
) -> PyResult<String> {
    let within = advise_within_s.map(Duration::try_from_secs_f64).transpose();
    let within = within.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let until = within.map(|within| Instant::now() + within);
    let blame_after_ns = nanoseconds(blame_after_ms)?;
    let clock = perfetto::wall_clock(&path)?;
    // Where a trace ends early is told of all of it, whatever the part.
    let mut span = Span::default();
    // What is wanted in a part of a trace is not simulated.
    let mut demand = (advise && simulate && part.is_none()).then(Collector::default);
    let read = py.detach(|| match part {
        None => {
            let mut analysis = Analysis::new(blame_after_ns).with_wall_clock(clock);
            let ending = perfetto::read_ahead(&path, |record| {
                span.push(&record);
                analysis.push(&record);
                if let Some(demand) = &mut demand {
                    demand.push(&record);
                }
            });
            ending.map(|ending| (ending, analysis.report()))
        }
        Some((from_ns, to_ns)) => {
            let mut analysis = Part::new(blame_after_ns, clock, from_ns, to_ns);
            let ending = perfetto::read(&path, |record| {
                span.push(&record);
                analysis.push(&record);
            });
            ending.map(|ending| (ending, analysis.report()))
        }
    });
    let (ending, mut report) = read.map_err(unreadable)?;
    if let Some(told) = cut(&path, ending, &span) {
        report.notes.insert(0, told);
    }
    if advise && !simulate {
        return as_json(&py.detach(|| WithAdvice::of_causes(&report)));
    }
    let advised = advise.then(|| {
        py.detach(|| {
            let demands = demand.map_or_else(Vec::new, Collector::finish);
            ungil_advise::advise_until(&report, &demands, until)
        })
    });
    as_json(&WithAdvice::new(&report, advised.flatten()))
}

/// Start and end in ns, the time of day at the start, and a sentence about a trace that is cut.
type Extent = (u64, u64, Option<i128>, Option<String>);

/// Start and end of a trace file, and what day it was at its start; see `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn trace_span(py: Python<'_>, path: PathBuf) -> PyResult<Extent> {
    let clock = perfetto::wall_clock(&path)?;
    let mut span = Span::default();
    let ending =
        py.detach(|| perfetto::read(&path, |record| span.push(&record))).map_err(unreadable)?;
    let unix_ns = clock.map(|clock| clock.unix_ns(span.started_ns()));
    Ok((span.started_ns(), span.end_ns(), unix_ns, cut(&path, ending, &span)))
}

/// Says where a trace of this ending ends, if that is too early.
pub fn cut(path: &Path, ending: Ending, span: &Span) -> Option<String> {
    (ending == Ending::Cut).then(|| what_is_cut(path, span.end_ns() - span.started_ns()))
}

/// Process, GIL, thread, whether it held (or waited), begin and end in nanoseconds.
type Stretch = (u32, u8, u32, bool, u64, u64);

/// Who held and who waited, one by one; see `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn trace_stretches(
    py: Python<'_>,
    path: PathBuf,
    from_ns: u64,
    until_ns: u64,
) -> PyResult<Vec<Stretch>> {
    let mut timeline = Timeline::new(from_ns, until_ns);
    py.detach(|| perfetto::read(&path, |record| timeline.push(&record))).map_err(unreadable)?;
    let stretches = timeline.stretches().into_iter();
    Ok(stretches.map(|it| (it.pid, it.gil, it.tid, it.held, it.begin_ns, it.end_ns)).collect())
}

/// Why there can be no recording.
pub fn unprepared(error: CreateError) -> PyErr {
    match error {
        CreateError::File(error) => error.into(),
        CreateError::Session(error) => PyRuntimeError::new_err(error.to_string()),
    }
}

pub fn unreadable(error: ReadError) -> PyErr {
    match error {
        ReadError::Io(error) => error.into(),
        other => PyValueError::new_err(other.to_string()),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be positive; a cast from float saturates"
)]
pub fn nanoseconds(milliseconds: f64) -> PyResult<u64> {
    if milliseconds.is_finite() && milliseconds >= 0.0 {
        return Ok((milliseconds * 1e6) as u64);
    }
    Err(PyValueError::new_err(format!("{milliseconds} is not a number of milliseconds")))
}
