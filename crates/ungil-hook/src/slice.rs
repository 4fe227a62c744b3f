//! The calling thread's slice of a processor, as the kernel has it.
//!
//! `sched_setattr(2)` needs no privilege for it. Whoever is started inherits it, so a thread gives
//! a short one back before it starts a thread or a process ([`crate::starting`]).
//!
//! What is not ours is left alone: threads of another scheduling policy than `SCHED_OTHER`, and
//! those whose slice is not the kernel's default. Where the kernel has no slices, or does not let
//! them be set, nothing happens at all.

use crate::process::{keeping_errno, last_errno};
use crate::session::variable;
use crate::starting;
use std::cell::Cell;
use std::ffi::{CStr, c_long};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use ungil_core::schedule::Slice;

/// Environment variable: `own` leaves all threads their own slices, `short` lets them be set in a
/// seccomp sandbox, too.
pub const SLICE: &CStr = c"UNGIL_SLICE";
/// A short one, in ns. The kernel allows no less than 0.1 ms; the rest tells ours from a program's.
const SHORT_NS: u64 = 100_007;

thread_local! {
    static HAS: Cell<Slice> = const { Cell::new(Slice::Own) };
    /// Whether the program, or its user, has said how the kernel is to run this thread.
    static IS_LEFT_ALONE: Cell<bool> = const { Cell::new(false) };
}

static STATE: AtomicU8 = AtomicU8::new(UNUSED);
/// Slices are left alone.
const UNUSED: u8 = 0;
/// They are to be set, but the kernel may not have them.
const UNTRIED: u8 = 1;
/// The kernel has them.
const USED: u8 = 2;
/// Whether they may be set by a process that is told by a filter which system calls it may make.
static IN_SANDBOX: AtomicBool = AtomicBool::new(false);
/// The kernel's default, in ns; 0 while unknown.
static DEFAULT_NS: AtomicU64 = AtomicU64::new(0);

/// What the kernel knows of a thread: `struct sched_attr` (`<linux/sched/types.h>`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The slice of a thread of `SCHED_OTHER`; 0 before Linux 6.12, and, to set it, for the default.
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Attributes {
    /// Of the calling thread.
    fn read() -> Option<Self> {
        let mut own = Self::default();
        let size = size_of::<Self>();
        // SAFETY: `own` is valid for writing that many bytes.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut own, size, 0) };
        (result == 0).then_some(own)
    }

    /// Gives the calling thread these, with another slice.
    fn write(self, slice_ns: u64) -> bool {
        let own = Self { runtime: slice_ns, ..self };
        // SAFETY: `own` is valid for reading as many bytes as its size says.
        let result: c_long =
            unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const own, 0) };
        result == 0
    }

    /// Whether the kernel runs the thread by slices.
    fn has_slice(&self) -> bool {
        matches!(self.policy.cast_signed(), libc::SCHED_OTHER | libc::SCHED_BATCH)
    }
}

/// Does what the environment says: slices are to be set, unless it forbids it. Not in a hooked call.
pub fn on_load() {
    let asked = variable(SLICE);
    // Elsewhere a short slice would be inherited by whatever a thread starts.
    if asked.is_none_or(|value| value != c"own") && starting::is_noticed() {
        IN_SANDBOX.store(asked.is_some_and(|value| value == c"short"), Relaxed);
        STATE.store(UNTRIED, Relaxed);
    }
}

/// What the calling thread has.
#[inline]
pub fn of_this_thread() -> Slice {
    HAS.get()
}

/// Gives the calling thread `slice`, if it has another one.
#[inline]
pub fn want(slice: Slice) {
    if slice != HAS.get() {
        keeping_errno(|| change(slice));
    }
}

/// The calling thread is about to start another thread or a process.
#[inline]
pub fn before_a_start() {
    want(Slice::Own);
}

#[cold]
fn change(slice: Slice) {
    let is_used = STATE.load(Relaxed) != UNUSED && !IS_LEFT_ALONE.get();
    if is_used && !may_ask() {
        STATE.store(UNUSED, Relaxed);
        HAS.set(Slice::Own);
    } else if is_used {
        match slice {
            Slice::Own => give_back(),
            Slice::Short => shorten(),
        }
    }
}

/// A filter can end a process for a system call, and nobody is told beforehand.
fn may_ask() -> bool {
    if IN_SANDBOX.load(Relaxed) {
        return true;
    }
    // SAFETY: it has no preconditions. (It ends a process in the strict mode, in which no Python
    // could run.)
    let mode = unsafe { libc::prctl(libc::PR_GET_SECCOMP) };
    // A kernel without filters does not know the question.
    mode == 0 || (mode < 0 && last_errno() == libc::EINVAL)
}

/// Takes the short slice from the calling thread, unless somebody else has given it another.
fn give_back() {
    if let Some(own) = Attributes::read()
        && own.runtime == SHORT_NS
        && own.has_slice()
    {
        own.write(0);
    }
    HAS.set(Slice::Own);
}

fn shorten() {
    let Some(own) = Attributes::read().filter(|own| own.runtime != 0) else {
        STATE.store(UNUSED, Relaxed);
        return;
    };
    if own.policy.cast_signed() != libc::SCHED_OTHER || is_chosen(own) {
        IS_LEFT_ALONE.set(true);
        return;
    }
    let is_set = own.write(SHORT_NS);
    if STATE.load(Relaxed) == UNTRIED {
        let is_kept = || Attributes::read().is_some_and(|own| own.runtime == SHORT_NS);
        if !is_set || !is_kept() {
            own.write(0);
            STATE.store(UNUSED, Relaxed);
            return;
        }
        STATE.store(USED, Relaxed);
    }
    if is_set {
        HAS.set(Slice::Short);
    }
}

/// Whether the program has chosen the slice of the calling thread: it is not the default, which the
/// kernel tells by giving it.
fn is_chosen(own: Attributes) -> bool {
    if own.runtime == SHORT_NS || own.runtime == DEFAULT_NS.load(Relaxed) {
        return false;
    }
    if !own.write(0) {
        return true;
    }
    let default_ns = Attributes::read().map_or(0, |own| own.runtime);
    DEFAULT_NS.store(default_ns, Relaxed);
    default_ns != own.runtime && {
        own.write(own.runtime);
        true
    }
}
