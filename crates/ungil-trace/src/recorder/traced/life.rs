//! Whether a process still lives.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The life of a process.
pub(super) struct Life {
    /// Readable once it is over; `None` if it already was.
    fd: Option<OwnedFd>,
}

impl Life {
    /// That of the process `pid`.
    pub(super) fn of(pid: u32) -> Self {
        // SAFETY: pidfd_open takes a process id and flags.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0);
        // SAFETY: a new descriptor, owned by nobody else.
        Self { fd: fd.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }) }
    }

    /// Whether the process has ended. Whoever started it may not have waited for it yet.
    pub(super) fn is_over(&self) -> bool {
        let Some(fd) = &self.fd else { return true };
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd; a timeout of 0 does not block.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_has_ended_does_not_live_before_it_was_waited_for_or_after() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let life = Life::of(child.id());
        assert!(!life.is_over());
        drop(child.stdin.take());
        // Its end is waited for, but it stays until `wait`.
        let mut poll = libc::pollfd {
            fd: life.fd.as_ref().unwrap().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one valid pollfd; it blocks until the child ends.
        assert_eq!(unsafe { libc::poll(&raw mut poll, 1, -1) }, 1);
        assert!(life.is_over());
        child.wait().unwrap();
        assert!(life.is_over());
        assert!(Life::of(u32::MAX).is_over());
    }
}
