//! A shared array: its memory for views, and its numbers one by one. What needs no haste is Python's
//! (`ungil.share`).

mod item;

use std::cell::Cell;
use std::cmp::Ordering;
use std::ffi::{CString, c_int};
use std::iter::once;
use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};
use ungil_heap::Error;
use ungil_heap::array::{self, Item, Layout, Number};
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;

use self::item::{index, out_of_range, plain_index};
use super::argument::count;
use super::buffer::{Buffer, too_large};
use super::errors::raised;
use super::memory::{self, Lent, Shape};
use super::proxy::{Held, Hold};
use super::sync::Place;

/// The proxy of a shared array, or what one is to be made of.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedArray")]
pub struct Array {
    place: Place<Wanted>,
    layout: Layout,
    row_bytes: usize,
    /// What an item is, if it is one number.
    number: Option<Number>,
}

/// An array that is to be made.
struct Wanted {
    source: Option<Lent>,
    rows: usize,
    room: usize,
}

#[pymethods]
impl Array {
    /// The proxy of what is held; else an array with a copy of `source`, or with nothing but zeros.
    #[new]
    #[pyo3(signature = (
        held = None, /, *, source = None, shape = Vec::new(), format = "B", itemsize = 1, capacity = 0
    ))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
    fn new(
        held: Option<&Held>,
        source: Option<&Bound<'_, PyAny>>,
        shape: Vec<usize>,
        format: &str,
        itemsize: usize,
        capacity: usize,
    ) -> PyResult<Self> {
        let wanted = || {
            let source = source.map(Lent::by).transpose()?;
            Ok(Wanted { source, rows: shape.first().copied().unwrap_or(0), room: capacity })
        };
        let place = Place::new(held, wanted)?;
        let layout = match &place {
            Place::Shared(found) => array::layout(&found.shared.heap, found.at).map_err(raised)?,
            Place::Wanted(_) => Layout {
                format: format.as_bytes().to_vec(),
                item_bytes: itemsize,
                others: shape.get(1..).unwrap_or_default().to_vec(),
            },
        };
        let bytes = layout.row_bytes();
        let row_bytes =
            bytes.ok_or_else(|| PyMemoryError::new_err("an array of this size is impossible"))?;
        let number =
            Number::of(&layout.format).filter(|number| number.bytes() == layout.item_bytes);
        let made = Self { place, layout, row_bytes, number };
        if let Place::Wanted(Wanted { source: Some(source), rows, .. }) = &made.place
            && row_bytes.checked_mul(*rows) != Some(source.bytes())
        {
            return Err(PyValueError::new_err("the size of the data does not match the shape"));
        }
        Ok(made)
    }

    /// The length of the first axis.
    fn __len__(&self) -> PyResult<usize> {
        let (heap, at) = self.place.found()?;
        array::look(heap, at).map(|seen| seen.rows).map_err(raised)
    }

    /// How long the axes are.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.axes(self.__len__()?))
    }

    /// What an item is, as PEP 3118 writes it.
    #[getter]
    fn format<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        PyString::from_bytes(py, &self.layout.format)
    }

    /// Bytes of an item.
    #[getter]
    fn itemsize(&self) -> usize {
        self.layout.item_bytes
    }

    /// How long the first axis can become before the items are moved.
    #[getter]
    fn capacity(&self) -> PyResult<usize> {
        let (heap, at) = self.place.found()?;
        array::look(heap, at).map(|seen| seen.room).map_err(raised)
    }

    /// A number, if the key is that of one; else what Python makes of it.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        let Some(place) = this.find(key)? else { return slf.call_method1("_part", (key,)) };
        let (heap, at) = this.place.found()?;
        let item = array::get(heap, at, place).map_err(raised)?.ok_or_else(out_of_range)?;
        item::object(key.py(), item)
    }

    /// Gives a number another value, or what the key means.
    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let this = slf.get();
        let Some(place) = this.find(key)? else {
            return slf.call_method1("_set_part", (key, value)).map(drop);
        };
        let value = this.item(place.number, value)?;
        this.update(place, |_| Some(value)).map(drop)
    }

    /// Adds to a number, in one step; what it was.
    #[pyo3(signature = (index, value, /))]
    fn add<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let place = self.number_at(index)?;
        let number = place.number;
        if number == Number::Bool {
            return Err(PyTypeError::new_err("a bool cannot be added to: use cas"));
        }
        // What is taken away from an unsigned number is in its range, with another sign.
        let summand = match (number, value.extract::<i64>()) {
            (Number::Unsigned(_), Ok(less @ ..0)) => Err(less.unsigned_abs()),
            _ => Ok(self.item(number, value)?),
        };
        let is_too_large = Cell::new(false);
        let old = self.update(place, |old| {
            let sum = match (summand, old) {
                (Ok(more), old) => number.sum(old, more),
                (Err(less), Item::Unsigned(old)) => old.checked_sub(less).map(Item::Unsigned),
                (Err(_), _) => None,
            };
            is_too_large.set(sum.is_none());
            sum
        })?;
        if is_too_large.get() {
            return Err(self.unfit(&format!("the sum {old} + {value}", old = item::shown(old))));
        }
        item::object(index.py(), old)
    }

    /// Makes a number no smaller than another, in one step; what it was.
    #[pyo3(signature = (index, value, /))]
    fn maximum<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.limit(index, value, Ordering::Less)
    }

    /// Makes a number no larger than another, in one step; what it was.
    #[pyo3(signature = (index, value, /))]
    fn minimum<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.limit(index, value, Ordering::Greater)
    }

    /// Gives a number that is `old` the value `new`, in one step; False: it was another.
    #[pyo3(signature = (index, old, new, /))]
    fn cas(
        &self,
        index: &Bound<'_, PyAny>,
        old: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let place = self.number_at(index)?;
        let (old, new) = (self.item(place.number, old)?, self.item(place.number, new)?);
        let was = self.update(place, |now| (now == old).then_some(new))?;
        Ok(was == old)
    }

    /// Adds an item at the end of one axis of numbers; else what Python makes of it.
    #[pyo3(signature = (item, /))]
    fn append(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let this = slf.get();
        let Some(number) = this.number.filter(|_| this.layout.others.is_empty()) else {
            return slf.call_method1("_append_row", (item,)).map(drop);
        };
        let bytes = number.in_memory(this.item(number, item)?);
        let bytes = NonNull::from(&bytes).cast();
        let (heap, at) = this.place.found()?;
        let appended = array::extend(heap, at, &this.layout, 1, &mut |to| {
            // SAFETY: there is room for an item, which nobody sees yet.
            unsafe { to.copy_from_nonoverlapping(bytes, number.bytes()) };
            Ok(())
        });
        appended.map_err(raised)
    }

    /// Adds so many rows at the end, which are as `source` has them: of the same items and the same
    /// length, which may be none.
    #[pyo3(signature = (source, rows, /))]
    fn extend_by(&self, source: &Bound<'_, PyAny>, rows: usize) -> PyResult<()> {
        let source = Lent::by(source)?;
        if rows.checked_mul(self.row_bytes) != Some(source.bytes()) {
            let (bytes, row_bytes) = (source.bytes(), self.row_bytes);
            let what = format!("{bytes} bytes are not {rows} rows of {row_bytes} bytes each");
            return Err(PyValueError::new_err(what));
        }
        let (heap, at) = self.place.found()?;
        array::extend(heap, at, &self.layout, rows, &mut |to| source.copy_to(to)).map_err(raised)
    }

    /// Gives the first axis another length; what comes is 0.
    #[pyo3(signature = (length, /))]
    fn resize(&self, length: isize) -> PyResult<()> {
        let length = count("length", length)?;
        let (heap, at) = self.place.found()?;
        array::resize(heap, at, &self.layout, length).map_err(raised)
    }

    /// Makes room for a first axis of this length, so that the items stay where they are until then.
    #[pyo3(signature = (length, /))]
    fn reserve(&self, length: isize) -> PyResult<()> {
        let length = count("length", length)?;
        let (heap, at) = self.place.found()?;
        array::reserve(heap, at, &self.layout, length).map_err(raised)
    }

    /// The buffer that the items are in at this moment, and how long the first axis is.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, Buffer>, usize)> {
        let hold = self.place.held()?;
        let heap = &hold.shared.heap;
        let look = |found: &mut Vec<Offset>| {
            let seen = array::look(heap, hold.at)?;
            found.push(seen.buffer);
            Ok(seen.rows)
        };
        let (rows, mut roots) = heap.hold_all(hold.at, look).map_err(raised)?;
        let root = roots.pop().ok_or_else(|| raised(Error::Stale))?;
        Ok((Buffer::keeping(py, Hold::new(&hold.shared, root))?, rows))
    }

    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives the object to a buffer")]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        let (buffer, rows) = this.memory(slf.py())?;
        let (memory, pointer) = buffer.get().lasting()?;
        let format = CString::new(item::sound(&this.layout.format)?).map_err(|_| too_large())?;
        let axes = this.axes(rows);
        let shape = Shape::new(format, this.layout.item_bytes, &axes).ok_or_else(too_large)?;
        let is_other_number = this.number.is_none() && Number::of(&this.layout.format).is_some();
        if is_other_number || shape.bytes().unsigned_abs() > memory.bytes {
            return Err(PyBufferError::new_err(
                "the heap is damaged: an array contradicts its own header",
            ));
        }
        // SAFETY: Python gives a place for a view, and releases it by the method of the buffer, which
        // is its owner and keeps the memory.
        unsafe {
            memory::export(view, flags, buffer.into_any(), pointer, memory.is_writable, shape)
        }
    }
}

impl Array {
    /// What it consists of if it is shared.
    pub fn hold(&self) -> Option<&Hold> {
        self.place.hold()
    }

    /// Makes what is wanted.
    pub fn create(&self, op: &mut Op<'_>) -> ungil_heap::Result<Offset> {
        let Place::Wanted(Wanted { source, rows, room }) = &self.place else {
            return Err(Error::Misuse("this is shared already"));
        };
        array::create(op, &self.layout, *rows, *room, &mut |to| {
            if let Some(source) = source {
                return source.copy_to(to);
            }
            // SAFETY: so many bytes are the rows', which nobody sees yet.
            unsafe { to.write_bytes(0, rows * self.row_bytes) };
            Ok(())
        })
    }

    fn axes(&self, rows: usize) -> Vec<usize> {
        once(rows).chain(self.layout.others.iter().copied()).collect()
    }

    /// The place of the number that a key means: an integer, or as many as there are axes. `None`: it
    /// means something else, or the items are no numbers.
    #[inline]
    fn find(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<array::Place>> {
        let Some(number) = self.number else { return Ok(None) };
        let others = &self.layout.others;
        let found = if others.is_empty() && key.is_exact_instance_of::<PyInt>() {
            Some((index(key)?, 0))
        } else if let Ok(keys) = key.cast::<PyTuple>() {
            self.find_on_axes(keys)?
        } else if others.is_empty() {
            plain_index(key)?.map(|row| (row, 0))
        } else {
            None
        };
        Ok(found.map(|(row, items)| {
            let inside = items * number.bytes();
            array::Place { row, row_bytes: self.row_bytes, inside, number }
        }))
    }

    /// The row that a key for each axis means, and how many items are before the one in it. `None`:
    /// one of them is no integer, or there are not as many.
    #[inline]
    fn find_on_axes(&self, keys: &Bound<'_, PyTuple>) -> PyResult<Option<(isize, usize)>> {
        let others = &self.layout.others;
        if keys.len() != others.len() + 1 {
            return Ok(None);
        }
        let Some(row) = plain_index(&keys.get_item(0)?)? else { return Ok(None) };
        let mut items = Some(0_usize);
        for (key, &axis) in keys.iter().skip(1).zip(others) {
            let Some(index) = plain_index(&key)? else { return Ok(None) };
            // An error waits for the keys behind it: with an array among them it is numpy's to tell.
            let index = ungil_heap::slice::index(index, axis);
            items = items.zip(index).map(|(items, index)| items * axis + index);
        }
        items.map(|items| Some((row, items))).ok_or_else(out_of_range)
    }

    /// As above, of what can only be a number.
    fn number_at(&self, key: &Bound<'_, PyAny>) -> PyResult<array::Place> {
        self.find(key)?.ok_or_else(|| {
            PyTypeError::new_err(match self.number {
                Some(_) => "an index needs one integer for each axis of the array".to_owned(),
                None => format!(
                    "this works on items of one number with at most 8 bytes, not on items of \
                     format {}",
                    self.layout.format.escape_ascii()
                ),
            })
        })
    }

    fn update(
        &self,
        place: array::Place,
        change: impl FnMut(Item) -> Option<Item>,
    ) -> PyResult<Item> {
        let (heap, at) = self.place.found()?;
        array::update(heap, at, place, change).map_err(raised)?.ok_or_else(out_of_range)
    }

    fn limit<'py>(
        &self,
        index: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
        wanted: Ordering,
    ) -> PyResult<Bound<'py, PyAny>> {
        let place = self.number_at(index)?;
        let value = self.item(place.number, value)?;
        let old =
            self.update(place, |old| (old.partial_cmp(&value) == Some(wanted)).then_some(value))?;
        item::object(index.py(), old)
    }

    /// The item of a Python object.
    #[inline]
    fn item(&self, number: Number, given: &Bound<'_, PyAny>) -> PyResult<Item> {
        item::taken(number, given)?.ok_or_else(|| self.unfit(&given.to_string()))
    }

    fn unfit(&self, value: &str) -> PyErr {
        let format = self.layout.format.escape_ascii();
        PyOverflowError::new_err(format!("{value} does not fit into an item of format {format}"))
    }
}
