//! What threads and processes wait for: `threading`'s API on objects of a heap.
//!
//! Like anything that is shared, a lock is put into a heap: `share.Lock()` only says what is wanted,
//! and what the heap returns is the lock.

mod barrier;
mod condition;
mod event;
mod lock;
mod semaphore;

use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use ungil_heap::Heap;
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;
use ungil_heap::sync::{self, Sort};

use super::errors::raised;
use super::proxy::{Held, Hold};

pub use barrier::Barrier;
pub use condition::Condition;
pub use event::Event;
pub use lock::{Lock, quicken};
pub use semaphore::Semaphore;

/// Where something to wait for is.
pub enum Place<T> {
    Shared(Hold),
    /// Nowhere yet: what it is to be made with.
    Wanted(T),
}

impl<T> Place<T> {
    /// Shared if there is something held.
    pub fn new(held: Option<&Held>, wanted: impl FnOnce() -> PyResult<T>) -> PyResult<Self> {
        match held {
            Some(held) => held.take().map(Self::Shared),
            None => wanted().map(Self::Wanted),
        }
    }

    /// What it consists of if it is shared.
    pub fn hold(&self) -> Option<&Hold> {
        match self {
            Self::Shared(hold) => Some(hold),
            Self::Wanted(_) => None,
        }
    }

    /// The heap that it is in, and where.
    #[inline]
    pub fn found(&self) -> PyResult<(&Heap, Offset)> {
        self.held().map(|hold| (&*hold.shared.heap, hold.at))
    }

    /// What it consists of, where it has to be shared.
    #[inline]
    pub fn held(&self) -> PyResult<&Hold> {
        match self {
            Self::Shared(hold) => Ok(hold),
            Self::Wanted(_) => Err(PyRuntimeError::new_err(
                "this object is not in a heap yet: use the one that heap.share() returns",
            )),
        }
    }

    /// What sort it is, if it is shared.
    fn sort(&self) -> PyResult<Option<Sort>> {
        let Self::Shared(hold) = self else { return Ok(None) };
        sync::sort(hold.shared.heap.segment(), hold.at).map(Some).map_err(raised)
    }
}

/// Something to wait for that is to be made.
#[derive(Clone, Copy)]
pub enum Making {
    Lock,
    RLock,
    /// With the lock that is given, or its own.
    Condition,
    Semaphore(u32),
    BoundedSemaphore(u32),
    Event,
    Barrier(u32),
}

impl Making {
    /// Makes it, a condition with this lock.
    pub fn create(self, op: &mut Op<'_>, lock: Option<Offset>) -> ungil_heap::Result<Offset> {
        match self {
            Self::Lock => sync::lock::create(op),
            Self::RLock => sync::lock::create_reentrant(op),
            Self::Condition => sync::condition::create(op, lock),
            Self::Semaphore(units) => sync::semaphore::create(op, units),
            Self::BoundedSemaphore(units) => sync::bounded::create(op, units),
            Self::Event => sync::event::create(op),
            Self::Barrier(parties) => sync::barrier::create(op, parties),
        }
    }
}

/// What is to be made of `given`, if it is something to wait for that is nowhere yet, and a
/// condition's lock.
pub fn wanted<'py>(given: &Bound<'py, PyAny>) -> Option<(Making, Option<Bound<'py, PyAny>>)> {
    if let Ok(lock) = given.cast::<Lock>() {
        return Some((lock.get().wanted(), None));
    }
    if let Ok(condition) = given.cast::<Condition>() {
        return Some((Making::Condition, condition.get().wanted_lock(given.py())));
    }
    if let Ok(semaphore) = given.cast::<Semaphore>() {
        return semaphore.get().wanted().map(|wanted| (wanted, None));
    }
    if given.cast::<Event>().is_ok() {
        return Some((Making::Event, None));
    }
    let barrier = given.cast::<Barrier>().ok()?;
    barrier.get().wanted().map(|wanted| (wanted, None))
}

/// What `given` consists of, if it is something shared to wait for.
pub fn hold<'a>(given: &'a Bound<'_, PyAny>) -> Option<&'a Hold> {
    if let Ok(lock) = given.cast::<Lock>() {
        lock.get().place.hold()
    } else if let Ok(condition) = given.cast::<Condition>() {
        condition.get().0.hold()
    } else if let Ok(semaphore) = given.cast::<Semaphore>() {
        semaphore.get().place.hold()
    } else if let Ok(event) = given.cast::<Event>() {
        event.get().0.hold()
    } else {
        given.cast::<Barrier>().ok()?.get().0.hold()
    }
}

const NAMES: [(&str, Sort); 7] = [
    ("Lock", Sort::Lock),
    ("RLock", Sort::RLock),
    ("Condition", Sort::Condition),
    ("Semaphore", Sort::Semaphore),
    ("BoundedSemaphore", Sort::BoundedSemaphore),
    ("Event", Sort::Event),
    ("Barrier", Sort::Barrier),
];

/// The classes of proxies, by sort. Python declares them.
static CLASSES: [PyOnceLock<Py<PyType>>; 7] = [const { PyOnceLock::new() }; 7];

/// Where the class of the proxies of a sort is.
pub fn class(sort: Sort) -> &'static PyOnceLock<Py<PyType>> {
    &CLASSES[sort as usize - 1]
}

/// The sort with this name.
pub fn named(name: &str) -> Option<Sort> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, sort)| *sort)
}

/// The longest timeout in seconds: that of `threading.TIMEOUT_MAX`.
const LONGEST: f64 = 9_223_372_036.0;

/// Until when to wait, where `None` is for ever and less than no time is not at all.
pub fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(timeout) = timeout else { return Ok(None) };
    if timeout.is_nan() {
        return Err(PyValueError::new_err("a timeout is a number of seconds, not NaN"));
    }
    if timeout > LONGEST {
        return Err(PyOverflowError::new_err("timeout value is too large"));
    }
    Ok(Instant::now().checked_add(Duration::from_secs_f64(timeout.max(0.0))))
}

/// Until when to wait for a lock: for ever with -1, as a lock of `threading` has it, and with `None`, as
/// one of multiprocessing does.
#[inline]
#[expect(clippy::float_cmp, reason = "exactly -1 has a meaning of its own")]
fn deadline_of_lock(blocking: bool, timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(timeout) = timeout.filter(|timeout| *timeout != -1.0) else {
        return if blocking { Ok(None) } else { Ok(Some(Instant::now())) };
    };
    if !blocking {
        return Err(PyValueError::new_err("can't specify a timeout for a non-blocking call"));
    }
    if timeout < 0.0 {
        return Err(PyValueError::new_err("timeout value must be a non-negative number"));
    }
    deadline(Some(timeout))
}
