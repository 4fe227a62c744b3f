//! What is fast about a shared dict; the rest of its methods are Python's (`ungil.share`).

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ungil_heap::table::Cursor;
use ungil_heap::value::Value;
use ungil_heap::{Error, dict};

use super::convert::{Drafts, finished, put, simple};
use super::errors::raised;
use super::proxy::{Held, Hold};

/// The proxy of a shared dict.
#[pyclass(frozen, mapping, subclass, weakref, module = "ungil._native", name = "SharedDict")]
pub struct Dict(pub Hold);

/// Pairs that an iteration copies at a time.
const BATCH: usize = 256;

impl Dict {
    /// Calls `with` with a key.
    #[inline]
    fn with_key<T>(
        &self,
        key: &Bound<'_, PyAny>,
        with: impl FnOnce(&Value<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        if let Some(value) = simple(key)? {
            return with(&value);
        }
        let mut drafts = Drafts::new(&self.0.shared);
        let draft = drafts.draft_key(key)?;
        with(&finished(&draft, &[]))
    }

    #[inline]
    fn find<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.with_key(key, |key| {
            let (heap, at) = (&self.0.shared.heap, self.0.at);
            match dict::get(heap, at, key).map_err(raised)? {
                None => Ok(None),
                Some(value) => {
                    let again = || dict::get(heap, at, key)?.ok_or(Error::Stale);
                    self.0.object(py, &value, again).map(Some)
                }
            }
        })
    }
}

#[pymethods]
impl Dict {
    #[new]
    #[pyo3(signature = (held, /))]
    fn new(held: &Held) -> PyResult<Self> {
        held.take().map(Self)
    }

    fn __len__(&self) -> PyResult<usize> {
        dict::len(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.with_key(key, |key| {
            dict::contains(&self.0.shared.heap, self.0.at, key).map_err(raised)
        })
    }

    #[inline]
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.find(key.py(), key)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    /// The value of a key, or `default`.
    #[pyo3(signature = (key, default = None, /))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(key.py(), key)?.or(default))
    }

    #[inline]
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        self.with_key(key, |key| {
            put(&self.0.shared, value, |value| dict::set(heap, at, key, value))
        })
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let deleted = self.with_key(key, |key| {
            dict::delete(&self.0.shared.heap, self.0.at, key).map_err(raised)
        })?;
        if deleted { Ok(()) } else { Err(PyKeyError::new_err(key.clone().unbind())) }
    }

    /// Adds `by` to the value of a key in one step, a missing one counting as 0; the sum.
    #[pyo3(signature = (key, by = None, /))]
    fn incr<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        by: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let by = match by {
            None => Value::Int(1),
            Some(by) => simple(by)?
                .ok_or_else(|| raised(Error::Unfit("only numbers can be added to a value")))?,
        };
        self.with_key(key, |key| {
            let sum = dict::increment(&self.0.shared.heap, self.0.at, key, &by).map_err(raised)?;
            self.0.value(py, &sum)
        })
    }

    /// Removes everything.
    fn clear(&self) -> PyResult<()> {
        dict::clear(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    /// The pairs of key and value that are there now, as a list of tuples.
    fn pairs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let mut cursor = Cursor::default();
        let mut all = Vec::new();
        loop {
            let batch = dict::batch(heap, at, &mut cursor, BATCH).map_err(raised)?;
            if batch.is_empty() {
                return Ok(all);
            }
            for (key, value) in batch {
                let again = || dict::get(heap, at, &key)?.ok_or(Error::Stale);
                let value = match self.0.object(py, &value, again) {
                    Err(error)
                        if error.is_instance_of::<pyo3::exceptions::PyReferenceError>(py) =>
                    {
                        continue;
                    }
                    value => value?,
                };
                let key = self.0.value(py, &key)?;
                all.push(PyTuple::new(py, [key, value])?);
            }
        }
    }
}
