//! `Event`.

use pyo3::prelude::*;
use ungil_heap::sync::event;

use super::{Place, deadline};
use crate::share::errors::raised;
use crate::share::proxy::Held;

/// Set or not.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedEvent")]
pub struct Event(pub(super) Place<()>);

#[pymethods]
impl Event {
    #[new]
    #[pyo3(signature = (held = None, /))]
    fn new(held: Option<&Held>) -> PyResult<Self> {
        Place::new(held, || Ok(())).map(Self)
    }

    /// Whether it is set.
    fn is_set(&self) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        event::is_set(heap, at).map_err(raised)
    }

    /// Sets it, and wakes all who wait.
    fn set(&self) -> PyResult<()> {
        let (heap, at) = self.0.found()?;
        event::set(heap, at).map_err(raised)
    }

    /// Makes it not set.
    fn clear(&self) -> PyResult<()> {
        let (heap, at) = self.0.found()?;
        event::clear(heap, at).map_err(raised)
    }

    /// Waits until it is set; whether that was in time.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, timeout: Option<f64>) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        event::wait(heap, at, deadline(timeout)?).map_err(raised)
    }
}
