//! The Python objects of proxies that are gone, kept for the next ones.
//!
//! `d["a"]["b"]` makes a proxy of the inner object and lets go of it, each time. To allocate the
//! Python object, to call its class and to take it apart again takes several times as long as both
//! lookups. So the memory of a few is kept, as CPython does with floats and lists: what is parked
//! holds nothing of a heap, has no references and is known to nobody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use pyo3::PyClass;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyType;
use ungil_heap::object::Kind;

use super::classes;
use super::proxy::Hold;
use super::slots;
use crate::guarded::{self, Guarded};

/// How many are kept of a class, of 80 bytes each.
const MOST: usize = 64;

/// A class of proxies that are parked.
pub trait Park: PyClass<Frozen = True> + Sync + From<Hold> {
    /// What they are proxies of.
    const KIND: Kind;

    /// What one of them consists of.
    fn hold(&mut self) -> &mut Hold;

    /// Where they are.
    fn parked() -> &'static Parked;
}

/// Proxies of one class that are parked.
pub struct Parked(Guarded<Vec<Place>>);

/// The memory of a proxy, and where in it its contents are, of which there are none.
struct Place {
    object: NonNull<ffi::PyObject>,
    contents: NonNull<u8>,
}

// SAFETY: it is memory that nobody else uses.
unsafe impl Send for Place {}

impl Parked {
    pub const fn new() -> Self {
        Self(Guarded::new(Vec::new()))
    }
}

/// Makes a proxy of one that is parked. If there is none, `hold` is given back.
pub fn revive<T: Park>(py: Python<'_>, hold: Hold) -> Result<Bound<'_, PyAny>, Hold> {
    let Some(class) = classes::class_of(py, T::KIND) else { return Err(hold) };
    if !guarded::has_gil() {
        return Err(hold); // None is ever parked.
    }
    let Some(place) = T::parked().0.with(py, Vec::pop) else { return Err(hold) };
    // SAFETY: this is where the contents of a `T` were, and there is nothing now.
    unsafe { place.contents.cast::<T>().write(hold.into()) };
    // SAFETY: the memory was an object of this class, which takes a reference to its class.
    unsafe { ffi::PyObject_Init(place.object.as_ptr(), class.as_type_ptr()) };
    // SAFETY: it is an object whose class the collector of cycles knows, and which it does not know.
    unsafe { ffi::PyObject_GC_Track(place.object.as_ptr().cast()) };
    // SAFETY: it is an object again, and this is the reference to it.
    Ok(unsafe { Bound::from_owned_ptr(py, place.object.as_ptr()) })
}

/// The slot by which a proxy ends.
///
/// # Safety
/// The interpreter calls it, with an instance of `T` that nobody has a reference to.
pub unsafe extern "C" fn end<T: Park>(object: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this slot, in an attached thread.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: it is an object until this function has given it up.
    let class = unsafe { ffi::Py_TYPE(object) };
    // Those of classes derived by others may have more in them.
    let is_usual = guarded::has_gil()
        && classes::class_of(py, T::KIND).is_some_and(|usual| usual.as_type_ptr() == class)
        && T::parked().0.with(py, |parked| parked.len() < MOST);
    if !is_usual {
        // SAFETY: it is an instance of `T` still, that nobody has a reference to.
        unsafe { free::<T>(py, object) };
        return;
    }
    // SAFETY: it is an instance of a class that the collector of cycles knows.
    unsafe { ffi::PyObject_GC_UnTrack(object.cast()) };
    // SAFETY: it has no references, and its class supports weak ones.
    unsafe { ffi::PyObject_ClearWeakRefs(object) };
    // SAFETY: the interpreter calls this with an instance of `T`; only the address is taken of what
    // is borrowed.
    let inside = ptr::from_ref(unsafe { slots::instance::<T>(&object) }).addr() - object.addr();
    // SAFETY: so far from the object's beginning are its contents.
    let contents = unsafe { object.byte_add(inside) }.cast::<T>();
    // What it let go of could panic only in a damaged heap.
    drop(catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the contents are there, and nobody else has a reference to the object.
        unsafe { &mut *contents }.hold().let_go(py);
        // SAFETY: the contents are there, and are not used again.
        unsafe { ptr::drop_in_place(contents) };
    })));
    if let (Some(object), Some(contents)) = (NonNull::new(object), NonNull::new(contents.cast())) {
        T::parked().0.with(py, |parked| parked.push(Place { object, contents }));
    }
    // SAFETY: an object has a reference to its class, and this one is none any more.
    unsafe { ffi::Py_DECREF(class.cast()) };
}

/// Ends it as PyO3 does.
///
/// # Safety
/// As that of [`end`].
unsafe fn free<T: Park>(py: Python<'_>, object: *mut ffi::PyObject) {
    let base: Bound<'_, PyType> = py.get_type::<T>();
    // SAFETY: a class that PyO3 made has this slot.
    let slot = unsafe { ffi::PyType_GetSlot(base.as_type_ptr(), ffi::Py_tp_dealloc) };
    // SAFETY: in this slot is such a function.
    let end: Option<ffi::destructor> = unsafe { std::mem::transmute(slot) };
    if let Some(end) = end {
        // SAFETY: the caller has promised what the interpreter promises to this slot.
        unsafe { end(object) };
    }
}
