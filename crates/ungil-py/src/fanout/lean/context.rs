//! Each item has a copy of the caller's context variables, as each task of asyncio has.
//!
//! Without it, `decimal.localcontext` around an `await` would change the numbers of other items.
//! These functions are no part of the stable ABI, but of every CPython since 3.7 under these names;
//! so they are looked up by name, and a Python without them is refused in a sentence. The
//! alternative, `contextvars.Context.run`, costs a call of Python for each step.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use pyo3::exceptions::PyImportError;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

struct Functions {
    copy_current: unsafe extern "C" fn() -> *mut PyObject,
    copy: unsafe extern "C" fn(*mut PyObject) -> *mut PyObject,
    enter: unsafe extern "C" fn(*mut PyObject) -> c_int,
    exit: unsafe extern "C" fn(*mut PyObject) -> c_int,
}

static FUNCTIONS: PyOnceLock<Functions> = PyOnceLock::new();

fn functions(py: Python<'_>) -> PyResult<&'static Functions> {
    FUNCTIONS.get_or_try_init(py, || {
        // SAFETY: CPython has declared them so since 3.7.
        unsafe {
            Ok(Functions {
                copy_current: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn() -> *mut PyObject,
                >(symbol(c"PyContext_CopyCurrent")?),
                copy: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut PyObject) -> *mut PyObject,
                >(symbol(c"PyContext_Copy")?),
                enter: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut PyObject) -> c_int,
                >(symbol(c"PyContext_Enter")?),
                exit: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut PyObject) -> c_int,
                >(symbol(c"PyContext_Exit")?),
            })
        }
    })
}

fn symbol(name: &CStr) -> PyResult<*mut c_void> {
    // SAFETY: a name that ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found == ptr::null_mut() {
        let name = name.to_string_lossy();
        return Err(PyImportError::new_err(format!(
            "this Python has no {name}, which mode=\"lean\" needs: use mode=\"asyncio\""
        )));
    }
    Ok(found)
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
        // SAFETY: gives a new reference or null with an exception.
        let first =
            unsafe { Bound::from_owned_ptr_or_err(py, (functions.copy_current)())?.unbind() };
        Ok(Self { functions, first })
    }

    /// A copy for one item.
    pub fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // SAFETY: a context; gives a new reference or null with an exception.
        unsafe {
            let copy = (self.functions.copy)(self.first.as_ptr());
            Ok(Bound::from_owned_ptr_or_err(py, copy)?.unbind())
        }
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
