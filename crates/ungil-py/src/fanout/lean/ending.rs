//! How coroutines are ended before their time, and what is said of it.

use pyo3::create_exception;
use pyo3::exceptions::{PyBaseException, PyRuntimeError, PyTimeoutError};
use pyo3::prelude::*;

create_exception!(
    ungil.fanout,
    Cancelled,
    PyBaseException,
    "Raised in a coroutine of a lean fan-out where it waits, when it has reached its timeout or \
     nobody waits for it any more.\n\nA BaseException, so that `except Exception` does not catch \
     it. Under \
     asyncio, asyncio.CancelledError is in its place."
);

create_exception!(
    ungil.fanout,
    CutOff,
    PyRuntimeError,
    "The item was running when the fan-out was stopped, and was cancelled.\n\nThe exception that \
     ended it is its `__cause__`."
);

/// Why a coroutine was cancelled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its time was over.
    TimedOut,
    /// The fan-out was closed.
    Closed,
}

/// How a coroutine ended.
pub type End = Result<Py<PyAny>, PyErr>;

/// The exception that cancels.
pub fn cancellation(py: Python<'_>) -> Py<PyBaseException> {
    Cancelled::new_err("").into_value(py)
}

/// The exception of an item that did not end by itself, with what ended it.
pub fn cut_off(py: Python<'_>, cause: PyErr) -> Py<PyBaseException> {
    let error = CutOff::new_err("cut off: the fan-out was stopped while it ran");
    error.set_cause(py, Some(cause));
    error.into_value(py)
}

/// The exception of an item whose time was over, with what its coroutine made of that.
pub fn timed_out(py: Python<'_>, seconds: f64, end: Option<End>) -> Py<PyBaseException> {
    let error = PyTimeoutError::new_err(format!("not done within {seconds} s"));
    match end {
        None => note(py, &error, "it caught its cancellation, and goes on"),
        Some(Ok(_)) => note(py, &error, "it caught its cancellation, and returned"),
        // Its traceback tells what it was waiting for, or what failed while it was cleaning up.
        Some(Err(cause)) => error.set_cause(py, Some(cause)),
    }
    error.into_value(py)
}

/// The exception for a coroutine that yields what is meant for another event loop.
pub fn foreign(name: &str, yielded: &Bound<'_, PyAny>) -> Py<PyBaseException> {
    let py = yielded.py();
    let is_future = yielded.hasattr("_asyncio_future_blocking").unwrap_or(false);
    let text = if is_future {
        format!("{name} awaits asyncio: pass mode=\"asyncio\"")
    } else {
        let kind = yielded.get_type();
        let kind = kind.fully_qualified_name().map_or_else(|_| "?".into(), |name| name.to_string());
        format!(
            "{name} awaits {kind}, which mode=\"lean\" cannot wait for: use the functions of \
             ungil.fanout"
        )
    };
    PyRuntimeError::new_err(text).into_value(py)
}

/// Adds what to do to an exception that asyncio raised because it is not there.
pub fn advise(py: Python<'_>, error: &PyErr) {
    if error.is_instance_of::<PyRuntimeError>(py)
        && error.value(py).to_string() == "no running event loop"
    {
        note(py, error, "mode=\"lean\" runs without asyncio: pass mode=\"asyncio\"");
    }
}

fn note(py: Python<'_>, error: &PyErr, text: &str) {
    // An exception that cannot take a note is good enough without.
    let _ = error.value(py).call_method1("add_note", (text,));
}
