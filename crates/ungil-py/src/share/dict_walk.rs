//! Iterating over a dict that others change.

use pyo3::exceptions::{PyReferenceError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use ungil_heap::dict::Pair;
use ungil_heap::table::Cursor;
use ungil_heap::value::Value;
use ungil_heap::{Error, dict};

use super::dict::Dict;
use super::errors::raised;

/// So many keys the first batch has: most iterations that end early end there.
const FIRST: usize = 8;
/// So many a batch has at most.
const MOST: usize = 256;

/// What of the pairs is wanted.
#[derive(Clone, Copy)]
enum Part {
    Keys,
    Values,
    Items,
}

/// An iterator over lists of what is in a dict: see [`Cursor`] for what it sees.
#[pyclass(module = "ungil._native", name = "SharedDictWalk")]
pub struct Walk {
    dict: Py<Dict>,
    cursor: Cursor,
    part: Part,
    is_backwards: bool,
    size: usize,
}

impl Walk {
    pub fn new(dict: Py<Dict>, part: &str, step: i8) -> PyResult<Self> {
        let part = match part {
            "keys" => Part::Keys,
            "values" => Part::Values,
            "items" => Part::Items,
            _ => return Err(PyValueError::new_err(format!("a dict has no {part}"))),
        };
        let is_backwards = step < 0;
        Ok(Self { dict, cursor: Cursor::default(), part, is_backwards, size: FIRST })
    }

    /// The next keys, and what the iteration gives for each.
    fn batch(&mut self) -> ungil_heap::Result<Vec<Pair<'static>>> {
        let hold = &self.dict.get().0;
        let (heap, at, cursor) = (&hold.shared.heap, hold.at, &mut self.cursor);
        let size = self.size;
        self.size = (size * 4).min(MOST);
        if matches!(self.part, Part::Keys) {
            let keys = if self.is_backwards { dict::keys_back } else { dict::keys };
            let keys = keys(heap, at, cursor, size)?;
            return Ok(keys.into_iter().map(|key| (Value::None, key)).collect());
        }
        let batch = if self.is_backwards { dict::batch_back } else { dict::batch };
        let mut pairs = batch(heap, at, cursor, size)?;
        if matches!(self.part, Part::Items) {
            for (key, value) in &mut pairs {
                let pair = vec![key.clone(), std::mem::replace(value, Value::None)];
                *value = Value::Tuple(pair);
            }
        }
        Ok(pairs)
    }

    /// What the iteration gives for a key now, while the dict is locked.
    fn again(&self, key: &Value<'_>, given: &Value<'_>) -> ungil_heap::Result<Value<'static>> {
        let hold = &self.dict.get().0;
        let value = |key| dict::get(&hold.shared.heap, hold.at, key)?.ok_or(Error::Stale);
        match self.part {
            Part::Keys => value(given).map(|_| given.clone().into_owned()),
            Part::Values => value(key),
            Part::Items => Ok(Value::Tuple(vec![key.clone().into_owned(), value(key)?])),
        }
    }
}

#[pymethods]
impl Walk {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let batch = self.batch().map_err(raised)?;
        if batch.is_empty() {
            return Ok(None);
        }
        let (keys, given): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let hold = &self.dict.get().0;
        let mut items = Vec::with_capacity(given.len());
        for ((key, given), item) in keys.iter().zip(&given).zip(hold.values(py, &given)?) {
            match item.map_or_else(|| hold.held(py, || self.again(key, given)), Ok) {
                // It was deleted meanwhile.
                Err(error) if error.is_instance_of::<PyReferenceError>(py) => {}
                item => items.push(item?),
            }
        }
        PyList::new(py, items).map(Some)
    }
}
