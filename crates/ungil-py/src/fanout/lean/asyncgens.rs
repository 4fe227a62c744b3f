//! Asynchronous generators that were not run to their end, and whose `finally` may have to wait.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Those that were let go, until the loop closes them.
#[derive(Clone, Default)]
pub struct Generators(Arc<Mutex<Vec<Py<PyAny>>>>);

impl Generators {
    /// From now on, Python gives the generators of this thread to the loop in the place of closing
    /// them itself; until what is returned is dropped.
    pub fn watch<'py>(&self, py: Python<'py>) -> PyResult<Watched<'py>> {
        let sys = py.import("sys")?;
        let before = sys.call_method0("get_asyncgen_hooks")?;
        let finalizer = Finalizer { left: self.clone() };
        let hooks = PyDict::new(py);
        hooks.set_item("firstiter", py.None())?;
        hooks.set_item("finalizer", finalizer.into_pyobject(py)?)?;
        sys.call_method("set_asyncgen_hooks", (), Some(&hooks))?;
        Ok(Watched { sys: sys.into_any(), before })
    }

    /// Those that were let go, once.
    pub fn take(&self) -> Vec<Py<PyAny>> {
        mem::take(&mut self.left())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.left().is_empty()
    }

    fn left(&self) -> MutexGuard<'_, Vec<Py<PyAny>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As long as it lives, generators come to the loop.
pub struct Watched<'py> {
    sys: Bound<'py, PyAny>,
    before: Bound<'py, PyAny>,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let restored = self.before.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>();
        let restored =
            restored.and_then(|hooks| self.sys.call_method1("set_asyncgen_hooks", hooks));
        if let Err(error) = restored {
            error.write_unraisable(self.sys.py(), None);
        }
    }
}

#[pyclass(frozen, module = "ungil._native")]
struct Finalizer {
    left: Generators,
}

#[pymethods]
impl Finalizer {
    fn __call__(&self, generator: Py<PyAny>) {
        self.left.left().push(generator);
    }
}
