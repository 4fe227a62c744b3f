//! Where a thread may be borrowed: it may call any function there, as if it had called it itself.
//!
//! * In a blocking system call that neither the allocator nor the loader makes. Of `futex`, only the
//!   wait of condition variables and semaphores counts, and not that of libc's own locks, those of the
//!   allocator and the loader among them. In glibc these wait in another way (`FUTEX_WAIT`). In musl
//!   all wait alike, but only what may be cancelled does so in [`CANCELLABLE`].
//! * In the evaluation loop itself: a thread that computes is nowhere else for long.
//!
//! Neither counts in a signal handler, which may have interrupted anything. Its frame is on the stack
//! then, with the address of the code that ends it.

use libc::{c_long, user_regs_struct};
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;

use crate::frame::WayBack;
use crate::image::Image;
use crate::memory::Memory;
use crate::process::{Mapping, Process};

/// More of a stack is not searched for the frame of a signal handler.
const STACK_BYTES: u64 = 1 << 20;
/// `mov rax, SYS_rt_sigreturn; syscall`: how every signal handler ends.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
/// `pop rdi; ret`: the end of a `pop r15; ret`, with which functions end.
const POP_ARGUMENT: [u8; 2] = [0x5f, 0xc3];
/// `mov [rsp + 8], r11; syscall`: how musl makes a call in which a thread may be cancelled
/// (`__syscall_cp_asm` in `src/thread/x86_64/syscall_cp.s`). The loader and whoever takes a lock
/// switches that off first, and calls elsewhere.
const CANCELLABLE: [u8; 7] = [0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05];
/// `futex(2)`: to wait, and to wait until a moment.
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_COMMAND: u64 = 0x7f;

/// System calls that wait for something that is none of the process's own.
const WAITING: [c_long; 20] = [
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    // One of them goes on after a stop: only those with a timeout do so by this.
    libc::SYS_restart_syscall,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_pause,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigsuspend,
    libc::SYS_semtimedop,
];

/// What has to be known of a process to tell such places.
pub struct Places {
    process: Process,
    mappings: Vec<Mapping>,
    /// The addresses of [`SIGNAL_RETURN`] in its C library.
    signal_returns: Vec<u64>,
    /// Those behind [`CANCELLABLE`], where a thread goes on after the call.
    cancellable: Vec<u64>,
    /// How a thread can come back from a function, by the first of them.
    pub way_back: WayBack,
    /// The evaluation loop.
    evaluation: Range<u64>,
}

impl Places {
    /// Those of a process with these mappings, of which `libc` is its C library; `None` if that is
    /// none that is known.
    pub fn of(
        process: Process,
        memory: &Memory,
        mappings: Vec<Mapping>,
        libc: &Mapping,
    ) -> io::Result<Option<Self>> {
        let (mut signal_returns, mut cancellable) = (Vec::new(), Vec::new());
        let mut pop_argument = None;
        for part in mappings.iter().filter(|it| it.is_executable && it.path == libc.path) {
            let code = memory.bytes(part.start, bytes(part.end - part.start))?;
            let all = |searched: &'static [u8]| {
                let places = code.windows(searched.len()).enumerate();
                let found = places.filter(move |(_, code)| *code == searched);
                found.map(|(at, _)| part.start + at as u64)
            };
            signal_returns.extend(all(&SIGNAL_RETURN));
            cancellable.extend(all(&CANCELLABLE).map(|at| at + CANCELLABLE.len() as u64));
            pop_argument = pop_argument.or_else(|| all(&POP_ARGUMENT).next());
        }
        let raise = Image::at(memory, libc)?.map(|image| image.symbol(b"raise")).transpose()?;
        let (Some(raise), Some(pop_argument), Some(&signal_return)) =
            (raise.flatten(), pop_argument, signal_returns.first())
        else {
            return Ok(None);
        };
        let way_back = WayBack { pop_argument, raise: raise.address, signal_return };
        let evaluation = evaluation(memory, &mappings)?.unwrap_or(0..0);
        Ok(Some(Self { process, mappings, signal_returns, cancellable, way_back, evaluation }))
    }

    /// Looks again at what is mapped: threads come with stacks of their own. Code stays where it is.
    pub fn look_again(&mut self) -> io::Result<()> {
        self.mappings = self.process.mappings()?;
        Ok(())
    }

    /// Whether a thread looks as if it were at such a place, without stopping it.
    pub fn is_promising(&self, thread: u32) -> bool {
        let folder = self.process.folder().join("task").join(thread.to_string());
        let Ok(call) = fs::read_to_string(folder.join("syscall")) else { return false };
        let mut words = call.split_whitespace();
        let Some(number) = words.next().and_then(|it| it.parse::<c_long>().ok()) else {
            return call.starts_with("running") && !self.evaluation.is_empty();
        };
        let numbers = words.map(|it| u64::from_str_radix(it.trim_start_matches("0x"), 16));
        let numbers: Vec<u64> = numbers.map(Result::unwrap_or_default).collect();
        // Six arguments, the stack pointer, and where the thread is.
        let [first, second, .., at] = numbers[..] else { return false };
        self.waits(number, [first, second], at)
    }

    /// Whether a thread that has stopped, with these registers, may be borrowed.
    pub fn is_safe(&self, memory: &Memory, at: &user_regs_struct) -> io::Result<bool> {
        let is_here = match c_long::try_from(at.orig_rax.cast_signed()) {
            Ok(number) if number >= 0 => self.waits(number, [at.rdi, at.rsi], at.rip),
            _ => self.evaluation.contains(&at.rip),
        };
        Ok(is_here && !self.is_in_handler(memory, at.rsp)?)
    }

    /// Whether a thread waits that has made a system call with these first arguments, and is there.
    fn waits(&self, number: c_long, [first, second]: [u64; 2], at: u64) -> bool {
        match number {
            libc::SYS_futex => match second & FUTEX_COMMAND {
                FUTEX_WAIT_BITSET => true,
                FUTEX_WAIT => self.cancellable.contains(&at),
                _ => false,
            },
            // Of a file, the loader reads as well.
            libc::SYS_read => self.is_stream(first),
            _ => WAITING.contains(&number),
        }
    }

    /// Whether what is open under a number is a pipe, a socket or a terminal.
    fn is_stream(&self, descriptor: u64) -> bool {
        let Ok(descriptor) = u32::try_from(descriptor) else { return false };
        let kind = fs::metadata(self.process.opened(descriptor)).map(|facts| facts.file_type());
        kind.is_ok_and(|it| it.is_fifo() || it.is_socket() || it.is_char_device())
    }

    /// Whether there is the frame of a signal handler on the stack. What an earlier one left in the
    /// place of a variable looks the same; then another thread, or another moment, has to do.
    fn is_in_handler(&self, memory: &Memory, stack: u64) -> io::Result<bool> {
        let Some(mapping) = self.mappings.iter().find(|it| (it.start..it.end).contains(&stack))
        else {
            return Ok(true); // It is younger than what is known here.
        };
        let length = (mapping.end - stack).min(STACK_BYTES) & !7;
        let words = memory.bytes(stack & !7, bytes(length))?;
        Ok(words.chunks_exact(8).any(|word| {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            self.signal_returns.contains(&word)
        }))
    }
}

/// The evaluation loop of the first interpreter among the images.
fn evaluation(memory: &Memory, mappings: &[Mapping]) -> io::Result<Option<Range<u64>>> {
    let mut last: &[u8] = &[];
    for mapping in mappings.iter().filter(|it| it.inode != 0) {
        if mapping.path == last {
            continue;
        }
        last = &mapping.path;
        let Ok(Some(image)) = Image::at(memory, mapping) else { continue };
        if let Some(found) = image.symbol(b"_PyEval_EvalFrameDefault")? {
            return Ok(Some(found.address..found.address + found.size));
        }
    }
    Ok(None)
}

fn bytes(length: u64) -> usize {
    usize::try_from(length).unwrap_or(0)
}
