//! Structs: objects with the fields of a class that Python declared.
//!
//! An instance is local, and keeps the Python objects of its fields, or shared. Both are of the
//! class itself: its methods cannot tell them apart, and what fits a field is the same for both.
//!
//! In a heap, the first field refers to a *label*: an object with what a person calls the class. It
//! is read when a process does not know the schema, for the sentence that says so. What is imported
//! is never decided by it.

mod label;
mod schema;

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;
use ungil_heap::{Heap, structs};

pub use self::label::{Labels, proxy};
use self::schema::Field;
pub use self::schema::Schema;
use super::draft::{Drafts, put};
use super::errors::raised;
use super::making::finished;
use super::proxy::{Held, Hold, Shared};
use super::{recent, slots};

/// An instance of a declared class.
#[pyclass(frozen, subclass, weakref, module = "ungil._native", name = "SharedStruct")]
pub struct Struct {
    schema: Py<Schema>,
    hash: u64,
    place: Place,
}

/// Where the fields are.
enum Place {
    Shared(Hold),
    Local(Mutex<Vec<Option<Py<PyAny>>>>),
}

#[pymethods]
impl Struct {
    /// A local instance without values, which `__init__` gives it, or the proxy of a shared one.
    #[new]
    #[classmethod]
    #[pyo3(signature = (*args, **_kwargs))]
    fn new(
        class: &Bound<'_, PyType>,
        args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = class.py();
        let schema = class.getattr_opt(pyo3::intern!(py, "__struct__"))?;
        let schema = schema.and_then(|schema| schema.cast_into::<Schema>().ok());
        let schema = schema
            .filter(|schema| schema.get().class.get(py).is_some_and(|known| known.is(class)))
            .ok_or_else(|| {
                let name = class.name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
                PyTypeError::new_err(format!("{name} is not declared by @share.struct itself"))
            })?;
        let held = args.get_borrowed_item(0).ok();
        let held = held.as_ref().and_then(|held| held.cast::<Held>().ok());
        let place = if let Some(held) = held {
            Place::Shared(held.get().take()?)
        } else {
            let count = schema.get().fields.len();
            Place::Local(Mutex::new((0..count).map(|_| None).collect()))
        };
        Ok(Self { hash: schema.get().hash, schema: schema.unbind(), place })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Place::Local(values) = &self.place
            && let Ok(values) = values.try_lock()
        {
            values.iter().flatten().try_for_each(|value| visit.call(value))?;
        }
        visit.call(&self.schema)
    }

    fn __clear__(&self) {
        if let Place::Local(values) = &self.place {
            let taken = std::mem::take(&mut *values.lock().unwrap_or_else(PoisonError::into_inner));
            drop(taken);
        }
    }
}

impl Struct {
    /// What it consists of if it is shared.
    pub fn hold(&self) -> Option<&Hold> {
        match &self.place {
            Place::Shared(hold) => Some(hold),
            Place::Local(_) => None,
        }
    }

    #[inline]
    fn get<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        match &self.place {
            Place::Shared(hold) => {
                let read = || structs::get(&hold.shared.heap, hold.at, self.hash, index + 1);
                hold.object(py, &read().map_err(raised)?, read)
            }
            Place::Local(values) => {
                let value = |values: &mut Vec<Option<Py<PyAny>>>| {
                    values.get(index)?.as_ref().map(|value| value.clone_ref(py))
                };
                match local(values, value) {
                    Some(value) => Ok(value.into_bound(py)),
                    None => self.unset(py, index),
                }
            }
        }
    }

    #[inline]
    fn set(&self, index: usize, given: &Bound<'_, PyAny>) -> PyResult<()> {
        self.schema.get().check(index, given)?;
        match &self.place {
            Place::Shared(hold) => put(&hold.shared, given, |value| {
                structs::set(&hold.shared.heap, hold.at, self.hash, index + 1, value)
            }),
            Place::Local(values) => {
                let new = Some(given.clone().unbind());
                let old = local(values, |values| {
                    values.get_mut(index).map(|place| std::mem::replace(place, new))
                });
                drop(old);
                Ok(())
            }
        }
    }

    /// The value of a field that `__init__` gave none: its default, which a dataclass keeps as an
    /// attribute of the class.
    #[cold]
    fn unset<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let schema = self.schema.get();
        let name = schema.field(index)?.name.bind(py);
        if let Some(class) = schema.class.get(py) {
            let fields = class.bind(py).getattr("__dataclass_fields__")?;
            let default = fields.get_item(name)?.getattr("default")?;
            if !default.is(&py.import("dataclasses")?.getattr("MISSING")?) {
                schema.check(index, &default)?;
                return Ok(default);
            }
        }
        Err(PyAttributeError::new_err(format!("{}.{name} has no value", schema.name)))
    }
}

/// Calls `with` with the values of a local instance. It runs no Python code.
fn local<T>(
    values: &Mutex<Vec<Option<Py<PyAny>>>>,
    with: impl FnOnce(&mut Vec<Option<Py<PyAny>>>) -> T,
) -> T {
    with(&mut values.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What reads an attribute of a class of structs: field `index`.
unsafe extern "C" fn get(object: *mut ffi::PyObject, index: *mut c_void) -> *mut ffi::PyObject {
    let quick = |py: Python<'_>, object: &Struct| {
        let hold = object.hold()?;
        let cell = structs::glance(&hold.shared.heap, hold.at, object.hash, index.addr() + 1)?;
        recent::object(py, cell)
    };
    let slow = |py: Python<'_>, object: &Struct| object.get(py, index.addr()).map(Bound::into_ptr);
    // SAFETY: the interpreter calls this with an instance of the class.
    unsafe { slots::call(object, ptr::null_mut(), quick, slow) }
}

/// What sets an attribute of a class of structs; without a value, it is to be deleted.
unsafe extern "C" fn set(
    object: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    index: *mut c_void,
) -> c_int {
    let slow = |py: Python<'_>, object: &Struct| {
        // SAFETY: null, or a value that the interpreter keeps during the call.
        match unsafe { Bound::from_borrowed_ptr_or_opt(py, value) } {
            Some(value) => object.set(index.addr(), &value).map(|()| 0),
            None => Err(object.schema.get().lasting(py, index.addr())),
        }
    };
    // SAFETY: the interpreter calls this with an instance of the class.
    unsafe { slots::call(object, -1, |_, _| None, slow) }
}

/// Adds `by` to the number in a field, in one step; the sum.
#[pyfunction]
#[pyo3(signature = (object, field, by = None, /))]
pub fn struct_incr<'py>(
    object: &Bound<'py, Struct>,
    field: &Bound<'py, PyString>,
    by: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, object) = (object.py(), object.get());
    let index = object.schema.get().index(field)?;
    // A bool is a number here, and the sum of two is none.
    let by = by.map_or(Ok(None), |by| by.pos().map(Some))?;
    let by = match by {
        Some(by) => by,
        None => 1_i64.into_pyobject(py)?.into_any(),
    };
    object.schema.get().check(index, &by)?;
    match &object.place {
        Place::Shared(hold) => put(&hold.shared, &by, |by| {
            structs::increment(&hold.shared.heap, hold.at, object.hash, index + 1, by)
        })
        .and_then(|sum| hold.value(py, &sum)),
        Place::Local(_) => {
            let sum = object.get(py, index)?.add(by)?;
            object.set(index, &sum)?;
            Ok(sum)
        }
    }
}

/// Gives a field the value `new` if it equals `old`, in one step; whether it did.
#[pyfunction]
#[pyo3(signature = (object, field, old, new, /))]
pub fn struct_cas(
    object: &Bound<'_, Struct>,
    field: &Bound<'_, PyString>,
    old: &Bound<'_, PyAny>,
    new: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let (py, object) = (object.py(), object.get());
    let index = object.schema.get().index(field)?;
    object.schema.get().check(index, new)?;
    match &object.place {
        Place::Shared(hold) => {
            let mut drafts = Drafts::new(&hold.shared);
            let old = drafts.draft_old(old)?;
            let old = finished(&old, &[]);
            put(&hold.shared, new, |new| {
                structs::compare_and_set(
                    &hold.shared.heap,
                    hold.at,
                    object.hash,
                    index + 1,
                    &old,
                    new,
                )
            })
        }
        Place::Local(_) => {
            let is_same = object.get(py, index)?.eq(old)?;
            if is_same {
                object.set(index, new)?;
            }
            Ok(is_same)
        }
    }
}

/// A value with the name of its field.
type Named<'py> = (String, Bound<'py, PyAny>);

/// A local instance on its way into a heap, its values drafted one by one.
pub struct Making {
    schema: u64,
    label: Offset,
}

impl Making {
    /// Prepares to make a shared instance of the same class; its values, with their names.
    pub fn begin<'py>(
        shared: &Shared,
        object: &Bound<'py, Struct>,
    ) -> PyResult<(Self, Vec<Named<'py>>)> {
        let py = object.py();
        let object = object.get();
        let schema = object.schema.get();
        let label = shared.labels.of(&shared.heap, py, schema).map_err(raised)?;
        let named = |(index, field): (usize, &Field)| {
            Ok((field.name.bind(py).to_string(), object.get(py, index)?))
        };
        let values = schema.fields.iter().enumerate().map(named).collect::<PyResult<_>>()?;
        Ok((Self { schema: object.hash, label }, values))
    }

    /// Makes it, with those of its values that are known.
    pub fn create<'v>(
        &self,
        op: &mut Op<'_>,
        values: impl Iterator<Item = Option<Value<'v>>>,
    ) -> ungil_heap::Result<Offset> {
        let mut all = vec![Value::Object(self.label)];
        all.extend(values.map(|value| value.unwrap_or(Value::None)));
        structs::create(op, self.schema, &all)
    }

    /// Gives it a value that was not known when it was created.
    pub fn complete(
        &self,
        heap: &Heap,
        at: Offset,
        index: usize,
        value: &Value<'_>,
    ) -> ungil_heap::Result<()> {
        structs::set(heap, at, self.schema, index + 1, value)
    }
}
