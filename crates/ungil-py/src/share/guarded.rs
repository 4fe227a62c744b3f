//! What the GIL guards, where there is one.
//!
//! Who has the GIL needs no lock beside it: two locked instructions, as long as what is done in
//! between.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

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
        // Who has its turn may be stopped in `work`, with the world. So others wait detached: the
        // world would wait for them.
        let take = || self.turn.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let _turn = (!has_gil()).then(take);
        work(&mut self.value.borrow_mut())
    }
}
