//! Each item has a copy of the caller's context variables, as each task of asyncio has.
//!
//! Without it, `decimal.localcontext` around an `await` would change the numbers of other items.
//! These functions are no part of the stable ABI, but of every CPython since 3.7 under these names;
//! so they are looked up by name, and a Python without them is refused in a sentence. The
//! alternative, `contextvars.Context.run`, costs a call of Python for each step.

use std::ffi::c_int;

use pyo3::exceptions::PyImportError;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::loader;

struct Functions {
    copy_current: unsafe extern "C" fn() -> *mut PyObject,
    copy: unsafe extern "C" fn(*mut PyObject) -> *mut PyObject,
    enter: unsafe extern "C" fn(*mut PyObject) -> c_int,
    exit: unsafe extern "C" fn(*mut PyObject) -> c_int,
}

static FUNCTIONS: PyOnceLock<Functions> = PyOnceLock::new();

fn functions(py: Python<'_>) -> PyResult<&'static Functions> {
    macro_rules! function {
        ($name:literal) => {{
            // SAFETY: CPython has declared it so since 3.7, and is never unloaded.
            let found = unsafe { loader::function(libc::RTLD_DEFAULT, $name) };
            found.ok_or_else(|| {
                let name = $name.to_string_lossy();
                PyImportError::new_err(format!(
                    "this Python has no {name}, which mode=\"lean\" needs: use mode=\"asyncio\""
                ))
            })
        }};
    }
    FUNCTIONS.get_or_try_init(py, || {
        Ok(Functions {
            copy_current: function!(c"PyContext_CopyCurrent")?,
            copy: function!(c"PyContext_Copy")?,
            enter: function!(c"PyContext_Enter")?,
            exit: function!(c"PyContext_Exit")?,
        })
    })
}

/// The context variables that items start with.
pub struct Contexts {
    functions: &'static Functions,
    first: Py<PyAny>,
}

impl Contexts {
    /// Those of the caller, as they are now.
    pub fn of_caller(py: Python<'_>) -> PyResult<Self> {
        let functions = functions(py)?;
        // SAFETY: the thread is attached.
        let first = unsafe { (functions.copy_current)() };
        // SAFETY: a new reference, or null with an exception.
        let first = unsafe { Bound::from_owned_ptr_or_err(py, first)? };
        Ok(Self { functions, first: first.unbind() })
    }

    /// A copy for one item.
    pub fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // SAFETY: a reference to a context.
        let copy = unsafe { (self.functions.copy)(self.first.as_ptr()) };
        // SAFETY: a new reference, or null with an exception.
        Ok(unsafe { Bound::from_owned_ptr_or_err(py, copy)? }.unbind())
    }

    /// Does something with the variables of this context.
    pub fn run<T>(
        &self,
        py: Python<'_>,
        context: &Py<PyAny>,
        step: impl FnOnce() -> T,
    ) -> PyResult<T> {
        let context = context.as_ptr();
        // SAFETY: a context, which this thread does not leave before the end of this function. It
        // fails for one that somebody has entered already.
        if unsafe { (self.functions.enter)(context) } != 0 {
            return Err(PyErr::fetch(py));
        }
        let result = step();
        // What the step raised was taken out of the thread by it.
        // SAFETY: the context that was entered last.
        if unsafe { (self.functions.exit)(context) } != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(result)
    }

    /// For the collector of cycles.
    pub fn first(&self) -> &Py<PyAny> {
        &self.first
    }
}
