//! Keys from one to another, in their order.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyListMethods};
use ungil_frozen::frozen::Table;
use ungil_frozen::table::Sorted;

use super::errors::raised;
use super::iterator::FrozenIterator;
use super::key::{Key, key};
use super::object;
use super::opened::Opened;

/// A range of keys, as it was asked for.
pub struct Asked<'py> {
    pub minimum: Option<Bound<'py, PyAny>>,
    pub maximum: Option<Bound<'py, PyAny>>,
    pub inclusive: (bool, bool),
    pub reverse: bool,
}

/// The keys of a table in their order, from one on.
pub struct Ranked {
    opened: Arc<Opened>,
    table: Table,
    first: usize,
}

impl Ranked {
    /// The key that comes so many after the first.
    pub fn key<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        let frozen = &self.opened.frozen;
        let entry = frozen.ranked(&self.table, self.first + number).map_err(raised)?;
        let found = frozen.key_of(&self.table, entry).map_err(raised)?;
        object::of(py, &self.opened, found, self.table.at)
    }
}

/// The keys of a table.
pub fn of_table<'py>(
    py: Python<'py>,
    opened: &Arc<Opened>,
    table: &Table,
    asked: &Asked<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    match table.sorted {
        Sorted::Not => Err(PyTypeError::new_err(
            "these keys have no common order, because their types differ or have no order; use \
             keys that are all str, all bytes or all numbers",
        )),
        Sorted::Few => {
            let keys = Ranked { opened: opened.clone(), table: *table, first: 0 };
            let keys = FrozenIterator::of_ranked(keys, table.len, 1);
            of_few(Bound::new(py, keys)?.as_any(), asked)
        }
        Sorted::Already | Sorted::Listed => {
            let rank = |border: &Bound<'py, PyAny>, included| -> PyResult<usize> {
                let incomparable = || {
                    let text = format!("{border:?} cannot be compared with these keys");
                    PyTypeError::new_err(text)
                };
                let Key::Value(value) = key(border)? else { return Err(incomparable()) };
                let rank = opened.frozen.rank(table, &value, included).map_err(raised)?;
                rank.ok_or_else(incomparable)
            };
            let first = asked.minimum.as_ref().map(|border| rank(border, !asked.inclusive.0));
            let end = asked.maximum.as_ref().map(|border| rank(border, asked.inclusive.1));
            let (first, end) = (first.unwrap_or(Ok(0))?, end.unwrap_or(Ok(table.len))?);
            let keys = Ranked { opened: opened.clone(), table: *table, first };
            let step = if asked.reverse { -1 } else { 1 };
            let keys = FrozenIterator::of_ranked(keys, end.saturating_sub(first), step);
            Ok(Bound::new(py, keys)?.into_any())
        }
    }
}

/// The same of few keys, which are sorted now.
pub fn of_few<'py>(keys: &Bound<'py, PyAny>, asked: &Asked<'py>) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let found = PyList::empty(py);
    for key in keys.try_iter()? {
        let key = key?;
        let is_above = match (&asked.minimum, asked.inclusive.0) {
            (None, _) => true,
            (Some(minimum), true) => key.ge(minimum)?,
            (Some(minimum), false) => key.gt(minimum)?,
        };
        let is_below = match (&asked.maximum, asked.inclusive.1) {
            (None, _) => true,
            (Some(maximum), true) => key.le(maximum)?,
            (Some(maximum), false) => key.lt(maximum)?,
        };
        if is_above && is_below {
            found.append(key)?;
        }
    }
    found.sort()?;
    if asked.reverse {
        found.reverse()?;
    }
    Ok(found.try_iter()?.into_any())
}
