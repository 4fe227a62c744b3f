//! `Outcome`: what became of one item.

use std::sync::Mutex;

use pyo3::exceptions::{PyBaseException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};
use ungil_fanout::attempt::Attempt;
use ungil_fanout::dispatch::Membership;
use ungil_fanout::limit::Ticket;

use crate::clock::{seconds, since_1970};

/// What is not there before an item has run to its end. Its times are of the clock that never goes
/// back.
#[derive(Default)]
struct End {
    value: Option<Py<PyAny>>,
    exception: Option<Py<PyBaseException>>,
    attempts: u32,
    started: u64,
    finished: u64,
    /// What makes seconds since 1970 of these times, as it was when the last attempt began.
    since_1970: Option<i64>,
    abandoned: bool,
    resumed: bool,
    ticket: Ticket,
}

impl End {
    /// Seconds since 1970 of one of the times; 0 for one that is still to come.
    fn epoch(&self, time: u64) -> f64 {
        if time == 0 {
            return 0.0;
        }
        let offset = self.since_1970.unwrap_or_else(since_1970);
        seconds(time.saturating_add_signed(offset))
    }
}

/// The outcome of one item: the value that the function returned, or the exception that it raised.
#[pyclass(frozen, generic, module = "ungil.fanout")]
pub struct Outcome {
    /// The item, as it came from the input.
    #[pyo3(get)]
    pub item: Py<PyAny>,
    /// Its place in the input, from 0.
    #[pyo3(get)]
    pub index: u64,
    queued: u64,
    pub membership: Membership,
    end: Mutex<End>,
}

impl Outcome {
    pub fn new(item: Py<PyAny>, index: u64, queued: u64, membership: Membership) -> Self {
        Self { item, index, queued, membership, end: Mutex::default() }
    }

    /// Of an item that an earlier run has done, and that does not run.
    pub fn of_earlier_run(item: Py<PyAny>, index: u64, now: u64, value: Py<PyAny>) -> Self {
        let end = End {
            value: Some(value),
            started: now,
            finished: now,
            since_1970: Some(since_1970()),
            resumed: true,
            ..End::default()
        };
        Self { item, index, queued: now, membership: None, end: Mutex::new(end) }
    }

    fn end(&self) -> std::sync::MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn begin(&self, now: u64, ticket: Ticket) {
        let mut end = self.end();
        end.ticket = ticket;
        end.started = now;
        end.since_1970 = Some(since_1970());
        end.attempts += 1;
    }

    /// The attempt that was begun last was none.
    pub fn never_began(&self) {
        let mut end = self.end();
        end.attempts = end.attempts.saturating_sub(1);
    }

    pub fn attempts_so_far(&self) -> u32 {
        self.end().attempts
    }

    pub fn started_at(&self) -> u64 {
        self.end().started
    }

    /// The attempt that runs.
    pub fn attempt(&self) -> Attempt {
        let end = self.end();
        Attempt { membership: self.membership, started: end.started, ticket: end.ticket }
    }

    pub fn succeed(&self, value: Py<PyAny>, now: u64) {
        let mut end = self.end();
        end.value = Some(value);
        end.finished = now;
    }

    pub fn fail(&self, exception: Py<PyBaseException>, abandoned: bool, now: u64) {
        let mut end = self.end();
        end.exception = Some(exception);
        end.abandoned = abandoned;
        end.finished = now;
        if end.attempts == 0 {
            // It never ran.
            end.started = now;
            end.since_1970 = Some(since_1970());
        }
    }
}

#[pymethods]
impl Outcome {
    /// What the function returned; `None` where it raised.
    #[getter]
    fn value(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.end().value.as_ref().map(|value| value.clone_ref(py))
    }

    /// What the last attempt raised; `None` where it returned.
    #[getter]
    fn exception(&self, py: Python<'_>) -> Option<Py<PyBaseException>> {
        self.end().exception.as_ref().map(|exception| exception.clone_ref(py))
    }

    /// How often the function was called for the item.
    #[getter]
    fn attempts(&self) -> u32 {
        self.end().attempts
    }

    /// When the item was taken from the input, in seconds since 1970.
    #[getter]
    fn queued(&self) -> f64 {
        self.end().epoch(self.queued)
    }

    /// When the last attempt began, in seconds since 1970, as `time.time` gives them. For an item
    /// that never ran, the time when it was given up.
    #[getter]
    fn started(&self) -> f64 {
        let end = self.end();
        end.epoch(end.started)
    }

    /// When the last attempt ended, in seconds since 1970: `seconds` after `started`, also if the
    /// system's clock was set meanwhile.
    #[getter]
    fn finished(&self) -> f64 {
        let end = self.end();
        end.epoch(end.finished)
    }

    /// How many seconds the last attempt took, by the monotonic clock.
    #[getter]
    fn seconds(&self) -> f64 {
        let end = self.end();
        seconds(end.finished.saturating_sub(end.started))
    }

    /// Whether the function goes on after its timeout: a thread cannot be stopped.
    #[getter]
    fn abandoned(&self) -> bool {
        self.end().abandoned
    }

    /// Whether the item did not run, because a journal says that an earlier run has done it. The
    /// value is the journal's.
    #[getter]
    fn resumed(&self) -> bool {
        self.end().resumed
    }

    /// Whether the function returned.
    #[getter]
    fn ok(&self) -> bool {
        self.end().exception.is_none()
    }

    /// The value, or raises the exception.
    fn unwrap(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // One after the other: what an exception is made of takes locks of Python's.
        if let Some(exception) = self.exception(py) {
            return Err(PyErr::from_value(exception.into_bound(py).into_any()));
        }
        self.value(py).ok_or_else(|| PyRuntimeError::new_err("the item has not run to its end"))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let item = self.item.bind(py).repr()?;
        let (what, of) = match (self.exception(py), self.value(py)) {
            (Some(exception), _) => ("exception", exception.bind(py).repr()?),
            (None, Some(value)) => ("value", value.bind(py).repr()?),
            (None, None) => return Ok(format!("<Outcome of {item}, not finished>")),
        };
        Ok(format!("<Outcome of {item}: {what} {of}>"))
    }

    /// As it crosses to another process: from an engine's worker to its caller.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let this = slf.get();
        let (attempts, started, finished, offset, abandoned, resumed) = {
            let end = this.end();
            let offset = end.since_1970.unwrap_or_else(since_1970);
            (end.attempts, end.started, end.finished, offset, end.abandoned, end.resumed)
        };
        let state = (
            (&this.item, this.index, this.value(py), this.exception(py)),
            (attempts, this.queued, started, finished, offset, abandoned, resumed),
        );
        (slf.get_type().getattr("_of")?, state).into_pyobject(py)
    }

    /// What [`Self::__reduce__`] took apart.
    #[staticmethod]
    fn _of(
        what: (Py<PyAny>, u64, Py<PyAny>, Option<Py<PyBaseException>>),
        when: (u32, u64, u64, u64, i64, bool, bool),
    ) -> Self {
        let (item, index, value, exception) = what;
        let (attempts, queued, started, finished, offset, abandoned, resumed) = when;
        // Without an exception, None is what the function returned.
        let value = exception.is_none().then_some(value);
        let end = End {
            value,
            exception,
            attempts,
            started,
            finished,
            since_1970: Some(offset),
            abandoned,
            resumed,
            ticket: Ticket::default(),
        };
        Self { item, index, queued, membership: None, end: Mutex::new(end) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.item)?;
        // The collector may come while another thread is inside; it finds nothing then.
        if let Ok(end) = self.end.try_lock() {
            visit.call(&end.value)?;
            visit.call(&end.exception)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let end = std::mem::take(&mut *self.end());
        drop(end);
    }
}
