//! A forked child becomes a process of its own in every heap of its parent.

use std::cell::RefCell;
use std::sync::Arc;

use pyo3::prelude::*;
use ungil_heap::fork::Reserved;

use super::attached;
use super::errors::raised;
use super::proxy::Shared;

thread_local! {
    /// What this thread prepared for the child that it is about to fork.
    static PREPARED: RefCell<Vec<(Reserved, Arc<Shared>)>> = const { RefCell::new(Vec::new()) };
}

/// Prepares a place in every heap for the child.
///
/// Raises the error of a heap that has none: the child has to look for one itself.
#[pyfunction]
pub fn before_fork() -> PyResult<()> {
    let mut done = Ok(());
    for shared in attached::all() {
        match shared.heap.before_fork() {
            Ok(reserved) => {
                PREPARED.with_borrow_mut(|prepared| prepared.push((reserved, shared)));
            }
            Err(error) => done = Err(raised(error)),
        }
    }
    done
}

/// Gives up what was prepared: the child has it, or there is none.
#[pyfunction]
pub fn after_fork_in_parent() {
    drop(PREPARED.take());
}

/// Takes the prepared places. In a heap without one, whatever this process does must not happen in
/// the name of its parent, so it takes one now.
#[pyfunction]
pub fn after_fork_in_child() -> PyResult<()> {
    let mut prepared = PREPARED.take();
    let mut done = Ok(());
    for shared in attached::all() {
        let place = prepared.iter().position(|(_, heap)| Arc::ptr_eq(heap, &shared));
        let reserved = place.map(|place| prepared.swap_remove(place).0);
        if let Err(error) = shared.heap.forked(reserved) {
            done = Err(raised(error));
        }
    }
    // Handles on their way are the parent's.
    attached::release_senders();
    done
}
