//! Items of arrays as Python has them, and what means one of them.

use std::iter::once;

use pyo3::exceptions::{PyBufferError, PyIndexError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use ungil_heap::array::{Item, Number};

/// The item of a Python object; `None`: it is out of the range.
#[inline]
pub fn taken(number: Number, given: &Bound<'_, PyAny>) -> PyResult<Option<Item>> {
    let item = match number {
        Number::Bool => Ok(Item::Bool(given.is_truthy()?)),
        Number::Signed(_) => given.extract().map(Item::Signed),
        Number::Unsigned(_) => given.extract().map(Item::Unsigned),
        Number::Single | Number::Double => given.extract().map(Item::Float),
    };
    match item {
        Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => Ok(None),
        item => item.map(|item| number.fitted(item)),
    }
}

/// As a person writes it.
pub fn shown(item: Item) -> String {
    match item {
        Item::Bool(flag) => flag.to_string(),
        Item::Signed(number) => number.to_string(),
        Item::Unsigned(number) => number.to_string(),
        Item::Float(number) => number.to_string(),
    }
}

/// The Python object of an item.
#[inline]
pub fn object(py: Python<'_>, item: Item) -> PyResult<Bound<'_, PyAny>> {
    Ok(match item {
        Item::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Item::Signed(number) => number.into_pyobject(py)?.into_any(),
        Item::Unsigned(number) => number.into_pyobject(py)?.into_any(),
        Item::Float(number) => number.into_pyobject(py)?.into_any(),
    })
}

/// An index on an axis.
#[inline]
pub fn index(key: &Bound<'_, PyAny>) -> PyResult<isize> {
    let index = key.extract::<isize>();
    index.map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(key.py()) { out_of_range() } else { error }
    })
}

/// As above. `None`: it stands for no integer. Only taking its index shows that: every array of numpy
/// has `__index__`, which raises `TypeError` unless the array is one integer.
#[inline]
pub fn plain_index(key: &Bound<'_, PyAny>) -> PyResult<Option<isize>> {
    match index(key) {
        Err(error) if error.is_instance_of::<PyTypeError>(key.py()) => Ok(None),
        found => found.map(Some),
    }
}

/// For an index that no item has.
pub fn out_of_range() -> PyErr {
    PyIndexError::new_err("array index out of range")
}

/// A format without addresses: Python would follow them, wherever they lead.
pub fn sound(format: &[u8]) -> PyResult<Vec<u8>> {
    let mut is_name = false;
    let mut bytes = format.iter().copied().chain(once(b' '));
    let is_address = |byte: u8| matches!(byte, b'O' | b'P' | b'&' | b'X');
    let has_address = bytes.any(|byte| {
        is_name ^= byte == b':';
        !is_name && is_address(byte)
    });
    if has_address || format.contains(&0) {
        return Err(PyBufferError::new_err(
            "the format of this array contains Python objects or addresses, which cannot be shared",
        ));
    }
    Ok(format.to_vec())
}
