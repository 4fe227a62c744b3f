//! Single Python values as the heap keeps them, and back.

use std::borrow::Cow;
use std::ffi::c_int;
use std::slice;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyComplexMethods, PyFloat, PyInt, PyString, PyTuple,
};
use ungil_heap::Error;
use ungil_heap::value::{Cell, OPINION, Value};

use super::errors::raised;
use super::extension;
use super::frozen;

/// What is nested deeper than this is compared by Python.
const DEEPEST_PLAIN: usize = 8;

/// The cell of a key that is an exact integer or string and fits in one.
#[inline]
pub fn key_cell(given: &Bound<'_, PyAny>) -> Option<Cell> {
    if let Ok(text) = given.cast_exact::<PyString>() {
        return Cell::short(text.to_str().ok()?.as_bytes());
    }
    number_cell(given).filter(|cell| cell.int().is_some())
}

/// The cell of an exact integer or float, if it fits in one.
#[inline]
pub fn number_cell(given: &Bound<'_, PyAny>) -> Option<Cell> {
    if let Ok(number) = given.cast_exact::<PyInt>() {
        return small(number).ok().map(Cell::from);
    }
    given.cast_exact::<PyFloat>().ok().map(|number| Cell::from(number.value()))
}

/// The value of an object of a simple immutable type. Strings are borrowed from the object, for
/// which the caller keeps it.
#[inline]
pub fn simple<'a>(given: &Bound<'_, PyAny>) -> PyResult<Option<Value<'a>>> {
    // Subclasses (an `IntEnum`) are more than their value.
    if let Ok(text) = given.cast_exact::<PyString>() {
        return string(text).map(Some);
    }
    if let Ok(number) = given.cast_exact::<PyInt>() {
        return integer(number).map(Some);
    }
    Ok(Some(if given.is_none() {
        Value::None
    } else if let Ok(number) = given.cast_exact::<PyFloat>() {
        Value::Float(number.value())
    } else if let Ok(flag) = given.cast_exact::<PyBool>() {
        Value::Bool(flag.is_true())
    } else if let Ok(bytes) = given.cast_exact::<PyBytes>() {
        let bytes = bytes.as_bytes();
        // SAFETY: the caller keeps the object, whose bytes never change or move.
        Value::Bytes(unsafe { slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }.into())
    } else if let Ok(number) = given.cast_exact::<PyComplex>() {
        Value::Complex(number.real(), number.imag())
    } else {
        return Ok(None);
    }))
}

/// What `find` finds of the values of a container in the heap that equal `given`, as Python says it.
/// `None`: only comparing the objects tells.
///
/// # Errors
/// Those of `find`.
pub fn found_in_heap<T>(
    given: &Bound<'_, PyAny>,
    find: impl FnOnce(&Value<'_>) -> ungil_heap::Result<T>,
) -> PyResult<Option<T>> {
    let Some(value) = plain(given, DEEPEST_PLAIN)? else { return Ok(None) };
    match find(&value) {
        Err(Error::Untold) => Ok(None),
        found => found.map(Some).map_err(raised),
    }
}

/// As [`simple`], also of tuples of such values, and of an extension: of what equals whatever its
/// value equals, so that it can be looked for in the heap. `None` for what may have an opinion of its
/// own, for frozensets, which equal shared sets, and for what is frozen, which equals builtins.
fn plain<'a>(given: &Bound<'_, PyAny>, levels: usize) -> PyResult<Option<Value<'a>>> {
    if let Some(value) = simple(given)? {
        return Ok(Some(value));
    }
    if let Ok(items) = given.cast_exact::<PyTuple>() {
        let Some(levels) = levels.checked_sub(1) else { return Ok(None) };
        // The caller keeps the tuple, which has them.
        let items: PyResult<Option<Vec<_>>> =
            items.iter().map(|item| plain(&item, levels)).collect();
        return Ok(items?.map(Value::Tuple));
    }
    if frozen::is(given) {
        return Ok(None);
    }
    Ok(extension::known(given)?
        .filter(|value| !matches!(value, Value::Extension { kind, .. } if kind & OPINION != 0)))
}

#[inline]
fn string<'a>(text: &Bound<'_, PyString>) -> PyResult<Value<'a>> {
    let Ok(known) = text.to_str() else {
        // Surrogates that stand alone.
        let encoded = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
        return Ok(Value::Str(encoded.cast::<PyBytes>()?.as_bytes().to_vec().into()));
    };
    // SAFETY: the string keeps its UTF-8 form as long as it lives, and the caller keeps the string.
    let bytes = unsafe { slice::from_raw_parts(known.as_ptr(), known.len()) };
    Ok(Value::Str(bytes.into()))
}

fn integer<'a>(number: &Bound<'_, PyInt>) -> PyResult<Value<'a>> {
    let overflow = match small(number) {
        Ok(small) => return Ok(Value::Int(small)),
        Err(overflow) => overflow,
    };
    let absolute = number.call_method0("__abs__")?;
    let bits: usize = absolute.call_method0("bit_length")?.extract()?;
    let bytes = absolute.call_method1("to_bytes", (bits.div_ceil(8), "little"))?;
    let magnitude = bytes.cast::<PyBytes>()?.as_bytes().to_vec();
    Ok(Value::BigInt { negative: overflow < 0, magnitude: Cow::Owned(magnitude) })
}

/// An integer of 64 bits; else whether it is too small (-1) or too large (1).
#[inline]
fn small(number: &Bound<'_, PyInt>) -> Result<i64, c_int> {
    let mut overflow = 0;
    // SAFETY: a reference to an integer, and a writable place. It cannot fail but by overflow.
    let small = unsafe { ffi::PyLong_AsLongLongAndOverflow(number.as_ptr(), &raw mut overflow) };
    if overflow == 0 { Ok(small) } else { Err(overflow) }
}

/// A new string of UTF-8 in which surrogates may stand alone; null with an exception if it is not
/// that, or there is no memory.
#[inline]
pub fn decoded(_: Python<'_>, text: &[u8]) -> *mut ffi::PyObject {
    let (bytes, length) = (text.as_ptr().cast(), text.len().cast_signed());
    // SAFETY: the thread is attached, the bytes are readable for their length, and the name of the
    // error handler ends with a zero.
    unsafe { ffi::PyUnicode_DecodeUTF8(bytes, length, c"surrogatepass".as_ptr()) }
}

/// The Python object of a value that has no others in it.
#[inline]
pub fn object<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(match value {
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        // SAFETY: `decoded` gives a new reference, or null with an exception.
        Value::Str(text) => unsafe { Bound::from_owned_ptr_or_err(py, decoded(py, text))? },
        Value::None => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Complex(real, imaginary) => {
            PyComplex::from_doubles(py, *real, *imaginary).into_any()
        }
        Value::BigInt { negative, magnitude } => {
            let bytes = PyBytes::new(py, magnitude);
            let number = py.get_type::<PyInt>().call_method1("from_bytes", (bytes, "little"))?;
            if *negative { number.neg()? } else { number }
        }
        Value::Extension { kind, key, payload } => extension::object(py, *kind, key, payload)?,
        Value::Tuple(_) | Value::FrozenSet(_) | Value::Object(_) => return Ok(None),
    }))
}

/// What `incr` adds: 1 if nothing was given.
///
/// # Errors
/// `TypeError` for what is no value that could be added.
#[inline]
pub fn summand(by: Option<&Bound<'_, PyAny>>) -> PyResult<Value<'static>> {
    let Some(by) = by else { return Ok(Value::Int(1)) };
    match simple(by)? {
        Some(by) => Ok(by.into_owned()),
        None => Err(PyTypeError::new_err(format!(
            "only an int, a float or a complex can be added to a value, not an object of type {}",
            by.get_type().name()?
        ))),
    }
}
