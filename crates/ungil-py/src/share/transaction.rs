//! `with heap.atomic():`, several changes as one.

use std::cell::RefCell;
use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use ungil_heap::transaction::Transaction as Core;

use super::errors::raised;
use super::proxy::Shared;

thread_local! {
    /// The transactions that this thread has under way, of all heaps, the innermost last.
    static UNDER_WAY: RefCell<UnderWay> = const { RefCell::new(UnderWay(Vec::new())) };
}

struct UnderWay(Vec<Begun>);

struct Begun {
    /// The address of the object that began it.
    by: usize,
    core: Core,
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
    fn __enter__(&self) -> PyResult<()> {
        let core = self.0.heap.begin().map_err(raised)?;
        let by = std::ptr::from_ref(self).addr();
        UNDER_WAY.with_borrow_mut(|begun| begun.0.push(Begun { by, core }));
        Ok(())
    }

    /// Makes it happen, or undoes it if the block raised an exception.
    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (error, traceback);
        let begun = UNDER_WAY.with_borrow_mut(|begun| {
            let by = std::ptr::from_ref(self).addr();
            let own = begun.0.iter().rposition(|begun| begun.by == by);
            own.map_or_else(Vec::new, |own| begun.0.split_off(own))
        });
        let mut begun = begun.into_iter();
        let Some(Begun { core, .. }) = begun.next() else {
            return Err(PyRuntimeError::new_err(
                "a transaction ends in the thread in which it began",
            ));
        };
        if begun.len() > 0 {
            // A generator, for example, that was closed in the midst of it.
            drop(UnderWay(begun.collect()));
            drop(core);
            return Err(PyRuntimeError::new_err(
                "a transaction ended before one that began in it: both are undone",
            ));
        }
        let ended = if kind.is_none() { core.commit() } else { core.roll_back() };
        ended.map_err(raised)
    }
}
