//! A forked child becomes a process of its own in every heap of its parent.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use ungil_heap::Heap;
use ungil_heap::heap::Reserved;

use super::errors::raised;

/// The heaps that this process is attached to.
static HEAPS: Mutex<Vec<Weak<Heap>>> = Mutex::new(Vec::new());

thread_local! {
    /// What this thread prepared for the child that it is about to fork.
    static PREPARED: RefCell<Vec<(Arc<Heap>, Reserved)>> = const { RefCell::new(Vec::new()) };
}

/// Remembers a heap that was opened.
pub fn remember(heap: &Arc<Heap>) {
    let mut heaps = HEAPS.lock().unwrap_or_else(PoisonError::into_inner);
    heaps.retain(|heap| heap.strong_count() > 0);
    heaps.push(Arc::downgrade(heap));
}

/// Prepares a place in every heap for the child. An error leaves the child without that heap.
#[pyfunction]
pub fn before_fork() -> PyResult<()> {
    let heaps: Vec<_> = {
        let heaps = HEAPS.lock().unwrap_or_else(PoisonError::into_inner);
        heaps.iter().filter_map(Weak::upgrade).collect()
    };
    for heap in heaps {
        let reserved = heap.before_fork().map_err(raised)?;
        PREPARED.with_borrow_mut(|prepared| prepared.push((heap, reserved)));
    }
    Ok(())
}

/// Gives up what was prepared: the child has it, or there is none.
#[pyfunction]
pub fn after_fork_in_parent() {
    drop(PREPARED.take());
}

/// Takes the prepared places.
#[pyfunction]
pub fn after_fork_in_child() -> PyResult<()> {
    for (heap, reserved) in PREPARED.take() {
        heap.forked(reserved).map_err(raised)?;
    }
    Ok(())
}
