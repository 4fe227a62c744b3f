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

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::header::{PAGE, PROCESS_SIZE, PROCESSES};
use crate::segment::{self, Segment};
use crate::{Error, Result, fault};

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
pub struct Slot {
    /// [`FREE`], [`TAKEN`] or [`LEFT`].
    pub state: AtomicU32,
    /// Its number in its own namespace, for people; 0 if it is about to be forked.
    pub pid: AtomicU32,
    /// The table of its references: an offset, 0 at first (see [`crate::roots`]).
    pub roots: AtomicU64,
    /// Bytes of that table.
    pub roots_size: AtomicU64,
    /// Seconds since the epoch when it attached, or ended.
    pub since: AtomicU64,
    /// The first free entry of the table, plus 1, or 0. Guarded by the lock, as the table is.
    pub roots_free: AtomicU32,
    /// The lock of the table. What a dead process left in it is known to be nobody's.
    pub roots_lock: AtomicU32,
    reserved: [AtomicU64; 2],
}

const _: () = assert!(size_of::<Slot>() <= PROCESS_SIZE);

/// The slot number `index`.
pub fn slot(segment: &Segment, index: usize) -> Result<&Slot> {
    if index >= PROCESSES {
        return Err(Error::Corrupt("a process has no place in the table"));
    }
    let words =
        segment.words(segment.layout().processes + index * PROCESS_SIZE, PROCESS_SIZE / 8)?;
    // SAFETY: a slot is made of atomics, no larger than these words and aligned like them.
    Ok(unsafe { &*words.as_ptr().cast::<Slot>() })
}

/// A place in the table, and the open file with the lock that says that its holder lives.
#[derive(Debug)]
pub struct Membership {
    /// The number of the slot.
    pub slot: usize,
    file: OwnedFd,
}

impl Membership {
    /// Takes a free slot.
    ///
    /// # Errors
    /// [`Error::Crowded`] if there is none that is free, or whose holder is dead and cleaned up.
    pub fn take(segment: &Segment) -> Result<Self> {
        let file = segment.reopened()?;
        for index in 0..PROCESSES {
            let slot = slot(segment, index)?;
            if slot.state.load(Acquire) != FREE || !lock(file.as_fd(), index)? {
                continue;
            }
            // Whoever was here between the two looks has died, or left.
            if slot.state.load(Acquire) != FREE {
                unlock(file.as_fd(), index);
                continue;
            }
            slot.pid.store(0, Relaxed);
            slot.since.store(now(), Relaxed);
            slot.roots.store(0, Relaxed);
            slot.roots_size.store(0, Relaxed);
            slot.roots_free.store(0, Relaxed);
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

/// Keeps a process's lock as long as it lives. Does not exist in forked children.
#[derive(Debug)]
pub struct Life(NonNull<u8>);

// SAFETY: the mapping belongs to the process, and nobody looks into it.
unsafe impl Send for Life {}

impl Life {
    fn holding(file: &OwnedFd) -> Result<Self> {
        let life = Self(segment::map(file, PAGE, libc::PROT_NONE)?);
        // SAFETY: our own mapping.
        let result = unsafe { libc::madvise(life.0.as_ptr().cast(), PAGE, libc::MADV_DONTFORK) };
        if result == 0 { Ok(life) } else { Err(Error::last("madvise(MADV_DONTFORK)")) }
    }

    /// In a forked child, where something else may be in its place.
    pub fn was_not_inherited(self) {
        std::mem::forget(self);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody looks into.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE) };
    }
}

/// The lock of a dead process, so that nobody else cleans up behind it.
#[derive(Debug)]
pub struct Claim {
    slot: usize,
    file: OwnedFd,
}

impl Claim {
    /// Claims a slot, unless its holder lives or somebody else is at it.
    pub fn take(segment: &Segment, slot: usize) -> Result<Option<Self>> {
        // An open file of its own: the kernel keeps threads apart, too.
        let file = segment.reopened()?;
        Ok(lock(file.as_fd(), slot)?.then_some(Self { slot, file }))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Closing would not do if another thread just forked: the child has the file too.
        unlock(self.file.as_fd(), self.slot);
    }
}

/// Whether nobody holds the lock of a slot.
pub fn is_dead(segment: &Segment, index: usize) -> Result<bool> {
    let answer = control(segment.file()?, libc::F_OFD_GETLK, libc::F_WRLCK, index)?;
    Ok(libc::c_int::from(answer.l_type) == libc::F_UNLCK)
}

/// Seconds since the epoch.
pub(crate) fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

fn lock(file: BorrowedFd<'_>, byte: usize) -> Result<bool> {
    match control(file, libc::F_OFD_SETLK, libc::F_WRLCK, byte) {
        Ok(_) => Ok(true),
        Err(Error::Io { error, .. })
            if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn unlock(file: BorrowedFd<'_>, byte: usize) {
    // Unlocking what is locked cannot fail.
    drop(control(file, libc::F_OFD_SETLK, libc::F_UNLCK, byte));
}

#[expect(clippy::cast_possible_truncation, reason = "constants that fcntl(2) has as short")]
fn control(
    file: BorrowedFd<'_>,
    command: libc::c_int,
    kind: libc::c_int,
    byte: usize,
) -> Result<libc::flock> {
    // SAFETY: all zeros are a valid request; the process number must be 0 for these commands.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = kind as libc::c_short;
    request.l_whence = libc::SEEK_SET as libc::c_short;
    request.l_start = byte.cast_signed() as libc::off_t;
    request.l_len = 1;
    // SAFETY: the request lives during the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut request) } != 0 {
        return Err(Error::last("fcntl(F_OFD_...)"));
    }
    Ok(request)
}
