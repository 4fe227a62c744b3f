//! A lock that its holder cannot leave behind: the kernel lets go of it when the last descriptor of
//! the open file is closed, whatever ends the process. Process ids, which are used again and differ
//! between containers, play no part. See flock(2).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Locks an open file, or folder; `false` if somebody else has locked it.
///
/// Fails on file systems without locks.
pub fn try_lock(file: &File) -> io::Result<bool> {
    flock(file, libc::LOCK_EX)
}

/// Whether somebody else has locked an open file. `false` also where that cannot be told.
pub fn is_locked(file: &File) -> bool {
    // Several may ask at once.
    flock(file, libc::LOCK_SH).is_ok_and(|is_free| !is_free)
}

fn flock(file: &File, kind: libc::c_int) -> io::Result<bool> {
    // SAFETY: takes integers.
    if unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        error => Err(error),
    }
}
