//! `with heap.atomic():`, several changes as one.
//!
//! A transaction of the heap belongs to a thread, and a thread may run many tasks in turns. So each
//! has a number that is in a `ContextVar` as long as its block lasts: whoever uses the heap in this
//! thread and has another number, or none, is not in the block. That one finds the transaction
//! undone; what it was done for is told so, at its next change or at the end of its block.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use ungil_heap::transaction::{Left, Transaction as Core};

use super::declared::declared;
use super::errors::raised;
use super::proxy::Shared;
use super::queue::give_back_left;

thread_local! {
    /// The transaction that this thread has under way, with those in it, the innermost last.
    static UNDER_WAY: RefCell<UnderWay> = const { RefCell::new(UnderWay(Vec::new(), None)) };
    /// Those of it that are undone, but whose blocks have not ended.
    static LEFT: RefCell<Vec<Undone>> = const { RefCell::new(Vec::new()) };
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
/// What has the number of the block that runs, if it runs in one.
static NUMBER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
/// Calls a function as soon as the task that runs has given way.
static WATCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

#[derive(Default)]
struct UnderWay(Vec<Begun>, Option<Block>);

struct Begun {
    /// The address of the object that began it.
    by: usize,
    core: Core,
}

/// The outermost block.
struct Block {
    number: u64,
    /// What takes the number back.
    token: Py<PyAny>,
    /// What ends the watch for a task that gives way, if there is one.
    unwatch: Option<Py<PyAny>>,
}

struct Undone {
    block: Block,
    /// As of [`Begun`], the outermost first.
    by: Vec<usize>,
    /// As long as they are there, the thread asks [`may_go_on`].
    _left: Vec<Left>,
}

impl Drop for UnderWay {
    /// A thread that ends in the midst of them has not begun them.
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// Makes what is done in its `with` block one change.
#[pyclass(frozen, module = "ungil._native", name = "SharedTransaction")]
pub struct Transaction(pub Arc<Shared>);

#[pymethods]
impl Transaction {
    /// Begins it, or a part of the one that this thread has under way.
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let core = self.0.heap.begin().map_err(raised)?;
        let by = std::ptr::from_ref(self).addr();
        // Before anything of Python runs: that may use the heap.
        let is_first = UNDER_WAY.with_borrow_mut(|under_way| {
            under_way.0.push(Begun { by, core });
            under_way.0.len() == 1
        });
        if is_first {
            let block = Block::begin(py).inspect_err(|_| drop(UNDER_WAY.take()))?;
            UNDER_WAY.with_borrow_mut(|under_way| under_way.1 = Some(block));
        }
        Ok(())
    }

    /// Makes it happen, or undoes it if the block raised an exception.
    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (error, traceback);
        let by = std::ptr::from_ref(self).addr();
        let (begun, block) = UNDER_WAY.with_borrow_mut(|UnderWay(begun, block)| {
            let own = begun.iter().rposition(|begun| begun.by == by);
            let ended = own.map_or_else(Vec::new, |own| begun.split_off(own));
            (ended, if own == Some(0) { block.take() } else { None })
        });
        if let Some(block) = block {
            block.end(py);
        }
        let mut begun = begun.into_iter();
        let Some(Begun { core, .. }) = begun.next() else {
            return ended_after_all(py, by, kind.is_none());
        };
        if begun.len() > 0 {
            // A generator, for example, that was closed in the midst of it.
            drop(UnderWay(begun.collect(), None));
            drop(core);
            return Err(PyRuntimeError::new_err(
                "a transaction ended before one that began inside it: both are undone",
            ));
        }
        let ended = if kind.is_none() { core.commit() } else { core.roll_back() };
        give_back_left();
        ended.map_err(raised)
    }
}

impl Block {
    fn begin(py: Python<'_>) -> PyResult<Self> {
        let number = NEXT_NUMBER.fetch_add(1, Relaxed);
        let token = variable(py)?.call_method1("set", (number,))?.unbind();
        let watched = declared(py, &WATCH, "ungil.share._task")
            .and_then(|watch| watch.bind(py).call1((number,)));
        let block = Self { number, token, unwatch: None };
        match watched {
            Ok(unwatch) => {
                let unwatch = (!unwatch.is_none()).then(|| unwatch.unbind());
                Ok(Self { unwatch, ..block })
            }
            Err(error) => {
                block.end(py);
                Err(error)
            }
        }
    }

    fn end(self, py: Python<'_>) {
        // It fails in a generator that is closed by somebody else, who has no number of ours.
        let reset = variable(py).and_then(|variable| variable.call_method1("reset", (self.token,)));
        let unwatched = self.unwatch.map(|unwatch| unwatch.call0(py)).transpose();
        drop((reset, unwatched));
    }
}

fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let made = NUMBER.get_or_try_init(py, || {
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        class.call1(("ungil.share.atomic",)).map(Bound::unbind)
    })?;
    Ok(made.bind(py))
}

/// The number of the block that runs.
fn number(py: Python<'_>) -> PyResult<Option<u64>> {
    variable(py)?.call_method1("get", (py.None(),))?.extract()
}

/// Declares what calls [`leave_transaction`] with a number as soon as the task that runs has given
/// way; it returns what cancels that, or None.
#[pyfunction]
pub fn set_watch(py: Python<'_>, watch: Py<PyAny>) -> PyResult<()> {
    WATCH.set(py, watch).map_err(|_| PyRuntimeError::new_err("this is declared already"))
}

/// Undoes the transaction of the block with this number, if it is under way in this thread.
#[pyfunction]
pub fn leave_transaction(number: u64) -> PyResult<()> {
    leave_unless(|block| block.number != number).map_err(raised)
}

/// Whether the heap may be used by what runs now: [`ungil_heap::lock::Pause::may_go_on`].
pub fn may_go_on(py: Python<'_>) -> PyResult<()> {
    let running = number(py)?;
    leave_unless(|block| running == Some(block.number)).map_err(raised)?;
    let is_undone =
        LEFT.with_borrow(|left| left.iter().any(|undone| running == Some(undone.block.number)));
    if is_undone { Err(was_left()) } else { Ok(()) }
}

fn leave_unless(stays: impl FnOnce(&Block) -> bool) -> ungil_heap::Result<()> {
    let Some((begun, block)) = UNDER_WAY.with_borrow_mut(|UnderWay(begun, block)| {
        let block = block.take_if(|block| !stays(block))?;
        Some((std::mem::take(begun), block))
    }) else {
        return Ok(());
    };
    let by = begun.iter().map(|begun| begun.by).collect();
    let left: ungil_heap::Result<_> =
        begun.into_iter().rev().map(|begun| begun.core.leave()).collect();
    let (kept, result) = match left {
        Ok(left) => (left, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    };
    LEFT.with_borrow_mut(|all| all.push(Undone { block, by, _left: kept }));
    result
}

/// The end of the block of a transaction that is not under way any more.
fn ended_after_all(py: Python<'_>, by: usize, is_to_tell: bool) -> PyResult<()> {
    let found = LEFT.with_borrow_mut(|left| {
        let index = left.iter().rposition(|undone| undone.by.contains(&by))?;
        // Inner blocks end before.
        let is_outermost = left[index].by.first() == Some(&by);
        Some(is_outermost.then(|| left.swap_remove(index)))
    });
    match found {
        None => {
            Err(PyRuntimeError::new_err("a transaction must end in the thread in which it began"))
        }
        Some(undone) => {
            if let Some(Undone { block, .. }) = undone {
                block.end(py);
            }
            if is_to_tell { Err(was_left()) } else { Ok(()) }
        }
    }
}

fn was_left() -> PyErr {
    PyRuntimeError::new_err(
        "an await left this block of atomic() before its end, so other tasks of the thread would \
         have run inside it: all its changes are undone; await before or after the block",
    )
}
