//! Iterating over what is frozen.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::dict::Dict;
use super::list::List;
use super::object;
use super::range::Ranked;
use super::set::Set;

/// What of the pairs of a dict is wanted.
#[derive(Clone, Copy)]
pub enum Part {
    Keys,
    Values,
    Items,
}

impl Part {
    pub fn of(name: &str) -> PyResult<Self> {
        match name {
            "keys" => Ok(Self::Keys),
            "values" => Ok(Self::Values),
            "items" => Ok(Self::Items),
            _ => Err(PyValueError::new_err(format!("a dict has no {name}"))),
        }
    }
}

/// Over what an iteration goes.
enum Over {
    Dict(Dict, Part),
    List(List),
    Set(Set),
    Ranked(Ranked),
}

/// An iterator over something frozen.
#[pyclass(frozen, module = "ungil._native")]
pub struct FrozenIterator {
    over: Over,
    /// So many it has given.
    given: AtomicUsize,
    len: usize,
    is_backwards: bool,
}

impl FrozenIterator {
    fn new(over: Over, len: usize, step: isize) -> Self {
        Self { over, given: AtomicUsize::new(0), len, is_backwards: step < 0 }
    }

    pub fn of_dict(dict: &Dict, part: Part, step: isize) -> Self {
        Self::new(Over::Dict(dict.clone(), part), dict.len(), step)
    }

    pub fn of_list(list: &List, step: isize) -> Self {
        Self::new(Over::List(list.clone()), list.len(), step)
    }

    pub fn of_set(set: &Set) -> Self {
        Self::new(Over::Set(set.clone()), set.table.len, 1)
    }

    pub fn of_ranked(ranked: Ranked, len: usize, step: isize) -> Self {
        Self::new(Over::Ranked(ranked), len, step)
    }
}

#[pymethods]
impl FrozenIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __length_hint__(&self) -> usize {
        self.len.saturating_sub(self.given.load(Relaxed))
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        // Where threads do not take turns, each item goes to one of them all the same.
        let given = if crate::share::guarded::has_gil() {
            let given = self.given.load(Relaxed);
            self.given.store(given.saturating_add(1), Relaxed);
            given
        } else {
            self.given.fetch_add(1, Relaxed)
        };
        if given >= self.len {
            self.given.store(self.len, Relaxed);
            return Ok(None);
        }
        let number = if self.is_backwards { self.len - 1 - given } else { given };
        match &self.over {
            Over::Dict(dict, Part::Keys) => dict.key(py, number),
            Over::Dict(dict, Part::Values) => dict.value(py, number),
            Over::Dict(dict, Part::Items) => {
                let pair = [dict.key(py, number)?, dict.value(py, number)?];
                Ok(PyTuple::new(py, pair)?.into_any())
            }
            Over::List(list) => match list.item(number) {
                Some(found) => object::of(py, &list.opened, found, list.at()),
                None => list.object(py, number),
            },
            Over::Set(set) => set.member(py, number),
            Over::Ranked(ranked) => ranked.key(py, number),
        }
        .map(Some)
    }
}
