//! Which fields a class has, and what fits them.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};
use ungil_heap::{Error, structs};

use super::{Struct, get, set};
use crate::share::errors::raised;

/// Which fields a class has, and what fits them.
#[pyclass(frozen, module = "ungil._native", name = "StructSchema")]
pub struct Schema {
    pub(super) hash: u64,
    pub(super) module: String,
    /// Its qualified name.
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    pub(super) class: PyOnceLock<Py<PyType>>,
}

pub(super) struct Field {
    pub(super) name: Py<PyString>,
    /// What fits it, for a person.
    expected: String,
    /// An instance of one of these does.
    classes: Py<PyTuple>,
}

/// The latest class of each schema.
pub(super) static CLASSES: Mutex<Option<HashMap<u64, Py<Schema>>>> = Mutex::new(None);

#[pymethods]
impl Schema {
    /// Each field has a name, what fits it for a person, and the classes that do.
    #[new]
    fn new(
        hash: u64,
        module: String,
        name: String,
        fields: Vec<(Py<PyString>, String, Py<PyTuple>)>,
    ) -> PyResult<Self> {
        if fields.len() >= structs::MOST {
            let most = structs::MOST - 1;
            return Err(PyTypeError::new_err(format!("{name} has more than {most} fields")));
        }
        let fields = fields
            .into_iter()
            .map(|(name, expected, classes)| Field { name, expected, classes })
            .collect();
        Ok(Self { hash, module, name, fields, class: PyOnceLock::new() })
    }

    /// Declares the class of this schema, instead of one that had the same before.
    fn declare(slf: &Bound<'_, Self>, class: Py<PyType>) -> PyResult<()> {
        slf.get()
            .class
            .set(slf.py(), class)
            .map_err(|_| PyRuntimeError::new_err("this schema already has a class"))?;
        let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
        let old = classes.get_or_insert_default().insert(slf.get().hash, slf.clone().unbind());
        drop(classes);
        drop(old);
        Ok(())
    }

    /// The attribute by which a class, and those derived from it, have the field with this index.
    fn attribute<'py>(
        &self,
        class: &Bound<'py, PyType>,
        index: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        if !class.is_subclass_of::<Struct>()? {
            return Err(PyTypeError::new_err("only a struct has fields"));
        }
        let name = CString::new(self.field(index)?.name.bind(py).to_str()?)?;
        // Classes that are declared stay, and so do their attributes.
        let definition = Box::leak(Box::new(ffi::PyGetSetDef {
            name: name.into_raw(),
            get: Some(get),
            set: Some(set),
            doc: std::ptr::null(),
            closure: std::ptr::without_provenance_mut(index),
        }));
        // SAFETY: the type lives during the call, and the definition always does.
        let attribute = unsafe { ffi::PyDescr_NewGetSet(class.as_type_ptr(), definition) };
        // SAFETY: it is a new reference, or there is an exception.
        unsafe { Bound::from_owned_ptr_or_err(py, attribute) }
    }
}

impl Schema {
    /// What it looks like, for a person: `Point(x: int, y: int)`.
    pub(super) fn text(&self, py: Python<'_>) -> String {
        let field = |field: &Field| format!("{}: {}", field.name.bind(py), field.expected);
        let fields: Vec<_> = self.fields.iter().map(field).collect();
        format!("{}({})", self.name, fields.join(", "))
    }

    pub(super) fn check(&self, index: usize, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = given.py();
        let field = self.field(index)?;
        let classes = field.classes.bind(py);
        let class = given.get_type();
        if classes.iter_borrowed().any(|fitting| fitting.is(&class))
            || given.is_instance(classes)?
        {
            return Ok(());
        }
        let (name, field, expected) = (&self.name, field.name.bind(py), &field.expected);
        let given = class.name()?;
        Err(PyTypeError::new_err(format!("{name}.{field} must be {expected}, not {given}")))
    }

    pub(super) fn field(&self, index: usize) -> PyResult<&Field> {
        self.fields.get(index).ok_or_else(|| raised(Error::Unfit("the object has no such field")))
    }

    /// Why a field is not deleted.
    pub(super) fn lasting(&self, py: Python<'_>, index: usize) -> PyErr {
        match self.field(index) {
            Ok(field) => {
                let (name, field) = (&self.name, field.name.bind(py));
                PyAttributeError::new_err(format!("{name}.{field} cannot be deleted"))
            }
            Err(error) => error,
        }
    }

    pub(super) fn index(&self, name: &Bound<'_, PyString>) -> PyResult<usize> {
        let py = name.py();
        for (index, field) in self.fields.iter().enumerate() {
            if field.name.is(name) || field.name.bind(py).as_any().eq(name)? {
                return Ok(index);
            }
        }
        Err(PyAttributeError::new_err(format!("{} has no field '{name}'", self.name)))
    }
}
/// The classes of this name in this process, with their fields.
pub(super) fn declared(py: Python<'_>, module: &str, name: &str) -> Vec<String> {
    let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    let all: Vec<_> = classes.iter().flatten().map(|(_, known)| known.clone_ref(py)).collect();
    drop(classes);
    all.iter()
        .map(Py::get)
        .filter(|schema| schema.module == module && schema.name == name)
        .map(|schema| schema.text(py))
        .collect()
}
