//! What is fast about a shared list; the rest of its methods are Python's (`ungil.share`).

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PySlice};
use ungil_heap::slice::Slice;
use ungil_heap::value::Value;
use ungil_heap::{Error, list};

use super::convert::{self, put};
use super::errors::raised;
use super::proxy::{Held, Hold};

/// The proxy of a shared list.
#[pyclass(frozen, sequence, subclass, weakref, module = "ungil._native", name = "SharedList")]
pub struct List(pub Hold);

fn index(given: &Bound<'_, PyAny>) -> PyResult<isize> {
    if given.is_instance_of::<PyInt>() || given.hasattr("__index__")? {
        return given.extract().map_err(|_| PyIndexError::new_err("list index out of range"));
    }
    let name = given.get_type().name()?;
    Err(PyTypeError::new_err(format!("list indices must be integers or slices, not {name}")))
}

#[pymethods]
impl List {
    #[new]
    #[pyo3(signature = (held, /))]
    fn new(held: &Held) -> PyResult<Self> {
        held.take().map(Self)
    }

    fn __len__(&self) -> PyResult<usize> {
        list::len(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    #[inline]
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        if let Ok(slice) = key.cast::<PySlice>() {
            return Ok(PyList::new(py, self.slice(slice)?)?.into_any());
        }
        let index = index(key)?;
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        match list::get(heap, at, index).map_err(raised)? {
            None => Err(PyIndexError::new_err("list index out of range")),
            Some(value) => {
                self.0.object(py, &value, || list::get(heap, at, index)?.ok_or(Error::Stale))
            }
        }
    }

    #[inline]
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let index = index(key)?;
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        if put(&self.0.shared, value, |value| list::set(heap, at, index, value))? {
            Ok(())
        } else {
            Err(PyIndexError::new_err("list assignment index out of range"))
        }
    }

    /// Adds an item at the end.
    #[pyo3(signature = (value, /))]
    fn append(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        put(&self.0.shared, value, |value| list::append(heap, at, value))
    }
}

impl List {
    /// The items of a slice, copied at once.
    fn slice<'py>(&self, slice: &Bound<'py, PySlice>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = slice.py();
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let [mut start, mut end, mut step] = [0; 3];
        // SAFETY: a slice, and three places for numbers; a failure is an exception.
        if unsafe {
            ffi::PySlice_Unpack(slice.as_ptr(), &raw mut start, &raw mut end, &raw mut step)
        } < 0
        {
            return Err(PyErr::fetch(py));
        }
        let slice = Slice { start, stop: end, step };
        let values = list::get_slice(heap, at, slice).map_err(raised)?;
        let mut items = Vec::with_capacity(values.len());
        for value in values {
            if let Some(item) = convert::object(py, &value)? {
                items.push(item);
            } else {
                // Shared objects among them: as one tuple, all of which is held at once.
                let again = || list::get_slice(heap, at, slice).map(Value::Tuple);
                return self.0.object(py, &Value::Tuple(Vec::new()), again)?.extract();
            }
        }
        Ok(items)
    }
}
