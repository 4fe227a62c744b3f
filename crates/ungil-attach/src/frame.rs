//! The frame of a signal, as the kernel writes it (`arch/x86/kernel/signal.c`, `struct rt_sigframe`):
//! a thread that is given one goes back by it to where it was, whatever it calls before.
//!
//! On its way it raises [`MARK`], a signal that does nothing unless the program has a handler for it.
//! A tracer sees it, and keeps it; so it knows that the function has returned without stopping the
//! thread at every system call of it, of which each would cost two turns of a busy processor.

use libc::user_regs_struct;

/// The bytes below the stack pointer that a function may use without saying so.
const RED_ZONE: u64 = 128;
/// `uc_flags` of `<asm/ucontext.h>`: there is extended state, and the stack segment is told.
const HAS_XSTATE: u64 = 1;
const HAS_SEGMENT: u64 = 2 | 4;
/// `ss_flags` that the kernel refuses, and no more (`restore_altstack` in `kernel/signal.c`).
const SENSELESS_STACK: u64 = 3;
/// Where `struct ucontext` has what, in bytes.
const UCONTEXT_BYTES: usize = 304;
const SIGINFO_BYTES: usize = 128;
const GENERAL: usize = 40;
const EXTENDED_AT: usize = 224;
const SIGNALS: usize = 296;
/// In the extended state: what the kernel looks for to believe that there is more than the old part.
const MAGIC_AT: usize = 464;
const MAGIC_1: u32 = 0x4650_5853;
const MAGIC_2: u32 = 0x4650_5845;
/// What a system call returns that is to be made anew after a signal (`<linux/errno.h>`).
const RESTART: [i64; 4] = [-512, -513, -514, -516];

/// What a thread raises when the function has returned. It is ignored by default.
pub const MARK: i32 = libc::SIGURG;
/// Words that the function returns through.
const WAY: usize = 5;

/// Addresses of code in the C library by which a function returns.
#[derive(Clone, Copy, Debug)]
pub struct WayBack {
    /// `pop rdi; ret`
    pub pop_argument: u64,
    /// `raise(3)`
    pub raise: u64,
    /// How signal handlers end: `rt_sigreturn(2)`.
    pub signal_return: u64,
}

impl WayBack {
    /// What is on the stack when the function returns.
    fn words(self) -> [u64; WAY] {
        let Self { pop_argument, raise, signal_return } = self;
        // The second `ret`, past the `pop`, keeps the stack aligned for `raise`.
        [pop_argument, u64::from(MARK.unsigned_abs()), pop_argument + 1, raise, signal_return]
    }
}

/// A frame, to be written to the stack of a thread.
pub struct Frame {
    /// Where it lies: the stack pointer with which a function is called.
    pub start: u64,
    pub bytes: Vec<u8>,
    /// Where in the thread's memory the arguments lie.
    pub arguments: u64,
}

impl Frame {
    /// A frame by which a thread returns to `registers`, with `arguments` beside it.
    pub fn new(
        registers: &user_regs_struct,
        extended: &[u8],
        blocked_signals: u64,
        way: WayBack,
        arguments: &[u8],
    ) -> Self {
        let top = (registers.rsp - RED_ZONE) & !63;
        let arguments_at = (top - arguments.len() as u64) & !63;
        // Room for the second magic number behind it.
        let extended_at = (arguments_at - extended.len() as u64 - 8) & !63;
        let size = WAY * 8 + UCONTEXT_BYTES + SIGINFO_BYTES;
        // As after a call: the stack is aligned once the return address is on it.
        let start = ((extended_at - size as u64) & !15) - 8;
        let mut bytes = vec![0; usize::try_from(top - start).unwrap_or(0)];
        let mut put = |address: u64, data: &[u8]| {
            let at = usize::try_from(address - start).unwrap_or(0);
            bytes[at..at + data.len()].copy_from_slice(data);
        };
        for (word, at) in way.words().into_iter().zip((start..).step_by(8)) {
            put(at, &word.to_le_bytes());
        }
        put(start + WAY as u64 * 8, &context(registers, extended_at, blocked_signals));
        put(extended_at, &with_magic(extended));
        put(arguments_at, arguments);
        Self { start, bytes, arguments: arguments_at }
    }

    /// Whether the function has returned, if `words` is what lies at the start now: a function leaves
    /// alone what it returns through, and what it returns to writes over it.
    pub fn is_left(&self, words: [u8; WAY * 8]) -> bool {
        self.bytes[..WAY * 8] != words
    }
}

fn context(registers: &user_regs_struct, extended_at: u64, blocked_signals: u64) -> Vec<u8> {
    let it = restarted(registers);
    let segments = it.cs & 0xffff | (it.ss & 0xffff) << 48;
    let mut bytes = vec![0; UCONTEXT_BYTES];
    let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    put(0, HAS_XSTATE | HAS_SEGMENT);
    // The alternative stack is not known from outside, and stays as it is if this one is senseless.
    put(24, SENSELESS_STACK);
    let general = [
        it.r8,
        it.r9,
        it.r10,
        it.r11,
        it.r12,
        it.r13,
        it.r14,
        it.r15,
        it.rdi,
        it.rsi,
        it.rbp,
        it.rbx,
        it.rdx,
        it.rax,
        it.rcx,
        it.rsp,
        it.rip,
        it.eflags,
        segments,
        0,
        0,
        blocked_signals,
        0,
    ];
    for (index, word) in general.into_iter().enumerate() {
        put(GENERAL + index * 8, word);
    }
    put(EXTENDED_AT, extended_at);
    put(SIGNALS, blocked_signals);
    bytes
}

/// A thread that was in a system call makes it anew.
fn restarted(registers: &user_regs_struct) -> user_regs_struct {
    let mut it = *registers;
    if it.orig_rax.cast_signed() >= 0 && RESTART.contains(&it.rax.cast_signed()) {
        it.rax = it.orig_rax;
        it.rip -= 2;
    }
    it
}

/// The state as the kernel reads it from a frame.
fn with_magic(extended: &[u8]) -> Vec<u8> {
    let mut bytes = extended.to_vec();
    if bytes.len() > MAGIC_AT + 20 {
        // Which components there are: ptrace tells it first, a frame after the magic number.
        bytes.copy_within(MAGIC_AT..MAGIC_AT + 8, MAGIC_AT + 8);
        let length = u32::try_from(bytes.len()).unwrap_or(0);
        bytes[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(&MAGIC_1.to_le_bytes());
        bytes[MAGIC_AT + 4..MAGIC_AT + 8].copy_from_slice(&(length + 4).to_le_bytes());
        bytes[MAGIC_AT + 16..MAGIC_AT + 20].copy_from_slice(&length.to_le_bytes());
        bytes.extend(MAGIC_2.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> user_regs_struct {
        // SAFETY: all-zero is a valid set of registers.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        registers.rsp = 0x7000_1234;
        registers.rip = 0x4000;
        registers
    }

    #[test]
    fn a_frame_lies_below_what_the_thread_uses_and_is_aligned_as_after_a_call() {
        let extended = vec![1; 832];
        let way = WayBack { pop_argument: 0x53, raise: 0x54, signal_return: 0x55 };
        let frame = Frame::new(&registers(), &extended, 0, way, b"argument");
        assert_eq!((frame.start + 8) % 16, 0);
        // When `raise` begins, too.
        assert_eq!((frame.start + 4 * 8 + 8) % 16, 0);
        assert!(frame.start + frame.bytes.len() as u64 <= registers().rsp - RED_ZONE);
        let mut words: [u8; WAY * 8] = frame.bytes[..WAY * 8].try_into().unwrap();
        assert_eq!(words[32..], 0x55u64.to_le_bytes());
        assert!(!frame.is_left(words));
        words[16] = 0;
        assert!(frame.is_left(words));
        let at = usize::try_from(frame.arguments - frame.start).unwrap();
        assert_eq!(&frame.bytes[at..at + 8], b"argument");
    }

    #[test]
    fn a_system_call_that_was_interrupted_is_made_anew() {
        let mut registers = registers();
        registers.orig_rax = 7;
        registers.rax = (-516i64).cast_unsigned();
        let again = restarted(&registers);
        assert_eq!((again.rax, again.rip), (7, 0x3ffe));
        registers.rax = 3;
        assert_eq!(restarted(&registers).rip, 0x4000);
    }
}
