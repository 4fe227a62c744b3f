//! `Operation`: what a primitive returns, and `await` takes.

use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use ungil_fanout::lean::resolver::Lookup;
use ungil_fanout::lean::{Direction, Want, hand};

use super::asked::ask;
use super::connecting::Connect;
use super::transfer::{Read, Write};
use crate::clock::seconds;

/// How far an operation has come, whose values are Python's.
pub type Progress = ungil_fanout::lean::Progress<Py<PyAny>>;

/// What an operation does.
pub enum Kind {
    /// It waits for this, once.
    Wait(Option<Want>),
    /// Connects.
    Connect(Box<Connect>),
    /// Reads from a connection.
    Read(Read),
    /// Writes to a connection.
    Write(Write),
    /// Nothing is left to do but to give or raise this, once.
    Known(Option<PyResult<Py<PyAny>>>),
}

/// What a primitive of `ungil.fanout` returns, to be awaited once.
///
/// The lean loop drives it directly; under asyncio, `ungil.fanout._primitives` does.
#[pyclass(subclass, module = "ungil._native")]
pub struct Operation {
    kind: Kind,
}

static DRIVE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

impl Operation {
    pub fn new(kind: Kind) -> Self {
        Self { kind }
    }

    /// Waits for this.
    pub fn wait(want: Want) -> Self {
        Self::new(Kind::Wait(Some(want)))
    }

    /// Gives this at once.
    pub fn known(value: Py<PyAny>) -> Self {
        Self::new(Kind::Known(Some(Ok(value))))
    }

    /// Does what can be done now.
    fn advance(&mut self, py: Python<'_>) -> PyResult<Progress> {
        let progress = match &mut self.kind {
            Kind::Connect(connect) => connect.advance(py),
            Kind::Read(read) => read.advance(py),
            Kind::Write(write) => write.advance(py),
            Kind::Wait(want) => {
                Ok(want.take().map_or_else(|| Progress::Done(py.None()), Progress::Wait))
            }
            Kind::Known(known) => {
                known.take().unwrap_or_else(|| Err(awaited_already())).map(Progress::Done)
            }
        };
        match progress {
            Ok(Progress::Wait(_)) => {}
            // The connection is closed at the end of `async with`.
            Ok(_) if matches!(self.kind, Kind::Connect(_)) => {}
            _ => self.kind = Kind::Known(None),
        }
        progress
    }

    /// As [`Self::advance`], but whoever never has to wait lets others go first at times.
    fn advance_in_turn(&mut self, py: Python<'_>) -> PyResult<Progress> {
        let known = match self.advance(py) {
            Ok(Progress::Done(value)) => Ok(value),
            Ok(wait) => return Ok(wait),
            Err(error) => Err(error),
        };
        // A connection that was made is closed at the end of `async with`: it is not forgotten here.
        if (known.is_ok() && self.connect().is_some()) || hand::may_go_on() {
            return known.map(Progress::Done);
        }
        self.kind = Kind::Known(Some(known));
        Ok(Progress::Wait(Want::Sleep(0)))
    }

    /// If that is what it does.
    pub fn connect(&self) -> Option<&Connect> {
        match &self.kind {
            Kind::Connect(connect) => Some(connect),
            _ => None,
        }
    }
}

/// For what can be awaited once.
pub fn awaited_already() -> PyErr {
    PyRuntimeError::new_err("this has been awaited already")
}

#[pymethods]
impl Operation {
    fn __await__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        if hand::driver().is_some() {
            return Ok(slf.into_any());
        }
        let py = slf.py();
        let drive = DRIVE.get_or_try_init(py, || {
            py.import("ungil.fanout._primitives")?.getattr("drive").map(Bound::unbind)
        })?;
        drive.bind(py).call1((slf,))?.call_method0("__await__")
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.advance_in_turn(py)? {
            Progress::Wait(want) => ask(py, want).map(Some),
            Progress::Done(value) if value.is_none(py) => Ok(None),
            Progress::Done(value) => Err(PyStopIteration::new_err((value,))),
        }
    }

    /// Raises in the place of going on. What it waited for is free for others.
    #[pyo3(signature = (exception, value = None, _traceback = None))]
    fn throw(
        &mut self,
        exception: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close();
        Err(PyErr::from_value(value.unwrap_or(exception)))
    }

    /// Ends it before its time.
    fn close(&mut self) {
        self.kind = Kind::Known(None);
    }

    /// For other event loops: `(None, value)` at the end, else what has to happen before it is
    /// called again. That is `("sleep", seconds)`, `("read", descriptor)`, `("write", descriptor)`
    /// or `("call", function)`, a function that takes its time and lets other threads run.
    fn _advance<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<(Option<&'static str>, Bound<'py, PyAny>)> {
        Ok(match self.advance_in_turn(py)? {
            Progress::Done(value) => (None, value.into_bound(py)),
            Progress::Wait(Want::Sleep(nanoseconds)) => {
                (Some("sleep"), seconds(nanoseconds).into_pyobject(py)?.into_any())
            }
            Progress::Wait(Want::Ready { fd, direction, .. }) => {
                let name = match direction {
                    Direction::Read => "read",
                    Direction::Write => "write",
                };
                (Some(name), fd.into_pyobject(py)?.into_any())
            }
            Progress::Wait(Want::Lookup(lookup)) => (Some("call"), function(py, lookup)?),
        })
    }
}

/// A lookup as a function of Python, for the threads of another event loop.
fn function(py: Python<'_>, lookup: Arc<Lookup>) -> PyResult<Bound<'_, PyAny>> {
    let run = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        arguments.py().detach(|| lookup.run());
    };
    Ok(PyCFunction::new_closure(py, None, None, run)?.into_any())
}
