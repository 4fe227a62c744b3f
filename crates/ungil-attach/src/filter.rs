//! Whether a filter of system calls (seccomp) would kill who looks into another process.
//!
//! A filter may refuse a call, which is an error like any other, or kill who makes it, which would
//! be this process. So where there is a filter, a process that is thrown away makes the call first.

use std::fs;
use std::sync::OnceLock;

/// What is done to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Its memory is read: `process_vm_readv`.
    Read,
    /// It is traced: `ptrace`.
    Trace,
}

/// Whether the filter of this process kills who makes this call. Found out once.
pub fn kills(call: Call) -> bool {
    static READ: OnceLock<bool> = OnceLock::new();
    static TRACE: OnceLock<bool> = OnceLock::new();
    let (known, number) = match call {
        Call::Read => (&READ, libc::SYS_process_vm_readv),
        Call::Trace => (&TRACE, libc::SYS_ptrace),
    };
    *known.get_or_init(|| is_filtered() && kills_a_child(number))
}

/// See "Seccomp" in `proc_pid_status(5)`.
fn is_filtered() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|it| it.contains("\nSeccomp:\t2"))
}

/// Has a child make the call, on no process, and says whether it was killed.
fn kills_a_child(number: libc::c_long) -> bool {
    // A process like fork's, but without its handlers and without a signal at its end: nobody else
    // in this process notices it.
    // SAFETY: no memory is shared, and the child makes system calls alone.
    let child = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    if child == 0 {
        // SAFETY: it has no preconditions. The end of the child is to leave no core file.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
        // SAFETY: no process has the number -1, so nothing is looked at.
        unsafe { libc::syscall(number, -1, -1, 0, 0, 0, 0) };
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(0) };
    }
    let Ok(child) = libc::pid_t::try_from(child) else { return false };
    if child < 0 {
        return false;
    }
    let mut status = 0;
    loop {
        // SAFETY: the pointer is to a local variable.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) };
        if ended == child {
            return libc::WIFSIGNALED(status);
        }
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_filtered_does_not_kill_and_leaves_no_child() {
        for call in [libc::SYS_process_vm_readv, libc::SYS_ptrace] {
            assert!(!kills_a_child(call));
        }
        // SAFETY: the status is not wanted.
        let left = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG) };
        assert_eq!(left, -1);
    }
}
