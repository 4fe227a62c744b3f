//! A shared deque: what reads or changes it. What computes with copies is Python's (`ungil.share`).

use std::collections::VecDeque;

use pyo3::exceptions::{
    PyIndexError, PyOverflowError, PyReferenceError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};
use ungil_heap::deque::{self, End};
use ungil_heap::value::Value;
use ungil_heap::{Error, slice};

use super::convert::found_in_heap;
use super::draft::{Drafts, put};
use super::errors::raised;
use super::index::Border;
use super::making::finished;
use super::proxy::{Held, Hold};

/// The proxy of a shared deque.
#[pyclass(
    frozen,
    generic,
    sequence,
    subclass,
    weakref,
    module = "ungil._native",
    name = "SharedDeque"
)]
pub struct Deque(pub Hold);

#[inline]
fn index(given: &Bound<'_, PyAny>) -> PyResult<isize> {
    given.extract().or_else(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(given.py()) {
            return Err(out_of_range());
        }
        if given.hasattr("__index__")? {
            return Err(error);
        }
        let name = given.get_type().name()?;
        Err(PyTypeError::new_err(format!("sequence index must be integer, not '{name}'")))
    })
}

fn out_of_range() -> PyErr {
    PyIndexError::new_err("deque index out of range")
}

/// Whether Python finds `given` in the place of `item`.
fn is_same(item: &Bound<'_, PyAny>, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(item.is(given) || item.eq(given)?)
}

#[pymethods]
impl Deque {
    #[new]
    #[pyo3(signature = (held = None, /))]
    fn new(held: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Held::given(held).map(Self)
    }

    fn __len__(&self) -> PyResult<usize> {
        deque::len(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    /// How many items it can have; None: any number.
    #[getter]
    fn maxlen(&self) -> PyResult<Option<usize>> {
        deque::limit(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    #[inline]
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let index = index(key)?;
        let read = || deque::get(&self.0.shared.heap, self.0.at, index);
        let value = read().map_err(raised)?.ok_or_else(out_of_range)?;
        let item = self.0.object(key.py(), &value, || read()?.ok_or(Error::Stale));
        item.map_err(|error| {
            // Somebody took it, or what was before it, between the two looks.
            let is_gone = error.is_instance_of::<PyReferenceError>(key.py());
            if is_gone { out_of_range() } else { error }
        })
    }

    #[inline]
    fn __setitem__(&self, key: &Bound<'_, PyAny>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let index = index(key)?;
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let done = put(&self.0.shared, item, |value| deque::set(heap, at, index, value))?;
        if done { Ok(()) } else { Err(out_of_range()) }
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let done = deque::delete(&self.0.shared.heap, self.0.at, index(key)?).map_err(raised)?;
        if done { Ok(()) } else { Err(out_of_range()) }
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.place(item, 0, isize::MAX)?.is_some())
    }

    /// Goes through the items of this moment.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.items(py)?)?.try_iter()
    }

    /// Goes through the items of this moment from right to left.
    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let mut items = self.items(py)?;
        items.reverse();
        PyList::new(py, items)?.try_iter()
    }

    /// Adds an item at the right end.
    #[inline]
    #[pyo3(signature = (item, /))]
    fn append(&self, item: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push(End::Right, item)
    }

    /// Adds an item at the left end.
    #[inline]
    #[pyo3(signature = (item, /))]
    fn appendleft(&self, item: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push(End::Left, item)
    }

    /// Adds items at the right end, in one step.
    #[pyo3(signature = (items, /))]
    fn extend(&self, items: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push_all(End::Right, items)
    }

    /// Adds items at the left end one after the other, in one step.
    #[pyo3(signature = (items, /))]
    fn extendleft(&self, items: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push_all(End::Left, items)
    }

    /// Takes the item at the right end.
    #[inline]
    fn pop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, End::Right)
    }

    /// Takes the item at the left end.
    #[inline]
    fn popleft<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, End::Left)
    }

    /// Adds an item before an index.
    #[pyo3(signature = (index, item, /))]
    fn insert(&self, index: isize, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        if put(&self.0.shared, item, |value| deque::insert(heap, at, index, value))? {
            Ok(())
        } else {
            Err(PyIndexError::new_err("deque already at its maximum size"))
        }
    }

    /// Takes the first item out that equals `item`.
    #[pyo3(signature = (item, /))]
    fn remove(&self, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let removed = match found_in_heap(item, |value| deque::remove(heap, at, value))? {
            Some(removed) => removed,
            None => self.remove_by_python(item)?,
        };
        if removed { Ok(()) } else { Err(PyValueError::new_err("deque.remove(x): x not in deque")) }
    }

    /// The index of the first item that equals `item`.
    #[pyo3(signature = (item, start = Border(0), stop = Border(isize::MAX), /))]
    fn index(&self, item: &Bound<'_, PyAny>, start: Border, stop: Border) -> PyResult<usize> {
        match self.place(item, start.0, stop.0)? {
            Some(index) => Ok(index),
            None => Err(PyValueError::new_err(format!("{} is not in deque", item.repr()?))),
        }
    }

    /// How many items equal `item`.
    #[pyo3(signature = (item, /))]
    fn count(&self, item: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        if let Some(count) = found_in_heap(item, |value| deque::count(heap, at, value))? {
            return Ok(count);
        }
        let mut count = 0;
        for other in self.items(item.py())? {
            count += usize::from(is_same(&other, item)?);
        }
        Ok(count)
    }

    /// Takes steps items from the right end and adds them at the left; the other way below zero.
    #[pyo3(signature = (steps = 1, /))]
    fn rotate(&self, steps: isize) -> PyResult<()> {
        deque::rotate(&self.0.shared.heap, self.0.at, steps).map_err(raised)
    }

    /// Turns the order around.
    fn reverse(&self) -> PyResult<()> {
        deque::reverse(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    /// Takes all items out.
    fn clear(&self) -> PyResult<()> {
        deque::clear(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    /// Repeats the items, in one step.
    fn __imul__(&self, times: isize) -> PyResult<()> {
        let times = usize::try_from(times).unwrap_or(0);
        deque::repeat(&self.0.shared.heap, self.0.at, times).map_err(raised)
    }
}

impl Deque {
    /// All items, of one moment.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.snapshot(py, || deque::all(&self.0.shared.heap, self.0.at))
    }

    #[inline]
    fn push(&self, end: End, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        put(&self.0.shared, item, |value| deque::push(heap, at, end, value))
    }

    fn push_all(&self, end: End, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let (shared, at) = (&self.0.shared, self.0.at);
        let limit = deque::limit(&shared.heap, at).map_err(raised)?;
        let mut items = VecDeque::new();
        for item in given.try_iter()? {
            items.push_back(item?);
            // The others could not stay.
            if limit.is_some_and(|limit| items.len() > limit) {
                items.pop_front();
            }
        }
        let mut drafts = Drafts::new(shared);
        let items: PyResult<Vec<_>> = items.iter().map(|item| drafts.draft(item)).collect();
        let items = items?;
        let done = shared.heap.change(|op| {
            let made = drafts.make(op)?;
            let values: Vec<_> = items.iter().map(|item| finished(item, &made)).collect();
            deque::extend(&shared.heap, at, end, &values)
        });
        done.map_err(raised)
    }

    #[inline]
    fn take<'py>(&self, py: Python<'py>, end: End) -> PyResult<Bound<'py, PyAny>> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let item = self.0.take_out(py, |_| deque::pop(heap, at, end))?;
        item.ok_or_else(|| PyIndexError::new_err("pop from an empty deque"))
    }

    /// The index of the first item in a part of the deque that equals `item`.
    ///
    /// Only what is plain is looked for in the heap: anything else may say itself what it equals, and
    /// is compared with a copy of the items.
    fn place(&self, item: &Bound<'_, PyAny>, start: isize, stop: isize) -> PyResult<Option<usize>> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let find = |value: &Value| deque::index(heap, at, value, start, stop);
        if let Some(index) = found_in_heap(item, find)? {
            return Ok(index);
        }
        let items = self.items(item.py())?;
        let (start, stop) = (slice::clamp(start, items.len()), slice::clamp(stop, items.len()));
        for (index, other) in items.iter().enumerate().take(stop).skip(start) {
            if is_same(other, item)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Takes the first item out that Python says equals `given`; false: there is none.
    fn remove_by_python(&self, given: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut drafts = Drafts::new(&self.0.shared);
        // Somebody else may take out what was found; then another may be there.
        while let Some(found) = self.equal(&mut drafts, given)? {
            if deque::remove_told(&self.0.shared.heap, self.0.at, &found).map_err(raised)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The value of the first item that Python says equals `given`, and that the heap can find.
    fn equal<'a, 'py>(
        &'a self,
        drafts: &mut Drafts<'a, 'py>,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Value<'a>>> {
        for item in self.items(given.py())? {
            if is_same(&item, given)? {
                let value = finished(&drafts.draft(&item)?, &[]);
                // Not so if it has a NaN in it.
                if value == value.clone() {
                    return Ok(Some(value));
                }
            }
        }
        Ok(None)
    }
}
