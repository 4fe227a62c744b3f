//! Methods with nothing between them and the interpreter.
//!
//! PyO3 counts attachments, takes arguments apart, looks at the class of `self` and hands results on
//! through memory, which together takes about as long as to read a number. So the classes here do
//! what is frequent and short by themselves, and leave everything else to PyO3's classes, from which
//! they are derived.

use std::any::Any;
use std::ffi::{CStr, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::PyClass;
use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyTuple, PyType};

/// Makes a class with these slots, the last of which is empty, derived from PyO3's class `T`.
pub fn class<'py, T: PyClass>(
    py: Python<'py>,
    name: &'static CStr,
    slots: &mut [ffi::PyType_Slot],
) -> PyResult<Bound<'py, PyType>> {
    let bases = PyTuple::new(py, [py.get_type::<T>()])?;
    #[expect(clippy::cast_possible_truncation, reason = "those of the stable ABI have 32 bits")]
    let flags = (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as c_uint;
    let mut specification = ffi::PyType_Spec {
        name: name.as_ptr(),
        // That of the base.
        basicsize: 0,
        itemsize: 0,
        flags,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the name is there for ever, the rest during the call; what the slots do is what their
    // numbers say.
    let class = unsafe { ffi::PyType_FromSpecWithBases(&raw mut specification, bases.as_ptr()) };
    // SAFETY: a new reference, or an exception.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, class)? };
    Ok(class.cast_into()?)
}

/// What a slot returns: what `quick` has at once, or what `slow` does, or `failed` with an exception.
///
/// `quick` returns few words, which stay in registers: a `PyResult` goes through memory, and takes
/// longer than everything else.
///
/// # Safety
/// The interpreter called the slot, so that the thread is attached.
#[inline]
pub unsafe fn answer<T: Copy>(
    failed: T,
    quick: impl FnOnce(Python<'_>) -> Option<T>,
    slow: impl FnOnce(Python<'_>) -> PyResult<T>,
) -> T {
    // SAFETY: as the caller says.
    let py = unsafe { Python::assume_attached() };
    match catch_unwind(AssertUnwindSafe(|| quick(py))) {
        Ok(Some(done)) => done,
        Ok(None) => answer_slowly(failed, slow),
        Err(panic) => {
            raise(panicked(&*panic));
            failed
        }
    }
}

#[cold]
fn answer_slowly<T>(failed: T, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    let error = match catch_unwind(AssertUnwindSafe(|| Python::attach(work))) {
        Ok(Ok(done)) => return done,
        Ok(Err(error)) => error,
        Err(panic) => panicked(&*panic),
    };
    raise(error);
    failed
}

#[cold]
fn raise(error: PyErr) {
    Python::attach(|py| error.restore(py));
}

/// As PyO3 reports a panic.
#[cold]
fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    PanicException::new_err((text.unwrap_or_else(|| "panic from Rust code".to_owned()),))
}

/// The `self` of a slot.
///
/// # Safety
/// It is an instance of `T`, to which the caller has a reference, and the thread is attached.
#[inline]
pub unsafe fn instance<T: PyClass<Frozen = True> + Sync>(object: &*mut ffi::PyObject) -> &T {
    // SAFETY: as the caller says.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: as the caller says.
    let object = unsafe { Borrowed::from_ptr(py, *object) };
    // SAFETY: as the caller says, and what is borrowed of it lives as long.
    let object = unsafe { object.cast_unchecked::<T>() };
    let object: *const T = object.get();
    // SAFETY: it was a reference.
    unsafe { &*object }
}
