//! One thread of another process under ptrace: stopped, looked at, changed, let go.

use crate::PtraceRequest;
use libc::{c_int, c_long, c_void, iovec, pid_t, user_regs_struct};
use std::cell::Cell;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::process::state;

/// The extended state of the processor, as `<elf.h>` calls it.
const NT_X86_XSTATE: usize = 0x202;
/// More than any processor has of it.
const XSTATE_BYTES: usize = 16 << 10;
/// `PTRACE_GETSIGMASK` and `PTRACE_SETSIGMASK` of `<linux/ptrace.h>`.
const GETSIGMASK: PtraceRequest = 0x420a;
const SETSIGMASK: PtraceRequest = 0x420b;
/// Between two looks whether a thread has stopped.
const LOOK: Duration = Duration::from_micros(20);

/// How long a thread that is to be let go is waited for.
const LETS_GO: Duration = Duration::from_secs(5);

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was asked to.
    Asked,
    /// It is about to get this signal.
    Signal(c_int),
    /// It is gone.
    Gone,
}

/// A thread that this one traces. When it is dropped it goes on.
pub struct Tracee<'a> {
    thread: pid_t,
    is_stopped: bool,
    is_gone: bool,
    /// When it stopped first.
    since: Option<Instant>,
    /// The longest that any thread did not do its own work.
    longest: &'a Cell<Duration>,
}

impl<'a> Tracee<'a> {
    /// Begins to trace a thread, which runs on. `longest` grows if it stands still for longer.
    pub fn seize(thread: u32, longest: &'a Cell<Duration>) -> io::Result<Self> {
        let thread = pid_t::try_from(thread).map_err(io::Error::other)?;
        request(libc::PTRACE_SEIZE, thread, 0, 0)?;
        Ok(Self { thread, is_stopped: false, is_gone: false, since: None, longest })
    }

    /// Stops it, wherever it is. `None` if it did not stop in time; it may still.
    pub fn stop(&mut self, patience: Duration) -> io::Result<Option<Stop>> {
        request(libc::PTRACE_INTERRUPT, self.thread, 0, 0)?;
        self.wait(patience)
    }

    /// Waits for its next stop.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Option<Stop>> {
        let end = Instant::now() + patience;
        loop {
            let mut status = 0;
            // SAFETY: `status` is valid for writing.
            let found = unsafe {
                libc::waitpid(self.thread, &raw mut status, libc::__WALL | libc::WNOHANG)
            };
            if found == self.thread {
                self.is_stopped = libc::WIFSTOPPED(status);
                self.is_gone = !self.is_stopped;
                self.since.get_or_insert_with(Instant::now);
                return Ok(Some(reason(status)));
            }
            if found < 0 {
                return Err(io::Error::last_os_error());
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether it runs, or would if it had a processor or its disk had answered.
    pub fn is_runnable(&self) -> bool {
        matches!(state(&Path::new("/proc").join(self.thread.to_string())), Some(b'R' | b'D'))
    }

    /// Lets it go on, with a signal if it was about to get one, up to its next stop.
    pub fn go_on(&mut self, signal: c_int) -> io::Result<()> {
        let signal = usize::try_from(signal).unwrap_or(0);
        request(libc::PTRACE_CONT, self.thread, 0, signal)?;
        self.is_stopped = false;
        Ok(())
    }

    /// Its registers.
    pub fn registers(&self) -> io::Result<user_regs_struct> {
        // SAFETY: all-zero is a valid set of registers.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        request(libc::PTRACE_GETREGS, self.thread, 0, (&raw mut registers) as usize)?;
        Ok(registers)
    }

    /// Changes them.
    pub fn set_registers(&self, registers: &user_regs_struct) -> io::Result<()> {
        request(libc::PTRACE_SETREGS, self.thread, 0, std::ptr::from_ref(registers) as usize)
    }

    /// What else the processor keeps of it, as the kernel writes it into signal frames.
    pub fn extended(&self) -> io::Result<Vec<u8>> {
        let mut state = vec![0; XSTATE_BYTES];
        let mut part = iovec { iov_base: state.as_mut_ptr().cast(), iov_len: state.len() };
        request(libc::PTRACE_GETREGSET, self.thread, NT_X86_XSTATE, (&raw mut part) as usize)?;
        state.truncate(part.iov_len);
        Ok(state)
    }

    /// Changes it.
    pub fn set_extended(&self, state: &[u8]) -> io::Result<()> {
        // The kernel only reads it.
        let part = iovec { iov_base: state.as_ptr().cast_mut().cast(), iov_len: state.len() };
        request(libc::PTRACE_SETREGSET, self.thread, NT_X86_XSTATE, (&raw const part) as usize)
    }

    /// The signals that it blocks.
    pub fn blocked_signals(&self) -> io::Result<u64> {
        let mut mask = 0u64;
        request(GETSIGMASK, self.thread, size_of::<u64>(), (&raw mut mask) as usize)?;
        Ok(mask)
    }

    /// Changes which they are.
    pub fn block_signals(&self, mut mask: u64) -> io::Result<()> {
        request(SETSIGMASK, self.thread, size_of::<u64>(), (&raw mut mask) as usize)
    }
}

/// Lets it go, if it has stopped; else the kernel does when this thread ends.
impl Drop for Tracee<'_> {
    fn drop(&mut self) {
        let mut signal = 0;
        if !self.is_stopped && !self.is_gone {
            // Only one that has stopped can be let go, and it stops when a processor runs it.
            if let Ok(Some(Stop::Signal(it))) = self.stop(LETS_GO) {
                signal = it;
            }
        }
        if self.is_stopped {
            let signal = usize::try_from(signal).unwrap_or(0);
            let _ = request(libc::PTRACE_DETACH, self.thread, 0, signal);
        }
        let stopped = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.longest.set(self.longest.get().max(stopped));
    }
}

fn reason(status: c_int) -> Stop {
    if !libc::WIFSTOPPED(status) {
        return Stop::Gone;
    }
    match (libc::WSTOPSIG(status), status >> 16) {
        (_, libc::PTRACE_EVENT_STOP) => Stop::Asked,
        (signal, _) => Stop::Signal(signal),
    }
}

fn request(what: PtraceRequest, thread: pid_t, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: what `address` and `data` point to is valid for what the request does with it: every
    // caller here passes numbers, or a place of the size that the kernel expects.
    let result: c_long =
        unsafe { libc::ptrace(what, thread, address as *mut c_void, data as *mut c_void) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::thread::yield_now;

    /// A shell that runs this, and its end.
    struct Shell(Child);

    impl Shell {
        fn running(words: &str) -> Self {
            let mut command = Command::new("sh");
            command.args(["-c", words]).stdin(Stdio::piped());
            Self(command.spawn().unwrap())
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_thread_that_computes_is_runnable_and_one_that_waits_is_not() {
        let (computing, waiting) =
            (Shell::running("while :; do :; done"), Shell::running("read x"));
        let longest = Cell::new(Duration::ZERO);
        let computing = Tracee::seize(computing.0.id(), &longest).unwrap();
        let waiting = Tracee::seize(waiting.0.id(), &longest).unwrap();
        while waiting.is_runnable() {
            yield_now();
        }
        assert!(computing.is_runnable());
    }
}
