//! How frozen objects travel, what they show of themselves, and what they refuse.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyFileNotFoundError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use ungil_frozen::frozen::Node;
use ungil_heap::value::Cell;

use super::list::List;
use super::opened::{self, Opened};
use super::{dict, list, object, set};
use crate::share::declared::declared;

/// So many items a representation shows.
pub const SHOWN: usize = 4;
/// So many characters it shows of each.
const LONGEST: usize = 60;

/// What Python has declared: the views of a dict by what they show, and the function that unpickles.
static VIEWS: PyOnceLock<(Py<PyDict>, Py<PyAny>)> = PyOnceLock::new();

/// Declares the views of frozen dicts, by `"keys"`, `"values"` and `"items"`, and the function that
/// is called with what is pickled, once.
#[pyfunction]
pub fn set_frozen_views(py: Python<'_>, views: Py<PyDict>, received: Py<PyAny>) -> PyResult<()> {
    VIEWS
        .set(py, (views, received))
        .map_err(|_| PyRuntimeError::new_err("these views are declared already"))
}

fn known(py: Python<'_>) -> PyResult<&'static (Py<PyDict>, Py<PyAny>)> {
    declared(py, &VIEWS, "ungil.share._frozen")
}

/// A view of a part of a dict.
pub fn view_of<'py>(part: &str, dict: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    known(dict.py())?.0.bind(dict.py()).as_any().get_item(part)?.call1((dict,))
}

/// Where a file was, or nothing; where its descriptor is; its uuid; the words of a cell; and which
/// part of a list is meant.
pub type Parts = (Option<PathBuf>, PathBuf, u128, u64, u64, Option<(usize, isize, usize)>);

/// What is pickled.
pub fn reduced<'py>(
    py: Python<'py>,
    opened: &Arc<Opened>,
    cell: Cell,
    part: Option<(usize, isize, usize)>,
) -> PyResult<(Bound<'py, PyAny>, Parts)> {
    let (path, here) = opened.places();
    let received = known(py)?.1.bind(py).clone();
    Ok((received, (path, here, opened.frozen.header().uuid, cell.0, cell.1, part)))
}

/// What [`receive_frozen`] takes, for a frozen object; `None` for any other.
#[pyfunction]
#[pyo3(signature = (given, /))]
pub fn frozen_parts<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if dict::is(given) || list::is(given) || set::is(given) {
        return given.call_method0("__reduce__")?.get_item(1).map(Some);
    }
    Ok(None)
}

/// The frozen object of what was pickled. The file is mapped, if need be.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn receive_frozen(
    py: Python<'_>,
    path: Option<PathBuf>,
    here: PathBuf,
    uuid: u128,
    first: u64,
    second: u64,
    part: Option<(usize, isize, usize)>,
) -> PyResult<Bound<'_, PyAny>> {
    let opened = find(py, path.as_ref(), &here, uuid)?;
    let frozen = &opened.frozen;
    let node = frozen.node(Cell(first, second), frozen.end()).map_err(super::errors::raised)?;
    if matches!(node, Node::Value(_)) {
        return Err(PyValueError::new_err("this is not a handle of a frozen structure"));
    }
    let view = object::view(py, &opened, &node)?;
    let Some((start, step, len)) = part else { return Ok(view) };
    let whole = view.cast::<List>()?.get();
    let part = whole.sliced(start, step, len);
    let part = part.ok_or_else(|| PyValueError::new_err("this is not a part of that list"))?;
    part.into_object(py)
}

fn find(
    py: Python<'_>,
    path: Option<&PathBuf>,
    here: &PathBuf,
    uuid: u128,
) -> PyResult<Arc<Opened>> {
    if let Some(known) = Opened::known(uuid) {
        return Ok(known);
    }
    // Another file may have taken the place of the one that was meant, which its sender still has.
    for place in path.into_iter().chain([here]) {
        if place.metadata().is_ok_and(|file| file.is_file())
            && let Ok(opened) = opened::open(py, place, false)
            && opened.frozen.header().uuid == uuid
        {
            return Ok(opened);
        }
    }
    let text = match path {
        Some(path) => format!(
            "the frozen file of this handle cannot be found: {} is gone or was replaced, and the \
             process that sent it has ended",
            path.display()
        ),
        None => {
            "a structure that was frozen without a path is gone, because the process that sent it \
             has ended; freeze with a path to keep it"
                .to_owned()
        }
    };
    Err(PyFileNotFoundError::new_err((libc::ENOENT, text)))
}

/// Why something frozen is not changed.
pub fn refused(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a {name} never changes: change an ordinary copy, from its thaw(), and freeze that"
    ))
}

/// A short representation of what is in something.
pub fn brief(object: &Bound<'_, PyAny>) -> PyResult<String> {
    if dict::is(object) || set::is(object) {
        return Ok("{...}".to_owned());
    }
    if list::is(object) {
        return Ok("[...]".to_owned());
    }
    let text = object.repr()?.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Ok(format!("{}...", &text[..end])),
        None => Ok(text),
    }
}

/// The representation of a container of so many, of which these are shown.
pub fn shown(name: &str, begin: &str, mut shown: Vec<String>, end: &str, len: usize) -> String {
    if len > shown.len() {
        shown.push(format!("... {len} in all"));
    }
    format!("{name}({begin}{}{end})", shown.join(", "))
}
