//! What is in a heap, as plain Python values: for `ungil heap`.

use std::os::unix::fs::MetadataExt;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use ungil_heap::object::Kind;
use ungil_heap::statistics::{Attached, Contents, Guarded, Held, Statistics};
use ungil_heap::{Heap, sync};

use super::errors::raised;

/// A dict with everything that `found` says of a heap.
pub fn described<'py>(
    py: Python<'py>,
    heap: &Heap,
    found: &Statistics,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let file = heap.segment().file().map_err(raised)?.try_clone_to_owned()?;
    dict.set_item("used_bytes", std::fs::File::from(file).metadata()?.blocks() * 512)?;
    dict.set_item("max_bytes", found.max_bytes)?;
    dict.set_item("created", found.created)?;
    dict.set_item("deaths", found.deaths)?;
    dict.set_item("collections", found.collections)?;
    let others = found.processes.iter().filter(|process| process.slot != heap.slot());
    let others: Vec<_> = others.map(|other| process(py, other)).collect::<PyResult<_>>()?;
    dict.set_item("processes", PyList::new(py, others)?)?;
    let mut held = found.locks.clone();
    let contents = match &found.contents {
        None => None,
        Some(contents) => {
            held.extend(&contents.locks);
            Some(self::contents(py, contents)?)
        }
    };
    dict.set_item("contents", contents)?;
    let locks = held.iter().map(|held| lock(py, heap, held, &found.processes));
    let locks: Vec<_> = locks.collect::<PyResult<_>>()?;
    dict.set_item("locks", PyList::new(py, locks)?)?;
    Ok(dict)
}

fn process<'py>(py: Python<'py>, process: &Attached) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("pid", process.pid)?;
    dict.set_item("alive", process.is_alive)?;
    dict.set_item("since", process.since)?;
    dict.set_item("threads", process.threads)?;
    Ok(dict)
}

fn contents<'py>(py: Python<'py>, contents: &Contents) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let types = PyDict::new(py);
    for &(kind, objects, bytes) in &contents.kinds {
        let of_type = PyDict::new(py);
        of_type.set_item("objects", objects)?;
        of_type.set_item("bytes", bytes)?;
        types.set_item(name(kind), of_type)?;
    }
    dict.set_item("types", types)?;
    dict.set_item("taken_bytes", contents.taken_bytes)?;
    dict.set_item("lost_bytes", contents.lost_bytes)?;
    Ok(dict)
}

fn lock<'py>(
    py: Python<'py>,
    heap: &Heap,
    held: &Held,
    processes: &[Attached],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let guards = match held.guarded {
        Guarded::Gate => "the collector".to_owned(),
        Guarded::Chunks => "growing".to_owned(),
        Guarded::Transaction => "transactions".to_owned(),
        Guarded::Object(kind, at) => match sync::sort(heap.segment(), at) {
            Ok(sort) => format!("{sort:?} at {at:#x}"),
            Err(_) => format!("{} at {at:#x}", name(kind)),
        },
    };
    dict.set_item("guards", guards)?;
    let holder = processes.iter().find(|process| Some(process.slot) == held.slot);
    // A dead one that was cleaned up after has no number any more.
    dict.set_item("pid", holder.map(|holder| holder.pid))?;
    dict.set_item("alive", holder.is_some_and(|holder| holder.is_alive))?;
    Ok(dict)
}

const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Dict => "dict",
        Kind::List => "list",
        Kind::Set => "set",
        Kind::Deque => "deque",
        Kind::Struct => "struct",
        Kind::Sync => "sync",
        // Made in a transaction that failed, and still held.
        Kind::Gone => "gone",
        Kind::Queue => "queue",
        Kind::Buffer => "buffer",
        Kind::Array => "array",
    }
}
