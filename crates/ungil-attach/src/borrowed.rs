//! A thread that is borrowed: it calls functions for us, then goes on where it was.

use libc::user_regs_struct;
use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use crate::frame::{Frame, MARK, WayBack};
use crate::memory::Memory;
use crate::place::Places;
use crate::tracee::{Stop, Tracee};

/// How long a thread may take to stop: until the kernel runs it. It goes on meanwhile.
const STOPS: Duration = Duration::from_millis(500);
/// How long a function may take. After that the thread is let go, and finishes by itself.
const CALLS: Duration = Duration::from_secs(2);
/// The same if the thread is in it for want of a processor: others take them, or a quota is spent.
const LATE_CALLS: Duration = Duration::from_secs(20);
/// Between two looks whether it still is.
const LATE: Duration = Duration::from_millis(100);
/// The direction flag, which is clear wherever a function begins.
const DIRECTION: u64 = 0x400;
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// A thread that has stopped where it may call any function. When this is dropped it goes on as if
/// it had stopped for a moment: the kernel makes its system call anew, as after a signal without a
/// handler.
pub struct Borrowed<'a> {
    tracee: Tracee<'a>,
    memory: &'a Memory,
    way: WayBack,
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
    /// Stops a thread and keeps it if it may be borrowed where it is; else it goes on. `longest` grows
    /// if it stands still for longer.
    pub fn try_borrow(
        thread: u32,
        memory: &'a Memory,
        places: &Places,
        longest: &'a Cell<Duration>,
    ) -> io::Result<Option<Self>> {
        let mut tracee = Tracee::seize(thread, longest)?;
        if !stops(&mut tracee)? {
            return Ok(None);
        }
        let registers = tracee.registers()?;
        if !places.is_safe(memory, &registers)? {
            return Ok(None);
        }
        let (extended, blocked_signals) = (tracee.extended()?, tracee.blocked_signals()?);
        let way = places.way_back;
        Ok(Some(Self { tracee, memory, way, registers, extended, blocked_signals }))
    }

    /// Has it call `function`. `arguments` makes the arguments from the address of the thread's own
    /// copy of `bytes`; what that copy is after the call goes back to `bytes`.
    pub fn call(
        &mut self,
        function: u64,
        bytes: &mut [u8],
        arguments: impl FnOnce(u64) -> [u64; 3],
    ) -> io::Result<Call> {
        let Self { registers, extended, blocked_signals, way, .. } = self;
        let frame = Frame::new(registers, extended, *blocked_signals, *way, bytes);
        self.memory.write(frame.start, &frame.bytes)?;
        self.tracee.block_signals(self.blocked_signals & !(1 << (MARK - 1)))?;
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
        if called == Call::Returned {
            self.memory.read(frame.arguments, bytes)?;
        }
        if matches!(called, Call::Returned | Call::Crashed) {
            self.put_back()?;
        }
        Ok(called)
    }

    /// Puts it where it was. This process may be killed between any two steps: up to the last the
    /// thread goes back by the frame. That would make a system call that it was in wait for its whole
    /// timeout again, or end early; the kernel does better (`restart_syscall(2)`).
    fn put_back(&self) -> io::Result<()> {
        self.tracee.set_extended(&self.extended)?;
        self.tracee.block_signals(self.blocked_signals)?;
        self.tracee.set_registers(&self.registers)
    }

    /// Lets it run until the function has returned.
    fn run(&mut self, frame: &Frame) -> io::Result<Call> {
        let begin = Instant::now();
        let mut signal = 0;
        loop {
            self.tracee.go_on(signal)?;
            signal = 0;
            match self.stop_in(begin)? {
                None => return Ok(Call::Unfinished),
                Some(Stop::Gone) => return Ok(Call::Gone),
                Some(Stop::Asked) => {}
                Some(Stop::Signal(it)) if FAULTS.contains(&it) => return Ok(Call::Crashed),
                Some(Stop::Signal(MARK)) if self.has_left(frame)? => return Ok(Call::Returned),
                // Its own: the program is to have it.
                Some(Stop::Signal(it)) => signal = it,
            }
        }
    }

    /// Its next stop in a call that began then.
    fn stop_in(&mut self, begin: Instant) -> io::Result<Option<Stop>> {
        let mut stop = self.tracee.wait(CALLS.saturating_sub(begin.elapsed()))?;
        while stop.is_none() && self.tracee.is_runnable() && begin.elapsed() < LATE_CALLS {
            stop = self.tracee.wait(LATE)?;
        }
        Ok(stop)
    }

    fn has_left(&self, frame: &Frame) -> io::Result<bool> {
        let mut words = [0; _];
        self.memory.read(frame.start, &mut words)?;
        Ok(frame.is_left(words))
    }
}

/// Stops a thread, past the signals that it is about to get.
fn stops(tracee: &mut Tracee<'_>) -> io::Result<bool> {
    let mut found = tracee.stop(STOPS)?;
    loop {
        match found {
            Some(Stop::Asked) => return Ok(true),
            Some(Stop::Signal(signal)) => tracee.go_on(signal)?,
            Some(Stop::Gone) | None => return Ok(false),
        }
        found = tracee.wait(STOPS)?;
    }
}
