//! What a failing heap raises, and waits that Ctrl-C can end.

use std::cell::RefCell;

use pyo3::exceptions::{
    PyKeyboardInterrupt, PyMemoryError, PyOSError, PyPermissionError, PyRecursionError,
    PyReferenceError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use ungil_heap::Error;
use ungil_heap::lock::Pause;

use super::transaction;
use crate::this_thread::attached;

thread_local! {
    /// What a signal handler raised while this thread waited.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The exception for an error of the heap.
pub fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Full { .. } | Error::Due => PyMemoryError::new_err(text),
        Error::Refused(_) => PyValueError::new_err(text),
        Error::Untrusted(_) => PyPermissionError::new_err((libc::EACCES, text)),
        Error::Stale => PyReferenceError::new_err(text),
        Error::TooDeep(_) => PyRecursionError::new_err(text),
        Error::Unfit(_) => PyTypeError::new_err(text),
        Error::Interrupted => RAISED.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(text)),
        Error::Io { error, .. }
            if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOSPC | libc::EDQUOT)) =>
        {
            PyMemoryError::new_err(text)
        }
        Error::NoProc => PyOSError::new_err(text),
        Error::Io { error, .. } if error.raw_os_error().is_some() => {
            PyOSError::new_err((error.raw_os_error(), text))
        }
        _ => PyRuntimeError::new_err(text),
    }
}

/// The error for an exception that ends a wait; [`raised`] makes it the exception again.
pub fn interrupted(error: PyErr) -> Error {
    RAISED.set(Some(error));
    Error::Interrupted
}

/// Lets the program's other threads run during a wait, and signal handlers after it.
pub struct WithoutGil;

/// What is called without the GIL, by the thread that made it.
struct Here<T>(T);

// SAFETY: `detach` calls its argument on the thread that it was given by.
unsafe impl<T> Send for Here<T> {}

impl Here<&mut dyn FnMut()> {
    fn call(&mut self) {
        (self.0)();
    }
}

impl Pause for WithoutGil {
    fn pause(&self, wait: &mut dyn FnMut()) -> ungil_heap::Result<()> {
        let mut wait = Here(wait);
        let pause = |py: Python<'_>| {
            py.detach(|| wait.call());
            py.check_signals()
        };
        // SAFETY: a heap is used by attached threads, and this is called before they are detached.
        unsafe { attached(pause) }.map_err(interrupted)
    }

    fn may_go_on(&self) -> ungil_heap::Result<()> {
        // SAFETY: as above.
        unsafe { attached(transaction::may_go_on) }.map_err(interrupted)
    }
}
