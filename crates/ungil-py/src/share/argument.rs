//! Arguments that Python's own types take as well: absent ones where None is a value, and truths.

use std::convert::Infallible;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An argument, if it was given.
pub enum Given<'py> {
    /// It was not.
    Nothing,
    /// This is it.
    Value(Bound<'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Given<'py> {
    type Error = Infallible;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self::Value(given.to_owned()))
    }
}

impl<'py> From<Given<'py>> for Option<Bound<'py, PyAny>> {
    fn from(given: Given<'py>) -> Self {
        match given {
            Given::Nothing => None,
            Given::Value(value) => Some(value),
        }
    }
}

/// What `blocking` and `block` mean: the locks and queues of Python take `acquire(0)` and `get(1)`.
pub fn truth(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    given.is_truthy()
}

/// How many of something are meant; ValueError with the argument's name for less than none.
pub fn count(name: &str, given: isize) -> PyResult<usize> {
    usize::try_from(given)
        .map_err(|_| PyValueError::new_err(format!("{name}={given} is less than 0")))
}
