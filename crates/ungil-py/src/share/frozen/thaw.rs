//! Ordinary objects again.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PySet, PyTuple};
use ungil_frozen::frozen::{Items, Node, Table};
use ungil_heap::stack;
use ungil_heap::value::Cell;

use super::errors::raised;
use super::object;
use super::opened::Opened;
use crate::share::errors;

/// The ordinary object of a cell in something that begins at `below`, with all that is in it.
pub fn thaw<'py>(
    py: Python<'py>,
    opened: &Arc<Opened>,
    found: Cell,
    below: usize,
) -> PyResult<Bound<'py, PyAny>> {
    stack::check(0).map_err(errors::raised)?;
    let items = |items: Items| -> PyResult<Vec<Bound<'py, PyAny>>> {
        let item = |number| {
            let found = opened.frozen.cell(items.at + number * Cell::SIZE).map_err(raised)?;
            thaw(py, opened, found, items.at)
        };
        (0..items.len).map(item).collect()
    };
    let keys = |table: Table| -> PyResult<Vec<Bound<'py, PyAny>>> {
        let key = |number| {
            let found = opened.frozen.key_of(&table, number).map_err(raised)?;
            thaw(py, opened, found, table.at)
        };
        (0..table.len).map(key).collect()
    };
    Ok(match opened.frozen.node(found, below).map_err(raised)? {
        Node::Value(_) => object::of(py, opened, found, below)?,
        Node::List(list) => PyList::new(py, items(list)?)?.into_any(),
        Node::Tuple(tuple) => PyTuple::new(py, items(tuple)?)?.into_any(),
        Node::Set(table) => PySet::new(py, keys(table)?)?.into_any(),
        Node::FrozenSet(table) => PyFrozenSet::new(py, keys(table)?)?.into_any(),
        Node::Dict(table) => {
            let dict = PyDict::new(py);
            for number in 0..table.len {
                let key = opened.frozen.key_of(&table, number).map_err(raised)?;
                let value = opened.frozen.value_of(&table, number).map_err(raised)?;
                let key = object::of(py, opened, key, table.at)?;
                dict.set_item(key, thaw(py, opened, value, table.at)?)?;
            }
            dict.into_any()
        }
        Node::Record(record) => {
            let dict = PyDict::new(py);
            for (number, name) in opened.names(py, record.schema)?.iter().enumerate() {
                let found = opened.frozen.cell(record.at + number * Cell::SIZE).map_err(raised)?;
                dict.set_item(name, thaw(py, opened, found, record.at)?)?;
            }
            dict.into_any()
        }
    })
}
