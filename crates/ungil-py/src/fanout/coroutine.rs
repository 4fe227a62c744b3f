//! One step of a coroutine, whoever drives it.

use std::ptr;

use pyo3::exceptions::{PyBaseException, PyStopIteration, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// How a step ended.
pub enum Step {
    /// It waits for this, which it has yielded.
    Yielded(Py<PyAny>),
    /// It returned.
    Returned(Py<PyAny>),
    /// It raised.
    Raised(PyErr),
}

/// The type of coroutines, when one was seen: it has no name in any module.
static COROUTINE: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// What drives an awaitable: itself if it is a coroutine.
pub fn iterator<'py>(
    function: &Bound<'py, PyAny>,
    made: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let kind = made.get_type();
    if let Some(coroutine) = COROUTINE.get(made.py())
        && kind.is(coroutine)
    {
        return Ok(made);
    }
    if kind.name()? == "coroutine" && kind.module()? == "builtins" {
        let _ = COROUTINE.set(made.py(), kind.unbind());
        return Ok(made);
    }
    match kind.getattr_opt("__await__")? {
        Some(method) => method.call1((made,)),
        None => Err(PyTypeError::new_err(format!(
            "{} returned {}, which cannot be awaited",
            name(function),
            made.repr()?
        ))),
    }
}

/// What to call a function in a sentence.
pub fn name(function: &Bound<'_, PyAny>) -> String {
    let name = function.getattr("__qualname__").or_else(|_| function.repr().map(Bound::into_any));
    name.map_or_else(|_| "the function".to_owned(), |name| format!("{name}()"))
}

/// Goes on where it yielded.
pub fn send(py: Python<'_>, iterator: &Py<PyAny>) -> Step {
    let mut result = ptr::null_mut();
    let none = py.None();
    // SAFETY: references to an iterator and to None, and a writable place.
    let sent = unsafe { ffi::PyIter_Send(iterator.as_ptr(), none.as_ptr(), &raw mut result) };
    if let ffi::PySendResult::PYGEN_ERROR = sent {
        return Step::Raised(PyErr::fetch(py));
    }
    // SAFETY: both good results leave a new reference there.
    let object = unsafe { Bound::from_owned_ptr(py, result) }.unbind();
    match sent {
        ffi::PySendResult::PYGEN_RETURN => Step::Returned(object),
        _ => Step::Yielded(object),
    }
}

/// Raises an exception where it yielded.
pub fn throw(py: Python<'_>, iterator: &Py<PyAny>, exception: Py<PyBaseException>) -> Step {
    let method = match iterator.bind(py).getattr_opt("throw") {
        Ok(Some(method)) => method,
        // Iterators need not have it: then it is raised at the await.
        Ok(None) => return Step::Raised(PyErr::from_value(exception.into_bound(py).into_any())),
        Err(error) => return Step::Raised(error),
    };
    match method.call1((exception,)) {
        Ok(object) => Step::Yielded(object.unbind()),
        Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
            match error.value(py).getattr("value") {
                Ok(value) => Step::Returned(value.unbind()),
                Err(error) => Step::Raised(error),
            }
        }
        Err(error) => Step::Raised(error),
    }
}
