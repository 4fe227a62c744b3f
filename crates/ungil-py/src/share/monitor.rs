//! `with obj:` for everything that is shared.

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ungil_heap::monitor;

use super::errors::raised;
use super::proxy::{self, Hold};

/// What the classes of proxies inherit to be monitors. It has no data, so any of them can.
#[pyclass(frozen, subclass, module = "ungil._native", name = "SharedMonitor")]
pub struct Monitor;

fn hold<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a Hold> {
    if let Some(hold) = proxy::hold(object) {
        return Ok(hold);
    }
    let name = object.get_type().name()?;
    Err(PyRuntimeError::new_err(format!(
        "this {name} is not in a heap: only shared objects can be locked"
    )))
}

#[pymethods]
impl Monitor {
    /// Enters the object as a monitor, as often as the thread likes.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let hold = hold(slf)?;
        let _ = monitor::enter(&hold.shared.heap, hold.at, None).map_err(raised)?;
        Ok(slf.clone())
    }

    /// Leaves it once.
    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let hold = hold(slf)?;
        monitor::leave(&hold.shared.heap, hold.at).map_err(raised)
    }
}

/// Whether the thread that is in the monitor of an object followed one that died in it.
#[pyfunction]
#[pyo3(signature = (object, /))]
pub fn owner_died(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(hold) = proxy::hold(object) else {
        let name = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("an object of type {name} is not shared")));
    };
    monitor::owner_died(&hold.shared.heap, hold.at).map_err(raised)
}
