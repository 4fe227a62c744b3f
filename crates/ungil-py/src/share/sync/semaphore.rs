//! `Semaphore` and `BoundedSemaphore`.

use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ungil_heap::sync::{Sort, bounded, semaphore};

use super::{Making, Place, deadline};
use crate::share::argument::truth;
use crate::share::errors::raised;
use crate::share::proxy::Held;

/// A number of units: without owners, or bounded, each with its owner.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedSemaphore")]
pub struct Semaphore {
    pub(super) place: Place<u32>,
    is_bounded: bool,
}

#[pymethods]
impl Semaphore {
    #[new]
    #[pyo3(signature = (held = None, /, *, value = 1, bounded = false))]
    fn new(held: Option<&Held>, value: i64, bounded: bool) -> PyResult<Self> {
        let place = Place::new(held, || {
            if value < 0 {
                return Err(PyValueError::new_err("semaphore initial value must be >= 0"));
            }
            let most = if bounded { bounded::MOST } else { semaphore::MOST };
            u32::try_from(value).ok().filter(|value| *value <= most).ok_or_else(|| {
                PyValueError::new_err(format!("a semaphore of this kind has at most {most} units"))
            })
        })?;
        let is_bounded = place.sort()?.map_or(bounded, |sort| sort == Sort::BoundedSemaphore);
        Ok(Self { place, is_bounded })
    }

    /// Takes a unit; whether there was one in time.
    #[pyo3(signature = (blocking = true, timeout = None))]
    fn acquire(
        &self,
        #[pyo3(from_py_with = truth)] blocking: bool,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        if blocking {
            return self.take(deadline(timeout)?);
        }
        if timeout.is_some() {
            return Err(PyValueError::new_err("can't specify timeout for non-blocking acquire"));
        }
        self.take(Some(Instant::now()))
    }

    /// Gives `n` units back.
    #[pyo3(signature = (n = 1))]
    fn release(&self, n: i64) -> PyResult<()> {
        let (heap, at) = self.place.found()?;
        let units = u32::try_from(n).ok().filter(|units| *units > 0).ok_or_else(|| {
            PyValueError::new_err(format!("n must be one or more, and fewer than 2^31, not {n}"))
        })?;
        if !self.is_bounded {
            return semaphore::release(heap, at, units).map_err(raised);
        }
        for _ in 0..units {
            if !bounded::release(heap, at).map_err(raised)? {
                return Err(PyValueError::new_err("Semaphore released too many times"));
            }
        }
        Ok(())
    }

    fn __enter__(&self) -> PyResult<bool> {
        self.take(None)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(1)
    }

    /// How many units are free. Those of the dead count as taken until somebody needs them.
    #[getter]
    fn value(&self) -> PyResult<u32> {
        let (heap, at) = self.place.found()?;
        let value =
            if self.is_bounded { bounded::value(heap, at) } else { semaphore::value(heap, at) };
        value.map_err(raised)
    }
}

impl Semaphore {
    fn take(&self, deadline: Option<Instant>) -> PyResult<bool> {
        let (heap, at) = self.place.found()?;
        if self.is_bounded {
            return bounded::acquire(heap, at, deadline).map(|got| got.is_some()).map_err(raised);
        }
        semaphore::acquire(heap, at, deadline).map_err(raised)
    }

    pub(super) fn wanted(&self) -> Option<Making> {
        match self.place {
            Place::Wanted(units) if self.is_bounded => Some(Making::BoundedSemaphore(units)),
            Place::Wanted(units) => Some(Making::Semaphore(units)),
            Place::Shared(_) => None,
        }
    }
}
