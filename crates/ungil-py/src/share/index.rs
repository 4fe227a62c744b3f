//! Indices and slices, as Python's own lists take them.

use std::ptr;

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice};
use ungil_heap::slice::Slice;

/// An index that is an exact integer.
#[inline]
pub fn quick_index(given: &Bound<'_, PyAny>) -> Option<isize> {
    if !given.is_exact_instance_of::<PyInt>() {
        return None;
    }
    // SAFETY: a reference to an integer.
    let index = unsafe { ffi::PyLong_AsSsize_t(given.as_ptr()) };
    // It is -1, or too large.
    (index != -1 || PyErr::take(given.py()).is_none()).then_some(index)
}

/// An index as Python's own lists take it.
#[inline]
pub fn index(given: &Bound<'_, PyAny>) -> PyResult<isize> {
    if let Some(index) = quick_index(given) {
        return Ok(index);
    }
    // SAFETY: a reference to an object.
    if unsafe { ffi::PyIndex_Check(given.as_ptr()) } == 0 {
        let name = given.get_type().name()?;
        let why = format!("list indices must be integers or slices, not {name}");
        return Err(PyTypeError::new_err(why));
    }
    let too_large = given.py().get_type::<PyIndexError>();
    // SAFETY: references to an object and to an exception class, which is raised for what is too
    // large.
    let index = unsafe { ffi::PyNumber_AsSsize_t(given.as_ptr(), too_large.as_ptr()) };
    unless_raised(given.py(), index)
}

/// An index of an item, as an argument.
#[derive(Clone, Copy)]
pub struct Index(pub isize);

impl<'a, 'py> FromPyObject<'a, 'py> for Index {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        index(&given).map(Self)
    }
}

/// An index as a border between items: beyond the ends of any list it means an end.
#[derive(Clone, Copy)]
pub struct Border(pub isize);

impl<'a, 'py> FromPyObject<'a, 'py> for Border {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        // SAFETY: a reference to an object; without an exception class, what is too large is
        // clamped.
        let index = unsafe { ffi::PyNumber_AsSsize_t(given.as_ptr(), ptr::null_mut()) };
        unless_raised(given.py(), index).map(Self)
    }
}

#[inline]
fn unless_raised(py: Python<'_>, index: isize) -> PyResult<isize> {
    if index == -1 { PyErr::take(py).map_or(Ok(index), Err) } else { Ok(index) }
}

/// A slice as Python takes it apart.
pub fn unpacked(slice: &Bound<'_, PySlice>) -> PyResult<Slice> {
    let [mut start, mut end, mut step] = [0; 3];
    // SAFETY: a reference to a slice, and three writable places. A failure is an exception.
    let done =
        unsafe { ffi::PySlice_Unpack(slice.as_ptr(), &raw mut start, &raw mut end, &raw mut step) };
    if done < 0 { Err(PyErr::fetch(slice.py())) } else { Ok(Slice { start, stop: end, step }) }
}
