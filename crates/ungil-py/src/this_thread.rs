//! The calling thread, which the interpreter has called.

use pyo3::ffi;
use pyo3::prelude::*;

/// Calls `work`, also while the interpreter ends: `__del__` may then still use what is shared, and
/// [`Python::attach`] would panic.
///
/// # Safety
/// The thread is attached: the interpreter called what calls this, and nothing has detached the thread
/// since.
pub unsafe fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    // SAFETY: it has no preconditions.
    if unsafe { ffi::Py_IsInitialized() } != 0 {
        return Python::attach(work);
    }
    // SAFETY: the caller promises it.
    work(unsafe { Python::assume_attached() })
}
