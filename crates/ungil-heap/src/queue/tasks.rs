//! Whether everything that was put in is done.
//!
//! What was put in is counted by the end of the queue, and what is done by a word beside the
//! beginning, which is changed under the lock of the taking end.

use std::time::{Duration, Instant};

use super::bell::{self, Answer, Waiting};
use super::{Queue, count};
use crate::atomic::Ordering::{Acquire, Relaxed};
use crate::monitor::may_wait;
use crate::segment::Offset;
use crate::{Heap, Result, fault};

/// Says that a value that was taken out is done; false: all are already.
pub fn task_done(heap: &Heap, at: Offset) -> Result<bool> {
    let queue = Queue::at(heap, at)?;
    let locked = queue.lock(&queue.control.get_lock, queue.me()?)?;
    let done = queue.control.done.load(Relaxed);
    let left = count(done, queue.control.tail.load(Acquire));
    if left == 0 {
        return Ok(false);
    }
    queue.control.done.store(done.wrapping_add(1), Relaxed);
    fault::point("queue: a value is done");
    drop(locked);
    if left == 1 {
        bell::ring_for_all(&queue.control.all_done);
    }
    Ok(true)
}

/// How many values were put in and are not done.
pub fn unfinished(heap: &Heap, at: Offset) -> Result<usize> {
    let queue = Queue::at(heap, at)?;
    // An acknowledgement that is under way may be undone.
    let _locked = queue.lock(&queue.control.get_lock, queue.me()?)?;
    Ok(count(queue.control.done.load(Relaxed), queue.control.tail.load(Acquire)))
}

/// Waits until all values that were put in are done; false: they were not before the deadline.
pub fn join(heap: &Heap, at: Offset, deadline: Option<Instant>) -> Result<bool> {
    let is_done = || -> Result<Option<Answer<()>>> {
        let left = unfinished(heap, at)?;
        Ok((left == 0).then_some(Answer { answer: (), is_more: true }))
    };
    if is_done()?.is_some() {
        return Ok(true);
    }
    may_wait(heap, deadline)?;
    let queue = Queue::at(heap, at)?;
    let waiting = Waiting {
        heap,
        bell: &queue.control.all_done,
        touched: &queue.control.get_lock,
        spin: Duration::ZERO,
        deadline,
    };
    Ok(bell::answer(&waiting, || false, is_done)?.is_some())
}
