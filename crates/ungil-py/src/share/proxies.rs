//! Which shared objects have a proxy in this process.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use ungil_heap::segment::Offset;

use crate::guarded::{self, Guarded};

/// The proxies by where their objects are.
#[derive(Default)]
pub struct Proxies(Guarded<HashMap<Offset, Known, BuildHasherDefault<Spread>>>);

/// How a proxy is known that this keeps no reference to.
enum Known {
    /// By its address. A proxy is forgotten before its memory is given back, and until then has no
    /// references.
    Plain(NonNull<ffi::PyObject>),
    /// Where there is no GIL, and proxies of classes that users declare.
    Weak(Py<PyWeakrefReference>),
}

// SAFETY: the address is looked at by attached threads only.
unsafe impl Send for Known {}

impl Proxies {
    /// The living proxy of an object, if there is one.
    #[inline]
    pub fn living<'py>(&self, py: Python<'py>, at: Offset) -> Option<Bound<'py, PyAny>> {
        self.0.with(py, |proxies| proxies.get(&at)?.living(py))
    }

    /// Enters the proxy of the object at `at`, and returns it, or the one that another thread has
    /// entered while this one was made. `is_own`: nobody but this module says what the proxies of
    /// its class are and how they end.
    pub fn enter<'py>(
        &self,
        at: Offset,
        proxy: Bound<'py, PyAny>,
        is_own: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = proxy.py();
        let known = match NonNull::new(proxy.as_ptr()) {
            Some(proxy) if is_own && guarded::has_gil() => Known::Plain(proxy),
            _ => Known::Weak(PyWeakrefReference::new(&proxy)?.unbind()),
        };
        let entered =
            self.0.with(py, |proxies| match proxies.get(&at).and_then(|known| known.living(py)) {
                Some(first) => Err((first, known)),
                None => Ok(proxies.insert(at, known)),
            });
        // What is dropped may come back here.
        match entered {
            Ok(old) => {
                drop(old);
                Ok(proxy)
            }
            Err((first, _)) => Ok(first),
        }
    }

    /// Forgets the proxy of an object, which is gone.
    pub fn forget(&self, py: Python<'_>, at: Offset) {
        let gone = self.0.with(py, |proxies| match proxies.get(&at)?.living(py) {
            // There may be a new one for the same object already. If this reference to it is the
            // last, it ends when that is dropped, and comes here.
            Some(another) => Some(Err(another)),
            None => proxies.remove(&at).map(Ok),
        });
        drop(gone);
    }
}

impl Known {
    #[inline]
    fn living<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Plain(object) => {
                // SAFETY: a proxy is forgotten before its memory is given back, so this is an object.
                let references = unsafe { ffi::Py_REFCNT(object.as_ptr()) };
                // CPython 3.14 has flags in the other half.
                let is_alive = references & 0xffff_ffff != 0;
                // SAFETY: somebody has a reference, and no other thread runs.
                is_alive.then(|| unsafe { Bound::from_borrowed_ptr(py, object.as_ptr()) })
            }
            Self::Weak(proxy) => proxy.bind(py).upgrade(),
        }
    }
}

/// Spreads offsets, which nobody chooses so that they collide: what has the same hash is found later,
/// and a heap is of one user.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(byte.into());
        }
    }

    fn write_usize(&mut self, offset: usize) {
        // The table takes its places from the lowest bits and its tags from the highest.
        let spread = (self.0 ^ offset as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }
}
