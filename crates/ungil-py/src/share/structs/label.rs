//! What a shared struct says of its class, and the class that it is in this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use ungil_heap::roots::Root;
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, structs};

use super::Struct;
use super::schema::{CLASSES, Schema, declared};
use crate::share::errors::raised;
use crate::share::proxy::{Held, Shared};

/// The schema of a label.
const LABEL: u64 = 0;
/// The labels that this process has made in a heap, by schema. They stay as long as it is attached.
#[derive(Default)]
pub struct Labels(Mutex<HashMap<u64, Root>>);

impl Labels {
    pub(super) fn of(
        &self,
        heap: &Heap,
        py: Python<'_>,
        schema: &Schema,
    ) -> ungil_heap::Result<Offset> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = lock().get(&schema.hash)
            // It is not if the transaction failed in which it was made.
            && heap.is_alive(root)?
        {
            return Ok(root.at());
        }
        let text = schema.text(py);
        let label = [&schema.module, &schema.name, &text].map(|text| Value::from(&**text));
        // Unlocked, because this can wait for other threads of the program.
        let root = heap.make(|op| structs::create(op, LABEL, &label))?;
        let at = root.at();
        match lock().insert(schema.hash, root) {
            // Another thread's, or what is no more. Structs refer to theirs.
            Some(old) => heap.release(old).map(|()| at),
            None => Ok(at),
        }
    }
}

/// The proxy of a shared struct that was just held.
pub fn proxy(py: Python<'_>, held: Held, at: Offset) -> PyResult<Bound<'_, PyAny>> {
    let class = class(py, &held.shared, at)?;
    // Not by calling the class, which would initialise it.
    py.get_type::<Struct>().getattr(pyo3::intern!(py, "__new__"))?.call1((class, held))
}

/// The class of a shared struct, if this process has declared it.
fn class<'py>(py: Python<'py>, shared: &Shared, at: Offset) -> PyResult<Bound<'py, PyType>> {
    let (hash, fields) = structs::schema(&shared.heap, at).map_err(raised)?;
    let known = {
        let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
        classes.as_ref().and_then(|classes| classes.get(&hash)).map(|known| known.clone_ref(py))
    };
    if let Some(schema) = &known
        && schema.get().fields.len() + 1 == fields
        && let Some(class) = schema.get().class.get(py)
    {
        return Ok(class.bind(py).clone());
    }
    let label = match structs::get(&shared.heap, at, hash, 0).map_err(raised)? {
        Value::Object(label) => structs::all(&shared.heap, label, LABEL).map_err(raised)?,
        _ => Vec::new(),
    };
    let [Value::Str(module), Value::Str(name), Value::Str(there)] = &label[..] else {
        return Err(raised(Error::Corrupt("a struct without a name")));
    };
    let [module, name, there] = [module, name, there].map(|text| String::from_utf8_lossy(text));
    let here = declared(py, &module, &name);
    Err(PyTypeError::new_err(if here.is_empty() {
        format!(
            "the shared object is a {there}, which this process has not declared: import {module}"
        )
    } else {
        let here = here.join(" and ");
        format!("the shared object is a {there}, but this process has declared {here}")
    }))
}
