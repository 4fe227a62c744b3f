//! Which objects can be keys, and how one is found.

use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyTuple};
use ungil_heap::value::Value;

use super::{list, set};
use crate::share::errors::raised;
use crate::share::sought::{Each, Sought, sought};
use crate::share::{convert, extension};

/// A key that is looked for.
pub enum Key<'a, 'py> {
    /// The one that equals this.
    Value(Value<'a>),
    /// Nothing frozen equals it.
    Nothing,
    /// Python compares it with each.
    Each(Each<'py>),
}

/// A key that is looked for.
///
/// # Errors
/// `TypeError` for what cannot be hashed, as dicts and sets have it.
pub fn key<'a, 'py>(given: &Bound<'py, PyAny>) -> PyResult<Key<'a, 'py>> {
    if let Some(value) = convert::simple(given)? {
        return Ok(Key::Value(value));
    }
    // First of all: it may have an opinion of its own.
    let each = Each::of(given)?;
    if let Some(value) = hashed(given)? {
        return Ok(Key::Value(value));
    }
    Ok(match sought(each)? {
        Sought::Nothing => Key::Nothing,
        Sought::Each(each) => Key::Each(each),
        Sought::StandIn(other, each) => match hashed(&other)? {
            // What it borrows from ends here.
            Some(value) => Key::Value(value.into_owned()),
            None => Key::Each(each),
        },
    })
}

impl<'py> Key<'_, 'py> {
    /// The number of the entry with this key, of `len`: by its value, or by comparing with each.
    pub fn find(
        &self,
        len: usize,
        by_value: impl FnOnce(&Value<'_>) -> PyResult<Option<usize>>,
        stored: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Option<usize>> {
        match self {
            Self::Value(value) => by_value(value),
            Self::Nothing => Ok(None),
            Self::Each(each) => {
                for number in 0..len {
                    if each.is(&stored(number)?)? {
                        return Ok(Some(number));
                    }
                }
                Ok(None)
            }
        }
    }
}

/// The value that an object is as a key. Of a frozen tuple or frozenset it is that of the ordinary
/// one, which equals it.
pub fn hashed<'a>(given: &Bound<'_, PyAny>) -> PyResult<Option<Value<'a>>> {
    if let Some(value) = convert::simple(given)? {
        return Ok(Some(value));
    }
    let all = || -> PyResult<Option<Vec<Value<'a>>>> {
        ungil_heap::stack::check(0).map_err(raised)?;
        let mut values = Vec::new();
        for item in given.try_iter()? {
            let Some(value) = hashed(&item?)? else { return Ok(None) };
            values.push(value.into_owned());
        }
        Ok(Some(values))
    };
    if given.cast_exact::<PyTuple>().is_ok() || list::is_tuple(given) {
        return Ok(all()?.map(Value::Tuple));
    }
    if given.cast_exact::<PyFrozenSet>().is_ok() || set::is_frozenset(given) {
        return Ok(all()?.map(Value::FrozenSet));
    }
    if super::is(given) { Ok(None) } else { extension::known(given) }
}

/// The ordinary tuple or frozenset that a frozen one equals, if it is one.
pub fn ordinary<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if list::is_tuple(given) || set::is_frozenset(given) {
        return given.call_method0("copy").map(Some);
    }
    Ok(None)
}
