//! Waiting until something in a heap has changed.

use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ungil_heap::{changes, watch};

use super::errors::raised;
use super::proxy::{self, Hold};
use super::sync::deadline;

fn shared<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a Hold> {
    proxy::hold(object).ok_or_else(|| {
        let name = object.get_type().name().map_or_else(|_| "?".to_owned(), |it| it.to_string());
        PyTypeError::new_err(format!("this {name} is not a shared object"))
    })
}

/// How often a shared object has changed, modulo 2^31.
#[pyfunction]
#[pyo3(signature = (object, /))]
pub fn version(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    let hold = shared(object)?;
    changes::version(&hold.shared.heap, hold.at).map_err(raised)
}

/// Waits until a shared object has changed another number of times; how many times it has.
#[pyfunction]
#[pyo3(signature = (object, version, timeout = None))]
pub fn wait_for_change(
    object: &Bound<'_, PyAny>,
    version: u32,
    timeout: Option<f64>,
) -> PyResult<u32> {
    let hold = shared(object)?;
    changes::wait(&hold.shared.heap, hold.at, version, deadline(timeout)?).map_err(raised)
}

/// How often a shared object has changed. The bell of its heap rings when it changes the next time.
#[pyfunction]
pub fn watch_object(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    let hold = shared(object)?;
    changes::watch(&hold.shared.heap, hold.at).map_err(raised)
}

/// What tells the heap of a shared object from others.
#[pyfunction]
pub fn watch_heap<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let uuid = shared(object)?.shared.heap.uuid().to_be_bytes();
    Ok(PyBytes::new(object.py(), &uuid))
}

/// What the bell of a shared object's heap says: it rings when what is watched has changed.
#[pyfunction]
pub fn watch_bell(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    Ok(watch::now(shared(object)?.shared.heap.segment()))
}

/// Sleeps until the bell of a shared object's heap says something else than `seen`; whether it does.
#[pyfunction]
pub fn watch_sleep(object: &Bound<'_, PyAny>, seen: u32, seconds: f64) -> PyResult<bool> {
    let shared = shared(object)?.shared.clone();
    let longest = Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("a thread cannot sleep for {seconds} s")))?;
    Ok(object.py().detach(|| watch::sleep(shared.heap.segment(), seen, longest)))
}

/// Wakes all who sleep at the bell of a shared object's heap.
#[pyfunction]
pub fn watch_disturb(object: &Bound<'_, PyAny>) -> PyResult<()> {
    watch::disturb(shared(object)?.shared.heap.segment());
    Ok(())
}
