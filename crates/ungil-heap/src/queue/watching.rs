//! Waiting for several queues at a time: see [`crate::watch`].

use std::time::Instant;

use super::Queue;
use crate::atomic::Ordering::AcqRel;
use crate::segment::Offset;
use crate::{Heap, Result, changes, mutation, watch};

/// Whether somebody who takes something out would not wait: there is a value, or there will be none.
/// If not, the heap's bell rings when that has changed.
pub fn watch_values(heap: &Heap, at: Offset) -> Result<bool> {
    let queue = Queue::at(heap, at)?;
    watch::ask(queue.head, watch::CHANGE);
    if !mutation::is("watch: one sees the other") {
        queue.control.put_lock.fetch_or(0, AcqRel);
    }
    Ok(!queue.is_empty() || queue.recover()? > 0 || queue.is_over()?)
}

/// Whether somebody who puts something in would not wait. If not, the heap's bell rings when that has
/// changed.
pub fn watch_room(heap: &Heap, at: Offset) -> Result<bool> {
    let queue = Queue::at(heap, at)?;
    watch::ask(queue.head, watch::ROOM);
    queue.control.get_lock.fetch_or(0, AcqRel);
    Ok(!queue.is_full() || queue.is_closed())
}

/// Waits until somebody who takes something out of one of these queues would not wait: the numbers of
/// all such queues; none: there was none before the deadline.
pub fn wait(heap: &Heap, queues: &[Offset], deadline: Option<Instant>) -> Result<Vec<usize>> {
    let ready = changes::until(heap, deadline, || {
        let mut ready = Vec::new();
        for (number, at) in queues.iter().enumerate() {
            if watch_values(heap, *at)? {
                ready.push(number);
            }
        }
        Ok(if ready.is_empty() { None } else { Some(ready) })
    })?;
    Ok(ready.unwrap_or_default())
}
