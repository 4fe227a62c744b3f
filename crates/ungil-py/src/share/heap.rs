//! `Heap`: a heap as Python opens it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use ungil_heap::collect::Collected;
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap as Core};

use super::draft::Drafts;
use super::errors::{WithoutGil, raised};
use super::making::{Draft, finished};
use super::proxy::Shared;
use super::transaction::Transaction;
use super::{attached, statistics};

/// Shared memory that this process is attached to.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedHeap")]
pub struct Heap(pub Arc<Shared>);

#[pymethods]
impl Heap {
    /// A new heap without a name, of at most `max_size` bytes.
    #[staticmethod]
    fn anonymous(max_size: usize) -> PyResult<Self> {
        let heap = Core::anonymous(max_size, Box::new(WithoutGil)).map_err(raised)?;
        Ok(Self(attached::enter(heap, None)))
    }

    /// A new heap, which has this path once it is published.
    #[staticmethod]
    fn unnamed(path: PathBuf, max_size: usize) -> PyResult<Self> {
        let heap = Core::unnamed(&path, max_size, Box::new(WithoutGil)).map_err(raised)?;
        Ok(Self(attached::enter(heap, Some(path))))
    }

    /// Gives a heap that `unnamed` made its path, where others find it.
    fn publish(&self) -> PyResult<()> {
        let path = self.0.path.as_deref();
        path.map_or(Ok(()), |path| self.0.heap.publish(path)).map_err(raised)
    }

    /// The heap in a file of another process; also `/proc/PID/fd/N`.
    #[staticmethod]
    fn open(path: PathBuf) -> PyResult<Self> {
        let heap = Core::open(&path, Box::new(WithoutGil)).map_err(raised)?;
        let path = (!path.starts_with("/proc")).then_some(path);
        Ok(Self(attached::enter(heap, path)))
    }

    /// The heap with this uuid, which another process found at `place`.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
    fn find(uuid: [u8; 16], place: PathBuf) -> PyResult<Self> {
        attached::find(u128::from_le_bytes(uuid), &place).map(Self)
    }

    /// What tells the heap from all others.
    #[getter]
    fn uuid<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.heap.uuid().to_le_bytes())
    }

    /// The file that it was made or opened as, if it has a name.
    #[getter]
    fn path(&self) -> Option<OsString> {
        self.0.path.as_ref().map(|path| path.clone().into_os_string())
    }

    /// Where other processes find it now.
    #[getter]
    fn place(&self) -> PyResult<OsString> {
        self.0.place().map(PathBuf::into_os_string)
    }

    /// Bytes to which it can grow.
    #[getter]
    fn max_size(&self) -> u64 {
        self.0.heap.segment().header().max_size.load(Relaxed)
    }

    /// Takes its name away; false: it has it no longer.
    fn unlink(&self) -> PyResult<bool> {
        let path = self.0.path.as_deref();
        match path.filter(|path| self.0.heap.segment().is_at(path)) {
            Some(path) => Ok(std::fs::remove_file(path).map(|()| true)?),
            None => Ok(false),
        }
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

    /// Collects what nobody can reach; bytes that were freed and dead processes that were cleaned up
    /// behind, or None if others were busy for `patience` seconds.
    #[pyo3(signature = (patience = 10.0))]
    fn gc(&self, patience: f64) -> PyResult<Option<(usize, usize)>> {
        let collected = self.0.heap.collect(duration(patience)?).map_err(raised)?;
        Ok(collected.map(|Collected { freed_bytes, dead, .. }| (freed_bytes, dead)))
    }

    /// What is in it and who uses it. Walking it stops all processes; without `patience` it is not
    /// walked, and if others are busy for so many seconds neither.
    #[pyo3(signature = (patience = None))]
    fn statistics<'py>(
        &self,
        py: Python<'py>,
        patience: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let heap = &self.0.heap;
        let found = match patience {
            None => heap.overview(),
            Some(patience) => heap.statistics(duration(patience)?),
        };
        statistics::described(py, heap, &found.map_err(raised)?)
    }
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))
}
