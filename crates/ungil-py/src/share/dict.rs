//! What a shared dict does inside of operations; the rest of its methods are Python's
//! (`ungil.share`).

use std::ffi::{c_int, c_void};

use pyo3::exceptions::{PyKeyError, PyReferenceError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use ungil_heap::object::Kind;
use ungil_heap::table::Cursor;
use ungil_heap::value::Value;
use ungil_heap::{Error, dict};

use super::absent::Absent;
use super::argument::Given;
use super::convert::{self, simple};
use super::dict_walk::Walk;
use super::draft::{self, Drafts, put};
use super::errors::raised;
use super::making::finished;
use super::parked::{self, Park, Parked};
use super::proxy::{Held, Hold};
use super::{slots, sought};

/// The proxy of a shared dict.
#[pyclass(
    frozen,
    generic,
    mapping,
    subclass,
    weakref,
    module = "ungil._native",
    name = "SharedDict"
)]
pub struct Dict(pub Hold);

impl Dict {
    /// Calls `with` with a key that may be stored.
    #[inline]
    fn with_key<T>(
        &self,
        key: &Bound<'_, PyAny>,
        with: impl FnOnce(&Value<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        let shared = &self.0.shared;
        let done = draft::with_key(shared, key, |drafts| drafts.draft_key(key).map(Some), with)?;
        Ok(done.expect("a key that may be stored has a draft"))
    }

    /// Calls `with` with a key that is looked for; the default if none here equals it.
    #[inline]
    fn with_known<T: Default>(
        &self,
        key: &Bound<'_, PyAny>,
        with: impl FnOnce(&Value<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        let (shared, all) = (&self.0.shared, || self.all_keys(key.py()));
        draft::with_key(shared, key, |drafts| sought::known(drafts, key, all), with)
            .map(Option::unwrap_or_default)
    }

    /// All keys, of one moment.
    fn all_keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let all = || dict::batch(heap, at, &mut Cursor::default(), usize::MAX);
        self.0.snapshot(py, || Ok(all()?.into_iter().map(|(key, _)| key).collect()))
    }

    #[inline]
    fn find<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.with_known(key, |key| {
            let (heap, at) = (&self.0.shared.heap, self.0.at);
            match dict::get(heap, at, key).map_err(raised)? {
                None => Ok(None),
                Some(value) => {
                    let again = || dict::get(heap, at, key)?.ok_or(Error::Stale);
                    match self.0.object(py, &value, again) {
                        // It was deleted meanwhile.
                        Err(error) if error.is_instance_of::<PyReferenceError>(py) => Ok(None),
                        object => object.map(Some),
                    }
                }
            }
        })
    }
}

#[pymethods]
impl Dict {
    #[new]
    #[pyo3(signature = (held = None, /))]
    fn new(held: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Held::given(held).map(Self)
    }

    fn __len__(&self) -> PyResult<usize> {
        dict::len(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.with_known(key, |key| {
            dict::contains(&self.0.shared.heap, self.0.at, key).map_err(raised)
        })
    }

    #[inline]
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.find(key.py(), key)?.ok_or_else(|| missing(key))
    }

    /// The value of a key, or `default`.
    #[pyo3(signature = (key, default = None, /))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(key.py(), key)?.or(default))
    }

    #[inline]
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        self.with_key(key, |key| {
            put(&self.0.shared, value, |value| dict::set(heap, at, key, value))
        })
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let deleted = self.with_known(key, |key| {
            dict::delete(&self.0.shared.heap, self.0.at, key).map_err(raised)
        })?;
        if deleted { Ok(()) } else { Err(missing(key)) }
    }

    /// Deletes a key; its value, or `default`.
    #[pyo3(signature = (key, /, default = Given::Nothing))]
    fn pop<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Given<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let at = self.0.at;
        let value = self
            .with_known(key, |value| self.0.take_out(key.py(), |op| dict::pop_in(op, at, value)))?;
        value.or(default.into()).ok_or_else(|| missing(key))
    }

    /// Deletes the key that was put in last; it and its value.
    fn popitem<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let at = self.0.at;
        let pair = self.0.take_out(py, |op| {
            let pair = dict::pop_item_in(op, at)?;
            Ok(pair.map(|(key, value)| Value::Tuple(vec![key, value])))
        })?;
        pair.ok_or_else(|| PyKeyError::new_err("popitem(): dictionary is empty"))
    }

    /// The value of a key, which is given `default` if it has none.
    #[pyo3(signature = (key, default = None, /))]
    fn setdefault<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(found) = self.find(py, key)? {
            return Ok(found);
        }
        let default = default.unwrap_or_else(|| py.None().into_bound(py));
        let mut drafts = Drafts::new(&self.0.shared);
        let (key, draft) = (drafts.draft_key(key)?, drafts.draft(&default)?);
        let is_kept = simple(&default)?.is_some();
        let value = self.0.change(py, |op| {
            let made = drafts.make(op)?;
            let value = finished(&draft, &made);
            let old = dict::set_default_in(op, self.0.at, &finished(&key, &made), &value)?;
            Ok(old.or_else(|| (!is_kept).then(|| value.into_owned())))
        })?;
        Ok(value.unwrap_or(default))
    }

    /// Gives all keys of an ordinary dict the values that they have there, in one step.
    #[pyo3(signature = (pairs, /))]
    fn set_all(&self, pairs: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut drafts = Drafts::new(&self.0.shared);
        let pairs = drafts.pairs(pairs)?;
        let changed = self.0.shared.heap.change(|op| {
            let made = drafts.make(op)?;
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(key, value)| (finished(key, &made), finished(value, &made)))
                .collect();
            dict::update_in(op, self.0.at, &pairs)
        });
        changed.map_err(raised)
    }

    /// Adds `by` to the value of a key in one step, a missing one counting as 0; the sum.
    #[pyo3(signature = (key, by = None, /))]
    fn incr<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        by: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let by = convert::summand(by)?;
        self.with_key(key, |key| {
            let sum = dict::increment(&self.0.shared.heap, self.0.at, key, &by).map_err(raised)?;
            self.0.value(py, &sum)
        })
    }

    /// Gives a key the value `new` if its value is `old`, in one step; whether it was. Either can be
    /// [`Absent`].
    #[pyo3(signature = (key, old, new, /))]
    fn cas<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        old: &Bound<'py, PyAny>,
        new: &Bound<'py, PyAny>,
    ) -> PyResult<bool> {
        let mut drafts = Drafts::new(&self.0.shared);
        let key = finished(&drafts.draft_key(key)?, &[]);
        let old = Absent::or(old, || Ok(finished(&drafts.draft_old(old)?, &[])))?;
        let new = Absent::or(new, || drafts.draft(new))?;
        let changed = self.0.shared.heap.change(|op| {
            let made = drafts.make(op)?;
            let new = new.as_ref().map(|new| finished(new, &made));
            dict::compare_and_set_in(op, self.0.at, &key, old.as_ref(), new.as_ref())
        });
        changed.map_err(raised)
    }

    /// Removes everything.
    fn clear(&self) -> PyResult<()> {
        dict::clear(&self.0.shared.heap, self.0.at).map_err(raised)
    }

    /// An ordinary dict of the keys and values that are there at one moment.
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (heap, at) = (&self.0.shared.heap, self.0.at);
        let all = || dict::batch(heap, at, &mut Cursor::default(), usize::MAX);
        let flat = |(key, value)| [key, value];
        let objects = self.0.snapshot(py, || Ok(all()?.into_iter().flat_map(flat).collect()))?;
        let copy = PyDict::new(py);
        for pair in objects.chunks_exact(2) {
            copy.set_item(&pair[0], &pair[1])?;
        }
        Ok(copy)
    }

    /// Lists of what is in it, a few at a time: of `"keys"`, `"values"` or `"items"`; in the order of
    /// insertion for a `step` of 1, from the end for -1.
    #[pyo3(signature = (part, step, /))]
    fn walk(slf: &Bound<'_, Self>, part: &str, step: i8) -> PyResult<Walk> {
        Walk::new(slf.clone().unbind(), part, step)
    }
}

static PARKED: Parked = Parked::new();

impl Park for Dict {
    const KIND: Kind = Kind::Dict;

    fn hold(&mut self) -> &mut Hold {
        &mut self.0
    }

    fn parked() -> &'static Parked {
        &PARKED
    }
}

impl From<Hold> for Dict {
    fn from(hold: Hold) -> Self {
        Self(hold)
    }
}

/// The class whose subscripts take no detour.
pub fn quick(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    slots::class::<Dict>(
        py,
        c"ungil._native.QuickDict",
        &mut [
            ffi::PyType_Slot { slot: ffi::Py_mp_subscript, pfunc: get_item as *mut c_void },
            ffi::PyType_Slot { slot: ffi::Py_mp_ass_subscript, pfunc: set_item as *mut c_void },
            ffi::PyType_Slot {
                slot: ffi::Py_tp_dealloc,
                pfunc: parked::end::<Dict> as *mut c_void,
            },
            ffi::PyType_Slot::default(),
        ],
    )
}

unsafe extern "C" fn get_item(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let quick = |dict: &Dict, key: &Bound<'_, PyAny>| {
        let seen = dict::glance(&dict.0.shared.heap, dict.0.at, convert::key_cell(key)?)?;
        dict.0.seen(key.py(), seen)
    };
    // SAFETY: the interpreter calls this slot of the class with an instance of it.
    unsafe { slots::get_item::<Dict>(object, key, quick, Dict::__getitem__) }
}

unsafe extern "C" fn set_item(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    let quick = |dict: &Dict, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>| {
        let (key, new) = (convert::key_cell(key)?, convert::number_cell(value)?);
        Some(dict::replace_number(&dict.0.shared.heap, dict.0.at, key, new))
    };
    let slow = |dict: &Dict, key: &Bound<'_, PyAny>, value: Option<&Bound<'_, PyAny>>| match value {
        Some(value) => dict.__setitem__(key, value),
        None => dict.__delitem__(key),
    };
    // SAFETY: the interpreter calls this slot of the class with an instance of it.
    unsafe { slots::set_item::<Dict>(object, key, value, quick, slow) }
}

fn missing(key: &Bound<'_, PyAny>) -> PyErr {
    // In a tuple of its own, or the items of a key that is a tuple would be the arguments.
    PyKeyError::new_err((key.clone().unbind(),))
}
