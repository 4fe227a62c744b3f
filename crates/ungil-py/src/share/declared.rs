//! What the Python half declares to the native one.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// What a module of Python's declares as it is imported, which happens here at the latest: most
/// processes need few of these modules.
pub fn declared<T>(
    py: Python<'_>,
    place: &'static PyOnceLock<T>,
    module: &str,
) -> PyResult<&'static T> {
    if place.get(py).is_none() {
        py.import(module)?;
    }
    let missing = || PyRuntimeError::new_err(format!("{module} declares nothing"));
    place.get(py).ok_or_else(missing)
}
