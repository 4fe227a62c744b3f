//! A thread that runs is stopped, its registers and its stack are copied, and it goes on.
//!
//! A thread of ours does this and ends. Its end lets the other one go, whatever has happened: it
//! had not stopped yet, it had ended, or this process was killed. So nothing is waited for with
//! `wait`, which could take the end of a child from whoever waits for it. Only stops are made
//! (`PTRACE_SEIZE`, `PTRACE_INTERRUPT`): no signal is sent, and a system call begins anew by itself.
//! A few of those that wait (epoll_wait(2), see signal(7)) end with `EINTR` instead. So the stop is
//! asked for only after a look that showed the thread outside of system calls.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use libc::{c_long, c_void, iovec, pid_t, siginfo_t, user_regs_struct};
use ungil_attach::PtraceRequest;
use ungil_attach::memory::Memory;
use ungil_attach::process::{Process, state};

use crate::refusal::Refusal;
use crate::registers::Registers;
use crate::waiting::{Place, place_of};

/// How long a thread may take to stop. It stops when a processor runs it.
const PATIENCE: Duration = Duration::from_millis(8);
/// For so long it is looked at all the time, and then with pauses: a thread that runs stops at once,
/// another one may need the processor that looking takes.
const AT_ONCE: Duration = Duration::from_micros(30);
const PAUSE: Duration = Duration::from_micros(20);
/// From then on it may have ended.
const SUSPICIOUS: Duration = Duration::from_millis(1);
/// As much of a stack is copied. A frame is some 100 bytes, that of the evaluation loop up to 500.
const STACK_BYTES: usize = 128 << 10;

/// Copied while a thread stood still.
#[derive(Debug)]
pub struct Copied {
    /// Its registers.
    pub registers: Registers,
    /// The top of its stack.
    pub stack: Stack,
    /// How long it stood still at most; `None` if it was not stopped.
    pub stood: Option<Duration>,
}

/// The bytes from the stack pointer on.
#[derive(Debug, Default)]
pub struct Stack {
    start: u64,
    bytes: Vec<u8>,
}

impl Stack {
    /// Place for a copy. It is made before a thread is stopped.
    pub fn empty() -> Self {
        Self { start: 0, bytes: vec![0; STACK_BYTES] }
    }

    /// Copies what is there from `sp` on.
    pub fn copy(&mut self, memory: &Memory, sp: u64) -> io::Result<()> {
        let length = memory.up_to(sp, &mut self.bytes)?;
        self.bytes.truncate(length);
        self.start = sp;
        Ok(())
    }

    /// The word at an address, if it was copied.
    pub fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let word = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    }

    #[cfg(test)]
    pub fn of(start: u64, words: &[u64]) -> Self {
        Self { start, bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect() }
    }
}

/// Where thread `tid` is, with its stack. `Ok(None)` says that it began to wait in the kernel before
/// it was stopped. `prepare` is called first, on the thread that stops it.
pub fn stop_and_copy(
    process: Process,
    memory: &Memory,
    tid: u32,
    prepare: fn(),
) -> Result<Option<Copied>, Refusal> {
    let mut stack = Stack::empty();
    thread::scope(|scope| {
        let stopping = thread::Builder::new().name("ungil-stop".into());
        let stopping = stopping.spawn_scoped(scope, || {
            prepare();
            Stop { process, tid }.copy(memory, &mut stack)
        });
        let stopping = stopping.map_err(|error| Refusal::Unreadable(error.to_string()))?;
        stopping.join().unwrap_or_else(|_| Err(Refusal::Unreadable("a panic".into())))
    })
    .map(|copied| copied.map(|(registers, stood)| Copied { registers, stack, stood: Some(stood) }))
}

struct Stop {
    process: Process,
    tid: u32,
}

impl Stop {
    fn copy(
        &self,
        memory: &Memory,
        stack: &mut Stack,
    ) -> Result<Option<(Registers, Duration)>, Refusal> {
        self.ask(libc::PTRACE_SEIZE, 0, 0)?;
        if let Place::Waiting(_) = place_of(self.process, self.tid)? {
            return Ok(None);
        }
        self.ask(libc::PTRACE_INTERRUPT, 0, 0)?;
        let (registers, ran_until) = self.registers()?;
        let copied = stack.copy(memory, registers.sp);
        let signal = self.signal();
        let gone_on = self.ask(libc::PTRACE_DETACH, 0, signal);
        let stood = ran_until.elapsed();
        copied.map_err(|error| Refusal::of_read(self.process, &error))?;
        gone_on?;
        Ok(Some((registers, stood)))
    }

    /// Its registers once it has stopped, and the last moment at which it had not.
    fn registers(&self) -> Result<(Registers, Instant), Refusal> {
        let asked = Instant::now();
        let mut ran_until = asked;
        loop {
            // SAFETY: all-zero is a valid set of registers.
            let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
            let length = size_of::<user_regs_struct>();
            let mut part = iovec { iov_base: (&raw mut registers).cast(), iov_len: length };
            let kind = usize::try_from(libc::NT_PRSTATUS).unwrap_or_default();
            match request(libc::PTRACE_GETREGSET, self.tid, kind, (&raw mut part) as usize) {
                Ok(()) => return Ok((registers.into(), ran_until)),
                // That is what it says of a thread that has not stopped.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(Refusal::of_stop(self.process, &error)),
            }
            let waited = asked.elapsed();
            if waited > SUSPICIOUS && self.has_ended() {
                return Err(Refusal::Gone);
            }
            if waited > PATIENCE {
                return Err(Refusal::NotRun);
            }
            if waited > AT_ONCE {
                thread::sleep(PAUSE);
            } else {
                std::hint::spin_loop();
            }
            ran_until = Instant::now();
        }
    }

    /// The signal that it is about to get, if that is why it stopped.
    fn signal(&self) -> usize {
        // SAFETY: all-zero is a valid siginfo_t.
        let mut info: siginfo_t = unsafe { std::mem::zeroed() };
        if request(libc::PTRACE_GETSIGINFO, self.tid, 0, (&raw mut info) as usize).is_err() {
            return 0;
        }
        let is_own_stop = info.si_code >> 8 == libc::PTRACE_EVENT_STOP;
        if is_own_stop { 0 } else { usize::try_from(info.si_signo).unwrap_or(0) }
    }

    fn has_ended(&self) -> bool {
        let folder = self.process.folder().join("task").join(self.tid.to_string());
        matches!(state(&folder), None | Some(b'Z' | b'X'))
    }

    fn ask(&self, what: PtraceRequest, address: usize, data: usize) -> Result<(), Refusal> {
        request(what, self.tid, address, data)
            .map_err(|error| Refusal::of_stop(self.process, &error))
    }
}

fn request(what: PtraceRequest, tid: u32, address: usize, data: usize) -> io::Result<()> {
    let thread = pid_t::try_from(tid).map_err(io::Error::other)?;
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

    /// A child that computes, and its memory.
    fn busy() -> (Child, Process, Memory) {
        let mut command = Command::new("/bin/sh");
        let child = command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        let child = child.unwrap();
        let process = Process { pid: child.id() };
        // Until exec it is a copy of this process.
        while std::fs::read(process.folder().join("comm")).unwrap() != b"sh\n" {
            thread::yield_now();
        }
        (child, process, Memory::of(process).unwrap())
    }

    #[test]
    fn a_thread_that_runs_is_copied_and_goes_on() {
        let (mut child, process, memory) = busy();
        let mut looks = 0;
        while looks < 5 {
            match stop_and_copy(process, &memory, process.pid, || ()) {
                Ok(Some(copied)) => {
                    looks += 1;
                    assert!(copied.stack.word(copied.registers.sp).is_some());
                    assert!(copied.stood.is_some());
                }
                Ok(None) | Err(Refusal::NotRun) => {}
                Err(error) => panic!("{error}"),
            }
        }
        // Its tracer's end may come a moment after the answer.
        while process.number("TracerPid") != Some(0) {
            thread::yield_now();
        }
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(9));
        assert_eq!(stop_and_copy(process, &memory, process.pid, || ()).unwrap_err(), Refusal::Gone);
    }

    #[test]
    fn no_thread_of_this_process_can_be_stopped() {
        let own = Process { pid: std::process::id() };
        let memory = Memory::of(own).unwrap();
        let refused = stop_and_copy(own, &memory, own.pid, || ()).unwrap_err();
        assert!(refused.is_final(), "{refused}");
    }

    #[test]
    fn a_word_that_was_not_copied_is_not_known() {
        let stack = Stack::of(0x1000, &[7, 8]);
        assert_eq!(stack.word(0x1000), Some(7));
        assert_eq!(stack.word(0x1008), Some(8));
        assert_eq!(stack.word(0x1009), None);
        assert_eq!(stack.word(0xfff), None);
        assert_eq!(stack.word(u64::MAX), None);
    }
}
