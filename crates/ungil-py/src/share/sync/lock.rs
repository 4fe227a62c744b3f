//! `Lock` and `RLock`.

use std::iter::once;
use std::ptr;
use std::time::Instant;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple, PyType};
use ungil_heap::monitor;
use ungil_heap::sync::Sort;

use super::{Making, Place, deadline_of_lock};
use crate::share::argument::truth;
use crate::share::errors::raised;
use crate::share::proxy::Held;
use crate::share::slots;

/// A lock, re-entrant or not.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedLock")]
pub struct Lock {
    pub(super) place: Place<()>,
    is_reentrant: bool,
}

#[pymethods]
impl Lock {
    #[new]
    #[pyo3(signature = (held = None, /, *, reentrant = false))]
    fn new(held: Option<&Held>, reentrant: bool) -> PyResult<Self> {
        let place = Place::new(held, || Ok(()))?;
        let is_reentrant = place.sort()?.map_or(reentrant, |sort| sort == Sort::RLock);
        Ok(Self { place, is_reentrant })
    }

    /// Acquires the lock; returns whether it did.
    #[pyo3(signature = (blocking = true, timeout = Some(-1.0)))]
    fn acquire(
        &self,
        #[pyo3(from_py_with = truth)] blocking: bool,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        self.take(deadline_of_lock(blocking, timeout)?)
    }

    /// Releases it.
    fn release(&self) -> PyResult<()> {
        let (heap, at) = self.place.found()?;
        let released =
            if self.is_reentrant { monitor::leave(heap, at) } else { monitor::release(heap, at) };
        released.map_err(raised)
    }

    fn __enter__(&self) -> PyResult<bool> {
        self.take(None)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release()
    }

    /// Whether it is held.
    fn locked(&self) -> PyResult<bool> {
        let (heap, at) = self.place.found()?;
        monitor::holder(heap, at).map(|holder| holder.is_some()).map_err(raised)
    }

    /// Whether its holder got it from a thread that died with it.
    #[getter]
    fn owner_died(&self) -> PyResult<bool> {
        let (heap, at) = self.place.found()?;
        monitor::owner_died(heap, at).map_err(raised)
    }
}

impl Lock {
    #[inline]
    fn take(&self, deadline: Option<Instant>) -> PyResult<bool> {
        let (heap, at) = self.place.found()?;
        let got = if self.is_reentrant {
            monitor::enter(heap, at, deadline)
        } else {
            monitor::acquire(heap, at, deadline)
        };
        got.map(|got| got.is_some()).map_err(raised)
    }

    pub(super) fn wanted(&self) -> Making {
        if self.is_reentrant { Making::RLock } else { Making::Lock }
    }
}

/// The methods that take no detour.
struct Methods([ffi::PyMethodDef; 2]);

// SAFETY: nobody writes to them.
unsafe impl Sync for Methods {}

static METHODS: Methods = Methods([
    ffi::PyMethodDef {
        ml_name: c"acquire".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: acquire },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: c"acquire($self, blocking=True, timeout=-1.0)\n--\n\n\
            Acquires the lock; returns whether it did."
            .as_ptr(),
    },
    ffi::PyMethodDef {
        ml_name: c"release".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: release },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: c"release($self)\n--\n\nReleases it.".as_ptr(),
    },
]);

/// Gives a class of locks methods that take no detour. They are its own: the interpreter has a
/// short way to call those, which are not inherited.
pub fn quicken(class: &Bound<'_, PyType>) -> PyResult<()> {
    if !class.is_subclass_of::<Lock>()? {
        return Err(PyTypeError::new_err("only a class of locks has the methods of one"));
    }
    for method in &METHODS.0 {
        let definition = ptr::from_ref(method).cast_mut();
        // SAFETY: the class lives during the call, and the definition always does; nobody writes to
        // it.
        let made = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), definition) };
        // SAFETY: a new reference, or an exception.
        let made = unsafe { Bound::from_owned_ptr_or_err(class.py(), made)? };
        class.setattr(made.getattr("__name__")?.cast::<PyString>()?, &made)?;
    }
    Ok(())
}

unsafe extern "C" fn acquire(
    object: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let quick = |py: Python<'_>, lock: &Lock| {
        let hold = lock.place.hold().filter(|_| count == 0 && keywords.is_null())?;
        monitor::acquire_at_once(&hold.shared.heap, hold.at)
            .then(|| PyBool::new(py, true).to_owned().into_ptr())
    };
    let slow = |py: Python<'_>, _: &Lock| {
        // SAFETY: the interpreter keeps the instance during the call.
        let lock = unsafe { Bound::from_borrowed_ptr(py, object) };
        // SAFETY: null, or a tuple that the interpreter keeps during the call.
        let keywords = unsafe { Bound::from_borrowed_ptr_or_opt(py, keywords) };
        let keywords = keywords.map_or_else(|| Ok(PyTuple::empty(py)), Bound::cast_into)?;
        let count = count.unsigned_abs();
        let given = |number: usize| {
            // SAFETY: there are so many arguments, and behind them those with names.
            let argument = unsafe { arguments.add(number) };
            // SAFETY: the interpreter keeps the array during the call.
            let argument = unsafe { *argument };
            // SAFETY: it keeps the arguments as well.
            unsafe { Bound::from_borrowed_ptr(py, argument) }
        };
        let plain: Vec<_> = once(lock).chain((0..count).map(given)).collect();
        let by_name = PyDict::new(py);
        for (number, name) in keywords.iter().enumerate() {
            by_name.set_item(name, given(count + number))?;
        }
        let method = py.get_type::<Lock>().getattr(pyo3::intern!(py, "acquire"))?;
        method.call(PyTuple::new(py, plain)?, Some(&by_name)).map(Bound::into_ptr)
    };
    // SAFETY: the interpreter calls this with an instance of the class.
    unsafe { slots::call(object, ptr::null_mut(), quick, slow) }
}

unsafe extern "C" fn release(
    object: *mut ffi::PyObject,
    _: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let quick = |py: Python<'_>, lock: &Lock| {
        let hold = lock.place.hold()?;
        monitor::release_at_once(&hold.shared.heap, hold.at).then(|| py.None().into_ptr())
    };
    let slow = |py: Python<'_>, lock: &Lock| lock.release().map(|()| py.None().into_ptr());
    // SAFETY: the interpreter calls this with an instance of the class.
    unsafe { slots::call(object, ptr::null_mut(), quick, slow) }
}
