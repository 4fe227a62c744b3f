//! How a process comes to a heap, and leaves it.

#[cfg(not(loom))]
use std::path::Path;
use std::sync::atomic::{AtomicU64 as OwnU64, AtomicUsize};
use std::sync::{Arc, Mutex};

use crate::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::header::{LOG_SIZE, MAGIC, READY_LANES, VERSION};
use crate::heap::{self, Heap};
use crate::lock::Pause;
use crate::memory::Hints;
use crate::segment::Segment;
use crate::{Error, Result, chunk, cleanup, process_table, thread};

impl Heap {
    /// A new heap in an anonymous file.
    #[cfg(not(loom))]
    pub fn anonymous(max_size: usize, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        Self::create(Segment::anonymous(max_size)?, pause)
    }

    /// A new heap in a file that does not exist yet.
    #[cfg(not(loom))]
    pub fn named(path: &Path, max_size: usize, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let heap = Self::unnamed(path, max_size, pause)?;
        heap.publish(path)?;
        Ok(heap)
    }

    /// A new heap that [`Self::publish`] can give this path. Nobody finds it half made, and nothing
    /// is left of it if this process dies before.
    #[cfg(not(loom))]
    pub fn unnamed(path: &Path, max_size: usize, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        // An empty parent means the current folder.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Self::create(Segment::unnamed(folder.unwrap_or(Path::new(".")), max_size)?, pause)
    }

    /// Gives it the path that [`Self::unnamed`] was told; no file must be there.
    #[cfg(not(loom))]
    pub fn publish(&self, path: &Path) -> Result<()> {
        self.segment.publish(path)
    }

    /// Another process's heap, by the path of its file; also `/proc/PID/fd/N`.
    #[cfg(not(loom))]
    pub fn open(path: &Path, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let segment = Segment::open(path)?;
        let header = segment.header();
        if header.magic.load(Acquire) != MAGIC || header.version.load(Relaxed) != format() {
            return Err(Error::Refused(format!(
                "{} is not a heap of this version of ungil",
                path.display()
            )));
        }
        Self::attach(segment, pause)
    }

    pub(crate) fn create(segment: Segment, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let layout = *segment.layout();
        let ready = layout.logs + READY_LANES * LOG_SIZE;
        segment.provide(layout.processes, ready - layout.processes)?;
        chunk::begin(&segment)?;
        let header = segment.header();
        let mut random = [0_u8; 32];
        // SAFETY: the buffer is as long as said; 32 bytes are never refused or cut.
        unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
        let words = header.uuid.iter().chain(&header.hash_key);
        for (word, bytes) in words.zip(random.chunks_exact(8)) {
            word.store(u64::from_ne_bytes(bytes.try_into().expect("eight of them")), Relaxed);
        }
        header.serial.store(1, Relaxed);
        header.created.store(process_table::now(), Relaxed);
        header.version.store(format(), Relaxed);
        header.magic.store(MAGIC, Release);
        Self::attach(segment, pause)
    }

    pub(crate) fn attach(segment: Segment, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let membership = cleanup::join(&segment)?;
        let slot = membership.slot;
        let life = membership.settle(&segment)?;
        Ok(Arc::new_cyclic(|itself| Self {
            segment,
            hints: Hints::default(),
            slot: AtomicUsize::new(slot),
            life: Mutex::new(Some(life)),
            id: OwnU64::new(heap::new_id()),
            transactions: AtomicUsize::new(0),
            pause,
            itself: itself.clone(),
        }))
    }

    /// Dies as the kernel sees it: this process does nothing more, and cleans up nothing.
    #[cfg(all(test, loom))]
    pub(crate) fn die(&self) {
        if let Ok(thread) = self.thread() {
            thread.leave_to_parent();
        }
        self.slot.store(heap::NOWHERE, Relaxed);
        drop(self.life.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let is_own = process_table::slot(&self.segment, self.slot()).is_ok_and(|slot| {
            // SAFETY: no arguments, no failure.
            slot.pid.load(Relaxed) == unsafe { libc::getpid() }.cast_unsigned()
        });
        // A child that was forked without [`Heap::forked`] has nothing to give back.
        if !is_own {
            return;
        }
        // What cannot be released now is found by the collector.
        drop(self.release_all());
        thread::forget_lanes(self.id());
        let slot = self.slot();
        if let Ok(entry) = process_table::slot(&self.segment, slot) {
            drop(cleanup::leave(&self.segment, slot, entry));
        }
    }
}

/// Version and size of a pointer, as stored.
const fn format() -> u64 {
    (usize::BITS as u64) << 32 | VERSION as u64
}
