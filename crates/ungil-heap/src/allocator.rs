//! Taking memory for a thread: from where nobody waits for anybody, else under the lock of the chunks;
//! and whether garbage must be collected before the heap grows.

use crate::atomic::Ordering::Relaxed;
use crate::lock::{self, Holder};
use crate::segment::Offset;
use crate::{Error, Heap, Result, chunk, fault, memory, mutation, size_class};

/// A heap that has grown by less than so many chunks is not worth a collection.
const WORTH_COLLECTING: u64 = 256;

impl Heap {
    /// Whether a collection promises something, before the heap grows: processes died, or it is
    /// twice as large as the last collection left it.
    pub fn is_collection_due(&self) -> Result<bool> {
        self.clean()?;
        let header = self.segment.header();
        let chunks = chunk::grown(&self.segment) as u64;
        let left = header.collected_chunks.load(Relaxed);
        Ok(u64::from(header.deaths.load(Relaxed)) > header.collected_deaths.load(Relaxed)
            || chunks >= left.saturating_mul(2).max(WORTH_COLLECTING))
    }
}

/// Takes memory, which is the caller's to give back.
#[inline]
pub(crate) fn take(heap: &Heap, me: Holder, bytes: usize) -> Result<Offset> {
    let (segment, hints) = (&heap.segment, &heap.hints);
    if let Some(class) = size_class::of(bytes)
        && let Some(at) = memory::take_hinted(segment, hints, class)?
    {
        return Ok(at);
    }
    let before_growing = || {
        let thread = heap.thread()?;
        let is_atomic = thread.transactions.get() > 0;
        if !(is_atomic || thread.can_begin_again.get()) || !heap.is_collection_due()? {
            return Ok(());
        }
        if !is_atomic {
            return Err(Error::Due);
        }
        thread.is_collection_wanted.set(true);
        Ok(())
    };
    with_chunks(heap, me, || memory::take(segment, hints, bytes, &before_growing))
}

/// As above, from the reserve if there is no other.
#[inline]
pub(crate) fn take_needed(heap: &Heap, me: Holder, bytes: usize) -> Result<Offset> {
    match take(heap, me, bytes) {
        Err(Error::Full { .. }) => {
            with_chunks(heap, me, || memory::take_reserved(&heap.segment, bytes))
        }
        taken => taken,
    }
}

/// Does something under the lock of the chunks. What a dead holder left is consistent.
#[cold]
pub(crate) fn with_chunks<T>(
    heap: &Heap,
    me: Holder,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let word = &heap.segment.header().chunk_lock;
    if mutation::is("chunks: a lock") {
        return work();
    }
    if !lock::try_acquire(word, me) {
        let _ = heap.acquire(word, me)?;
    }
    fault::point("op: chunks locked");
    let result = work();
    lock::release(word);
    result
}
