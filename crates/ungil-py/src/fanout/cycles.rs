//! Which outcomes the collector of cycles has to look at.
//!
//! Of ten thousand that wait in a fan-out, nearly all refer to a string and a number, and to look at
//! them again and again costs a fifth of the time that it takes to run them. So an outcome is left
//! out, as Python leaves out tuples of such, until it refers to something that could refer back.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Leaves `outcome`, which refers to nothing else yet, out if `item` cannot refer back.
pub fn leave_out<T>(outcome: &Bound<'_, T>, item: &Bound<'_, PyAny>) {
    if !may_refer_back(item) {
        // SAFETY: an object of a type that has the collector's head.
        unsafe { ffi::PyObject_GC_UnTrack(outcome.as_ptr().cast()) };
    }
}

/// `outcome` now refers to this as well.
pub fn watch<T>(outcome: &Bound<'_, T>, end: &Bound<'_, PyAny>) {
    if may_refer_back(end) && !is_tracked(outcome.as_any()) {
        // SAFETY: an object of such a type, which is not tracked, and whose fields are all valid.
        unsafe { ffi::PyObject_GC_Track(outcome.as_ptr().cast()) };
    }
}

fn may_refer_back(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the type of an object that is borrowed.
    let flags = unsafe { ffi::PyType_GetFlags(object.get_type_ptr()) };
    // A dict may be left out now and be put in later; a tuple does not change.
    flags & ffi::Py_TPFLAGS_HAVE_GC != 0
        && (is_tracked(object) || !object.is_exact_instance_of::<PyTuple>())
}

fn is_tracked(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: an object; the answer for one without the collector's head is no.
    unsafe { ffi::PyObject_GC_IsTracked(object.as_ptr()) != 0 }
}
