//! What the coroutine that is being driven waits for: left here by a primitive that yields, found by
//! the loop that it yields to.
//!
//! A coroutine hands up one object through all that awaits it. What it wants is no object and would
//! have to be made one, so a single object stands for all wants, and the want lies here.

use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use ungil_fanout::reactor::Direction;

use super::resolver::Lookup;

thread_local! {
    /// The number of the loop that drives coroutines in this thread, or 0.
    static LOOP: Cell<u64> = const { Cell::new(0) };
    static WANT: RefCell<Option<Want>> = const { RefCell::new(None) };
    /// How many operations the coroutine may do before others have their turn.
    static LEFT: Cell<u32> = const { Cell::new(OPERATIONS) };
}

/// So many operations a coroutine may do without a wait.
const OPERATIONS: u32 = 64;

/// What has to happen before a coroutine goes on.
pub enum Want {
    /// So many nanoseconds pass.
    Sleep(u64),
    /// A descriptor is ready.
    Ready {
        fd: RawFd,
        direction: Direction,
        /// Of what kind it is, for the reactor.
        belongs: Belongs,
    },
    /// A name is resolved.
    Lookup(Arc<Lookup>),
}

/// Whose a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// Ours, and this loop has not seen it.
    New,
    /// Ours, and this loop keeps it.
    Kept,
    /// The user's.
    User,
}

/// The loop that drives the coroutine which calls this, if there is one in this thread.
pub fn driver() -> Option<u64> {
    let number = LOOP.get();
    (number != 0).then_some(number)
}

/// Leaves what the calling primitive wants. Gives what it shall yield.
pub fn ask(py: Python<'_>, want: Want) -> PyResult<Py<PyAny>> {
    WANT.set(Some(want));
    Ok(asked(py)?.clone_ref(py).into_any())
}

/// What was left since the last time.
pub fn take() -> Option<Want> {
    LEFT.set(OPERATIONS);
    WANT.take()
}

/// Whether the coroutine may have the result of an operation at once, or has to yield first. A peer
/// that always has more to say would otherwise keep all others waiting.
pub fn may_go_on() -> bool {
    let left = LEFT.get();
    LEFT.set(left.checked_sub(1).unwrap_or(OPERATIONS));
    left > 0
}

/// As long as it lives, the loop with this number drives coroutines in this thread.
pub struct Driving(());

impl Driving {
    /// None if a loop does so already.
    pub fn begin(number: u64) -> Option<Self> {
        if driver().is_some() {
            return None;
        }
        LOOP.set(number);
        Some(Self(()))
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        LOOP.set(0);
    }
}

/// What a primitive yields. Other event loops do not know it, and say so.
#[pyclass(frozen, module = "ungil._native")]
pub struct Asked;

#[pymethods]
impl Asked {
    #[expect(clippy::unused_self, reason = "Python calls it with one")]
    fn __repr__(&self) -> &'static str {
        "<a wait for the lean fan-out that drives coroutines in this thread>"
    }
}

static ASKED: PyOnceLock<Py<Asked>> = PyOnceLock::new();

fn asked(py: Python<'_>) -> PyResult<&Py<Asked>> {
    ASKED.get_or_try_init(py, || Py::new(py, Asked))
}

/// Whether this is that object.
pub fn is_asked(object: &Bound<'_, PyAny>) -> bool {
    ASKED.get(object.py()).is_some_and(|asked| object.is(asked))
}
