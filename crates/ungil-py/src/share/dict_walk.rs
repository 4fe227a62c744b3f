//! Iterating over a dict that others change.

use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// An iterator over lists of what is in a dict: see [`Cursor`] for what it sees. Threads may share it:
/// each batch is given to one of them.
#[pyclass(frozen, module = "ungil._native", name = "SharedDictWalk")]
pub struct Walk {
    dict: Py<Dict>,
    part: Part,
    is_backwards: bool,
    /// Locked for a moment only: reading may let others run.
    at: Mutex<At>,
}

/// How far a walk has come.
#[derive(Clone, Copy)]
struct At {
    batches: usize,
    cursor: Cursor,
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
        let at = At { batches: 0, cursor: Cursor::default(), size: FIRST };
        Ok(Self { dict, part, is_backwards, at: Mutex::new(at) })
    }

    fn at(&self) -> MutexGuard<'_, At> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next keys, and what the iteration gives for each.
    fn batch(&self) -> ungil_heap::Result<Vec<Pair<'static>>> {
        loop {
            let At { batches, mut cursor, size } = *self.at();
            let batch = self.batch_from(&mut cursor, size)?;
            let mut at = self.at();
            // Another thread may have had it meanwhile.
            if at.batches == batches {
                *at = At { batches: batches + 1, cursor, size: (size * 4).min(MOST) };
                return Ok(batch);
            }
        }
    }

    fn batch_from(
        &self,
        cursor: &mut Cursor,
        size: usize,
    ) -> ungil_heap::Result<Vec<Pair<'static>>> {
        let hold = &self.dict.get().0;
        let (heap, at) = (&hold.shared.heap, hold.at);
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

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
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
