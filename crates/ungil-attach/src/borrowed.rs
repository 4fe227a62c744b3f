//! A thread that is borrowed: it calls functions for us, then goes on where it was.

use libc::user_regs_struct;
use std::io;
use std::time::{Duration, Instant};

use crate::frame::{self, Frame};
use crate::memory::Memory;
use crate::place::Places;
use crate::tracee::{Stop, Tracee};

/// How long a thread may take to stop. One that the kernel does not run takes longer.
const STOPS: Duration = Duration::from_millis(20);
/// How long a function may take. After that the thread is let go, and finishes by itself.
const CALLS: Duration = Duration::from_secs(2);
/// The direction flag, which is clear wherever a function begins.
const DIRECTION: u64 = 0x400;
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// A thread that has stopped where it may call any function.
pub struct Borrowed<'a> {
    tracee: Tracee,
    memory: &'a Memory,
    signal_return: u64,
    /// What it comes back to.
    registers: user_regs_struct,
    extended: Vec<u8>,
    blocked_signals: u64,
    /// Whether it is where it was.
    is_back: bool,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The function has returned.
    Returned,
    /// It would have crashed, and was stopped before.
    Crashed,
    /// It takes longer than anybody waits here; the thread finishes it by itself.
    Unfinished,
    /// The thread, or the process, ended in it.
    Gone,
}

impl<'a> Borrowed<'a> {
    /// Stops a thread and keeps it if it may be borrowed where it is; else it goes on.
    pub fn try_borrow(
        thread: u32,
        memory: &'a Memory,
        places: &Places,
    ) -> io::Result<Option<Self>> {
        let Some(signal_return) = places.signal_return() else { return Ok(None) };
        let mut tracee = Tracee::seize(thread)?;
        if !stops(&mut tracee)? {
            return Ok(None);
        }
        let registers = tracee.registers()?;
        if !places.is_safe(memory, &registers)? {
            return Ok(None);
        }
        let (extended, blocked_signals) = (tracee.extended()?, tracee.blocked_signals()?);
        let is_back = true;
        Ok(Some(Self {
            tracee,
            memory,
            signal_return,
            registers,
            extended,
            blocked_signals,
            is_back,
        }))
    }

    /// Has it call `function`. `arguments` makes the arguments from the address of the thread's own
    /// copy of `bytes`; what that copy is after the call goes back to `bytes`.
    pub fn call(
        &mut self,
        function: u64,
        bytes: &mut [u8],
        arguments: impl FnOnce(u64) -> [u64; 3],
    ) -> io::Result<Call> {
        let Self { registers, extended, blocked_signals, signal_return, .. } = self;
        let frame = Frame::new(registers, extended, *blocked_signals, *signal_return, bytes);
        self.memory.write(frame.start, &frame.bytes)?;
        let [first, second, third] = arguments(frame.arguments);
        self.tracee.set_registers(&user_regs_struct {
            rip: function,
            rsp: frame.start,
            rdi: first,
            rsi: second,
            rdx: third,
            rax: 0,
            eflags: self.registers.eflags & !DIRECTION,
            // It is in no system call, so none is made anew.
            orig_rax: u64::MAX,
            ..self.registers
        })?;
        let called = self.run(&frame)?;
        match called {
            Call::Returned => self.memory.read(frame.arguments, bytes)?,
            Call::Crashed => {
                self.tracee.set_registers(&self.registers)?;
                self.tracee.set_extended(&self.extended)?;
            }
            Call::Unfinished | Call::Gone => self.is_back = false,
        }
        Ok(called)
    }

    /// Lets it run until the function has returned.
    fn run(&mut self, frame: &Frame) -> io::Result<Call> {
        let end = Instant::now() + CALLS;
        let mut signal = 0;
        loop {
            self.tracee.go_on_to_call(signal)?;
            signal = 0;
            let left = end.saturating_duration_since(Instant::now());
            match self.tracee.wait(left)? {
                None => return Ok(Call::Unfinished),
                Some(Stop::Gone) => return Ok(Call::Gone),
                Some(Stop::Asked) => {}
                Some(Stop::Signal(it)) if FAULTS.contains(&it) => return Ok(Call::Crashed),
                // Its own: the program is to have it.
                Some(Stop::Signal(it)) => signal = it,
                Some(Stop::Call) => {
                    let at = self.tracee.registers()?;
                    if at.orig_rax.cast_signed() == libc::SYS_rt_sigreturn
                        && at.rsp == frame.at_return()
                    {
                        return self.leave_call();
                    }
                }
            }
        }
    }

    /// The thread is about to go back by the frame. It does not have to: that would make a system call
    /// that it was in wait for its whole time-out again.
    ///
    /// This process may be killed between any two steps here, and after each the thread goes on well.
    fn leave_call(&mut self) -> io::Result<Call> {
        // Where the frame leads, without it: no system call is made.
        let registers = frame::restarted(&self.registers);
        self.tracee.set_registers(&user_regs_struct { orig_rax: u64::MAX, ..registers })?;
        self.tracee.set_extended(&self.extended)?;
        self.tracee.go_on_to_call(0)?;
        loop {
            match self.tracee.wait(CALLS)? {
                Some(Stop::Call) => return Ok(Call::Returned),
                Some(Stop::Gone) => return Ok(Call::Gone),
                Some(Stop::Asked | Stop::Signal(_)) => self.tracee.go_on_to_call(0)?,
                None => return Ok(Call::Unfinished),
            }
        }
    }

    /// Lets it go. In the end it is as if it had stopped for a moment: the kernel makes its system call
    /// anew, as after a signal without a handler, once it has stopped again on its way.
    pub fn give_back(mut self) -> io::Result<()> {
        self.tracee.interrupt_next()?;
        if self.is_back {
            self.tracee.set_registers(&self.registers)?;
        }
        let mut signal = 0;
        loop {
            self.tracee.go_on(signal)?;
            match self.tracee.wait(CALLS)? {
                Some(Stop::Signal(it)) => signal = it,
                _ => return Ok(()),
            }
        }
    }
}

/// Stops a thread, past the signals that it is about to get.
fn stops(tracee: &mut Tracee) -> io::Result<bool> {
    let mut found = tracee.stop(STOPS)?;
    loop {
        match found {
            Some(Stop::Asked) => return Ok(true),
            Some(Stop::Signal(signal)) => tracee.go_on(signal)?,
            Some(Stop::Call) => tracee.go_on(0)?,
            Some(Stop::Gone) | None => return Ok(false),
        }
        found = tracee.wait(STOPS)?;
    }
}
