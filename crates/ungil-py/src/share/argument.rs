//! Arguments that may be absent where None is a value.

use std::convert::Infallible;

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
