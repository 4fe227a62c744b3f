//! An item that is out on a lease.

use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;
use ungil_heap::{Heap, queue};

use super::Queue;
use super::taking::Taking;
use crate::share::errors::raised;
use crate::this_thread::attached;

/// An item of a queue that is this process's until it says that it is done with it.
#[pyclass(frozen, generic, weakref, module = "ungil._native", name = "QueueLease")]
pub struct Lease {
    queue: Py<Queue>,
    item: Py<PyAny>,
    /// Gone when the lease is over.
    lease: Mutex<Option<queue::Lease>>,
}

/// Takes the first item out on a lease; `None`: there was none before the deadline. If it cannot be
/// made here, it is put back.
pub fn take(queue: &Bound<'_, Queue>, deadline: Option<Instant>) -> PyResult<Option<Lease>> {
    give_back_left();
    let hold = queue.get().shared()?;
    let heap = &hold.shared.heap;
    let mut taking = Taking::new(hold);
    let mut keep = |value: &Value<'static>| taking.keep(value);
    let (got, lease) = queue::lease(heap, hold.at, deadline, &mut keep).map_err(raised)?;
    let put_back = |heap: &ungil_heap::Heap, _: &Value<'_>| match &lease {
        Some(lease) => queue::give_back(heap, hold.at, lease).map(drop),
        None => Ok(()),
    };
    let item = taking.object(queue.py(), got, put_back)?;
    Ok(item.map(|item| Lease {
        queue: queue.clone().unbind(),
        item: item.unbind(),
        lease: Mutex::new(lease),
    }))
}

#[pymethods]
impl Lease {
    /// The item.
    #[getter]
    fn item(&self, py: Python<'_>) -> Py<PyAny> {
        self.item.clone_ref(py)
    }

    /// Whether it is over: the item is acknowledged, or was put back.
    #[getter]
    fn over(&self) -> bool {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Says that the item is done with; it is in the queue no more.
    fn ack(&self) -> PyResult<()> {
        self.end(queue::acknowledge)
    }

    /// Puts the item back, at the beginning of the queue.
    fn put_back(&self) -> PyResult<()> {
        self.end(queue::give_back)
    }

    fn __enter__(&self, py: Python<'_>) -> Py<PyAny> {
        self.item(py)
    }

    /// Acknowledges it, or puts it back if there was an exception; if neither was done before.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        if self.over() {
            return Ok(());
        }
        let failed = exception.get_item(0).is_ok_and(|raised| !raised.is_none());
        if failed { self.put_back() } else { self.ack() }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let state = if self.over() { ", over" } else { "" };
        Ok(format!("<lease of {}{state}>", self.item.bind(py).repr()?))
    }
}

impl Lease {
    /// Ends the lease so. If that fails, it has not ended.
    fn end(
        &self,
        how: fn(&Heap, Offset, &queue::Lease) -> ungil_heap::Result<bool>,
    ) -> PyResult<()> {
        let hold = self.queue.get().shared()?;
        let place = || self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let lease = place().take();
        let lease = lease.ok_or_else(|| PyRuntimeError::new_err("this lease has already ended"))?;
        match how(&hold.shared.heap, hold.at, &lease) {
            Ok(true) => Ok(()),
            Ok(false) => Err(foreign()),
            Err(error) => {
                *place() = Some(lease);
                Err(raised(error))
            }
        }
    }
}

/// Leases that nobody has any more, whose items could not be put back: a transaction was under way,
/// or a signal came.
static LEFT: Mutex<Vec<(Py<Queue>, queue::Lease)>> = Mutex::new(Vec::new());

/// Puts back what could not be put back when its lease was given up.
pub fn give_back_left() {
    let left = mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner));
    for (queue, lease) in left {
        give_back_or_leave(queue, lease);
    }
}

/// In a forked child it is the parent's still, and stays that.
fn give_back_or_leave(queue: Py<Queue>, lease: queue::Lease) {
    let Ok(hold) = queue.get().shared() else { return };
    if queue::give_back(&hold.shared.heap, hold.at, &lease).is_err() {
        LEFT.lock().unwrap_or_else(PoisonError::into_inner).push((queue, lease));
    }
}

#[cold]
fn foreign() -> PyErr {
    PyRuntimeError::new_err(
        "this lease belongs to the parent process that forked, not to this child",
    )
}

impl Drop for Lease {
    fn drop(&mut self) {
        let lease = self.lease.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(lease) = lease {
            let give_back = |py: Python<'_>| give_back_or_leave(self.queue.clone_ref(py), lease);
            // SAFETY: the interpreter takes objects apart in attached threads.
            unsafe { attached(give_back) };
        }
    }
}
