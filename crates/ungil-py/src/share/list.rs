//! What a shared list does inside of operations; the rest of its methods are Python's
//! (`ungil.share`).

use std::ffi::{c_int, c_void};

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PySlice, PyType};
use ungil_heap::object::Kind;
use ungil_heap::slice::Slice;
use ungil_heap::transaction::Transaction;
use ungil_heap::value::Value;
use ungil_heap::{Error, list};

use super::convert::{self, found_in_heap};
use super::draft::{Drafts, put};
use super::errors::raised;
use super::index::{Border, Index, index, quick_index, unpacked};
use super::list_iterator::ListIterator;
use super::making::finished;
use super::parked::{self, Park, Parked};
use super::proxy::{Held, Hold};
use super::{recent, slots};

/// The proxy of a shared list.
#[pyclass(
    frozen,
    generic,
    sequence,
    subclass,
    weakref,
    module = "ungil._native",
    name = "SharedList"
)]
pub struct List(pub Hold);

/// How often what has to find the list unchanged is tried before nobody else may change it.
const TRIES: usize = 4;

#[pymethods]
impl List {
    #[new]
    #[pyo3(signature = (held = None, /))]
    fn new(held: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Held::given(held).map(Self)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.length()
    }

    #[inline]
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        if !key.is_exact_instance_of::<PyInt>()
            && let Ok(slice) = key.cast::<PySlice>()
        {
            return Ok(PyList::new(py, self.part(py, unpacked(slice)?)?)?.into_any());
        }
        self.item(py, index(key)?)?.ok_or_else(|| PyIndexError::new_err("list index out of range"))
    }

    #[inline]
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if !key.is_exact_instance_of::<PyInt>()
            && let Ok(slice) = key.cast::<PySlice>()
        {
            return self.set_slice(unpacked(slice)?, value);
        }
        let index = index(key)?;
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        if put(&self.0.shared, value, |value| list::set(heap, at, index, value))? {
            Ok(())
        } else {
            Err(PyIndexError::new_err("list assignment index out of range"))
        }
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        if let Ok(slice) = key.cast::<PySlice>() {
            return list::delete_slice(heap, at, unpacked(slice)?).map_err(raised);
        }
        match list::pop(heap, at, index(key)?).map_err(raised)? {
            Some(_) => Ok(()),
            None => Err(PyIndexError::new_err("list assignment index out of range")),
        }
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.position(value, 0, isize::MAX)?.is_some())
    }

    fn __iter__(slf: Bound<'_, Self>) -> ListIterator {
        ListIterator::forwards(slf.unbind())
    }

    fn __reversed__(slf: Bound<'_, Self>) -> PyResult<ListIterator> {
        ListIterator::backwards(slf.unbind())
    }

    /// Adds an item at the end.
    #[pyo3(signature = (value, /))]
    fn append(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        put(&self.0.shared, value, |value| list::append(heap, at, value))
    }

    /// Adds items at the end, in one step.
    #[pyo3(signature = (values, /))]
    fn extend(&self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let values = ordinary(values)?;
        let mut drafts = Drafts::new(&self.0.shared);
        let values = drafts.items(&values)?;
        let changed = self.0.shared.heap.change(|op| {
            let made = drafts.make(op)?;
            let values: Vec<_> = values.iter().map(|value| finished(value, &made)).collect();
            list::extend(op.heap(), self.0.at, &values)
        });
        changed.map_err(raised)
    }

    /// Adds an item before an index.
    #[pyo3(signature = (index, value, /))]
    fn insert(&self, index: Border, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Border(index) = index;
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        put(&self.0.shared, value, |value| list::insert(heap, at, index, value))
    }

    /// Takes an item out.
    #[pyo3(signature = (index = Index(-1), /))]
    fn pop<'py>(&self, py: Python<'py>, index: Index) -> PyResult<Bound<'py, PyAny>> {
        let Index(index) = index;
        match self.0.take_out(py, |op| list::pop(op.heap(), self.0.at, index))? {
            Some(item) => Ok(item),
            None if self.length()? == 0 => Err(PyIndexError::new_err("pop from empty list")),
            None => Err(PyIndexError::new_err("pop index out of range")),
        }
    }

    /// Takes the first item out that equals `value`.
    #[pyo3(signature = (value, /))]
    fn remove(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let removed = match found_in_heap(value, |value| list::remove(heap, at, value))? {
            Some(removed) => removed,
            None => self.remove_by_python(value)?,
        };
        if removed { Ok(()) } else { Err(PyValueError::new_err("list.remove(x): x not in list")) }
    }

    /// The index of the first item in a part of the list that equals `value`.
    #[pyo3(signature = (value, start = Border(0), stop = Border(isize::MAX), /))]
    fn index(&self, value: &Bound<'_, PyAny>, start: Border, stop: Border) -> PyResult<usize> {
        self.position(value, start.0, stop.0)?
            .ok_or_else(|| PyValueError::new_err("list.index(x): x not in list"))
    }

    /// How many items equal `value`.
    #[pyo3(signature = (value, /))]
    fn count(&self, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        if let Some(count) = found_in_heap(value, |value| list::count(heap, at, value))? {
            return Ok(count);
        }
        let mut count = 0;
        for item in self.values(value.py(), Slice::ALL)? {
            count += usize::from(equal(&item, value)?);
        }
        Ok(count)
    }

    /// Turns the order around.
    fn reverse(&self) -> PyResult<()> {
        list::reverse(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    /// Takes everything out.
    fn clear(&self) -> PyResult<()> {
        list::clear(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    /// Puts so many copies of the items in the place of them.
    #[pyo3(signature = (times, /))]
    fn repeat(&self, times: isize) -> PyResult<()> {
        let times = usize::try_from(times).unwrap_or(0);
        list::repeat(&self.0.shared.heap, self.0.at, times).map_err(raised)
    }

    /// Adds `by` to an item in one step; the sum.
    #[pyo3(signature = (index, by = None, /))]
    fn incr<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        by: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, by) = (index.py(), convert::summand(by)?);
        let index = super::index::index(index)?;
        match list::increment(&self.0.shared.heap, self.0.at, index, &by).map_err(raised)? {
            Some(sum) => self.0.value(py, &sum),
            None => Err(PyIndexError::new_err("list index out of range")),
        }
    }

    /// Puts `new` in the place of an item if that is `old`, in one step; whether it was.
    #[pyo3(signature = (index, old, new, /))]
    fn cas<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        old: &Bound<'py, PyAny>,
        new: &Bound<'py, PyAny>,
    ) -> PyResult<bool> {
        let index = super::index::index(index)?;
        let mut drafts = Drafts::new(&self.0.shared);
        let (old, new) = (drafts.draft_old(old)?, drafts.draft(new)?);
        let old = finished(&old, &[]);
        let changed = self.0.shared.heap.change(|op| {
            let made = drafts.make(op)?;
            let new = finished(&new, &made);
            list::compare_and_set(op.heap(), self.0.at, index, &old, &new)
        });
        let changed = changed.map_err(raised)?;
        changed.ok_or_else(|| PyIndexError::new_err("list index out of range"))
    }

    /// All items, and the version of the list that they are from.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<(Vec<Bound<'py, PyAny>>, u32)> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let mut version = 0;
        let items = self.0.snapshot(py, || {
            let (values, seen) = list::snapshot(heap, at)?;
            version = seen;
            Ok(values)
        })?;
        Ok((items, version))
    }

    /// Gives the items another order, if the list still has this version; whether it has.
    #[pyo3(signature = (version, order, /))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
    fn reorder(&self, version: u32, order: Vec<usize>) -> PyResult<bool> {
        list::reorder(&self.0.shared.heap, self.0.at, version, &order).map_err(raised)
    }

    /// Calls a function in a transaction, in which nobody else changes what it looks at.
    fn alone<'py>(&self, work: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let transaction = self.0.shared.heap.begin().map_err(raised)?;
        let result = work.call0()?;
        transaction.commit().map_err(raised)?;
        Ok(result)
    }
}

impl List {
    /// How many items there are.
    #[inline]
    pub fn length(&self) -> PyResult<usize> {
        list::len(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    /// An item; `None`: there is no such index.
    #[inline]
    pub fn item<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        match list::get(heap, at, index).map_err(raised)? {
            None => Ok(None),
            Some(value) => {
                let again = || list::get(heap, at, index)?.ok_or(Error::Stale);
                self.0.object(py, &value, again).map(Some)
            }
        }
    }

    /// As [`Self::values`], without a detour where no item is more than its cell.
    fn part<'py>(&self, py: Python<'py>, slice: Slice) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let cells = list::whole_cells(&self.0.shared.heap, self.0.at, slice).map_err(raised)?;
        let Some(cells) = cells else { return self.values(py, slice) };
        let mut items = Vec::with_capacity(cells.len());
        for cell in cells {
            let Some(item) = recent::object(py, cell) else { return self.values(py, slice) };
            // SAFETY: `recent::object` gives a new reference, or null with an exception.
            items.push(unsafe { Bound::from_owned_ptr_or_err(py, item) }?);
        }
        Ok(items)
    }

    /// The items of a slice, all of one moment.
    fn values<'py>(&self, py: Python<'py>, slice: Slice) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.snapshot(py, || list::get_slice(&self.0.shared.heap, self.0.at, slice))
    }

    fn set_slice(&self, slice: Slice, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let values = ordinary(values)?;
        let mut drafts = Drafts::new(&self.0.shared);
        let values = drafts.items(&values)?;
        let changed = self.0.shared.heap.change(|op| {
            let made = drafts.make(op)?;
            let values: Vec<_> = values.iter().map(|value| finished(value, &made)).collect();
            list::set_slice(op.heap(), self.0.at, slice, &values)
        });
        changed.map_err(raised)?.map_err(|count| {
            let given = values.len();
            PyValueError::new_err(format!(
                "attempt to assign sequence of size {given} to extended slice of size {count}"
            ))
        })
    }

    /// The index of the first item in a part of the list that equals `value`.
    fn position(
        &self,
        value: &Bound<'_, PyAny>,
        start: isize,
        stop: isize,
    ) -> PyResult<Option<usize>> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let find = |value: &Value| list::index(heap, at, value, start, stop);
        if let Some(index) = found_in_heap(value, find)? {
            return Ok(index);
        }
        // Anything else may equal an object by its contents: Python compares.
        let items = self.values(value.py(), Slice::ALL)?;
        let start = ungil_heap::slice::clamp(start, items.len());
        let stop = ungil_heap::slice::clamp(stop, items.len());
        for (index, item) in items.iter().enumerate().take(stop).skip(start) {
            if equal(item, value)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Removes the first item that Python says equals `value`; false: there is none.
    fn remove_by_python(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        // Proxies that stay alive are not made again, for which the list would be locked.
        let mut items;
        let mut transaction = None;
        let mut tried = 0;
        loop {
            if tried == TRIES {
                // In one, nobody else changes what is looked at, and comparisons may look at more.
                transaction = Some(heap.begin().map_err(raised)?);
            }
            tried += 1;
            let version;
            (items, version) = self.snapshot(value.py())?;
            let mut found = None;
            for (index, item) in items.iter().enumerate() {
                if equal(item, value)? {
                    found = Some(index);
                    break;
                }
            }
            let Some(found) = found else { return Ok(false) };
            let found = isize::try_from(found).map_err(|_| PyIndexError::new_err("too long"))?;
            let removed = heap.change(|op| {
                op.lock(at)?;
                if list::version(heap, at)? != version {
                    return Ok(false);
                }
                list::pop(heap, at, found).map(|_| true)
            });
            if removed.map_err(raised)? {
                transaction.map_or(Ok(()), Transaction::commit).map_err(raised)?;
                return Ok(true);
            }
        }
    }
}

static PARKED: Parked = Parked::new();

impl Park for List {
    const KIND: Kind = Kind::List;

    fn hold(&mut self) -> &mut Hold {
        &mut self.0
    }

    fn parked() -> &'static Parked {
        &PARKED
    }
}

impl From<Hold> for List {
    fn from(hold: Hold) -> Self {
        Self(hold)
    }
}

/// The class whose subscripts take no detour.
pub fn quick(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    slots::class::<List>(
        py,
        c"ungil._native.QuickList",
        &mut [
            ffi::PyType_Slot { slot: ffi::Py_mp_subscript, pfunc: get_item as *mut c_void },
            ffi::PyType_Slot { slot: ffi::Py_mp_ass_subscript, pfunc: set_item as *mut c_void },
            ffi::PyType_Slot {
                slot: ffi::Py_tp_dealloc,
                pfunc: parked::end::<List> as *mut c_void,
            },
            ffi::PyType_Slot::default(),
        ],
    )
}

unsafe extern "C" fn get_item(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let quick = |list: &List, key: &Bound<'_, PyAny>| {
        let seen = list::glance(&list.0.shared.heap, list.0.at, quick_index(key)?)?;
        list.0.seen(key.py(), seen)
    };
    // SAFETY: the interpreter calls this slot of the class with an instance of it.
    unsafe { slots::get_item::<List>(object, key, quick, List::__getitem__) }
}

unsafe extern "C" fn set_item(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    let quick = |list: &List, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>| {
        let (index, new) = (quick_index(key)?, convert::number_cell(value)?);
        Some(list::replace_number(&list.0.shared.heap, list.0.at, index, new))
    };
    let slow = |list: &List, key: &Bound<'_, PyAny>, value: Option<&Bound<'_, PyAny>>| match value {
        Some(value) => list.__setitem__(key, value),
        None => list.__delitem__(key),
    };
    // SAFETY: the interpreter calls this slot of the class with an instance of it.
    unsafe { slots::set_item::<List>(object, key, value, quick, slow) }
}

/// Whether Python finds one to be the other in a list.
fn equal(item: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(item.is(value) || item.eq(value)?)
}

/// What an iterable gives, as an ordinary list. That of a shared list is of one moment.
fn ordinary<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = given.py();
    if let Ok(list) = given.cast_exact::<PyList>() {
        return Ok(list.clone());
    }
    if let Ok(list) = given.cast::<List>() {
        return PyList::new(py, list.get().values(py, Slice::ALL)?);
    }
    // Not by the class: it would believe a length that the iterable only claims.
    PyList::new(py, given.try_iter()?.collect::<PyResult<Vec<_>>>()?)
}
