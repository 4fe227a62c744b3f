//! No value, where None is one.

use pyo3::prelude::*;

/// What a dict's `cas` takes for the value of a key that is not there.
#[pyclass(frozen, module = "ungil._native")]
pub struct Absent;

#[pymethods]
impl Absent {
    #[expect(clippy::unused_self, reason = "what Python calls")]
    fn __repr__(&self) -> &'static str {
        "share.ABSENT"
    }
}

impl Absent {
    /// `None` for this one, else what `with` makes of a value.
    pub fn or<T>(
        given: &Bound<'_, PyAny>,
        with: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        if given.cast::<Self>().is_ok() { Ok(None) } else { with().map(Some) }
    }
}
