//! Python objects on their way out of a queue.

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyList;
use ungil_heap::queue::{self, Got};
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap};

use super::closed_to_getters;
use crate::share::errors::raised;
use crate::share::proxy::{Hold, Holds};
use crate::share::recent;

/// Objects on their way out of a queue.
pub struct Taking<'s> {
    hold: &'s Hold,
    holds: Holds<'s>,
    /// The same once more, so that what could not be made can be put back.
    spare: Holds<'s>,
}

impl<'s> Taking<'s> {
    #[inline]
    pub fn new(hold: &'s Hold) -> Self {
        Self { hold, holds: Holds::new(&hold.shared), spare: Holds::new(&hold.shared) }
    }

    pub fn keep(&mut self, value: &Value<'static>) -> ungil_heap::Result<()> {
        self.holds.hold(value)?;
        self.spare.hold(value)
    }

    /// The Python object of what was taken out; `None`: there was none before the deadline. If it
    /// cannot be made, `failed` is called with its value, whose objects are held still.
    #[inline]
    pub fn object<'py>(
        &mut self,
        py: Python<'py>,
        got: Got,
        failed: impl FnOnce(&Heap, &Value<'_>) -> ungil_heap::Result<()>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = match got {
            Got::Empty => return Ok(None),
            Got::Closed => return Err(closed_to_getters(py)),
            Got::Cell(cell) => {
                if let Some(object) = recent::object(py, cell) {
                    // SAFETY: it gives a new reference, or null with an exception.
                    let object = unsafe { Bound::from_owned_ptr_or_err(py, object) };
                    return object.map(Some);
                }
                cell.whole().ok_or_else(|| raised(Error::Corrupt("a value of no type")))?
            }
            Got::Value(value) => value,
        };
        // It holds the objects while the value is put back.
        let built = self.holds.build(py, &value);
        let lost = match &built {
            // What a signal handler raised, for example.
            Ok(_) => self.spare.release().map_err(raised).err(),
            Err(error) => Some(error.clone_ref(py)),
        };
        if let Some(error) = lost {
            failed(&self.hold.shared.heap, &value).map_err(raised)?;
            self.spare.release().map_err(raised)?;
            return Err(error);
        }
        built.map(Some)
    }
}

/// Takes the first item out; `None`: there was none before the deadline. If it cannot be made here, it
/// is put back.
#[inline]
pub fn get<'py>(
    py: Python<'py>,
    hold: &Hold,
    deadline: Option<Instant>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let heap = &hold.shared.heap;
    let mut taking = Taking::new(hold);
    let mut keep = |value: &Value<'static>| taking.keep(value);
    let got = queue::get(heap, hold.at, deadline, &mut keep).map_err(raised)?;
    taking.object(py, got, |heap, value| queue::put_back(heap, hold.at, value))
}

/// Takes items out, to the end of a list; false: there was none before the deadline. One that cannot
/// be made here is put back, with those behind it.
pub fn get_many(
    list: &Bound<'_, PyList>,
    hold: &Hold,
    most: usize,
    deadline: Option<Instant>,
) -> PyResult<bool> {
    let py = list.py();
    let heap = &hold.shared.heap;
    // Each value with objects has its own, and is the last of its portion.
    let mut taking = Taking::new(hold);
    let (mut is_first, mut most, mut wait) = (true, most, deadline);
    while list.len() < most {
        let mut keep = |value: &Value<'static>| taking.keep(value);
        let left = most - list.len();
        let found = match queue::get_many(heap, hold.at, left, wait, &mut keep) {
            Ok(found) => found,
            // What was had before is not lost; the next call fails at once. But what a signal
            // handler raised is to be raised now.
            Err(error) if !list.is_empty() && !matches!(error, Error::Interrupted) => {
                return Ok(true);
            }
            Err(error) => return Err(raised(error)),
        };
        let mut found = found.into_iter();
        while let Some(got) = found.next() {
            if matches!(got, Got::Empty | Got::Closed) && !list.is_empty() {
                return Ok(true);
            }
            let rest = found.as_slice();
            let put_back = |heap: &Heap, value: &Value<'_>| {
                for behind in rest.iter().rev() {
                    put_back_what_was_got(heap, hold, behind)?;
                }
                queue::put_back(heap, hold.at, value)
            };
            match taking.object(py, got, put_back) {
                Ok(Some(object)) => list.append(object)?,
                Ok(None) => return Ok(!list.is_empty()),
                // What was had before is not lost; the next call fails at once.
                Err(_) if !list.is_empty() => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        if is_first {
            // Of what is put in while this takes out, there may be no end.
            let there = queue::len(heap, hold.at).map_err(raised)?;
            most = most.min(list.len() + there);
        }
        (is_first, wait) = (false, Some(Instant::now()));
    }
    Ok(true)
}

fn put_back_what_was_got(heap: &Heap, hold: &Hold, got: &Got) -> ungil_heap::Result<()> {
    let value = match got {
        Got::Cell(cell) => cell.whole(),
        Got::Value(value) => Some(value.clone()),
        Got::Empty | Got::Closed => None,
    };
    value.map_or(Ok(()), |value| queue::put_back(heap, hold.at, &value))
}
