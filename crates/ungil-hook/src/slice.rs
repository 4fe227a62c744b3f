//! How the kernel runs the calling thread: its slice of a processor, and whether it is patient.
//!
//! `sched_setattr(2)` needs no privilege for either. Whoever is started inherits them, so a thread
//! takes back its own before it starts a thread or a process ([`crate::starting`]).
//!
//! What is not ours is left alone: threads of another scheduling policy than `SCHED_OTHER`, and
//! those whose slice is not the kernel's default. Where the kernel has no slices (before 6.12), none
//! is set; where it refuses, nothing happens at all.

use crate::clock;
use crate::session::variable;
use crate::starting;
use crate::system::{keeping_errno, last_errno};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_long};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use ungil_core::schedule::Slice;

/// Environment variable: `own` leaves all threads their own slices, `short` lets them be set in a
/// seccomp sandbox, too.
pub const SLICE: &CStr = c"UNGIL_SLICE";
/// A short one, in ns. The kernel allows no less than 0.1 ms; the rest is [`MARK_NS`].
const SHORT_NS: u64 = 100_000 + MARK_NS;
/// A thread that started something keeps its own slice for so long, in ns. One that starts threads
/// all the time would change twice for each, which costs more than some of them do.
const REST_NS: u64 = 10_000_000;
/// By so much slices of ours are longer than anybody would choose, to be told from those of others.
const MARK_NS: u64 = 7;

thread_local! {
    static HAS: Cell<Slice> = const { Cell::new(Slice::Own) };
    /// By which scheduling policy and slice, if it is not its own.
    static GIVEN: Cell<(c_int, u64)> = const { Cell::new((libc::SCHED_OTHER, 0)) };
    /// Until when it keeps its own, in ns of `CLOCK_MONOTONIC`, because it started something.
    static RESTS_UNTIL: Cell<u64> = const { Cell::new(0) };
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

    /// Gives the calling thread these, with another policy and slice.
    fn write(self, (policy, slice_ns): (c_int, u64)) -> bool {
        let own = Self { policy: policy.cast_unsigned(), runtime: slice_ns, ..self };
        // SAFETY: `own` is valid for reading as many bytes as its size says.
        let result: c_long =
            unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const own, 0) };
        result == 0
    }

    /// Gives the calling thread, which the program schedules by another policy now, the default
    /// slice in place of one of ours: `sched_setscheduler(2)` keeps the slice that a thread has.
    fn take_back_our_slice(self) {
        let patient_ns = DEFAULT_NS.load(Relaxed) + MARK_NS;
        if self.runtime == SHORT_NS || self.runtime == patient_ns {
            self.write((self.policy.cast_signed(), 0));
        }
    }

    /// Whether the calling thread is run by these.
    fn are(&self, (policy, slice_ns): (c_int, u64)) -> bool {
        self.policy == policy.cast_unsigned() && self.runtime == slice_ns
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

/// Gives the calling thread `slice`, if it has another one and has not just started something.
#[inline]
pub fn want(slice: Slice) {
    if slice != HAS.get() && !rests() {
        keeping_errno(|| change(slice));
    }
}

/// The calling thread is about to start another thread or a process.
#[inline]
pub fn before_a_start() {
    if HAS.get() != Slice::Own {
        keeping_errno(|| change(Slice::Own));
        RESTS_UNTIL.set(clock::monotonic_ns() + REST_NS);
    }
}

/// Whether the calling thread started something a moment ago.
fn rests() -> bool {
    let until = RESTS_UNTIL.get();
    if until == 0 {
        return false;
    }
    let rests = clock::monotonic_ns() < until;
    if !rests {
        RESTS_UNTIL.set(0);
    }
    rests
}

#[cold]
fn change(to: Slice) {
    if STATE.load(Relaxed) == UNUSED || IS_LEFT_ALONE.get() {
        return;
    }
    let from = HAS.replace(to);
    let Some(now) = Attributes::read().filter(|_| may_ask()) else {
        STATE.store(UNUSED, Relaxed);
        return;
    };
    let is_ours = match from {
        Slice::Own => now.policy == libc::SCHED_OTHER.cast_unsigned() && !is_chosen(now),
        Slice::Short | Slice::Patient => now.are(GIVEN.get()),
    };
    if !is_ours {
        IS_LEFT_ALONE.set(true);
        now.take_back_our_slice();
        return;
    }
    let given = as_the_kernel_has(to, now);
    GIVEN.set(given);
    let is_done = now.write(given);
    let is_kept = || Attributes::read().is_some_and(|now| now.are(given));
    if !is_done || (STATE.swap(USED, Relaxed) == UNTRIED && !is_kept()) {
        now.write((libc::SCHED_OTHER, 0));
        STATE.store(UNUSED, Relaxed);
    }
}

/// The scheduling policy and the slice by which a thread has `slice` that is run by `now`.
fn as_the_kernel_has(slice: Slice, now: Attributes) -> (c_int, u64) {
    let has_slices = now.runtime != 0;
    let if_it_has = |slice_ns| if has_slices { slice_ns } else { 0 };
    match slice {
        Slice::Own => (libc::SCHED_OTHER, 0),
        Slice::Short => (libc::SCHED_OTHER, if_it_has(SHORT_NS)),
        Slice::Patient => (libc::SCHED_BATCH, if_it_has(DEFAULT_NS.load(Relaxed) + MARK_NS)),
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

/// Whether the program has chosen the slice of the calling thread: it is not the default, which the
/// kernel tells by giving it.
fn is_chosen(own: Attributes) -> bool {
    // It may have come from a thread that was not seen to start this one.
    if own.runtime == SHORT_NS || own.runtime == DEFAULT_NS.load(Relaxed) {
        return false;
    }
    if !own.write((libc::SCHED_OTHER, 0)) {
        return true;
    }
    let default_ns = Attributes::read().map_or(0, |own| own.runtime);
    DEFAULT_NS.store(default_ns, Relaxed);
    let is_chosen = default_ns != own.runtime;
    if is_chosen {
        own.write((libc::SCHED_OTHER, own.runtime));
    }
    is_chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_just_started_something_keeps_its_own_slice() {
        STATE.store(UNTRIED, Relaxed);
        want(Slice::Short);
        assert_eq!(of_this_thread(), Slice::Short);
        before_a_start();
        assert_eq!(of_this_thread(), Slice::Own);
        assert_ne!(RESTS_UNTIL.get(), 0);
        RESTS_UNTIL.set(u64::MAX);
        want(Slice::Short);
        assert_eq!(of_this_thread(), Slice::Own);
        // Its moment of rest is over.
        RESTS_UNTIL.set(1);
        want(Slice::Short);
        assert_eq!((of_this_thread(), RESTS_UNTIL.get()), (Slice::Short, 0));
    }

    #[test]
    fn who_starts_something_with_its_own_slice_need_not_rest() {
        before_a_start();
        assert_eq!(RESTS_UNTIL.get(), 0);
    }
}
