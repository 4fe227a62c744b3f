//! The page of a trace, as Python sees it.

use crate::recording::{as_json, nanoseconds, unreadable};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use std::io;
use std::path::PathBuf;
use ungil_trace::page::{self, Options, PageError};

/// Writes the page of a trace, or of a part of it; see `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
#[pyo3(signature = (trace, page, shell, blame_after_ms, part=None, progress=None))]
pub fn write_page(
    py: Python<'_>,
    trace: PathBuf,
    page: PathBuf,
    shell: String,
    blame_after_ms: f64,
    part: Option<(u64, u64)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = Options {
        trace: &trace,
        page: &page,
        shell: &shell,
        blame_after_ns: nanoseconds(blame_after_ms)?,
        part,
        most_bytes: None,
    };
    let mut stopped = None;
    let written = py.detach(|| {
        page::write(&options, |records| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |it| it.call1(py, (records,)).map(|_| ()))
            });
            stopped = told.err();
            stopped.is_none()
        })
    });
    match written {
        Ok(report) => as_json(&report),
        Err(PageError::Stopped) => {
            Err(stopped.unwrap_or_else(|| PyRuntimeError::new_err("the page was stopped")))
        }
        Err(PageError::Read(error)) => Err(unreadable(error)),
        Err(PageError::Write(error)) => Err(not_written(&error, page)),
        Err(error @ PageError::Shell) => Err(PyRuntimeError::new_err(error.to_string())),
    }
}

/// The error names the page, as those of `open` name their file.
fn not_written(error: &io::Error, page: PathBuf) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), page)),
        None => PyOSError::new_err(error.to_string()),
    }
}
