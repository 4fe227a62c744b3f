//! Python objects on their way into a queue.

use std::time::Instant;

use pyo3::prelude::*;
use ungil_heap::Heap;
use ungil_heap::queue::{self, Put};
use ungil_heap::roots::Root;
use ungil_heap::value::Value;

use crate::share::convert::simple;
use crate::share::draft::Drafts;
use crate::share::errors::raised;
use crate::share::making::finished;
use crate::share::proxy::Hold;

/// Puts a Python object in.
#[inline]
pub fn put(hold: &Hold, item: &Bound<'_, PyAny>, deadline: Option<Instant>) -> PyResult<Put> {
    let heap = &hold.shared.heap;
    match simple(item)? {
        Some(value) => queue::put(heap, hold.at, &value, deadline).map_err(raised),
        None => put_made(hold, item, deadline),
    }
}

/// Puts a Python object in, of which parts may have to be made first.
#[cold]
fn put_made(hold: &Hold, item: &Bound<'_, PyAny>, deadline: Option<Instant>) -> PyResult<Put> {
    with_values(hold, std::slice::from_ref(item), |heap, values| {
        queue::put(heap, hold.at, &values[0], deadline)
    })
}

/// Puts Python objects in; how many, and what became of the next one.
pub fn put_many(
    hold: &Hold,
    items: &[Bound<'_, PyAny>],
    deadline: Option<Instant>,
) -> PyResult<(usize, Put)> {
    with_values(hold, items, |heap, values| queue::put_many(heap, hold.at, values, deadline))
}

/// Calls `put` with the values of Python objects.
///
/// What is put in is complete, whoever dies: what has to be made for it is made by an operation that
/// has ended, and held meanwhile by this process.
fn with_values<T>(
    hold: &Hold,
    items: &[Bound<'_, PyAny>],
    put: impl FnOnce(&Heap, &[Value<'_>]) -> ungil_heap::Result<T>,
) -> PyResult<T> {
    let heap: &Heap = &hold.shared.heap;
    let mut drafts = Drafts::new(&hold.shared);
    let all: Vec<_> = items.iter().map(|item| drafts.draft(item)).collect::<PyResult<_>>()?;
    let made = heap.make_all(|op| drafts.make(op)).map_err(raised)?;
    let places: Vec<_> = made.iter().map(Root::at).collect();
    let values: Vec<_> = all.iter().map(|draft| finished(draft, &places)).collect();
    let done = put(heap, &values);
    for root in made {
        heap.release(root).map_err(raised)?;
    }
    done.map_err(raised)
}
