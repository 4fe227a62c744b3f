//! Frozen files that this process has mapped.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use ungil_frozen::Frozen;

use super::errors::{raised, raised_at};
use super::object;
use crate::share::convert;

/// A structure that is mapped, and what this process knows of it.
pub struct Opened {
    pub frozen: Frozen,
    /// Kept, for other processes to open it again.
    file: File,
    /// Where it was, if it has a name.
    path: Option<PathBuf>,
    /// The keys of each schema, interned, as names in programs are.
    names: Vec<PyOnceLock<Vec<Py<PyString>>>>,
}

static MAPPED: Mutex<Vec<Weak<Opened>>> = Mutex::new(Vec::new());
/// What was sent and has no name: whoever gets it finds it here, as long as this process lives.
static SENT: Mutex<Vec<Arc<Opened>>> = Mutex::new(Vec::new());

impl Opened {
    /// Enters a structure that was mapped. The thread is attached, or a process that is forked
    /// meanwhile would never get at the others.
    pub fn new(_: Python<'_>, frozen: Frozen, file: File, path: Option<PathBuf>) -> Arc<Self> {
        let names = frozen.schemas().iter().map(|_| PyOnceLock::new()).collect();
        let opened = Arc::new(Self { frozen, file, path, names });
        let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.retain(|known| known.strong_count() > 0);
        mapped.push(Arc::downgrade(&opened));
        opened
    }

    /// The one with this uuid, if this process has it.
    pub fn known(uuid: u128) -> Option<Arc<Self>> {
        let mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.iter().filter_map(Weak::upgrade).find(|known| known.frozen.header().uuid == uuid)
    }

    /// The keys of a schema, as Python strings.
    #[inline]
    pub fn names(&self, py: Python<'_>, schema: usize) -> PyResult<&[Py<PyString>]> {
        let Some(names) = self.names.get(schema) else { return Ok(&[]) };
        if let Some(names) = names.get(py) {
            return Ok(names);
        }
        let keys = self.frozen.schemas().get(schema).map_or(&[][..], |schema| &schema.keys);
        let made: PyResult<Vec<_>> = keys.iter().map(|key| interned(py, &key.text)).collect();
        let made = made?;
        Ok(names.get_or_init(py, || made))
    }

    /// Where other processes find the file: under its name, and at this process as long as it lives.
    pub fn places(self: &Arc<Self>) -> (Option<PathBuf>, PathBuf) {
        if self.path.is_none() {
            let mut sent = SENT.lock().unwrap_or_else(PoisonError::into_inner);
            if !sent.iter().any(|known| Arc::ptr_eq(known, self)) {
                sent.push(self.clone());
            }
        }
        let here = format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        (self.path.clone(), here.into())
    }
}

fn interned(py: Python<'_>, text: &[u8]) -> PyResult<Py<PyString>> {
    let mut object = convert::decoded(py, text);
    if !object.is_null() {
        // SAFETY: a reference to a string that nobody else has, which may be replaced by one to another.
        unsafe { ffi::PyUnicode_InternInPlace(&raw mut object) };
    }
    // SAFETY: a new reference, or null with an exception.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, object)? };
    Ok(object.cast_into()?.unbind())
}

/// Maps the file at `path`; what is frozen in it.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts arguments into owned values")]
pub fn open_frozen(py: Python<'_>, path: PathBuf, verify: bool) -> PyResult<Bound<'_, PyAny>> {
    let opened = open(py, &path, verify)?;
    root(py, &opened).map_err(|error| at_path(py, &path, &error))
}

/// Maps the file at `path`, and if asked for checks all of it.
pub fn open(py: Python<'_>, path: &Path, verify: bool) -> PyResult<Arc<Opened>> {
    let (frozen, file, absolute) = py.detach(|| {
        let opening = |error| ungil_frozen::Error::Io { what: "opening a frozen file", error };
        let file = File::open(path).map_err(|error| raised_at(path, opening(error)))?;
        let frozen = Frozen::open(&file).map_err(|error| raised_at(path, error))?;
        if verify {
            frozen.verify().map_err(|error| raised_at(path, error))?;
        }
        let path = std::path::absolute(path).map_err(|error| raised_at(path, opening(error)))?;
        Ok::<_, PyErr>((frozen, file, path))
    })?;
    Ok(Opened::new(py, frozen, file, Some(absolute)))
}

/// The structure of a file.
pub fn root<'py>(py: Python<'py>, opened: &Arc<Opened>) -> PyResult<Bound<'py, PyAny>> {
    let (root, end) = (opened.frozen.header().root, opened.frozen.end());
    let node = opened.frozen.node(root, end).map_err(raised)?;
    object::view(py, opened, &node)
}

fn at_path(py: Python<'_>, path: &Path, error: &PyErr) -> PyErr {
    let text = format!("{}: {}", path.display(), error.value(py));
    pyo3::exceptions::PyValueError::new_err(text)
}
