//! Waking a process that waits in standby: it gets `SIGURG`, if it handles that.

use std::fs;

/// Where the handled signals of a process stand in its `status`.
const HANDLED: &str = "SigCgt:";

/// Wakes process `pid`, and says whether it could. A thread that runs is preferred: one that waits
/// would see its system call interrupted.
pub fn wake(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let handled = status.lines().find_map(|line| line.strip_prefix(HANDLED));
    let handled = handled.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0);
    if handled >> (libc::SIGURG - 1) & 1 == 0 {
        return false;
    }
    let (Ok(process), thread) = (libc::pid_t::try_from(pid), running_thread(pid)) else {
        return false;
    };
    if let Some(thread) = thread {
        // SAFETY: takes integers.
        if unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGURG) } == 0 {
            return true;
        }
    }
    // SAFETY: takes integers.
    unsafe { libc::kill(process, libc::SIGURG) == 0 }
}

/// A thread of the process that a processor runs, or that waits for one.
fn running_thread(pid: u32) -> Option<libc::pid_t> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.filter_map(Result::ok);
    threads.into_iter().find_map(|thread| {
        let stat = fs::read(thread.path().join("stat")).ok()?;
        // Its name, in parentheses, may contain anything; the state follows.
        let after = stat.iter().rposition(|&byte| byte == b')')?;
        let runs = stat.get(after + 2) == Some(&b'R');
        runs.then(|| thread.file_name().to_str()?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_handle_the_signal_gets_none() {
        // Nothing in this process handles it, nor in the first one of the system.
        assert!(!wake(std::process::id()));
        assert!(!wake(1 << 23));
    }

    #[test]
    fn a_thread_that_runs_is_found() {
        // This one does, while it reads.
        assert!(running_thread(std::process::id()).is_some());
    }
}
