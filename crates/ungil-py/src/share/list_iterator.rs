//! Iterating over a list by index, as over a builtin one.

use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use pyo3::prelude::*;

use super::list::List;

/// Before the first item going backwards, and behind the last one going forwards: the end for good.
const END: isize = -1;

/// An iterator over the items of a list. It reads one at a time, and ends for good where there is
/// none. Threads may share it: each place is given to one of them.
#[pyclass(frozen, module = "ungil._native", name = "SharedListIterator")]
pub struct ListIterator {
    list: Py<List>,
    next: AtomicIsize,
    step: isize,
}

impl ListIterator {
    pub fn forwards(list: Py<List>) -> Self {
        Self { list, next: AtomicIsize::new(0), step: 1 }
    }

    pub fn backwards(list: Py<List>) -> PyResult<Self> {
        let length = list.get().length()?;
        Ok(Self { list, next: AtomicIsize::new(length.cast_signed() - 1), step: -1 })
    }
}

#[pymethods]
impl ListIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let place = self.next.load(Relaxed);
            if place == END {
                return Ok(None);
            }
            let item = self.list.get().item(py, place)?;
            let next = if item.is_some() { place + self.step } else { END };
            // Reading may let others run, who take this place.
            if self.next.compare_exchange(place, next, Relaxed, Relaxed).is_ok() {
                return Ok(item);
            }
        }
    }
}
