//! Python objects of the integers and short strings that were read last.
//!
//! A cell says all of such a value, so that an object that was made of the same words is right
//! whenever and wherever they are read again: nothing can be stale. Programs read the same flags,
//! states and names over and over: of 26 ns for a field with an integer, 8 were spent on making and
//! deleting the object, and of 37 ns for one with a short string, 19.

use std::cell::UnsafeCell;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat};
use ungil_heap::value::{Cell, Value};

use super::convert;
use crate::guarded;

/// How many there are, a power of two. Each costs up to 80 bytes of a process with its object.
const PLACES: usize = 256;

static RECENT: Recent = Recent(UnsafeCell::new([Place::EMPTY; PLACES]));

struct Recent(UnsafeCell<[Place; PLACES]>);

// SAFETY: only threads that have the GIL come here, one at a time, as `place` says.
unsafe impl Sync for Recent {}

struct Place {
    cell: Cell,
    /// Owned; null as long as the cell was read once only: most are.
    object: *mut ffi::PyObject,
}

impl Place {
    const EMPTY: Self = Self { cell: Cell::NOTHING, object: ptr::null_mut() };
}

/// A new reference to the Python object of a cell that is all of its value; a null pointer with an
/// exception if there is no memory. `None`: it is not all of it.
#[inline]
pub fn object(py: Python<'_>, cell: Cell) -> Option<*mut ffi::PyObject> {
    let place = place(py, cell);
    // SAFETY: `place` gives a place of the array, and until this function returns nobody else has the
    // GIL.
    let known = unsafe { &*place };
    if known.cell != cell || known.object.is_null() {
        return make(py, cell, place);
    }
    // SAFETY: a place owns a reference to its object, and the thread is attached.
    unsafe { ffi::Py_INCREF(known.object) };
    Some(known.object)
}

/// Where the object of a cell would be. What is there is for who has the GIL.
#[inline]
fn place(_: Python<'_>, cell: Cell) -> *mut Place {
    // Multiplied by the golden ratio, numbers in a row come to different places.
    let word = (cell.0 ^ cell.1.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = usize::try_from(word >> (u64::BITS - PLACES.ilog2())).unwrap_or(0);
    // SAFETY: so many bits are the number of one of the array's places.
    unsafe { RECENT.0.get().cast::<Place>().add(number) }
}

#[inline(never)]
fn make(py: Python<'_>, cell: Cell, place: *mut Place) -> Option<*mut ffi::PyObject> {
    // Integers first, and past what goes through memory: most are read once only.
    let object = match cell.int() {
        // SAFETY: the thread is attached; whoever asks may get null with an exception.
        Some(number) => unsafe { ffi::PyLong_FromLongLong(number) },
        None => match cell.whole()? {
            Value::Str(text) => convert::decoded(py, &text),
            Value::Float(number) => return Some(PyFloat::new(py, number).into_ptr()),
            Value::Bool(flag) => return Some(PyBool::new(py, flag).to_owned().into_ptr()),
            Value::None => return Some(py.None().into_ptr()),
            _ => return None,
        },
    };
    // Without a GIL, every object is made anew.
    if object.is_null() || !guarded::has_gil() {
        return Some(object);
    }
    // SAFETY: `place` has given a place of the array, and this thread has the GIL until it returns:
    // neither integers nor strings run code when they are deleted.
    let place = unsafe { &mut *place };
    let old = place.object;
    if place.cell == cell {
        place.object = object;
        // SAFETY: the thread is attached, and has a reference to this object.
        unsafe { ffi::Py_INCREF(object) };
    } else {
        *place = Place { cell, object: ptr::null_mut() };
    }
    if !old.is_null() {
        // SAFETY: the place owned a reference to it, which nobody has any more.
        unsafe { ffi::Py_DECREF(old) };
    }
    Some(object)
}
