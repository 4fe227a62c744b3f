//! Why there is no native stack.

use std::fs;
use std::io;

use ungil_attach::process::Process;

/// Each is a clause about the process or its thread, without a final dot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The thread or its process has ended.
    #[error("it has ended")]
    Gone,
    /// It did not stop in time, because the kernel did not run it; it was let go.
    #[error("the kernel did not run it")]
    NotRun,
    /// It did not wait in the kernel, and was not to be stopped.
    #[error("it is running, and ungil must not stop it")]
    NotWaiting,
    /// Another process traces it.
    #[error("{0} traces it already")]
    Traced(Process),
    /// The kernel does not tell whether it waits in a system call, which a stop could end. Final.
    #[error("this kernel does not tell whether a thread waits (/proc/PID/syscall)")]
    Untold,
    /// The platform forbids to stop it. Final.
    #[error("{0}")]
    Forbidden(String),
    /// What was read makes no sense, mostly because it changed meanwhile.
    #[error("its memory could not be read: {0}")]
    Unreadable(String),
}

impl Refusal {
    /// Whether no later look at the same process can do better.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Forbidden(_) | Self::Untold)
    }

    /// What an error of the system means, when a thread of `process` was to be stopped.
    pub(crate) fn of_stop(process: Process, error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ESRCH) => Self::Gone,
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => match process.tracer() {
                Some(by) => Self::Traced(by),
                None => Self::Forbidden(why_forbidden().to_owned()),
            },
            _ => Self::Unreadable(error.to_string()),
        }
    }

    /// What an error of the system means, when its memory was to be read.
    pub(crate) fn of_read(process: Process, error: &io::Error) -> Self {
        match error.raw_os_error() {
            _ if !process.folder().exists() => Self::Gone,
            Some(libc::ESRCH | libc::ENOENT) => Self::Gone,
            Some(libc::EPERM | libc::EACCES) => Self::Forbidden(why_forbidden().to_owned()),
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

fn why_forbidden() -> &'static str {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "3" => "kernel.yama.ptrace_scope is 3, so no process may stop another one",
        "2" => {
            "kernel.yama.ptrace_scope is 2, so only a process with CAP_SYS_PTRACE may stop another"
        }
        _ => {
            "the platform refuses ptrace (a seccomp profile, a security module, or another user's \
             process)"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_is_a_reason() {
        let own = Process { pid: std::process::id() };
        let of = |number| Refusal::of_stop(own, &io::Error::from_raw_os_error(number));
        assert_eq!(of(libc::ESRCH), Refusal::Gone);
        assert!(of(libc::EPERM).is_final() && !of(libc::EIO).is_final());
        let none = Process { pid: u32::MAX };
        let read = Refusal::of_read(none, &io::Error::from_raw_os_error(libc::EIO));
        assert_eq!(read, Refusal::Gone);
    }
}
