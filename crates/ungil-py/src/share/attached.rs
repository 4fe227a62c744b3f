//! The heaps that this process is attached to, each once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::exceptions::PyFileNotFoundError;
use pyo3::prelude::*;
use ungil_heap::{Error, Heap};

use super::errors::{WithoutGil, raised};
use super::proxy::Shared;

static ATTACHED: Mutex<Attached> = Mutex::new(Attached { all: Vec::new(), senders: Vec::new() });

struct Attached {
    all: Vec<Weak<Shared>>,
    /// Those of which handles may be on their way: leaving a heap takes back what it sent.
    senders: Vec<Arc<Shared>>,
}

fn attached() -> MutexGuard<'static, Attached> {
    ATTACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All of them.
pub fn all() -> Vec<Arc<Shared>> {
    attached().all.iter().filter_map(Weak::upgrade).collect()
}

/// Enters a heap that was opened. What is returned is another one if the process was attached to it
/// already.
pub fn enter(heap: Arc<Heap>, path: Option<PathBuf>) -> Arc<Shared> {
    release_senders();
    let uuid = heap.uuid();
    let mut attached = attached();
    if let Some(known) = attached.find(uuid) {
        return known;
    }
    let shared = Shared::new(heap, path);
    attached.all.retain(|shared| shared.strong_count() > 0);
    attached.all.push(Arc::downgrade(&shared));
    shared
}

/// The heap with this uuid, opened at the place that another process named, unless this process is
/// attached to it.
///
/// # Errors
/// `FileNotFoundError` that names the process that is gone; those of opening a heap.
pub fn find(uuid: u128, place: &Path) -> PyResult<Arc<Shared>> {
    if let Some(known) = attached().find(uuid) {
        return Ok(known);
    }
    // The number may mean another file by now, which only looking does not disturb.
    let is_file = place.metadata().map(|file| file.is_file());
    let found = match is_file {
        Ok(true) => Heap::open(place, Box::new(WithoutGil)),
        Ok(false) => return Err(gone(place)),
        Err(error) => Err(Error::Io { what: "looking for the heap of a handle", error }),
    };
    match found {
        Ok(heap) if heap.uuid() == uuid => {
            let path = (!place.starts_with("/proc")).then(|| place.to_owned());
            Ok(enter(heap, path))
        }
        Ok(_) => Err(gone(place)),
        Err(Error::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(gone(place))
        }
        Err(error) => Err(raised(error)),
    }
}

fn gone(place: &Path) -> PyErr {
    let mut parts = place.iter().map(|part| part.to_string_lossy());
    let who = match (parts.nth(1), parts.next()) {
        (Some(folder), Some(pid)) if folder == "proc" => {
            format!("process {pid}, which sent it, has ended or closed the heap")
        }
        _ => format!("that heap is no longer at {}", place.display()),
    };
    let text = format!("the heap of this handle cannot be found: {who}");
    PyFileNotFoundError::new_err((libc::ENOENT, text))
}

/// Stays attached as long as a handle that was just made may be on its way.
pub fn stay(shared: &Arc<Shared>) {
    let mut attached = attached();
    if !attached.senders.iter().any(|sender| Arc::ptr_eq(sender, shared)) {
        attached.senders.push(shared.clone());
    }
}

/// Lets go of heaps whose handles have arrived.
pub fn release_senders() {
    let senders = std::mem::take(&mut attached().senders);
    // Looked at, and maybe left for good, without the lock.
    let is_sending = |shared: &Arc<Shared>| shared.heap.has_pins().unwrap_or(false);
    let (sending, arrived): (Vec<_>, Vec<_>) = senders.into_iter().partition(is_sending);
    attached().senders.extend(sending);
    drop(arrived);
}

impl Attached {
    fn find(&self, uuid: u128) -> Option<Arc<Shared>> {
        self.all.iter().filter_map(Weak::upgrade).find(|shared| shared.heap.uuid() == uuid)
    }
}
