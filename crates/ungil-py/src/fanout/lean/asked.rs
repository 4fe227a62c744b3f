//! What a primitive yields up to the loop.
//!
//! A coroutine hands up one object through all that awaits it. What it wants is no object and would
//! have to be made one, so a single object stands for all wants, and the want lies in the
//! [`hand`](ungil_fanout::lean::hand).

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use ungil_fanout::lean::{Want, hand};

/// The object. Other event loops do not know it, and say so.
#[pyclass(frozen, module = "ungil._native")]
pub struct Asked;

#[pymethods]
impl Asked {
    #[expect(clippy::unused_self, reason = "Python calls it with one")]
    fn __repr__(&self) -> &'static str {
        "<a wait for the lean fan-out that runs coroutines in this thread>"
    }
}

static ASKED: PyOnceLock<Py<Asked>> = PyOnceLock::new();

/// Leaves what the calling primitive wants. Gives what it shall yield.
pub fn ask(py: Python<'_>, want: Want) -> PyResult<Py<PyAny>> {
    hand::leave(want);
    let asked = ASKED.get_or_try_init(py, || Py::new(py, Asked))?;
    Ok(asked.clone_ref(py).into_any())
}

/// Whether this is that object.
pub fn is_asked(object: &Bound<'_, PyAny>) -> bool {
    ASKED.get(object.py()).is_some_and(|asked| object.is(asked))
}
