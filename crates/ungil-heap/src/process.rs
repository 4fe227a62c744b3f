//! Who is attached to a heap, and who is dead.
//!
//! Each attached process has a slot of the table and holds a lock of the kernel (an *open file
//! description lock*, fcntl(2)) on the byte of the file with the slot's number. The kernel lets go
//! of it at the moment of death, whatever kills the process, before anybody has waited for it;
//! process numbers, which are used again and differ between containers, play no part.
//!
//! A lock belongs to an open file, not to a process, so a fork would share it. Therefore the parent
//! prepares a slot with an open file of its own before it forks ([`Membership::reserve`]), keeps it
//! out of its own hands afterwards, and the child has it alone. If the fork fails, closing it is
//! enough.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::header::{PROCESS_SIZE, PROCESSES};
use crate::segment::Segment;
use crate::{Error, Result, fault};

/// Nobody.
pub const FREE: u32 = 0;
/// A process, if the kernel's lock is held; else a dead one, to be cleaned up.
pub const TAKEN: u32 = 1;

/// An entry of the process table.
#[repr(C)]
#[derive(Debug)]
pub struct Slot {
    /// [`FREE`] or [`TAKEN`].
    pub state: AtomicU32,
    /// Its number in its own namespace, for people.
    pub pid: AtomicU32,
    /// The table of its references: an offset, 0 at first (see [`crate::roots`]).
    pub roots: AtomicU64,
    /// Bytes of that table.
    pub roots_size: AtomicU64,
    /// Seconds since the epoch when it attached.
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

/// A place in the table, and the lock that says that its holder lives.
#[derive(Debug)]
pub struct Membership {
    /// The number of the slot.
    pub slot: usize,
    life: OwnedFd,
}

impl Membership {
    /// Takes a free slot.
    ///
    /// # Errors
    /// [`Error::Crowded`] if there is none that is free or whose holder is dead and cleaned up.
    pub fn take(segment: &Segment) -> Result<Self> {
        let life = segment.reopened()?;
        for index in 0..PROCESSES {
            let slot = slot(segment, index)?;
            if slot.state.load(Acquire) != FREE || !lock(&life, index)? {
                continue;
            }
            // Whoever was here between the two looks has died, or left.
            if slot.state.load(Acquire) != FREE {
                unlock(&life, index);
                continue;
            }
            // SAFETY: no arguments, no failure.
            slot.pid.store(unsafe { libc::getpid() }.cast_unsigned(), Relaxed);
            slot.since.store(now(), Relaxed);
            slot.roots.store(0, Relaxed);
            slot.roots_size.store(0, Relaxed);
            slot.roots_free.store(0, Relaxed);
            fault::point("process: slot filled");
            slot.state.store(TAKEN, Release);
            fault::point("process: slot taken");
            return Ok(Self { slot: index, life });
        }
        Err(Error::Crowded { what: "processes", limit: PROCESSES })
    }

    /// Somebody who has no slot, and only cleans up.
    pub fn onlooker(segment: &Segment) -> Result<Self> {
        Ok(Self { slot: usize::MAX, life: segment.reopened()? })
    }

    /// Takes the lock of a dead process's slot, so that nobody else cleans up behind it.
    pub fn claim_dead(&self, index: usize) -> Result<bool> {
        lock(&self.life, index)
    }

    /// Lets go of what [`Self::claim_dead`] took.
    pub fn release_dead(&self, index: usize) {
        unlock(&self.life, index);
    }

    /// Whether the holder of a taken slot has died.
    pub fn is_dead(&self, index: usize) -> Result<bool> {
        Ok(index != self.slot && !is_locked(&self.life, index)?)
    }
}

/// Seconds since the epoch.
pub(crate) fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

fn lock(file: &OwnedFd, byte: usize) -> Result<bool> {
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

fn unlock(file: &OwnedFd, byte: usize) {
    // Unlocking what is locked cannot fail.
    drop(control(file, libc::F_OFD_SETLK, libc::F_UNLCK, byte));
}

fn is_locked(file: &OwnedFd, byte: usize) -> Result<bool> {
    let answer = control(file, libc::F_OFD_GETLK, libc::F_WRLCK, byte)?;
    Ok(libc::c_int::from(answer.l_type) != libc::F_UNLCK)
}

fn control(
    file: &OwnedFd,
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
