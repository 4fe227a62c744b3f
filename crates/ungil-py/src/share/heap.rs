//! `Heap`: a heap as Python opens it.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use ungil_heap::collect::Collected;
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap as Core};

use super::convert::{Draft, Drafts, finished};
use super::errors::{WithoutGil, raised};
use super::fork;
use super::proxy::Shared;
use super::transaction::Transaction;

/// Shared memory that this process is attached to.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedHeap")]
pub struct Heap(pub Arc<Shared>);

#[pymethods]
impl Heap {
    /// A new heap without a name, of at most `max_size` bytes.
    #[staticmethod]
    fn anonymous(max_size: usize) -> PyResult<Self> {
        Core::anonymous(max_size, Box::new(WithoutGil)).map(Self::attached).map_err(raised)
    }

    /// A new heap in a file that does not exist yet.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
    fn named(path: PathBuf, max_size: usize) -> PyResult<Self> {
        Core::named(&path, max_size, Box::new(WithoutGil)).map(Self::attached).map_err(raised)
    }

    /// The heap in a file of another process; also `/proc/PID/fd/N`.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
    fn open(path: PathBuf) -> PyResult<Self> {
        Core::open(&path, Box::new(WithoutGil)).map(Self::attached).map_err(raised)
    }

    /// The dict that every process finds.
    #[getter]
    fn root<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let root = self.0.heap.root().map_err(raised)?;
        self.0.proxy(py, root)
    }

    #[pyo3(signature = (given, /))]
    /// A shared object equal to `given`, or `given` itself if it cannot change.
    fn share<'py>(&self, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let mut drafts = Drafts::new(&self.0);
        let draft = drafts.draft(given)?;
        if !matches!(draft, Draft::New(_)) {
            return Ok(given.clone());
        }
        let made = self.0.heap.make(|op| {
            let made = drafts.make(op)?;
            match finished(&draft, &made) {
                Value::Object(at) => Ok(at),
                _ => Err(Error::Misuse("only an object is made")),
            }
        });
        self.0.proxy(given.py(), made.map_err(raised)?)
    }

    /// What makes several changes one.
    fn atomic(&self) -> Transaction {
        Transaction(self.0.clone())
    }

    /// Collects what nobody can reach; bytes that were freed, or None if others were busy for
    /// `patience` seconds.
    #[pyo3(signature = (patience = 10.0))]
    fn gc(&self, patience: f64) -> PyResult<Option<usize>> {
        let patience = std::time::Duration::try_from_secs_f64(patience)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        let collected = self.0.heap.collect(patience).map_err(raised)?;
        Ok(collected.map(|Collected { freed, .. }| freed))
    }
}

impl Heap {
    fn attached(heap: Arc<Core>) -> Self {
        fork::remember(&heap);
        Self(Shared::new(heap))
    }
}
