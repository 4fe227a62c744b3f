//! A heap, as a process has it: the memory, and what the process keeps beside it.
//!
//! What is done with it is in the modules that follow, each of which adds methods of its own.

use std::fmt;
#[cfg(not(loom))]
use std::os::fd::RawFd;
// What only this process has is no matter for loom.
use std::sync::atomic::{AtomicU64 as OwnU64, AtomicUsize};
use std::sync::{Arc, Mutex, Weak};

use crate::atomic::Ordering::Relaxed;
use crate::lock::Pause;
use crate::memory::Hints;
use crate::process_table::Life;
use crate::segment::Segment;

/// No slot of the process table.
pub(crate) const NOWHERE: usize = usize::MAX;

/// The name of the next heap of this process: see [`Heap::id`].
static NEXT_ID: OwnU64 = OwnU64::new(1);

/// A name for a heap of this process, or for one of a forked child.
pub(crate) fn new_id() -> u64 {
    NEXT_ID.fetch_add(1, Relaxed)
}

/// A heap that this process is attached to, until it is dropped.
pub struct Heap {
    pub(crate) segment: Segment,
    pub(crate) hints: Hints,
    /// The slot of this process, or [`NOWHERE`] after a fork that failed to get one.
    pub(crate) slot: AtomicUsize,
    pub(crate) life: Mutex<Option<Life>>,
    /// Which heap of which process: threads find their lanes by it.
    pub(crate) id: OwnU64,
    /// How many threads of this process are in a transaction.
    pub(crate) transactions: AtomicUsize,
    pub(crate) pause: Box<dyn Pause>,
    pub(crate) itself: Weak<Heap>,
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Heap({:032x})", self.uuid())
    }
}

impl Heap {
    /// The heap's name among all heaps.
    pub fn uuid(&self) -> u128 {
        let [high, low] = &self.segment.header().uuid;
        u128::from(high.load(Relaxed)) << 64 | u128::from(low.load(Relaxed))
    }

    /// The key of the hash of strings.
    pub fn hash_key(&self) -> [u64; 2] {
        let [first, second] = &self.segment.header().hash_key;
        [first.load(Relaxed), second.load(Relaxed)]
    }

    /// The number of this process in the process table.
    pub fn slot(&self) -> usize {
        self.slot.load(Relaxed)
    }

    /// The open file with the memory: what [`Self::open`] finds under `/proc/PID/fd`.
    #[cfg(not(loom))]
    pub fn descriptor(&self) -> RawFd {
        self.segment.descriptor()
    }

    /// The memory.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// What a thread of this process does around a wait.
    pub fn pause(&self) -> &dyn Pause {
        &*self.pause
    }

    /// Another reference to it.
    pub(crate) fn itself(&self) -> Arc<Self> {
        self.itself.upgrade().expect("somebody asks it")
    }

    /// Which heap of which process: threads find their lanes by it.
    pub(crate) fn id(&self) -> u64 {
        self.id.load(Relaxed)
    }
}
