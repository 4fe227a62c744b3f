//! Iterating over a list by index, as over a builtin one.

use pyo3::prelude::*;

use super::list::List;

/// An iterator over the items of a list. It reads one at a time, and ends for good where there is
/// none.
#[pyclass(module = "ungil._native", name = "SharedListIterator")]
pub struct ListIterator {
    /// `None` at the end.
    list: Option<Py<List>>,
    next: isize,
    step: isize,
}

impl ListIterator {
    pub fn forwards(list: Py<List>) -> Self {
        Self { list: Some(list), next: 0, step: 1 }
    }

    pub fn backwards(list: Py<List>) -> PyResult<Self> {
        let length = list.get().length()?;
        Ok(Self { list: Some(list), next: length.cast_signed() - 1, step: -1 })
    }
}

#[pymethods]
impl ListIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(list) = &self.list else { return Ok(None) };
        // Below zero, an index would count from the end.
        let item = if self.next < 0 { None } else { list.get().item(py, self.next)? };
        match item {
            Some(_) => self.next += self.step,
            None => self.list = None,
        }
        Ok(item)
    }
}
