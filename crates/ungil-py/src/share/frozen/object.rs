//! The Python objects of cells.

use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyTuple};
use ungil_frozen::cell;
use ungil_frozen::frozen::{Items, Node};
use ungil_heap::stack;
use ungil_heap::value::{Cell, Value};

use super::errors::raised;
use super::opened::Opened;
use super::{dict, list, set, texts};
use crate::share::{convert, errors, recent};

/// A tuple with more items is a view: to make a tuple of it at each reading would take long.
pub const LARGEST_TUPLE: usize = 256;

/// A new reference to the object of a cell in something that begins at `below`; null with an
/// exception if that fails.
#[inline]
pub fn quick(
    py: Python<'_>,
    opened: &Arc<Opened>,
    found: Cell,
    below: usize,
) -> *mut ffi::PyObject {
    if found.is_whole()
        && let Some(object) = recent::object(py, found)
    {
        return object;
    }
    if cell::tag(found) == cell::STR {
        return match opened.frozen.value(found, below) {
            Ok(Value::Str(text)) => texts::object(py, &opened.frozen, found, &text),
            _ => other(py, opened, found, below),
        };
    }
    if cell::tag(found) == cell::RECORD
        && let Ok(Node::Record(record)) = opened.frozen.node(found, below)
    {
        return dict::new(py, opened, dict::Shape::Record(record));
    }
    other(py, opened, found, below)
}

#[inline(never)]
fn other(py: Python<'_>, opened: &Arc<Opened>, found: Cell, below: usize) -> *mut ffi::PyObject {
    match whole(py, opened, found, below) {
        Ok(object) => object.into_ptr(),
        Err(error) => {
            error.restore(py);
            ptr::null_mut()
        }
    }
}

/// The object of a cell in something that begins at `below`.
pub fn of<'py>(
    py: Python<'py>,
    opened: &Arc<Opened>,
    found: Cell,
    below: usize,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, quick(py, opened, found, below)) }
}

fn whole<'py>(
    py: Python<'py>,
    opened: &Arc<Opened>,
    found: Cell,
    below: usize,
) -> PyResult<Bound<'py, PyAny>> {
    match opened.frozen.node(found, below).map_err(raised)? {
        Node::Value(value) => self::value(py, &value),
        Node::Tuple(items) if items.len <= LARGEST_TUPLE => tuple(py, opened, items),
        node => view(py, opened, &node),
    }
}

fn tuple<'py>(py: Python<'py>, opened: &Arc<Opened>, items: Items) -> PyResult<Bound<'py, PyAny>> {
    stack::check(0).map_err(errors::raised)?;
    let item = |number| {
        let found = opened.frozen.cell(items.at + number * Cell::SIZE).map_err(raised)?;
        of(py, opened, found, items.at)
    };
    let objects: PyResult<Vec<_>> = (0..items.len).map(item).collect();
    Ok(PyTuple::new(py, objects?)?.into_any())
}

/// The view of a container.
pub fn view<'py>(
    py: Python<'py>,
    opened: &Arc<Opened>,
    node: &Node<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let made = match node {
        Node::List(items) => list::new(py, opened, *items, false),
        Node::Tuple(items) => list::new(py, opened, *items, true),
        Node::Set(table) => set::new(py, opened, *table, false),
        Node::FrozenSet(table) => set::new(py, opened, *table, true),
        Node::Dict(table) => dict::new(py, opened, dict::Shape::Table(*table)),
        Node::Record(record) => dict::new(py, opened, dict::Shape::Record(*record)),
        Node::Value(_) => return Err(PyValueError::new_err(NO_CONTAINER)),
    };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, made) }
}

const NO_CONTAINER: &str =
    "this frozen file is damaged: it has a value where a container should be";

/// The object of a value.
pub fn value<'py>(py: Python<'py>, value: &Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    if let Some(object) = convert::object(py, value)? {
        return Ok(object);
    }
    stack::check(0).map_err(errors::raised)?;
    let all = |values: &[Value<'_>]| -> PyResult<Vec<_>> {
        values.iter().map(|value| self::value(py, value)).collect()
    };
    match value {
        Value::Tuple(items) => Ok(PyTuple::new(py, all(items)?)?.into_any()),
        Value::FrozenSet(members) => Ok(PyFrozenSet::new(py, all(members)?)?.into_any()),
        _ => Err(PyValueError::new_err("this frozen file is damaged: it refers to a heap")),
    }
}
