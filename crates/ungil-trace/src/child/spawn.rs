//! Fork and exec, with the signals that the program is to begin with.
//!
//! `std::process` lets signals through in the child before it can be told which, and a signal to
//! the process group would be lost there. Here it waits until the program has begun.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use libc::{c_int, pid_t};
use ungil_control::signals::restore_signals;

use crate::signals::{self, Disposition, Mask};

/// A program to start.
pub struct Command {
    executable: CString,
    words: Vec<CString>,
    environment: Vec<CString>,
}

impl Command {
    /// The file `executable` with the command line `words`, its name among them, in an
    /// environment. `InvalidInput` if there is a NUL in any of it.
    pub fn new(
        executable: &OsStr,
        words: &[OsString],
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let text = |it: &OsStr| CString::new(it.as_bytes());
        Ok(Self {
            executable: text(executable)?,
            words: words.iter().map(|word| text(word)).collect::<Result<_, _>>()?,
            environment: environment
                .into_iter()
                .map(|(mut name, value)| {
                    name.push("=");
                    name.push(value);
                    text(&name)
                })
                .collect::<Result<_, _>>()?,
        })
    }
}

/// What a program begins with that exec does not give it by itself.
#[derive(Clone, Copy)]
pub struct Start<'held> {
    /// The signals that are blocked in it.
    pub mask: Mask,
    /// Whether it ignores the end of its children.
    pub ignores_children: bool,
    /// What the signals do that no thread of this process may keep.
    pub reserved: &'held [Disposition; 2],
}

/// Starts a program and returns its process id, or why the system refuses.
pub fn spawn(command: &Command, start: Start<'_>) -> io::Result<pid_t> {
    let (words, environment) = (pointers(&command.words), pointers(&command.environment));
    let (reader, writer) = pipe()?;
    // SAFETY: the child calls nothing but what is safe after the fork of a process with threads.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let error = become_program(&command.executable, &words, &environment, start);
            let report = error.to_ne_bytes();
            // SAFETY: the bytes live during the call.
            unsafe { libc::write(writer.as_raw_fd(), report.as_ptr().cast(), report.len()) };
            // SAFETY: ends the process, and runs nothing of the parent's.
            unsafe { libc::_exit(127) }
        }
        _ => {
            drop(writer);
            refusal(reader).map_or(Ok(pid), |error| {
                // SAFETY: a child of ours that has nothing left to do but end.
                unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
                Err(error)
            })
        }
    }
}

/// Why the child has not become the program; `None` if it has: then exec has closed the pipe.
fn refusal(reader: OwnedFd) -> Option<io::Error> {
    let mut report = [0; 4];
    let said = File::from(reader).read_exact(&mut report);
    said.is_ok().then(|| io::Error::from_raw_os_error(c_int::from_ne_bytes(report)))
}

/// Returns the error number if the system refuses. Safe after fork.
fn become_program(
    executable: &CStr,
    words: &[*const c_char],
    environment: &[*const c_char],
    start: Start<'_>,
) -> c_int {
    restore_signals();
    if start.ignores_children {
        // SAFETY: ignoring runs no code of this process.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    }
    start.reserved.iter().for_each(Disposition::restore);
    signals::set_mask(start.mask);
    // SAFETY: NUL-terminated strings, in arrays that end with a null pointer.
    unsafe { libc::execve(executable.as_ptr(), words.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error().raw_os_error().unwrap_or_default()
}

/// Pointers to strings, and a null pointer behind them.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|it| it.as_ptr()).chain([ptr::null()]).collect()
}

/// A pipe that programs do not inherit, for reading and for writing.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    // SAFETY: there is room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new descriptors that nobody else owns.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }).into())
}
