//! The primitives that wait for one thing: `sleep`, `wait_readable`, `wait_writable`.

use std::os::fd::RawFd;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use ungil_fanout::lean::{Belongs, Direction, Want};

use super::operation::Operation;
use crate::clock::nanoseconds;

/// Comes back after so many seconds; at once, but after others had their turn, if that is not more
/// than 0.
///
/// Raises ValueError for what is not a number.
#[pyfunction]
pub fn sleep(seconds: f64) -> PyResult<Operation> {
    if seconds.is_nan() {
        return Err(PyValueError::new_err("sleep(nan): not a number of seconds"));
    }
    // The conversion gives 0 for what is below it, and the greatest number for infinity.
    Ok(Operation::wait(Want::Sleep(nanoseconds(seconds))))
}

/// Comes back when `file`, a descriptor or an object with `fileno()`, can be read without waiting.
///
/// That may be wrong: whoever reads it has to expect to be told to wait again. Raises RuntimeError
/// if another item waits for the same.
#[pyfunction]
pub fn wait_readable(file: &Bound<'_, PyAny>) -> PyResult<Operation> {
    wait(file, Direction::Read)
}

/// Comes back when `file`, a descriptor or an object with `fileno()`, can be written without
/// waiting. As `wait_readable` otherwise.
#[pyfunction]
pub fn wait_writable(file: &Bound<'_, PyAny>) -> PyResult<Operation> {
    wait(file, Direction::Write)
}

fn wait(file: &Bound<'_, PyAny>, direction: Direction) -> PyResult<Operation> {
    let number = match file.getattr_opt("fileno")? {
        Some(method) => method.call0()?,
        None => file.clone(),
    };
    let fd: RawFd = number.extract().map_err(|_| {
        PyTypeError::new_err(format!("{file:?} is not a descriptor and has no fileno()"))
    })?;
    if fd < 0 {
        return Err(PyValueError::new_err(format!("{fd} is not an open descriptor")));
    }
    Ok(Operation::wait(Want::Ready { fd, direction, belongs: Belongs::User }))
}
