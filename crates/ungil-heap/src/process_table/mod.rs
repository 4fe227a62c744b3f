//! Who is attached to a heap, and who is dead.
//!
//! Each attached process has a slot of the table and holds a lock of the kernel (an *open file
//! description lock*, fcntl(2)) on the byte of the file with the slot's number. The kernel lets go
//! of it at the moment of death, whatever kills the process, before anybody has waited for it;
//! process numbers, which are used again and differ between containers, play no part.
//!
//! Such a lock lives as long as its open file, and that as long as something refers to it. A
//! descriptor would be inherited by a fork, and be closed by programs that close all descriptors.
//! So a process keeps a mapping of the file instead ([`Life`]), which a fork does not inherit.
//!
//! Only across a fork it is a descriptor that carries the lock ([`Membership`]): the parent takes a
//! slot before it forks, so that the child is never unknown, the child makes it its life, and both
//! close the descriptor. If there was no child, the slot is that of a dead process.

use crate::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::header::{PROCESS_SIZE, PROCESSES};
use crate::segment::{Part, Segment};
use crate::{Error, Result, fault};
use kernel::File;

#[cfg_attr(loom, path = "model.rs")]
mod kernel;

pub use kernel::{Life, is_dead};

/// Nobody.
pub const FREE: u32 = 0;
/// A process, if the kernel's lock is held; else a dead one, to be cleaned up.
pub const TAKEN: u32 = 1;
/// A process that has ended, of which handles are on their way ([`crate::pin`]): of its table, the
/// pins count.
pub const LEFT: u32 = 2;

/// An entry of the process table.
#[repr(C)]
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
pub struct Slot {
    /// [`FREE`], [`TAKEN`] or [`LEFT`].
    pub state: AtomicU32,
    /// Its number in its own namespace, for people; 0 if it is about to be forked.
    pub pid: AtomicU32,
    /// The table of its references: an offset, 0 at first (see [`crate::root_table`]).
    pub roots: AtomicU64,
    /// Bytes of that table.
    pub roots_size: AtomicU64,
    /// Seconds since the epoch when it attached, or ended.
    pub since: AtomicU64,
    /// The first free entry of the table, plus 1, or 0. Guarded by the lock, as the table is.
    pub roots_free: AtomicU32,
    /// The lock of the table. What a dead process left in it is known to be nobody's.
    pub roots_lock: AtomicU32,
    /// How often the slot was taken: with its number, which process it is.
    pub generation: AtomicU32,
    reserved_word: AtomicU32,
    reserved: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() <= PROCESS_SIZE);

// SAFETY: a slot is made of atomics and aligned like a word.
unsafe impl Part for Slot {}

/// The slot number `index`.
pub fn slot(segment: &Segment, index: usize) -> Result<&Slot> {
    if index >= PROCESSES {
        return Err(Error::Corrupt("a process has no place in the table"));
    }
    segment.part(segment.layout().processes + index * PROCESS_SIZE)
}

/// A place in the table, and the open file with the lock that says that its holder lives.
#[derive(Debug)]
pub struct Membership {
    /// The number of the slot.
    pub slot: usize,
    file: File,
}

impl Membership {
    /// Takes a free slot.
    ///
    /// # Errors
    /// [`Error::Crowded`] if there is none that is free, or whose holder is dead and cleaned up.
    pub fn take(segment: &Segment) -> Result<Self> {
        let file = kernel::open(segment)?;
        for index in 0..PROCESSES {
            let slot = slot(segment, index)?;
            if slot.state.load(Acquire) != FREE || !kernel::lock(&file, index)? {
                continue;
            }
            // Whoever was here between the two looks has died, or left.
            if slot.state.load(Acquire) != FREE {
                kernel::unlock(&file, index);
                continue;
            }
            slot.pid.store(0, Relaxed);
            slot.since.store(now(), Relaxed);
            slot.roots.store(0, Relaxed);
            slot.roots_size.store(0, Relaxed);
            slot.roots_free.store(0, Relaxed);
            slot.generation.fetch_add(1, Release);
            fault::point("process: slot filled");
            slot.state.store(TAKEN, Release);
            fault::point("process: slot taken");
            return Ok(Self { slot: index, file });
        }
        Err(Error::Crowded { what: "processes", limit: PROCESSES })
    }

    /// Makes it this process's own, until its death or until the result is dropped.
    pub fn settle(self, segment: &Segment) -> Result<Life> {
        let life = Life::holding(&self.file)?;
        // SAFETY: no arguments, no failure.
        slot(segment, self.slot)?.pid.store(unsafe { libc::getpid() }.cast_unsigned(), Relaxed);
        Ok(life)
    }
}

/// The lock of a dead process, so that nobody else cleans up behind it.
#[derive(Debug)]
pub struct Claim {
    slot: usize,
    file: File,
}

impl Claim {
    /// Claims a slot, unless its holder lives or somebody else is at it.
    pub fn take(segment: &Segment, slot: usize) -> Result<Option<Self>> {
        let file = kernel::open(segment)?;
        Ok(kernel::lock(&file, slot)?.then(|| Self { slot, file }))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Closing would not do if another thread just forked: the child has the file too.
        kernel::unlock(&self.file, self.slot);
    }
}

/// Seconds since the epoch.
pub(crate) fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
