//! Freezing Python objects.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PySet, PyTuple};
use ungil_frozen::file::{self, Replacing};
use ungil_frozen::table::Draft;
use ungil_frozen::{Error, Frozen, Writer, cell};
use ungil_heap::stack;
use ungil_heap::value::Cell;

use super::errors::{raised, raised_at};
use super::key;
use super::opened::{self, Opened};
use crate::share::convert::simple;
use crate::share::extension::{self, Taken};
use crate::share::{errors, guarded, handle};

/// After so many bytes signals are looked for, and progress is told.
const STRETCH: u64 = 4 << 20;

/// A frozen copy of an object, in memory or in the file at `path`.
#[pyfunction]
#[pyo3(signature = (given, path, progress, /))]
pub fn freeze<'py>(
    given: &Bound<'py, PyAny>,
    path: Option<PathBuf>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = given.py();
    if !is_container(given) {
        let name = given.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "freeze() takes a dict, a list, a tuple or a set, with all that it contains; {} is of \
             type {name}",
            super::sharing::brief(given)?
        )));
    }
    let (opened, replacing) = match path {
        None => {
            let file = file::anonymous().map_err(raised)?;
            let copy = file.try_clone()?;
            let file = write(given, file, copy, progress, &raised)?;
            file::seal(&file).map_err(raised)?;
            (Opened::new(py, Frozen::open(&file).map_err(raised)?, file, None), None)
        }
        Some(path) => {
            let failed = |error| raised_at(&path, error);
            let replacing = Replacing::new(&path).map_err(failed)?;
            let again = replacing.file().map_err(failed)?;
            let file = write(given, replacing.file().map_err(failed)?, again, progress, &failed)?;
            let frozen = Frozen::open(&file).map_err(failed)?;
            let absolute = std::path::absolute(&path)?;
            (Opened::new(py, frozen, file, Some(absolute)), Some((replacing, path)))
        }
    };
    if let Some((replacing, path)) = replacing {
        py.detach(|| replacing.finish()).map_err(|error| raised_at(&path, error))?;
    }
    opened::root(py, &opened)
}

fn write(
    given: &Bound<'_, PyAny>,
    file: File,
    again: File,
    progress: Option<Bound<'_, PyAny>>,
    failed: &dyn Fn(Error) -> PyErr,
) -> PyResult<File> {
    let [one, other] = file::random().map_err(failed)?;
    let uuid = u128::from(one) << 64 | u128::from(other);
    let key = file::random().map_err(failed)?;
    let writer = Writer::new(file, key, uuid).map_err(failed)?;
    let mut freezing = Freezing {
        writer,
        known: HashMap::new(),
        kept: Vec::new(),
        open: Vec::new(),
        next: STRETCH,
        progress,
        failed,
    };
    let root = freezing.container(given, usize::MAX).map_err(Failure::raised)?;
    // The cell of a tuple may be looked at as a container, which no value is.
    drop(freezing.writer.finish(root).map_err(failed)?);
    Ok(again)
}

/// Whether an object is a container that can be frozen, or a view or a proxy of one.
fn is_container(given: &Bound<'_, PyAny>) -> bool {
    given.cast_exact::<PyDict>().is_ok()
        || given.cast_exact::<PyList>().is_ok()
        || given.cast_exact::<PyTuple>().is_ok()
        || given.cast_exact::<PySet>().is_ok()
        || given.cast_exact::<PyFrozenSet>().is_ok()
        || is_other_container(given)
}

/// Whether it is frozen already, or in a heap: its `copy()` is an ordinary one.
fn is_other_container(given: &Bound<'_, PyAny>) -> bool {
    super::is(given) || handle::is_shared(given) && given.hasattr("copy").unwrap_or(false)
}

/// Why something could not be frozen.
enum Failure {
    /// Something at a place in it, for a reason.
    Unfit {
        place: String,
        reason: String,
    },
    Raised(PyErr),
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Failure {
    fn unfit(reason: impl Into<String>) -> Self {
        Self::Unfit { place: String::new(), reason: reason.into() }
    }

    /// The same, of something that has it in it.
    #[cold]
    fn within(self, step: &dyn std::fmt::Display) -> Self {
        match self {
            Self::Unfit { place, reason } => {
                Self::Unfit { place: format!("[{step}]{place}"), reason }
            }
            raised @ Self::Raised(_) => raised,
        }
    }

    fn raised(self) -> PyErr {
        match self {
            Self::Unfit { place, reason } => {
                let place = if place.is_empty() { "this" } else { &place };
                PyTypeError::new_err(format!("{place} cannot be frozen: {reason}"))
            }
            Self::Raised(error) => error,
        }
    }
}

type Done<T> = Result<T, Failure>;

struct Freezing<'py, 'f> {
    writer: Writer,
    /// Containers that were written and that others may have too, by their addresses.
    known: HashMap<usize, Cell>,
    /// These, so that nothing else gets their addresses.
    kept: Vec<Bound<'py, PyAny>>,
    /// The addresses of those that are being written.
    open: Vec<usize>,
    next: u64,
    progress: Option<Bound<'py, PyAny>>,
    failed: &'f dyn Fn(Error) -> PyErr,
}

impl<'py> Freezing<'py, '_> {
    /// Freezes anything. `references`: so many it has if it is only in the container at hand.
    fn cell(&mut self, given: &Bound<'py, PyAny>, references: usize) -> Done<Cell> {
        if let Some(value) = simple(given)? {
            return self.writer.value(&value).map_err(|error| (self.failed)(error).into());
        }
        if is_container(given) {
            return self.container(given, references);
        }
        match extension::take(given)? {
            Taken::Value(value) => {
                self.writer.value(&value).map_err(|error| (self.failed)(error).into())
            }
            Taken::Unfit(reason) if reason.starts_with("it is of type") => {
                let name = given.get_type().name()?;
                Err(Failure::unfit(format!(
                    "it is of type {name}; freeze its parts in a dict or a list instead, or wrap \
                     it in share.Pickled"
                )))
            }
            Taken::Unfit(reason) => Err(Failure::unfit(reason)),
        }
    }

    fn container(&mut self, given: &Bound<'py, PyAny>, references: usize) -> Done<Cell> {
        stack::check(SOME_LEVELS).map_err(errors::raised)?;
        let address = given.as_ptr().addr();
        let may_recur = !guarded::has_gil() || count(given) > references;
        if may_recur && let Some(known) = self.known.get(&address) {
            return Ok(*known);
        }
        if self.open.contains(&address) {
            return Err(Failure::unfit("it contains itself, and a frozen structure cannot"));
        }
        self.open.push(address);
        let made = self.contents(given);
        self.open.pop();
        let made = made?;
        if may_recur {
            self.known.insert(address, made);
            self.kept.push(given.clone());
        }
        self.pause(given.py())?;
        Ok(made)
    }

    fn contents(&mut self, given: &Bound<'py, PyAny>) -> Done<Cell> {
        let given = &guarded::of_one_moment(given)?;
        if let Ok(dict) = given.cast_exact::<PyDict>() {
            return self.dict(dict);
        }
        if given.cast_exact::<PyList>().is_ok() {
            return self.sequence(given, cell::LIST, 2);
        }
        if given.cast_exact::<PyTuple>().is_ok() {
            return self.sequence(given, cell::TUPLE, 2);
        }
        if given.cast_exact::<PySet>().is_ok() {
            return self.set(given, cell::SET);
        }
        if given.cast_exact::<PyFrozenSet>().is_ok() {
            return self.set(given, cell::FROZEN_SET);
        }
        self.contents(&given.call_method0("copy")?)
    }

    fn sequence(&mut self, given: &Bound<'py, PyAny>, tag: u8, references: usize) -> Done<Cell> {
        let mut cells = Vec::with_capacity(given.len()?);
        for (number, item) in given.try_iter()?.enumerate() {
            let item = self.cell(&item?, references);
            cells.push(item.map_err(|failure| failure.within(&number))?);
        }
        self.writer.sequence(tag, &cells).map_err(|error| (self.failed)(error).into())
    }

    fn dict(&mut self, given: &Bound<'py, PyDict>) -> Done<Cell> {
        let mut draft = self.writer.draft(given.len(), true);
        // Unlike a loop of PyO3's, this one fails in words if the dict changes meanwhile.
        for pair in given.call_method0("items")?.try_iter()? {
            let pair = pair?;
            let (key, value) = pair.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
            // The dict, the pair, and this function have it.
            drop(pair);
            let made = self.key(&mut draft, &key).and_then(|()| self.cell(&value, 3));
            draft.value(made.map_err(|failure| match key.repr() {
                Ok(key) => failure.within(&key),
                Err(error) => error.into(),
            })?);
        }
        self.writer.dict(&draft).map_err(|error| (self.failed)(error).into())
    }

    fn set(&mut self, given: &Bound<'py, PyAny>, tag: u8) -> Done<Cell> {
        let mut draft = self.writer.draft(given.len()?, false);
        for member in given.try_iter()? {
            self.key(&mut draft, &member?)?;
        }
        self.writer.set(tag, &draft).map_err(|error| (self.failed)(error).into())
    }

    fn key(&mut self, draft: &mut Draft, key: &Bound<'py, PyAny>) -> Done<()> {
        let value = match simple(key)? {
            Some(value) => Some(value),
            None => key::hashed(key)?,
        };
        let Some(value) = value else { return Err(unfit_key(key)?) };
        self.writer.key(draft, &value).map_err(|error| (self.failed)(error).into())
    }

    /// From time to time, tells how far it is, and looks for signals.
    fn pause(&mut self, py: Python<'py>) -> PyResult<()> {
        let written = self.writer.written();
        if written < self.next {
            return Ok(());
        }
        self.next = written + STRETCH;
        py.check_signals()?;
        if let Some(progress) = &self.progress {
            progress.call1((written,))?;
        }
        Ok(())
    }
}

/// Why something is no key, with what to do if that is known.
fn unfit_key(key: &Bound<'_, PyAny>) -> PyResult<Failure> {
    if let Taken::Unfit(reason) = extension::take(key)?
        && let Some(reason) = reason.strip_prefix("it is a ")
    {
        return Ok(Failure::unfit(format!("a key or member is a {reason}")));
    }
    let name = key.get_type().name()?;
    Ok(Failure::unfit(format!("a key or member is of type {name}")))
}

/// What one level takes of the stack, in levels of a value: the functions of PyO3 are large.
const SOME_LEVELS: usize = 8;

/// References to an object.
fn count(object: &Bound<'_, PyAny>) -> usize {
    // SAFETY: a reference to an object.
    let references = unsafe { ffi::Py_REFCNT(object.as_ptr()) };
    // CPython 3.14 has flags in the other half.
    usize::try_from(references & 0xffff_ffff).unwrap_or(usize::MAX)
}
