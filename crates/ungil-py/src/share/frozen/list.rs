//! Frozen lists and tuples, and slices of them.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple, PyType};
use ungil_frozen::cell;
use ungil_frozen::frozen::Items;
use ungil_heap::value::Cell;

use super::iterator::FrozenIterator;
use super::made::Class;
use super::object;
use super::opened::Opened;
use super::sharing::{self, Parts};
use super::thaw;
use crate::share::index::{Border, index, quick_index};
use crate::share::slots;

/// The view of a frozen list or tuple, or of a slice of one.
#[pyclass(frozen, generic, sequence, subclass, module = "ungil._native", name = "FrozenListView")]
#[derive(Clone)]
pub struct List {
    pub opened: Arc<Opened>,
    items: Items,
    is_tuple: bool,
    /// The first item, and how far it is from one to the next.
    start: usize,
    step: isize,
    len: usize,
}

static LISTS: Class = Class::new();
static TUPLES: Class = Class::new();

/// The class of views of lists.
pub fn class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    LISTS.make::<List>(py, c"ungil.share.FrozenList", slots_of())
}

/// The class of views of tuples.
pub fn tuple_class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    TUPLES.make::<List>(py, c"ungil.share.FrozenTuple", slots_of())
}

fn slots_of() -> Vec<ffi::PyType_Slot> {
    let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
    vec![
        slot(ffi::Py_mp_subscript, get_item as *mut c_void),
        slot(ffi::Py_mp_ass_subscript, refuse as *mut c_void),
        slot(ffi::Py_sq_item, get_at as *mut c_void),
    ]
}

/// Whether an object is such a view.
pub fn is(object: &Bound<'_, PyAny>) -> bool {
    LISTS.is(object) || TUPLES.is(object)
}

/// Whether it is one of a tuple.
pub fn is_tuple(object: &Bound<'_, PyAny>) -> bool {
    TUPLES.is(object)
}

/// A new view, as a reference; null with an exception if that fails.
pub fn new(
    py: Python<'_>,
    opened: &Arc<Opened>,
    items: Items,
    is_tuple: bool,
) -> *mut ffi::PyObject {
    let opened = opened.clone();
    let list = List { opened, items, is_tuple, start: 0, step: 1, len: items.len };
    list.into_view(py)
}

impl List {
    fn into_view(self, py: Python<'_>) -> *mut ffi::PyObject {
        if self.is_tuple { TUPLES.new_view(py, self) } else { LISTS.new_view(py, self) }
    }

    /// The view of it.
    pub fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        // SAFETY: a new reference, or null with an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, self.into_view(py)) }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    /// Where it begins.
    pub const fn at(&self) -> usize {
        self.items.at
    }

    /// The cell of an item; `None` if there is no such item.
    #[inline]
    pub fn item(&self, number: usize) -> Option<Cell> {
        if number >= self.len {
            return None;
        }
        let number = self.start.wrapping_add_signed(number.cast_signed().wrapping_mul(self.step));
        self.opened.frozen.cell(self.items.at.checked_add(number.checked_mul(Cell::SIZE)?)?).ok()
    }

    #[inline]
    fn counted(&self, index: isize) -> usize {
        let index = if index < 0 { index.wrapping_add_unsigned(self.len) } else { index };
        usize::try_from(index).unwrap_or(usize::MAX)
    }

    /// The object of an item.
    pub fn object<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyAny>> {
        let name = if self.is_tuple { "tuple" } else { "list" };
        let found = self.item(number);
        let found =
            found.ok_or_else(|| PyIndexError::new_err(format!("{name} index out of range")))?;
        object::of(py, &self.opened, found, self.items.at)
    }

    /// The part of it that a slice says.
    fn part(&self, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        let known = slice.indices(self.len.cast_signed())?;
        let start = usize::try_from(known.start).unwrap_or(0).cast_signed();
        let first = self.start.wrapping_add_signed(start.wrapping_mul(self.step));
        let len = known.slicelength;
        // What is empty has no first item.
        let (start, step) =
            if len == 0 { (0, 1) } else { (first, self.step.wrapping_mul(known.step)) };
        Ok(Self { start, step, len, ..self.clone() })
    }

    fn subscript<'py>(&self, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = given.py();
        if let Ok(slice) = given.cast::<PySlice>() {
            return self.part(slice)?.into_object(py);
        }
        self.object(py, self.counted(index(given)?))
    }

    /// The numbers of the items that equal `given`.
    fn equal_to<'a, 'py>(
        &'a self,
        given: &'a Bound<'py, PyAny>,
    ) -> impl Iterator<Item = PyResult<usize>> + 'a + use<'a, 'py> {
        (0..self.len).filter_map(move |number| {
            let equal = self.object(given.py(), number).and_then(|item| item.eq(given));
            equal.map(|equal| equal.then_some(number)).transpose()
        })
    }

    /// The same part of the list of another view.
    pub fn sliced(&self, start: usize, step: isize, len: usize) -> Option<Self> {
        let last = len
            .checked_sub(1)
            .and_then(|last| start.checked_add_signed(last.cast_signed().checked_mul(step)?));
        let is_inside = len == 0 || start < self.items.len && last? < self.items.len;
        is_inside.then(|| Self { start, step, len, ..self.clone() })
    }

    /// The cell that refers to all of it.
    const fn cell(&self) -> Cell {
        let tag = if self.is_tuple { cell::TUPLE } else { cell::LIST };
        cell::to(tag, self.items.len as u64, self.items.at as u64)
    }

    fn ordinary<'py>(
        &self,
        py: Python<'py>,
        objects: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(if self.is_tuple {
            PyTuple::new(py, objects)?.into_any()
        } else {
            PyList::new(py, objects)?.into_any()
        })
    }
}

#[pymethods]
impl List {
    fn __len__(&self) -> usize {
        self.len
    }

    fn __contains__(&self, given: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.equal_to(given).next().transpose().map(|found| found.is_some())
    }

    fn __iter__(slf: &Bound<'_, Self>) -> FrozenIterator {
        FrozenIterator::of_list(slf.get(), 1)
    }

    fn __reversed__(slf: &Bound<'_, Self>) -> FrozenIterator {
        FrozenIterator::of_list(slf.get(), -1)
    }

    /// The index of the first item that equals `value`, from `start` and before `stop`.
    #[pyo3(signature = (value, start = Border(0), stop = Border(isize::MAX), /))]
    fn index(&self, value: &Bound<'_, PyAny>, start: Border, stop: Border) -> PyResult<usize> {
        let border = |at: Border| match at.0 {
            at if at < 0 => usize::try_from(at.saturating_add_unsigned(self.len)).unwrap_or(0),
            at => at.unsigned_abs(),
        };
        for number in border(start)..border(stop).min(self.len) {
            if self.object(value.py(), number)?.eq(value)? {
                return Ok(number);
            }
        }
        Err(PyValueError::new_err(format!("{} is not in it", value.repr()?)))
    }

    /// How many items equal `value`.
    #[pyo3(signature = (value, /))]
    fn count(&self, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.equal_to(value).try_fold(0, |count, found| found.map(|_| count + 1))
    }

    /// An ordinary list, or tuple, of the items; what is nested stays frozen.
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let objects: PyResult<_> = (0..self.len).map(|number| self.object(py, number)).collect();
        self.ordinary(py, objects?)
    }

    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(py)
    }

    /// An ordinary list, or tuple, with all that is in it as ordinary objects.
    fn thaw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let item = |number| {
            let found = self.item(number).ok_or_else(|| PyIndexError::new_err("index"))?;
            thaw::thaw(py, &self.opened, found, self.items.at)
        };
        let objects: PyResult<_> = (0..self.len).map(item).collect();
        self.ordinary(py, objects?)
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__<'py>(&self, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.thaw(memo.py())
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        how: pyo3::basic::CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        use pyo3::basic::CompareOp::{Eq, Ne};
        let py = other.py();
        let theirs = if is(other) { Some(other.cast::<Self>()?.get()) } else { None };
        let is_alike = match theirs {
            Some(theirs) => theirs.is_tuple == self.is_tuple,
            None if self.is_tuple => other.is_instance_of::<PyTuple>(),
            None => other.is_instance_of::<PyList>(),
        };
        if !is_alike {
            return Ok(py.NotImplemented().into_bound(py));
        }
        if !matches!(how, Eq | Ne) {
            return self.copy(py)?.rich_compare(
                match theirs {
                    Some(theirs) => theirs.copy(py)?,
                    None => other.clone(),
                },
                how,
            );
        }
        let mut equal = other.len()? == self.len;
        for number in 0..self.len {
            equal = equal
                && match theirs {
                    Some(theirs) => self.object(py, number)?.eq(theirs.object(py, number)?)?,
                    None => self.object(py, number)?.eq(other.get_item(number)?)?,
                };
            if !equal {
                break;
            }
        }
        let answer = equal == matches!(how, Eq);
        Ok(answer.into_pyobject(py)?.to_owned().into_any())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        if self.is_tuple {
            return self.copy(py)?.hash();
        }
        Err(PyTypeError::new_err("unhashable type: 'FrozenList'"))
    }

    fn __add__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let other = if is(other) { other.call_method0("copy")? } else { other.clone() };
        self.copy(other.py())?.add(other)
    }

    fn __radd__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        other.add(self.copy(other.py())?)
    }

    fn __mul__<'py>(&self, times: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.copy(times.py())?.mul(times)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut shown = Vec::new();
        for number in 0..self.len.min(sharing::SHOWN) {
            shown.push(sharing::brief(&self.object(py, number)?)?);
        }
        let (name, [begin, end]) =
            if self.is_tuple { ("FrozenTuple", ["(", ")"]) } else { ("FrozenList", ["[", "]"]) };
        Ok(sharing::shown(name, begin, shown, end, self.len))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let part = (self.start, self.step, self.len);
        sharing::reduced(py, &self.opened, self.cell(), Some(part))
    }
}

unsafe extern "C" fn get_item(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let quick = |list: &List, key: &Bound<'_, PyAny>| {
        let found = list.item(list.counted(quick_index(key)?))?;
        Some(object::quick(key.py(), &list.opened, found, list.items.at))
    };
    // SAFETY: the interpreter calls this slot of the class with an instance of it.
    unsafe { slots::get_item::<List>(object, key, quick, List::subscript) }
}

/// What `PySequence_GetItem` calls; the interpreter has added the length to what was negative.
unsafe extern "C" fn get_at(
    object: *mut ffi::PyObject,
    index: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    let quick = |py: Python<'_>, list: &List| {
        let found = list.item(usize::try_from(index).ok()?)?;
        Some(object::quick(py, &list.opened, found, list.items.at))
    };
    let slow = |py: Python<'_>, list: &List| {
        let number = usize::try_from(index).unwrap_or(usize::MAX);
        list.object(py, number).map(Bound::into_ptr)
    };
    // SAFETY: the interpreter calls this slot of the class with an instance of it.
    unsafe { slots::call::<List, _>(object, std::ptr::null_mut(), quick, slow) }
}

unsafe extern "C" fn refuse(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    let refused = |list: &List, _: &Bound<'_, PyAny>, _: Option<&Bound<'_, PyAny>>| {
        Err(sharing::refused(if list.is_tuple { "FrozenTuple" } else { "FrozenList" }))
    };
    // SAFETY: the interpreter calls this slot of the class with an instance of it.
    unsafe { slots::set_item::<List>(object, key, value, |_, _, _| None, refused) }
}
