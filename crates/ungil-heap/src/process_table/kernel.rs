//! The locks of the kernel that say who lives: see [`crate::process_table`].

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use crate::header::PAGE;
use crate::segment::{self, Segment};
use crate::{Error, Result};

/// An open file, with the locks that were taken with it.
pub(super) type File = OwnedFd;

/// An open file of its own: the kernel keeps threads apart, too.
pub(super) fn open(segment: &Segment) -> Result<File> {
    segment.reopened()
}

/// Keeps a process's lock as long as it lives. Does not exist in forked children.
#[derive(Debug)]
pub struct Life(NonNull<u8>);

// SAFETY: the mapping belongs to the process, and nobody looks into it.
unsafe impl Send for Life {}

impl Life {
    pub(super) fn holding(file: &OwnedFd) -> Result<Self> {
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

/// Whether nobody holds the lock of a slot.
pub fn is_dead(segment: &Segment, index: usize) -> Result<bool> {
    let answer = control(segment.file()?, libc::F_OFD_GETLK, libc::F_WRLCK, index)?;
    Ok(libc::c_int::from(answer.l_type) == libc::F_UNLCK)
}

/// Takes the lock of a slot; false: somebody has it.
pub(super) fn lock(file: &File, byte: usize) -> Result<bool> {
    match control(file.as_fd(), libc::F_OFD_SETLK, libc::F_WRLCK, byte) {
        Ok(_) => Ok(true),
        Err(Error::Io { error, .. })
            if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Lets go of the lock of a slot.
pub(super) fn unlock(file: &File, byte: usize) {
    // Unlocking what is locked cannot fail.
    drop(control(file.as_fd(), libc::F_OFD_SETLK, libc::F_UNLCK, byte));
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
