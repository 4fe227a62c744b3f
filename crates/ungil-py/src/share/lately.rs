//! Python objects of the values that were put together last, by what these are made of.
//!
//! To make a datetime or a Decimal is a call into Python of a microsecond or two, and programs read
//! the same ones over and over. The objects never change, so that one of them serves everybody who
//! reads an equal value. A member of an enum is looked up once more each time: a class can be
//! declared anew.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyString, PyType};

/// How many there are, a power of two.
const PLACES: usize = 1024;
/// What is made of more bytes is made anew each time.
const LARGEST: usize = 128;

static LATELY: [Mutex<Option<Made>>; PLACES] = [const { Mutex::new(None) }; PLACES];

/// An object, and what it was made of.
struct Made {
    kind: u8,
    key: Vec<u8>,
    payload: Vec<u8>,
    object: Py<PyAny>,
    origin: Option<Origin>,
}

/// Where the class of a member is found as long as it is the same.
pub struct Origin {
    class: Py<PyType>,
    /// `sys.modules`.
    modules: Py<PyDict>,
    module: Py<PyString>,
    name: Py<PyString>,
}

impl Origin {
    /// Of a member that was found in this module, in the class of this name. `None` for a class inside
    /// of another.
    pub fn new(member: &Bound<'_, PyAny>, module: &str, name: &str) -> PyResult<Option<Self>> {
        if name.contains('.') {
            return Ok(None);
        }
        let py = member.py();
        Ok(Some(Self {
            class: member.get_type().unbind(),
            modules: py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind(),
            module: PyString::new(py, module).unbind(),
            name: PyString::new(py, name).unbind(),
        }))
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            class: self.class.clone_ref(py),
            modules: self.modules.clone_ref(py),
            module: self.module.clone_ref(py),
            name: self.name.clone_ref(py),
        }
    }

    /// Whether it is found there.
    fn is_there(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(module) = self.modules.bind(py).get_item(&self.module)? else { return Ok(false) };
        let Ok(module) = module.cast_into::<PyModule>() else { return Ok(false) };
        Ok(module.dict().get_item(&self.name)?.is_some_and(|found| found.is(&self.class)))
    }
}

/// The object that was made of these parts, if it was one of the last.
pub fn find<'py>(
    py: Python<'py>,
    kind: u8,
    key: &[u8],
    payload: &[u8],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let number = number(kind, key, payload);
    let look = |number| {
        let place = place(number);
        let made = place.as_ref()?;
        let is_it = (made.kind, &*made.key, &*made.payload) == (kind, key, payload);
        let origin = || made.origin.as_ref().map(|origin| origin.clone_ref(py));
        is_it.then(|| (made.object.clone_ref(py), origin()))
    };
    let Some((object, origin)) = look(number).or_else(|| look(number ^ 1)) else { return Ok(None) };
    // Only now, when no place is locked: other threads may run meanwhile.
    if let Some(origin) = origin
        && !origin.is_there(py)?
    {
        return Ok(None);
    }
    Ok(Some(object.into_bound(py)))
}

/// Remembers an object that was made of these parts.
pub fn remember(
    kind: u8,
    key: &[u8],
    payload: &[u8],
    object: &Bound<'_, PyAny>,
    origin: Option<Origin>,
) {
    if key.len() + payload.len() > LARGEST {
        return;
    }
    let made = Made {
        kind,
        key: key.to_vec(),
        payload: payload.to_vec(),
        object: object.clone().unbind(),
        origin,
    };
    let number = number(kind, key, payload);
    let old = place(number).replace(made);
    // What was there goes to the place beside it, and what was there goes when the place is nobody's
    // any more: to delete an object may run code.
    let older = old.and_then(|old| place(number ^ 1).replace(old));
    drop(older);
}

/// In which place an object of these parts would be, or in the one beside it.
fn number(kind: u8, key: &[u8], payload: &[u8]) -> usize {
    // As FNV-1a, by words: the bytes that differ are mostly the first of a number.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(kind);
    for part in [key, payload] {
        for bytes in part.chunks(8) {
            let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 32;
        }
    }
    usize::try_from(hash).unwrap_or(0) % PLACES
}

fn place(number: usize) -> MutexGuard<'static, Option<Made>> {
    LATELY[number].lock().unwrap_or_else(PoisonError::into_inner)
}
