//! `Barrier`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use ungil_heap::sync::barrier::{self, Outcome};

use super::{Making, Place, deadline};
use crate::share::errors::{interrupted, raised};
use crate::share::proxy::Held;

pyo3::import_exception!(threading, BrokenBarrierError);

/// Parties that go on together.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedBarrier")]
pub struct Barrier(pub(super) Place<u32>);

#[pymethods]
impl Barrier {
    #[new]
    #[pyo3(signature = (held = None, /, *, parties = 1))]
    fn new(held: Option<&Held>, parties: i64) -> PyResult<Self> {
        let wanted = || {
            let fits = |parties: &u32| (1..=barrier::MOST).contains(parties);
            u32::try_from(parties).ok().filter(fits).ok_or_else(|| {
                let most = barrier::MOST;
                PyValueError::new_err(format!(
                    "a barrier is for 1 to {most} parties, not {parties}"
                ))
            })
        };
        Place::new(held, wanted).map(Self)
    }

    /// Waits for the other parties; as which one this came. The last one to arrive calls its
    /// `action` before all go on.
    #[pyo3(signature = (timeout = None, *, action = None))]
    fn wait(&self, timeout: Option<f64>, action: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        let (heap, at) = self.0.found()?;
        let outcome = barrier::wait(heap, at, deadline(timeout)?, || match action {
            Some(action) => action.call0().map(drop).map_err(interrupted),
            None => Ok(()),
        });
        match outcome.map_err(raised)? {
            Outcome::Passed(index) => Ok(index),
            Outcome::Broken => Err(BrokenBarrierError::new_err(())),
        }
    }

    /// Breaks it: all who wait or come later are sent away.
    fn abort(&self) -> PyResult<()> {
        let (heap, at) = self.0.found()?;
        barrier::abort(heap, at).map_err(raised)
    }

    /// Makes it as new: who waits is sent away, who comes later is not.
    fn reset(&self) -> PyResult<()> {
        let (heap, at) = self.0.found()?;
        barrier::reset(heap, at).map_err(raised)
    }

    /// How many must come.
    #[getter]
    fn parties(&self) -> PyResult<usize> {
        let (heap, at) = self.0.found()?;
        barrier::parties(heap, at).map_err(raised)
    }

    /// How many have come and wait.
    #[getter]
    fn n_waiting(&self) -> PyResult<usize> {
        let (heap, at) = self.0.found()?;
        barrier::waiting(heap, at).map_err(raised)
    }

    /// Whether it is broken.
    #[getter]
    fn broken(&self) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        barrier::is_broken(heap, at).map_err(raised)
    }
}

impl Barrier {
    pub(super) fn wanted(&self) -> Option<Making> {
        match self.0 {
            Place::Wanted(parties) => Some(Making::Barrier(parties)),
            Place::Shared(_) => None,
        }
    }
}
