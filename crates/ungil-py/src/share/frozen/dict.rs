//! A frozen dict, with an index or with a schema.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString, PyType};
use ungil_frozen::cell;
use ungil_frozen::frozen::{Record, Table};
use ungil_heap::value::{Cell, Value};

use super::errors::raised;
use super::iterator::{FrozenIterator, Part};
use super::key::key;
use super::made::Class;
use super::object;
use super::opened::Opened;
use super::range;
use super::sharing::{self, Parts};
use super::thaw;
use crate::share::{convert, slots};

/// The view of a frozen dict.
#[pyclass(frozen, generic, mapping, subclass, module = "ungil._native", name = "FrozenDictView")]
#[derive(Clone)]
pub struct Dict {
    pub opened: Arc<Opened>,
    pub shape: Shape,
}

/// How a dict lies in the file.
#[derive(Clone, Copy)]
pub enum Shape {
    /// With an index of its own.
    Table(Table),
    /// With the keys of a schema.
    Record(Record),
}

static CLASS: Class = Class::new();

/// The class of these views.
pub fn class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
    let slots = vec![
        slot(ffi::Py_mp_subscript, get_item as *mut c_void),
        slot(ffi::Py_mp_ass_subscript, refuse as *mut c_void),
    ];
    CLASS.make::<Dict>(py, c"ungil.share.FrozenDict", slots)
}

/// Whether an object is such a view.
pub fn is(object: &Bound<'_, PyAny>) -> bool {
    CLASS.is(object)
}

/// A new view, as a reference; null with an exception if that fails.
#[inline]
pub fn new(py: Python<'_>, opened: &Arc<Opened>, shape: Shape) -> *mut ffi::PyObject {
    CLASS.new_view(py, Dict { opened: opened.clone(), shape })
}

impl Dict {
    /// Where the cell of a value is, by the number of its entry.
    fn value_at(&self, number: usize) -> usize {
        match &self.shape {
            Shape::Table(table) => table.entries + number * table.width + Cell::SIZE,
            Shape::Record(record) => record.at + number * Cell::SIZE,
        }
    }

    /// Where it begins.
    pub const fn at(&self) -> usize {
        match &self.shape {
            Shape::Table(table) => table.at,
            Shape::Record(record) => record.at,
        }
    }

    pub const fn len(&self) -> usize {
        match &self.shape {
            Shape::Table(table) => table.len,
            Shape::Record(record) => record.len,
        }
    }

    /// The key of an entry.
    #[inline]
    pub fn key<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        match &self.shape {
            Shape::Table(table) => {
                let found = self.opened.frozen.key_of(table, number).map_err(raised)?;
                object::of(py, &self.opened, found, table.at)
            }
            Shape::Record(record) => {
                let names = self.opened.names(py, record.schema)?;
                let name = names.get(number).ok_or_else(|| PyKeyError::new_err(number))?;
                Ok(name.bind(py).clone().into_any())
            }
        }
    }

    /// The value of an entry.
    #[inline]
    pub fn value<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        let found = self.opened.frozen.cell(self.value_at(number)).map_err(raised)?;
        object::of(py, &self.opened, found, self.at())
    }

    /// The number of the entry with a key that is a string. What fails is done and told again by who
    /// asks.
    #[inline]
    fn find_text(&self, py: Python<'_>, key: &Bound<'_, PyString>) -> Option<usize> {
        let frozen = &self.opened.frozen;
        match &self.shape {
            Shape::Record(record) => {
                // Names in programs are interned, as these are.
                let names = self.opened.names(py, record.schema).ok()?;
                let is_it = |name: &Py<PyString>| name.as_ptr() == key.as_ptr();
                if let Some(number) = names.iter().position(is_it) {
                    return Some(number);
                }
                let text = key.to_str().ok()?.as_bytes();
                match Cell::short(text) {
                    Some(short) => frozen.find_field_cell(record, short),
                    None => frozen.find_field(record, &Value::Str(text.into())),
                }
            }
            Shape::Table(table) => {
                let text = key.to_str().ok()?.as_bytes();
                match Cell::short(text) {
                    Some(short) => frozen.find_cell(table, short).ok()?,
                    None => frozen.find(table, &Value::Str(text.into())).ok()?,
                }
            }
        }
    }

    /// The number of the entry with a key. What no dict can have as a key is refused.
    pub fn find(&self, given: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let frozen = &self.opened.frozen;
        let by_value = |value: &Value<'_>| match &self.shape {
            Shape::Table(table) => frozen.find(table, value).map_err(raised),
            Shape::Record(record) => Ok(frozen.find_field(record, value)),
        };
        if let Some(value) = convert::simple(given)? {
            return by_value(&value);
        }
        key(given)?.find(self.len(), by_value, |number| self.key(given.py(), number))
    }

    #[inline]
    fn number(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        if let Ok(text) = key.cast_exact::<PyString>()
            && let Some(number) = self.find_text(key.py(), text)
        {
            return Ok(Some(number));
        }
        self.find(key)
    }

    fn subscript<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match self.number(key)? {
            Some(number) => self.value(key.py(), number),
            // In a tuple of its own, or the items of a key that is a tuple would be the arguments.
            None => Err(PyKeyError::new_err((key.clone().unbind(),))),
        }
    }
}

#[pymethods]
impl Dict {
    fn __len__(&self) -> usize {
        self.len()
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.number(key)?.is_some())
    }

    fn __iter__(slf: &Bound<'_, Self>) -> FrozenIterator {
        FrozenIterator::of_dict(slf.get(), Part::Keys, 1)
    }

    fn __reversed__(slf: &Bound<'_, Self>) -> FrozenIterator {
        FrozenIterator::of_dict(slf.get(), Part::Keys, -1)
    }

    /// The value of a key, or `default`.
    #[pyo3(signature = (key, default = None, /))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.number(key)? {
            Some(number) => self.value(key.py(), number).map(Some),
            None => Ok(default),
        }
    }

    /// A view of the keys.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        sharing::view_of("keys", slf.as_any())
    }

    /// A view of the values.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        sharing::view_of("values", slf.as_any())
    }

    /// A view of the pairs.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        sharing::view_of("items", slf.as_any())
    }

    /// Iterates over a part of the pairs, `"keys"`, `"values"` or `"items"`: from the first for a step
    /// of 1, from the last for -1.
    #[pyo3(signature = (part, step, /))]
    fn walk(&self, part: &str, step: isize) -> PyResult<FrozenIterator> {
        Ok(FrozenIterator::of_dict(self, Part::of(part)?, step))
    }

    /// Iterates over the keys from `minimum` to `maximum` in their order.
    #[pyo3(signature = (minimum = None, maximum = None, inclusive = (true, true), reverse = false))]
    fn irange<'py>(
        slf: &Bound<'py, Self>,
        minimum: Option<Bound<'py, PyAny>>,
        maximum: Option<Bound<'py, PyAny>>,
        inclusive: (bool, bool),
        reverse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dict = slf.get();
        let asked = range::Asked { minimum, maximum, inclusive, reverse };
        match &dict.shape {
            Shape::Table(table) => range::of_table(slf.py(), &dict.opened, table, &asked),
            Shape::Record(_) => range::of_few(slf.as_any(), &asked),
        }
    }

    /// An ordinary dict of the keys and values; what is nested stays frozen.
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let copy = PyDict::new(py);
        for number in 0..self.len() {
            copy.set_item(self.key(py, number)?, self.value(py, number)?)?;
        }
        Ok(copy)
    }

    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.copy(py)
    }

    /// An ordinary dict, with all that is in it as ordinary objects.
    fn thaw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        thaw::thaw(py, &self.opened, self.cell(), self.opened.frozen.end())
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__<'py>(&self, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.thaw(memo.py())
    }

    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<PyMapping>() else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let mut equal = other.len()? == self.len();
        for number in 0..self.len() {
            equal = equal
                && match other.get_item(self.key(py, number)?) {
                    Ok(theirs) => self.value(py, number)?.eq(theirs)?,
                    Err(error) if error.is_instance_of::<PyKeyError>(py) => false,
                    Err(error) => return Err(error),
                };
            if !equal {
                break;
            }
        }
        Ok(equal.into_pyobject(py)?.to_owned().into_any())
    }

    fn __or__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(other.py())?.bitor(other)
    }

    fn __ror__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        other.bitor(self.copy(other.py())?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut shown = Vec::new();
        for number in 0..self.len().min(sharing::SHOWN) {
            let key = sharing::brief(&self.key(py, number)?)?;
            shown.push(format!("{key}: {}", sharing::brief(&self.value(py, number)?)?));
        }
        Ok(sharing::shown("FrozenDict", "{", shown, "}", self.len()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        sharing::reduced(py, &self.opened, self.cell(), None)
    }
}

impl Dict {
    /// The cell that refers to it.
    pub const fn cell(&self) -> Cell {
        match &self.shape {
            Shape::Table(table) => cell::to(cell::DICT, table.len as u64, table.at as u64),
            Shape::Record(record) => cell::to(cell::RECORD, record.schema as u64, record.at as u64),
        }
    }
}

unsafe extern "C" fn get_item(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let quick = |dict: &Dict, key: &Bound<'_, PyAny>| {
        let py = key.py();
        let number = match key.cast_exact::<PyString>() {
            Ok(text) => dict.find_text(py, text)?,
            Err(_) => match &dict.shape {
                Shape::Table(table) => {
                    dict.opened.frozen.find_cell(table, convert::key_cell(key)?).ok()??
                }
                Shape::Record(_) => return None,
            },
        };
        let found = dict.opened.frozen.cell(dict.value_at(number)).ok()?;
        Some(object::quick(py, &dict.opened, found, dict.at()))
    };
    // SAFETY: the interpreter calls this slot of the class with an instance of it.
    unsafe { slots::get_item::<Dict>(object, key, quick, Dict::subscript) }
}

unsafe extern "C" fn refuse(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    let refused = |_: &Dict, _: &Bound<'_, PyAny>, _: Option<&Bound<'_, PyAny>>| {
        Err(sharing::refused("FrozenDict"))
    };
    // SAFETY: the interpreter calls this slot of the class with an instance of it.
    unsafe { slots::set_item::<Dict>(object, key, value, |_, _, _| None, refused) }
}
