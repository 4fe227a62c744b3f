//! Memory that Python lends to a heap for a moment, and views of a heap's memory for Python: the buffer
//! protocol (PEP 3118) from both sides.

use std::ffi::{CString, c_int};
use std::ptr::{self, NonNull};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::errors::interrupted;
use crate::this_thread::attached;

/// The memory of another object, which keeps it where it is as long as this lives.
pub struct Lent(Box<ffi::Py_buffer>);

// SAFETY: a view may be used and released by any thread that is attached.
unsafe impl Send for Lent {}
// SAFETY: as above; nobody changes the view itself.
unsafe impl Sync for Lent {}

impl Lent {
    /// The memory of an object that has the buffer protocol.
    pub fn by(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: a reference to an object, and a place for the view, which does not move.
        let got =
            unsafe { ffi::PyObject_GetBuffer(given.as_ptr(), &raw mut *view, ffi::PyBUF_FULL_RO) };
        if got < 0 { Err(PyErr::fetch(given.py())) } else { Ok(Self(view)) }
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.0.len.unsigned_abs()
    }

    /// Copies all of it in the order of C, wherever its items are. There is room for [`Self::bytes`].
    pub fn copy_to(&self, to: NonNull<u8>) -> ungil_heap::Result<()> {
        let copy = |py: Python<'_>| {
            // SAFETY: there is room for all bytes, and the view is valid as long as this lives.
            let copied = unsafe {
                ffi::PyBuffer_ToContiguous(to.as_ptr().cast(), &raw const *self.0, self.0.len, 67)
            };
            if copied < 0 { Err(interrupted(PyErr::fetch(py))) } else { Ok(()) }
        };
        // SAFETY: a heap takes copies in attached threads.
        unsafe { attached(copy) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: got by `by`, and released once.
        let release = |_: Python<'_>| unsafe { ffi::PyBuffer_Release(&raw mut *self.0) };
        // SAFETY: it is used, and goes, in attached threads.
        unsafe { attached(release) };
    }
}

/// What a view says of its items; it lives as long as the view.
pub struct Shape {
    format: CString,
    item_bytes: isize,
    axes: Vec<isize>,
    strides: Vec<isize>,
}

impl Shape {
    /// Of items in the order of C. `None`: there is no memory for so many.
    pub fn new(format: CString, item_bytes: usize, axes: &[usize]) -> Option<Self> {
        let axes: Vec<isize> =
            axes.iter().map(|&axis| isize::try_from(axis).ok()).collect::<Option<_>>()?;
        let item_bytes = isize::try_from(item_bytes).ok()?;
        let mut strides = vec![item_bytes; axes.len()];
        for axis in (1..axes.len()).rev() {
            strides[axis - 1] = strides[axis].checked_mul(axes[axis])?;
        }
        axes.iter().try_fold(item_bytes, |bytes, &axis| bytes.checked_mul(axis))?;
        Some(Self { format, item_bytes, axes, strides })
    }

    /// All bytes of the items.
    pub fn bytes(&self) -> isize {
        self.axes.iter().product::<isize>() * self.item_bytes
    }
}

/// Makes `view` one of memory that `owner` keeps, as the caller of the buffer protocol asks for it.
///
/// # Safety
/// `view` is a place for one, which [`release`] is called with. The memory is as large as the items,
/// and stays as long as `owner`.
pub unsafe fn export(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    owner: Bound<'_, PyAny>,
    memory: NonNull<u8>,
    is_writable: bool,
    shape: Shape,
) -> PyResult<()> {
    let asks = |flag: c_int| flags & flag == flag;
    if asks(ffi::PyBUF_WRITABLE) && !is_writable {
        return Err(PyBufferError::new_err("this memory is read-only"));
    }
    if asks(ffi::PyBUF_F_CONTIGUOUS) && shape.axes.len() > 1 {
        return Err(PyBufferError::new_err("the items of a shared array are in the order of C"));
    }
    let has_shape = asks(ffi::PyBUF_ND);
    let mut shape = Box::new(shape);
    let filled = ffi::Py_buffer {
        buf: memory.as_ptr().cast(),
        obj: owner.into_ptr(),
        len: shape.bytes(),
        itemsize: shape.item_bytes,
        readonly: c_int::from(!is_writable),
        // Who asks for no shape sees bytes in a row.
        ndim: if has_shape { c_int::try_from(shape.axes.len()).unwrap_or(1) } else { 1 },
        format: if asks(ffi::PyBUF_FORMAT) {
            shape.format.as_ptr().cast_mut()
        } else {
            ptr::null_mut()
        },
        shape: if has_shape { shape.axes.as_mut_ptr() } else { ptr::null_mut() },
        strides: if asks(ffi::PyBUF_STRIDES) {
            shape.strides.as_mut_ptr()
        } else {
            ptr::null_mut()
        },
        suboffsets: ptr::null_mut(),
        internal: Box::into_raw(shape).cast(),
    };
    // SAFETY: the caller says that it is a place for a view.
    unsafe { view.write(filled) };
    Ok(())
}

/// Forgets what was made for a view, which is no more.
///
/// # Safety
/// [`export`] made the view, and this is called once.
pub unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: the caller says that it is a view.
    let internal = unsafe { (*view).internal };
    // SAFETY: `export` has put it there.
    drop(unsafe { Box::from_raw(internal.cast::<Shape>()) });
}
