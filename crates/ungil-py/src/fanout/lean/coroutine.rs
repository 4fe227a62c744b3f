//! What a step of a coroutine means to the loop.

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use ungil_fanout::lean::{Want, hand};

use super::asked::is_asked;
use crate::fanout::coroutine;
pub use crate::fanout::coroutine::{iterator, name};

/// How a step ended.
pub enum Step {
    /// It waits for this.
    Asked(Want),
    /// It only lets others go first: a bare `yield`, as in `asyncio.sleep(0)`.
    Passed,
    /// It yielded something that is meant for another event loop.
    Foreign(Py<PyAny>),
    /// It returned.
    Returned(Py<PyAny>),
    /// It raised.
    Raised(PyErr),
}

/// Goes on where it yielded.
pub fn send(py: Python<'_>, iterator: &Py<PyAny>) -> Step {
    understood(py, coroutine::send(py, iterator))
}

/// Raises an exception where it yielded.
pub fn throw(py: Python<'_>, iterator: &Py<PyAny>, exception: Py<PyBaseException>) -> Step {
    understood(py, coroutine::throw(py, iterator, exception))
}

fn understood(py: Python<'_>, step: coroutine::Step) -> Step {
    match step {
        coroutine::Step::Returned(value) => Step::Returned(value),
        coroutine::Step::Raised(error) => Step::Raised(error),
        coroutine::Step::Yielded(object) => match hand::take() {
            Some(want) if is_asked(object.bind(py)) => Step::Asked(want),
            _ if object.is_none(py) => Step::Passed,
            _ => Step::Foreign(object),
        },
    }
}
