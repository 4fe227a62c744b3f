//! Python objects on their way into a queue.

use std::time::Instant;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ungil_heap::Heap;
use ungil_heap::queue::{self, Put};
use ungil_heap::roots::Root;
use ungil_heap::value::{Value, has_order};

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
        Some(value) => {
            check_order(hold, std::slice::from_ref(item), std::slice::from_ref(&value))?;
            queue::put(heap, hold.at, &value, deadline).map_err(raised)
        }
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
    let done = check_order(hold, items, &values).and_then(|()| put(heap, &values).map_err(raised));
    for root in made {
        heap.release(root).map_err(raised)?;
    }
    done
}

/// `TypeError` for an item that has no place among others in a queue in which the least comes first.
#[inline]
fn check_order(hold: &Hold, items: &[Bound<'_, PyAny>], values: &[Value<'_>]) -> PyResult<()> {
    match values.iter().position(|value| !has_order(value)) {
        None => Ok(()),
        Some(number) => refuse_unordered(hold, &items[number]),
    }
}

#[cold]
fn refuse_unordered(hold: &Hold, item: &Bound<'_, PyAny>) -> PyResult<()> {
    let heap: &Heap = &hold.shared.heap;
    if !queue::is_least_first(heap.segment(), hold.at).map_err(raised)? {
        return Ok(());
    }
    let mut priority = item.clone();
    while let Ok(items) = priority.cast::<PyTuple>() {
        let first = items.get_item(0)?;
        priority = first;
    }
    let class = priority.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a share.PriorityQueue cannot compare objects of type {class}: put in \
         (number, anything), or a string, a time or a tuple in the place of the number"
    )))
}
