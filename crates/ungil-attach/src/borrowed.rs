//! A thread that is borrowed: it calls functions for us, then goes on where it was.

use libc::user_regs_struct;
use std::io;
use std::time::{Duration, Instant};

use crate::frame::Frame;
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
        Ok(Some(Self { tracee, memory, signal_return, registers, extended, blocked_signals }))
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
            Call::Returned => {
                self.memory.read(frame.arguments, bytes)?;
                self.restore()?;
            }
            Call::Crashed => self.restore()?,
            Call::Unfinished | Call::Gone => {}
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
                        return self.leave_call(at);
                    }
                }
            }
        }
    }

    /// The thread is about to go back by the frame. It does not have to: a system call that it was
    /// in would wait for its whole time-out again.
    fn leave_call(&mut self, at: user_regs_struct) -> io::Result<Call> {
        self.tracee.set_registers(&user_regs_struct { orig_rax: u64::MAX, ..at })?;
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

    /// Puts it back to where it was. There the kernel makes its system call anew, as after a signal
    /// without a handler, if the thread stops once more on its way.
    fn restore(&mut self) -> io::Result<()> {
        self.tracee.set_registers(&self.registers)?;
        self.tracee.set_extended(&self.extended)
    }

    /// Lets it go. In the end it is as if it had stopped for a moment.
    pub fn give_back(mut self) -> io::Result<()> {
        self.tracee.interrupt_next()?;
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
