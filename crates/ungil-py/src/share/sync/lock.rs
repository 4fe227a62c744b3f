//! `Lock` and `RLock`.

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ungil_heap::monitor;
use ungil_heap::sync::Sort;

use super::{Making, Place, deadline_of_lock};
use crate::share::errors::raised;
use crate::share::proxy::Held;

/// A lock, re-entrant or not.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedLock")]
pub struct Lock {
    pub(super) place: Place<()>,
    is_reentrant: bool,
}

#[pymethods]
impl Lock {
    #[new]
    #[pyo3(signature = (held = None, /, *, reentrant = false))]
    fn new(held: Option<&Held>, reentrant: bool) -> PyResult<Self> {
        let place = Place::new(held, || Ok(()))?;
        let is_reentrant = place.sort()?.map_or(reentrant, |sort| sort == Sort::RLock);
        Ok(Self { place, is_reentrant })
    }

    /// Takes the lock; whether it was got.
    #[pyo3(signature = (blocking = true, timeout = -1.0))]
    fn acquire(&self, blocking: bool, timeout: f64) -> PyResult<bool> {
        self.take(deadline_of_lock(blocking, timeout)?)
    }

    /// Lets go of it.
    fn release(&self) -> PyResult<()> {
        let (heap, at) = self.place.found()?;
        let released =
            if self.is_reentrant { monitor::leave(heap, at) } else { monitor::release(heap, at) };
        released.map_err(raised)
    }

    fn __enter__(&self) -> PyResult<bool> {
        self.take(None)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release()
    }

    /// Whether somebody has it.
    fn locked(&self) -> PyResult<bool> {
        let (heap, at) = self.place.found()?;
        monitor::holder(heap, at).map(|holder| holder.is_some()).map_err(raised)
    }

    /// Whether its holder followed one that died with it.
    #[getter]
    fn owner_died(&self) -> PyResult<bool> {
        let (heap, at) = self.place.found()?;
        monitor::owner_died(heap, at).map_err(raised)
    }
}

impl Lock {
    #[inline]
    fn take(&self, deadline: Option<Instant>) -> PyResult<bool> {
        let (heap, at) = self.place.found()?;
        let got = if self.is_reentrant {
            monitor::enter(heap, at, deadline)
        } else {
            monitor::acquire(heap, at, deadline)
        };
        got.map(|got| got.is_some()).map_err(raised)
    }

    pub(super) fn wanted(&self) -> Making {
        if self.is_reentrant { Making::RLock } else { Making::Lock }
    }
}
