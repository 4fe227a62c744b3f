//! Running processes that are looked at now and then, as Python sees them.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyProcessLookupError, PyRuntimeError};
use pyo3::prelude::*;
use ungil_trace::recorder::{self, LiveOptions, now_as_others_record_it};
use ungil_trace::stacks::{StackError, StackReader};

use crate::json::as_json;
use crate::recording::{nanoseconds, unprepared};
use crate::{attaching, hook};

/// A recording without a file; see `_native.pyi`.
#[pyclass(module = "ungil._native")]
pub struct Live {
    recorder: recorder::Recorder,
}

#[pymethods]
impl Live {
    #[new]
    #[pyo3(signature = (*, blame_after_ms, follow_children, counter=true))]
    fn new(blame_after_ms: f64, follow_children: bool, counter: bool) -> PyResult<Self> {
        let options = LiveOptions {
            blame_after_ns: nanoseconds(blame_after_ms)?,
            follow_children,
            hook: hook::path()?,
            counter,
        };
        let recorder = recorder::Recorder::live(options).map_err(unprepared)?;
        Ok(Self { recorder })
    }

    fn attach(&mut self, py: Python<'_>, pid: u32) -> PyResult<Option<f64>> {
        attaching::attach(py, &mut self.recorder, pid)
    }

    fn look(&self, py: Python<'_>) -> PyResult<String> {
        let look = py
            .detach(|| self.recorder.look())
            .ok_or_else(|| PyRuntimeError::new_err("no process is attached"))?;
        as_json(&look)
    }

    fn stop(&mut self, py: Python<'_>) {
        let Some(outcome) = py.detach(|| self.recorder.stop()) else { return };
        attaching::leave(py, outcome.staying);
    }
}

/// Who holds and who waits in a process that somebody else records; see `_native.pyi`.
#[pyfunction]
pub fn look_at_recorded(pid: u32) -> PyResult<Option<String>> {
    now_as_others_record_it(pid).map(|now| as_json(&now)).transpose()
}

/// The Python stacks of a process, read from outside; see `_native.pyi`.
#[pyclass(module = "ungil._native", frozen)]
pub struct Stacks {
    reader: Mutex<StackReader>,
}

#[pymethods]
impl Stacks {
    #[new]
    fn new(py: Python<'_>, pid: u32) -> PyResult<Self> {
        let reader = py.detach(|| StackReader::attach(pid, None)).map_err(unread)?;
        Ok(Self { reader: Mutex::new(reader) })
    }

    fn read(&self, py: Python<'_>) -> PyResult<String> {
        let read = || self.reader.lock().unwrap_or_else(PoisonError::into_inner).read_everyone();
        as_json(&py.detach(read).map_err(unread)?)
    }
}

fn unread(error: StackError) -> PyErr {
    match error {
        StackError::Gone => PyProcessLookupError::new_err(error.to_string()),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}
