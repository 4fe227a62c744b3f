//! Python strings of the long texts that were read last, of any frozen file.
//!
//! A frozen text never changes, so that a string that was made of it is right whenever it is read
//! again. It is kept at the second reading: most are read once.

use std::cell::UnsafeCell;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use ungil_frozen::Frozen;
use ungil_heap::value::Cell;

use crate::share::{convert, guarded};

/// How many there are, a power of two.
const PLACES: usize = 1 << 10;
/// Longer ones are made anew: all of them take at most 512 KiB.
const LONGEST: u64 = 512;

static RECENT: Recent = Recent(UnsafeCell::new([Place::EMPTY; PLACES]));

struct Recent(UnsafeCell<[Place; PLACES]>);

// SAFETY: only threads that have the GIL come here, one at a time.
unsafe impl Sync for Recent {}

struct Place {
    /// The serial number of the mapping, and the cell there.
    of: (u64, Cell),
    /// Owned; null as long as the text was read once only.
    object: *mut ffi::PyObject,
}

impl Place {
    const EMPTY: Self = Self { of: (0, Cell::NOTHING), object: ptr::null_mut() };
}

/// A new reference to the string of this text, which is what the cell refers to; null with an
/// exception if it is no UTF-8, or there is no memory.
#[inline]
pub fn object(py: Python<'_>, frozen: &Frozen, cell: Cell, text: &[u8]) -> *mut ffi::PyObject {
    if ungil_frozen::cell::count(cell) > LONGEST || !guarded::has_gil() {
        return convert::decoded(py, text);
    }
    let of = (frozen.serial(), cell);
    let word = (cell.1 ^ of.0.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = usize::try_from(word >> (u64::BITS - PLACES.ilog2())).unwrap_or(0);
    // SAFETY: so many bits are the number of one of the array's places.
    let place = unsafe { RECENT.0.get().cast::<Place>().add(number) };
    // SAFETY: this thread has the GIL until it returns: strings run no code when they are deleted.
    let place = unsafe { &mut *place };
    if place.of == of && !place.object.is_null() {
        // SAFETY: a place owns a reference to its object, and the thread is attached.
        unsafe { ffi::Py_INCREF(place.object) };
        return place.object;
    }
    let object = convert::decoded(py, text);
    if object.is_null() {
        return object;
    }
    let old = place.object;
    if place.of == of {
        place.object = object;
        // SAFETY: the thread is attached, and has a reference to this object.
        unsafe { ffi::Py_INCREF(object) };
    } else {
        *place = Place { of, object: ptr::null_mut() };
    }
    if !old.is_null() {
        // SAFETY: the place owned a reference to it, which nobody has any more.
        unsafe { ffi::Py_DECREF(old) };
    }
    object
}
