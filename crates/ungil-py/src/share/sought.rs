//! Keys that are looked for, of types that no key is stored as.
//!
//! A number of numpy's, an instance of a subclass, or a tuple with one of them in it may equal a key
//! that is stored. Stored hashes are not Python's, which differ from process to process. So a
//! *stand-in* is looked for: an object of plain types that is equal and has the same hash. Where
//! Python would find the one, it finds the other. Without a stand-in, each key is compared.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use super::declared::declared;
use super::draft::Drafts;
use super::making::Draft;

static STAND_IN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Declares the function that finds stand-ins, once.
///
/// It gets an object and its hash, and returns a tuple with its stand-in, an empty one if no stored key
/// can equal the object, or None if only comparing with each tells.
#[pyfunction]
pub fn set_stand_in(py: Python<'_>, stand_in: Py<PyAny>) -> PyResult<()> {
    STAND_IN
        .set(py, stand_in)
        .map_err(|_| PyRuntimeError::new_err("this function is declared already"))
}

/// What tells which stored keys a key equals.
pub enum Sought<'py> {
    /// The same that the first equals; if that is no value either, a comparison with each.
    StandIn(Bound<'py, PyAny>, Each<'py>),
    /// None.
    Nothing,
    /// A comparison with each.
    Each(Each<'py>),
}

/// A key that is compared with each that is stored.
pub struct Each<'py> {
    key: Bound<'py, PyAny>,
    hash: isize,
}

impl<'py> Each<'py> {
    /// # Errors
    /// `TypeError` for what cannot be hashed.
    pub fn of(key: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Self { key: key.clone(), hash: key.hash()? })
    }

    /// Whether Python finds a stored key by this one.
    pub fn is(&self, stored: &Bound<'py, PyAny>) -> PyResult<bool> {
        Ok(stored.hash()? == self.hash && stored.eq(&self.key)?)
    }
}

/// What to look for in the place of a key that is of no plain type.
///
/// # Errors
/// What its class raises.
pub fn sought(each: Each<'_>) -> PyResult<Sought<'_>> {
    let py = each.key.py();
    let stand_in = declared(py, &STAND_IN, "ungil.share._stand_in")?.bind(py);
    let Ok(found) = stand_in.call1((&each.key, each.hash))?.cast_into::<PyTuple>() else {
        return Ok(Sought::Each(each));
    };
    Ok(match found.get_item(0) {
        Ok(other) => Sought::StandIn(other, each),
        Err(_) => Sought::Nothing,
    })
}

/// The draft of a key that is looked for in a heap among `stored` keys; `None`: none equals it.
///
/// # Errors
/// `TypeError` for what cannot be hashed, and what its class raises.
pub fn known<'a, 'py>(
    drafts: &mut Drafts<'a, 'py>,
    key: &Bound<'py, PyAny>,
    stored: impl FnOnce() -> PyResult<Vec<Bound<'py, PyAny>>>,
) -> PyResult<Option<Draft<'a>>> {
    if let Some(draft) = drafts.draft_known(key)? {
        return Ok(Some(draft));
    }
    let each = match sought(Each::of(key)?)? {
        Sought::Nothing => return Ok(None),
        Sought::Each(each) => each,
        Sought::StandIn(other, each) => match drafts.draft_known(&other)? {
            Some(draft) => return Ok(Some(draft)),
            None => each,
        },
    };
    for stored in stored()? {
        if each.is(&stored)? {
            return drafts.draft_key(&stored).map(Some);
        }
    }
    Ok(None)
}
