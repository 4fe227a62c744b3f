//! What an interpreter does to signals, and the program that takes its place should not inherit.

/// Undoes what Python does to signals when it starts and exec would pass on: ignoring SIGPIPE and
/// SIGXFSZ. Safe after fork.
pub fn restore_signals() {
    for number in [libc::SIGPIPE, libc::SIGXFSZ] {
        // SAFETY: the default disposition runs no code of this process.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_killed_by_the_signals_that_python_ignores() {
        for number in [libc::SIGPIPE, libc::SIGXFSZ] {
            // SAFETY: to ignore a signal runs no code of this process.
            unsafe { libc::signal(number, libc::SIG_IGN) };
        }
        restore_signals();
        for number in [libc::SIGPIPE, libc::SIGXFSZ] {
            // SAFETY: to ignore a signal runs no code of this process; what was there before comes back.
            let before = unsafe { libc::signal(number, libc::SIG_IGN) };
            assert_eq!(before, libc::SIG_DFL);
        }
    }
}
