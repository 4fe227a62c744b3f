//! `Condition`.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ungil_heap::monitor;
use ungil_heap::sync::condition;

use super::{Lock, Place, deadline, deadline_of_lock};
use crate::share::argument::truth;
use crate::share::errors::raised;
use crate::share::proxy::Held;

/// A condition, with a lock of its own or another one's.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedCondition")]
pub struct Condition(pub(super) Place<Option<Py<Lock>>>);

#[pymethods]
impl Condition {
    #[new]
    #[pyo3(signature = (held = None, /, *, lock = None))]
    fn new(held: Option<&Held>, lock: Option<Py<Lock>>) -> PyResult<Self> {
        Place::new(held, || Ok(lock)).map(Self)
    }

    /// Takes its lock; whether it was got.
    #[pyo3(signature = (blocking = true, timeout = Some(-1.0)))]
    fn acquire(
        &self,
        #[pyo3(from_py_with = truth)] blocking: bool,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        let got = condition::acquire(heap, at, deadline_of_lock(blocking, timeout)?);
        got.map(|got| got.is_some()).map_err(raised)
    }

    /// Lets go of its lock.
    fn release(&self) -> PyResult<()> {
        let (heap, at) = self.0.found()?;
        condition::release(heap, at).map_err(raised)
    }

    fn __enter__(&self) -> PyResult<bool> {
        self.acquire(true, None)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release()
    }

    /// Lets go of the lock until there is a notification; whether there was one in time.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, timeout: Option<f64>) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        condition::wait(heap, at, deadline(timeout)?).map_err(raised)
    }

    /// Wakes up to `n` of those who wait.
    #[pyo3(signature = (n = 1))]
    fn notify(&self, n: usize) -> PyResult<()> {
        let (heap, at) = self.0.found()?;
        condition::notify(heap, at, n).map(drop).map_err(raised)
    }

    /// Wakes all who wait.
    fn notify_all(&self) -> PyResult<()> {
        self.notify(usize::MAX)
    }

    /// Whether its lock is held.
    fn locked(&self) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        let holder = condition::lock(heap, at).and_then(|(lock, _)| monitor::holder(heap, lock));
        holder.map(|holder| holder.is_some()).map_err(raised)
    }

    /// Whether the holder of its lock got it from a thread that died with it.
    #[getter]
    fn owner_died(&self) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        condition::lock(heap, at)
            .and_then(|(lock, _)| monitor::owner_died(heap, lock))
            .map_err(raised)
    }
}

impl Condition {
    pub(super) fn wanted_lock<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match &self.0 {
            Place::Wanted(Some(lock)) => Some(lock.bind(py).clone().into_any()),
            Place::Wanted(None) | Place::Shared(_) => None,
        }
    }
}
