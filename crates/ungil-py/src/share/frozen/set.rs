//! A frozen set or frozenset.

use std::sync::Arc;

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PySet, PyString, PyTuple, PyType};
use ungil_frozen::cell;
use ungil_frozen::frozen::Table;
use ungil_heap::value::{Cell, Value};

use super::errors::raised;
use super::iterator::FrozenIterator;
use super::key::key;
use super::made::Class;
use super::object;
use super::opened::Opened;
use super::range;
use super::sharing::{self, Parts};
use crate::share::convert;

/// The view of a frozen set.
#[pyclass(frozen, generic, subclass, module = "ungil._native", name = "FrozenSetView")]
#[derive(Clone)]
pub struct Set {
    pub opened: Arc<Opened>,
    pub table: Table,
    is_frozenset: bool,
}

static CLASS: Class = Class::new();

/// The class of these views.
pub fn class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    CLASS.make::<Set>(py, c"ungil.share.FrozenSet", Vec::new())
}

/// Whether an object is such a view.
pub fn is(object: &Bound<'_, PyAny>) -> bool {
    CLASS.is(object)
}

/// Whether it is one of a frozenset.
pub fn is_frozenset(object: &Bound<'_, PyAny>) -> bool {
    is(object) && object.cast::<Set>().is_ok_and(|set| set.get().is_frozenset)
}

/// A new view, as a reference; null with an exception if that fails.
pub fn new(
    py: Python<'_>,
    opened: &Arc<Opened>,
    table: Table,
    is_frozenset: bool,
) -> *mut ffi::PyObject {
    CLASS.new_view(py, Set { opened: opened.clone(), table, is_frozenset })
}

impl Set {
    /// A member, by its number.
    pub fn member<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        let found = self.opened.frozen.key_of(&self.table, number).map_err(raised)?;
        object::of(py, &self.opened, found, self.table.at)
    }

    const fn cell(&self) -> Cell {
        let tag = if self.is_frozenset { cell::FROZEN_SET } else { cell::SET };
        cell::to(tag, self.table.len as u64, self.table.at as u64)
    }

    /// Another operand as an ordinary set, if it is a set.
    fn operand<'py>(other: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if is(other) {
            return other.call_method0("copy").map(Some);
        }
        let sets = other.py().import("collections.abc")?.getattr("Set")?;
        Ok(other.is_instance(&sets)?.then(|| other.clone()))
    }

    fn with<'py>(&self, name: &str, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match Self::operand(other)? {
            Some(other) => py.import("operator")?.call_method1(name, (self.copy(py)?, other)),
            None => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    fn under<'py>(&self, name: &str, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match Self::operand(other)? {
            Some(other) => py.import("operator")?.call_method1(name, (other, self.copy(py)?)),
            None => Ok(py.NotImplemented().into_bound(py)),
        }
    }
}

#[pymethods]
impl Set {
    fn __len__(&self) -> usize {
        self.table.len
    }

    fn __contains__(&self, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        let frozen = &self.opened.frozen;
        if let Ok(text) = member.cast_exact::<PyString>()
            && let Ok(text) = text.to_str()
        {
            let found = match Cell::short(text.as_bytes()) {
                Some(short) => frozen.find_cell(&self.table, short),
                None => frozen.find(&self.table, &Value::from(text)),
            };
            return Ok(found.map_err(raised)?.is_some());
        }
        let by_value = |value: &Value<'_>| frozen.find(&self.table, value).map_err(raised);
        if let Some(value) = convert::simple(member)? {
            return Ok(by_value(&value)?.is_some());
        }
        let py = member.py();
        // As for a builtin set, the frozenset is meant that equals it.
        let as_frozenset = |set| py.get_type::<PyFrozenSet>().call1((set,));
        let member = &match member.cast::<PySet>() {
            Ok(set) => as_frozenset(set)?,
            Err(_) => member.clone(),
        };
        let found =
            key(member)?.find(self.table.len, by_value, |number| self.member(py, number))?;
        Ok(found.is_some())
    }

    fn __iter__(slf: &Bound<'_, Self>) -> FrozenIterator {
        FrozenIterator::of_set(slf.get())
    }

    /// Iterates over the members from `minimum` to `maximum` in their order.
    #[pyo3(signature = (minimum = None, maximum = None, inclusive = (true, true), reverse = false))]
    fn irange<'py>(
        slf: &Bound<'py, Self>,
        minimum: Option<Bound<'py, PyAny>>,
        maximum: Option<Bound<'py, PyAny>>,
        inclusive: (bool, bool),
        reverse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let set = slf.get();
        let asked = range::Asked { minimum, maximum, inclusive, reverse };
        range::of_table(slf.py(), &set.opened, &set.table, &asked)
    }

    /// An ordinary set, or frozenset, of the members.
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let members = (0..self.table.len).map(|number| self.member(py, number));
        let members: Vec<_> = members.collect::<PyResult<_>>()?;
        Ok(if self.is_frozenset {
            PyFrozenSet::new(py, members)?.into_any()
        } else {
            PySet::new(py, members)?.into_any()
        })
    }

    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)
    }

    /// An ordinary set, or frozenset: its members are ordinary already.
    fn thaw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__<'py>(&self, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(memo.py())
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        how: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match Self::operand(other)? {
            Some(other) => self.copy(py)?.rich_compare(other, how),
            None => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        if self.is_frozenset {
            return self.copy(py)?.hash();
        }
        Err(PyTypeError::new_err("unhashable type: 'FrozenSet'"))
    }

    fn __and__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.with("and_", other)
    }

    fn __rand__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.under("and_", other)
    }

    fn __or__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.with("or_", other)
    }

    fn __ror__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.under("or_", other)
    }

    fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.with("sub", other)
    }

    fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.under("sub", other)
    }

    fn __xor__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.with("xor", other)
    }

    fn __rxor__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.under("xor", other)
    }

    /// As that of a frozenset.
    #[pyo3(signature = (*others))]
    fn union<'py>(
        &self,
        py: Python<'py>,
        others: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)?.call_method1("union", others)
    }

    /// As that of a frozenset.
    #[pyo3(signature = (*others))]
    fn intersection<'py>(
        &self,
        py: Python<'py>,
        others: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)?.call_method1("intersection", others)
    }

    /// As that of a frozenset.
    #[pyo3(signature = (*others))]
    fn difference<'py>(
        &self,
        py: Python<'py>,
        others: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)?.call_method1("difference", others)
    }

    /// As that of a frozenset.
    #[pyo3(signature = (other, /))]
    fn symmetric_difference<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)?.call_method1("symmetric_difference", (other,))
    }

    /// As that of a frozenset.
    #[pyo3(signature = (other, /))]
    fn isdisjoint<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)?.call_method1("isdisjoint", (other,))
    }

    /// As that of a frozenset.
    #[pyo3(signature = (other, /))]
    fn issubset<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)?.call_method1("issubset", (other,))
    }

    /// As that of a frozenset.
    #[pyo3(signature = (other, /))]
    fn issuperset<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)?.call_method1("issuperset", (other,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut shown = Vec::new();
        for number in 0..self.table.len.min(sharing::SHOWN) {
            shown.push(sharing::brief(&self.member(py, number)?)?);
        }
        Ok(sharing::shown("FrozenSet", "{", shown, "}", self.table.len))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        sharing::reduced(py, &self.opened, self.cell(), None)
    }
}
