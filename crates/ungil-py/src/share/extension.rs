//! Immutable values of types that only Python knows: `ungil.share` takes them apart into numbers and
//! strings, and puts them together again.

use std::borrow::Cow;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};
use ungil_heap::value::{self, ALIAS, Value};
use ungil_heap::{Error, stack};

use super::convert::{self, simple};
use super::declared::declared;
use super::errors::raised;
use super::lately::{self, Origin};

/// What Python has declared.
struct Declared {
    apart: Py<PyAny>,
    together: Py<PyAny>,
    /// The kinds whose objects never change.
    lasting: Vec<u8>,
    /// The kind of members of enums.
    member: u8,
}

static DECLARED: PyOnceLock<Declared> = PyOnceLock::new();

/// Declares the functions that take values apart and put them together, once.
///
/// `apart` gets an object and returns `(kind, is_alias, key, payload)`, or a sentence that says why
/// not and what to do. Objects with the same kind and key are equal; one that is an alias equals its
/// key. `together` gets `(kind, key, payload)`. Keys and payloads are numbers,
/// strings and tuples of such.
///
/// An object of one of the kinds `lasting` may be returned again for the same parts; so may one of
/// the kind `member`, whose payload begins with the names of its module and class, as long as that
/// class is there.
#[pyfunction]
pub fn set_values(
    py: Python<'_>,
    apart: Py<PyAny>,
    together: Py<PyAny>,
    lasting: Vec<u8>,
    member: u8,
) -> PyResult<()> {
    DECLARED
        .set(py, Declared { apart, together, lasting, member })
        .map_err(|_| PyRuntimeError::new_err("these functions are declared already"))
}

fn declarations(py: Python<'_>) -> PyResult<&'static Declared> {
    declared(py, &DECLARED, "ungil.share._values")
}

/// What became of an object that is none of the simple ones.
pub enum Taken {
    /// It has a value.
    Value(Value<'static>),
    /// It has none, for this reason.
    Unfit(String),
}

/// The value of an object.
pub fn take(given: &Bound<'_, PyAny>) -> PyResult<Taken> {
    let parts = declarations(given.py())?.apart.bind(given.py()).call1((given,))?;
    if let Ok(reason) = parts.cast::<PyString>() {
        return Ok(Taken::Unfit(reason.to_string()));
    }
    let (kind, is_alias, key, payload): (u8, bool, Bound<'_, PyAny>, Bound<'_, PyAny>) =
        parts.extract()?;
    let kind = if is_alias { kind | ALIAS } else { kind };
    Ok(Taken::Value(Value::Extension {
        kind,
        key: Cow::Owned(value::encode(&plain(&key)?).map_err(raised)?),
        payload: Cow::Owned(value::encode(&plain(&payload)?).map_err(raised)?),
    }))
}

/// The value of an object, if it has one.
pub fn known(given: &Bound<'_, PyAny>) -> PyResult<Option<Value<'static>>> {
    Ok(match take(given)? {
        Taken::Value(value) => Some(value),
        Taken::Unfit(_) => None,
    })
}

fn plain(part: &Bound<'_, PyAny>) -> PyResult<Value<'static>> {
    if let Ok(items) = part.cast_exact::<PyTuple>() {
        stack::check(0).map_err(raised)?;
        return Ok(Value::Tuple(items.iter().map(|item| plain(&item)).collect::<PyResult<_>>()?));
    }
    let value = simple(part)?.ok_or_else(|| raised(Error::Unfit("a part is not plain")))?;
    Ok(value.into_owned())
}

/// The object of a value.
#[cold]
pub fn object<'py>(
    py: Python<'py>,
    kind: u8,
    key: &[u8],
    payload: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(object) = lately::find(py, kind, key, payload)? {
        return Ok(object);
    }
    let part = |code: &[u8]| whole(py, &value::decode(code).map_err(raised)?);
    let known = declarations(py)?;
    let (sort, whole) = (kind & !ALIAS, part(payload)?);
    let object = known.together.bind(py).call1((sort, part(key)?, &whole))?;
    if known.lasting.contains(&sort) {
        lately::remember(kind, key, payload, &object, None);
    } else if sort == known.member
        && let Ok((module, name, _)) = whole.extract::<(String, String, Bound<'_, PyAny>)>()
        && let Some(origin) = Origin::new(&object, &module, &name)?
    {
        lately::remember(kind, key, payload, &object, Some(origin));
    }
    Ok(object)
}

fn whole<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Tuple(items) => {
            let items = items.iter().map(|item| whole(py, item)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, items)?.into_any())
        }
        // An extension has none in it; one that somebody forged could be nested without end.
        Value::Extension { .. } => Err(raised(Error::Corrupt("a part is not plain"))),
        other => {
            convert::object(py, other)?.ok_or_else(|| raised(Error::Corrupt("a part is not plain")))
        }
    }
}
