//! Views that are made and end without a detour.
//!
//! A row of a table is looked at for as long as one of its fields is read. To make a Python object by
//! calling its class takes several times as long as that. So views are allocated as the interpreter
//! allocates its own objects, and their contents written into them.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use pyo3::PyClass;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyType;

use crate::share::slots;

/// A class of views, which nobody derives another one from.
pub struct Class {
    class: AtomicPtr<ffi::PyObject>,
    /// Where in an object its contents are; 0 if that is not known yet.
    contents: AtomicUsize,
}

impl Class {
    pub const fn new() -> Self {
        Self { class: AtomicPtr::new(ptr::null_mut()), contents: AtomicUsize::new(0) }
    }

    /// Makes the class, once: PyO3's class `T` with these slots, the last of which is empty.
    pub fn make<'py, T: PyClass<Frozen = True> + Sync>(
        &self,
        py: Python<'py>,
        name: &'static CStr,
        mut slots: Vec<ffi::PyType_Slot>,
    ) -> PyResult<Bound<'py, PyType>> {
        let end = ffi::PyType_Slot { slot: ffi::Py_tp_dealloc, pfunc: end::<T> as *mut c_void };
        slots.extend([end, ffi::PyType_Slot::default()]);
        let class = slots::sealed_class::<T>(py, name, &mut slots)?;
        self.class.store(class.clone().unbind().into_ptr(), Relaxed);
        Ok(class)
    }

    /// Whether an object is a view of this class.
    pub fn is(&self, object: &Bound<'_, PyAny>) -> bool {
        object.get_type().as_ptr() == self.class.load(Relaxed)
    }

    /// A new view with these contents, as a reference; null with an exception if that fails.
    #[inline]
    pub fn new_view<T: PyClass<Frozen = True> + Sync + Clone + Into<PyClassInitializer<T>>>(
        &self,
        py: Python<'_>,
        contents: T,
    ) -> *mut ffi::PyObject {
        let inside = match self.contents.load(Relaxed) {
            0 => match learn(py, &contents) {
                Ok(inside) => {
                    self.contents.store(inside, Relaxed);
                    inside
                }
                Err(error) => {
                    error.restore(py);
                    return ptr::null_mut();
                }
            },
            inside => inside,
        };
        let class = self.class.load(Relaxed).cast::<ffi::PyTypeObject>();
        if class.is_null() {
            PyRuntimeError::new_err("this class is not made yet").restore(py);
            return ptr::null_mut();
        }
        // The collector of cycles need not know of it: there are no Python objects in it.
        // SAFETY: it is a class, which lives for ever, and the thread is attached.
        let object = unsafe { ffi::PyObject_GC_New::<ffi::PyObject>(class) };
        if !object.is_null() {
            // SAFETY: the class is derived from PyO3's and adds nothing, so that so far from the
            // beginning are the contents of an object.
            let place = unsafe { object.byte_add(inside) }.cast::<T>();
            // SAFETY: it is memory for a `T`, and there is none yet.
            unsafe { place.write(contents) };
        }
        object
    }
}

/// How far from the beginning of an object PyO3 puts its contents, with which an object ends: the class
/// has no weak references, no dict and no borrow flag, and all threads may use it.
#[cold]
fn learn<T: PyClass<Frozen = True> + Sync + Clone + Into<PyClassInitializer<T>>>(
    py: Python<'_>,
    contents: &T,
) -> PyResult<usize> {
    let object = Bound::new(py, contents.clone())?;
    let inside = ptr::from_ref(object.get()).addr() - object.as_ptr().addr();
    let size: usize = object.as_any().get_type().getattr("__basicsize__")?.extract()?;
    if inside + size_of::<T>() == size {
        Ok(inside)
    } else {
        Err(PyRuntimeError::new_err(
            "objects of this class have attributes that a frozen structure cannot hold",
        ))
    }
}

/// The slot by which a view ends.
unsafe extern "C" fn end<T: PyClass<Frozen = True> + Sync>(object: *mut ffi::PyObject) {
    // SAFETY: it is an object until this function has given it up.
    let class = unsafe { ffi::Py_TYPE(object) };
    // SAFETY: the interpreter calls this with an instance of `T`, in an attached thread; only the
    // address is taken of what is borrowed.
    let contents = ptr::from_ref(unsafe { slots::instance::<T>(&object) }).cast_mut();
    drop(catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: nobody else has a reference to the object, and its contents are not used again.
        unsafe { ptr::drop_in_place(contents) };
    })));
    // SAFETY: it was allocated for the collector of cycles, which does not know it.
    unsafe { ffi::PyObject_GC_Del(object.cast()) };
    // SAFETY: an object has a reference to its class, and this one is none any more.
    unsafe { ffi::Py_DECREF(class.cast()) };
}
