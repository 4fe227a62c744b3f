//! The page of a trace, as Python sees it.

use crate::advising::{self, WithAdvice};
use crate::recording::{as_json, nanoseconds, unreadable};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use serde_json::Value;
use std::io;
use std::path::PathBuf;
use ungil_advise::Advised;
use ungil_simulate::Collector;
use ungil_trace::Record;
use ungil_trace::page::{self, Adviser, Options, PageError};
use ungil_trace::report::Report;

/// Writes the page of a trace, or of a part of it; see `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
#[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
#[pyo3(signature = (
    trace, page, shell, blame_after_ms, part=None, progress=None, *, advise=false, simulate=true,
    most_bytes=None
))]
pub fn write_page(
    py: Python<'_>,
    trace: PathBuf,
    page: PathBuf,
    shell: String,
    blame_after_ms: f64,
    part: Option<(u64, u64)>,
    progress: Option<Py<PyAny>>,
    advise: bool,
    simulate: bool,
    most_bytes: Option<usize>,
) -> PyResult<String> {
    let options = Options {
        trace: &trace,
        page: &page,
        shell: &shell,
        blame_after_ns: nanoseconds(blame_after_ms)?,
        part,
        most_bytes,
    };
    let mut replay = advise.then(|| Replay {
        // What is wanted in a part of a trace is not simulated.
        demand: (simulate && part.is_none()).then(Collector::default),
        simulates: simulate,
        advised: None,
        remedies_left_out: false,
    });
    let mut stopped = None;
    let written = py.detach(|| {
        let adviser = replay.as_mut().map(|it| it as &mut dyn Adviser);
        page::write(&options, adviser, |records| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |it| it.call1(py, (records,)).map(|_| ()))
            });
            stopped = told.err();
            stopped.is_none()
        })
    });
    match written {
        Ok((report, _)) => {
            let remedies_left_out = replay.as_ref().is_some_and(|it| it.remedies_left_out);
            let advised = replay.and_then(|it| it.advised);
            as_json(&WithAdvice { report: &report, advised, remedies_left_out })
        }
        Err(PageError::Stopped) => {
            Err(stopped.unwrap_or_else(|| PyRuntimeError::new_err("the page was stopped")))
        }
        Err(PageError::Read(error)) => Err(unreadable(error)),
        Err(PageError::Write(error)) => Err(not_written(&error, page)),
        Err(error @ PageError::Shell) => Err(PyRuntimeError::new_err(error.to_string())),
    }
}

/// Advises by replaying what the threads of the trace wanted, or without that.
#[derive(Debug)]
struct Replay {
    demand: Option<Collector>,
    simulates: bool,
    advised: Option<Advised>,
    remedies_left_out: bool,
}

impl Adviser for Replay {
    fn push(&mut self, record: &Record) {
        if let Some(demand) = &mut self.demand {
            demand.push(record);
        }
    }

    fn advise(&mut self, report: &Report) -> Value {
        let advised = if self.simulates {
            let demands = self.demand.take().map_or_else(Vec::new, Collector::finish);
            ungil_advise::advise(report, &demands)
        } else {
            let (advised, is_less) = advising::causes(report);
            self.remedies_left_out = is_less;
            advised
        };
        let advised = self.advised.insert(advised);
        serde_json::to_value(advised).expect("advice has texts as keys")
    }
}

/// The error names the page, as those of `open` name their file.
fn not_written(error: &io::Error, page: PathBuf) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), page)),
        None => PyOSError::new_err(error.to_string()),
    }
}
