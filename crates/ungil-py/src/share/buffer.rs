//! A shared buffer: bytes that are read where they are.

use std::ffi::c_int;
use std::ptr::NonNull;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use ungil_heap::buffer::{self, Memory};
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;

use super::errors::raised;
use super::memory::{self, Lent, Shape};
use super::proxy::{Held, Hold};
use super::sync::Place;

/// The proxy of a shared buffer, or what one is to be made of. It is also what keeps the memory of a
/// view of an array.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedBuffer")]
pub struct Buffer(Place<Wanted>);

/// A buffer that is to be made.
struct Wanted {
    source: Option<Lent>,
    bytes: usize,
    is_writable: bool,
}

#[pymethods]
impl Buffer {
    /// The proxy of what is held; else a buffer with a copy of `source`, or with so many zeros.
    #[new]
    #[pyo3(signature = (held = None, /, *, source = None, size = 0, writable = false))]
    fn new(
        held: Option<&Held>,
        source: Option<&Bound<'_, PyAny>>,
        size: usize,
        writable: bool,
    ) -> PyResult<Self> {
        let wanted = || {
            let source = source.map(Lent::by).transpose()?;
            let bytes = source.as_ref().map_or(size, Lent::bytes);
            Ok(Wanted { source, bytes, is_writable: writable })
        };
        Place::new(held, wanted).map(Self)
    }

    /// How many bytes it has.
    fn __len__(&self) -> PyResult<usize> {
        let (heap, at) = self.0.found()?;
        buffer::memory(heap.segment(), at).map(|memory| memory.bytes).map_err(raised)
    }

    /// Whether views can write.
    #[getter]
    fn readonly(&self) -> PyResult<bool> {
        let (heap, at) = self.0.found()?;
        buffer::memory(heap.segment(), at).map(|memory| !memory.is_writable).map_err(raised)
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let (memory, pointer) = slf.get().lasting()?;
        let shape = Shape::new(c"B".to_owned(), 1, &[memory.bytes]).ok_or_else(too_large)?;
        let owner = slf.into_any();
        // SAFETY: Python gives a place for a view, and releases it by the method below. The memory is
        // there as long as the buffer is held.
        unsafe { memory::export(view, flags, owner, pointer, memory.is_writable, shape) }
    }

    #[expect(clippy::unused_self, reason = "a method, because Python calls it")]
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases each view once that was made for this owner, by `export`.
        unsafe { memory::release(view) };
    }
}

/// Where sizes are beyond what Python counts.
pub fn too_large() -> PyErr {
    PyBufferError::new_err("this memory is too large for one view")
}

impl Buffer {
    /// What it consists of if it is shared.
    pub fn hold(&self) -> Option<&Hold> {
        self.0.hold()
    }

    /// What keeps the memory of a view: no proxy that anybody else could find, and quicker to make.
    pub fn keeping(py: Python<'_>, hold: Hold) -> PyResult<Bound<'_, Self>> {
        Bound::new(py, Self(Place::Shared(hold)))
    }

    /// Its bytes, for a view.
    pub fn lasting(&self) -> PyResult<(Memory, NonNull<u8>)> {
        let (heap, at) = self.0.found()?;
        let memory = buffer::lasting(heap, at).map_err(raised)?;
        let pointer = heap.segment().pointer(memory.at, memory.bytes).map_err(raised)?;
        Ok((memory, pointer))
    }

    /// Makes what is wanted.
    pub fn create(&self, op: &mut Op<'_>) -> ungil_heap::Result<Offset> {
        let Place::Wanted(Wanted { source, bytes, is_writable }) = &self.0 else {
            return Err(ungil_heap::Error::Misuse("this is shared already"));
        };
        buffer::create(op, *bytes, *is_writable, &mut |to| {
            if let Some(source) = source {
                return source.copy_to(to);
            }
            // SAFETY: so many bytes are the buffer's, which nobody sees yet.
            unsafe { to.write_bytes(0, *bytes) };
            Ok(())
        })
    }
}
