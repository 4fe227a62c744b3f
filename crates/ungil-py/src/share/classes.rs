//! The classes of proxies.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use ungil_heap::Error;
use ungil_heap::object::Kind;
use ungil_heap::segment::{Offset, Segment};

use super::declared::declared;
use super::errors::raised;
use super::{queue, sync};

/// The classes of proxies, by kind. Python declares them, because most methods are Python's.
static CLASSES: [PyOnceLock<Py<PyType>>; 6] = [const { PyOnceLock::new() }; 6];

/// That of a kind; `None` if a kind has none, or several.
pub fn class(kind: Kind) -> Option<&'static PyOnceLock<Py<PyType>>> {
    match kind {
        Kind::Dict => Some(&CLASSES[0]),
        Kind::List => Some(&CLASSES[1]),
        Kind::Set => Some(&CLASSES[2]),
        Kind::Deque => Some(&CLASSES[3]),
        Kind::Buffer => Some(&CLASSES[4]),
        Kind::Array => Some(&CLASSES[5]),
        _ => None,
    }
}

/// The class of the proxies of a kind, if Python has declared it.
pub fn class_of(py: Python<'_>, kind: Kind) -> Option<&Bound<'_, PyType>> {
    Some(class(kind)?.get(py)?.bind(py))
}

/// The class of the proxy of an object; `None`: that of a struct is found by its schema.
pub fn class_at(
    segment: &Segment,
    kind: Kind,
    at: Offset,
) -> PyResult<Option<&'static PyOnceLock<Py<PyType>>>> {
    Ok(match kind {
        Kind::Struct => None,
        Kind::Sync => Some(sync::class(ungil_heap::sync::sort(segment, at).map_err(raised)?)),
        Kind::Queue => Some(queue::class(segment, at)?),
        Kind::Gone => return Err(raised(Error::Stale)),
        kind => class(kind),
    })
}

/// The class that is declared there, the class of proxies of a kind.
pub fn known<'py>(
    py: Python<'py>,
    kind: Kind,
    place: &'static PyOnceLock<Py<PyType>>,
) -> PyResult<&'py Bound<'py, PyType>> {
    let module = match kind {
        Kind::Dict => "ungil.share._dict",
        Kind::List => "ungil.share._list",
        Kind::Set => "ungil.share._set",
        Kind::Deque => "ungil.share._deque",
        Kind::Buffer => "ungil.share._buffer",
        Kind::Array => "ungil.share._array",
        Kind::Sync => "ungil.share._sync",
        Kind::Queue => "ungil.share._queue",
        Kind::Struct | Kind::Gone => return Err(raised(Error::Stale)),
    };
    Ok(declared(py, place, module)?.bind(py))
}

/// Declares the class of the proxies of a kind: `"dict"`, `"list"`, `"set"`, `"deque"`, `"buffer"`,
/// `"array"`, or the name of a class of `threading` or `queue`.
#[pyfunction]
pub fn set_proxy(py: Python<'_>, kind: &str, class_: Py<PyType>) -> PyResult<()> {
    let place = match kind {
        "dict" => self::class(Kind::Dict),
        "list" => self::class(Kind::List),
        "set" => self::class(Kind::Set),
        "deque" => self::class(Kind::Deque),
        "buffer" => self::class(Kind::Buffer),
        "array" => self::class(Kind::Array),
        name => queue::class_named(name).or_else(|| sync::named(name).map(sync::class)),
    };
    if queue::class_named(kind).is_some() {
        queue::prepare(py);
    }
    if matches!(kind, "Lock" | "RLock") {
        sync::quicken(class_.bind(py))?;
    }
    place.and_then(|place| place.set(py, class_).ok()).ok_or_else(|| {
        PyRuntimeError::new_err("the class of these proxies has already been declared")
    })
}
