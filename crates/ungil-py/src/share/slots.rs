//! Methods with nothing between them and the interpreter.
//!
//! PyO3 counts attachments, takes arguments apart, looks at the class of `self` and hands results on
//! through memory, which together takes about as long as to read a number. So the classes here do
//! what is frequent and short by themselves, and leave everything else to PyO3's classes, from which
//! they are derived.

use std::any::Any;
use std::ffi::{CStr, c_int, c_uint, c_ulong};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use pyo3::PyClass;
use pyo3::ffi;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyTuple, PyType};

use crate::this_thread::attached;

/// Makes a class with these slots, the last of which is empty, derived from PyO3's class `T`.
pub fn class<'py, T: PyClass>(
    py: Python<'py>,
    name: &'static CStr,
    slots: &mut [ffi::PyType_Slot],
) -> PyResult<Bound<'py, PyType>> {
    class_with::<T>(py, name, slots, ffi::Py_TPFLAGS_BASETYPE)
}

/// The same, of a class from which no other one is derived.
pub fn sealed_class<'py, T: PyClass>(
    py: Python<'py>,
    name: &'static CStr,
    slots: &mut [ffi::PyType_Slot],
) -> PyResult<Bound<'py, PyType>> {
    class_with::<T>(py, name, slots, 0)
}

fn class_with<'py, T: PyClass>(
    py: Python<'py>,
    name: &'static CStr,
    slots: &mut [ffi::PyType_Slot],
    more: c_ulong,
) -> PyResult<Bound<'py, PyType>> {
    let bases = PyTuple::new(py, [py.get_type::<T>()])?;
    #[expect(clippy::cast_possible_truncation, reason = "those of the stable ABI have 32 bits")]
    let flags = (ffi::Py_TPFLAGS_DEFAULT | more) as c_uint;
    let mut specification = ffi::PyType_Spec {
        name: name.as_ptr(),
        // That of the base.
        basicsize: 0,
        itemsize: 0,
        flags,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the name is there for ever, the specification, its slots and the tuple of bases during
    // the call; each slot has a function of the type that its number asks for.
    let class = unsafe { ffi::PyType_FromSpecWithBases(&raw mut specification, bases.as_ptr()) };
    // SAFETY: the call has returned a new reference, or null with an exception.
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
unsafe fn answer<T: Copy>(
    failed: T,
    quick: impl FnOnce(Python<'_>) -> Option<T>,
    slow: impl FnOnce(Python<'_>) -> PyResult<T>,
) -> T {
    // SAFETY: the interpreter calls slots in attached threads.
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
    // SAFETY: only slots come here, in attached threads.
    let error = match catch_unwind(AssertUnwindSafe(|| unsafe { attached(work) })) {
        Ok(Ok(done)) => return done,
        Ok(Err(error)) => error,
        Err(panic) => panicked(&*panic),
    };
    raise(error);
    failed
}

#[cold]
fn raise(error: PyErr) {
    // SAFETY: as above.
    unsafe { attached(|py| error.restore(py)) };
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
    // SAFETY: the caller promises an attached thread.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the caller has a reference, for as long as `object` is borrowed.
    let object = unsafe { Borrowed::from_ptr(py, *object) };
    // SAFETY: the caller promises an instance of `T`.
    let object = unsafe { object.cast_unchecked::<T>() };
    let object: *const T = object.get();
    // SAFETY: a reference to the contents of the object, which live as long as the object, and not
    // only as long as `Borrowed` says.
    unsafe { &*object }
}

/// What a slot of `T` returns, as of [`answer`].
///
/// # Safety
/// The interpreter called the slot with this instance of `T`.
#[inline]
pub unsafe fn call<T: PyClass<Frozen = True> + Sync, R: Copy>(
    object: *mut ffi::PyObject,
    failed: R,
    quick: impl FnOnce(Python<'_>, &T) -> Option<R>,
    slow: impl FnOnce(Python<'_>, &T) -> PyResult<R>,
) -> R {
    // SAFETY: the interpreter keeps the instance during the call, in an attached thread.
    let object = unsafe { instance::<T>(&object) };
    // SAFETY: the interpreter called the slot.
    unsafe { answer(failed, |py| quick(py, object), |py| slow(py, object)) }
}

/// What the slot of a subscript that is read does. `quick` gives a new reference.
///
/// # Safety
/// The interpreter called the slot with these: an instance of `T`, and a key.
#[inline]
pub unsafe fn get_item<T: PyClass<Frozen = True> + Sync>(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    quick: impl for<'py> FnOnce(&T, &Bound<'py, PyAny>) -> Option<*mut ffi::PyObject>,
    slow: impl for<'py> FnOnce(&T, &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> *mut ffi::PyObject {
    let quick = |py: Python<'_>, container: &T| {
        // SAFETY: the interpreter keeps the key during the call.
        let key = unsafe { Borrowed::from_ptr(py, key) };
        quick(container, &key)
    };
    let slow = |py: Python<'_>, container: &T| {
        // SAFETY: the interpreter keeps the key during the call.
        let key = unsafe { Borrowed::from_ptr(py, key) };
        slow(container, &key).map(Bound::into_ptr)
    };
    // SAFETY: the interpreter called the slot with this instance.
    unsafe { call(object, ptr::null_mut(), quick, slow) }
}

/// What the slot of a subscript that is set does. `quick` says whether it has set it; `slow` gets no
/// value if the item is to be deleted.
///
/// # Safety
/// The interpreter called the slot with these: an instance of `T`, a key, and a value or null.
#[inline]
pub unsafe fn set_item<T: PyClass<Frozen = True> + Sync>(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    quick: impl for<'py> FnOnce(&T, &Bound<'py, PyAny>, &Bound<'py, PyAny>) -> Option<bool>,
    slow: impl for<'py> FnOnce(&T, &Bound<'py, PyAny>, Option<&Bound<'py, PyAny>>) -> PyResult<()>,
) -> c_int {
    let quick = |py: Python<'_>, container: &T| {
        // SAFETY: the interpreter keeps the key during the call.
        let key = unsafe { Borrowed::from_ptr(py, key) };
        // SAFETY: null, or a value that the interpreter keeps during the call.
        let value = unsafe { Borrowed::from_ptr_or_opt(py, value) };
        quick(container, &key, value.as_deref()?)?.then_some(0)
    };
    let slow = |py: Python<'_>, container: &T| {
        // SAFETY: the interpreter keeps the key during the call.
        let key = unsafe { Borrowed::from_ptr(py, key) };
        // SAFETY: null, or a value that the interpreter keeps during the call.
        let value = unsafe { Borrowed::from_ptr_or_opt(py, value) };
        slow(container, &key, value.as_deref()).map(|()| 0)
    };
    // SAFETY: the interpreter called the slot with this instance.
    unsafe { call(object, -1, quick, slow) }
}
