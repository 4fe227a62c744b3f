//! What the GIL guards, where there is one, and what stands in for it where there is none.
//!
//! Who has the GIL needs no lock beside it: two locked instructions, as long as what is done in
//! between.
//!
//! Where there is none, an interpreter stops its other threads for a collection of cycles and for
//! `fork`: it waits for all that are attached, each of which stops where it runs Python code. So a
//! lock of this crate is held by attached threads only, and no Python code runs meanwhile: then
//! nobody has it who is stopped, and a child that was forked never finds a lock that nobody gives
//! back.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySet};

/// Whether threads take turns.
static HAS_GIL: AtomicBool = AtomicBool::new(false);

/// Looks whether the interpreter has a GIL.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    let flags: String = py.import("sys")?.getattr("abiflags")?.extract()?;
    HAS_GIL.store(!flags.contains('t'), Relaxed);
    Ok(())
}

/// Whether it has.
#[inline]
pub fn has_gil() -> bool {
    HAS_GIL.load(Relaxed)
}

/// What is looked through, as it is at one moment: of a builtin list, set or dict a copy, where other
/// threads could change it meanwhile. Other iterables are their own business.
pub fn of_one_moment<'py>(iterable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let changes = iterable.is_exact_instance_of::<PyList>()
        || iterable.is_exact_instance_of::<PySet>()
        || iterable.is_exact_instance_of::<PyDict>();
    if !changes || has_gil() {
        return Ok(iterable.clone());
    }
    // It has the lock of the container all the time; that of a deque has not, in 3.13.
    iterable.call_method0(intern!(iterable.py(), "copy"))
}

/// A value for one attached thread at a time.
#[derive(Default)]
pub struct Guarded<T> {
    /// Where there is no GIL.
    turn: Mutex<()>,
    value: RefCell<T>,
}

// SAFETY: one thread at a time gets at the value, by the GIL or by the lock. One that lets go of the
// GIL while it uses the value leaves it borrowed, and others panic.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub const fn new(value: T) -> Self {
        Self { turn: Mutex::new(()), value: RefCell::new(value) }
    }

    /// Calls `work`, which runs no Python code, with the value.
    #[inline]
    pub fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R) -> R {
        let _turn = (!has_gil()).then(|| self.take(py));
        work(&mut self.value.borrow_mut())
    }

    /// Waits for its turn detached, and takes it attached: who would have it before that could be
    /// stopped with it, or be missing in a forked child.
    fn take(&self, py: Python<'_>) -> MutexGuard<'_, ()> {
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return turn,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => py.detach(thread::yield_now),
            }
        }
    }
}
