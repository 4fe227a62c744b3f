//! How much of a long hold the kernel ran the thread that has the GIL.
//!
//! A holder that the kernel does not run makes others wait as native code does, and no call tells
//! the two apart. So the kernel is asked: when a hold begins, unless it was asked a moment before,
//! and again when a long one ends.

use crate::clock;
use std::cell::Cell;
use ungil_core::tick::Tick;

/// Shorter holds are not looked at when they end: others that the kernel runs in between get a
/// slice of time each, which lasts longer than this on most kernels.
pub const LONG_NS: u64 = 2_000_000;
/// For so long an answer stands for the beginning of a hold. A system call at each acquire would
/// cost several times what all else does.
const FRESH_NS: u64 = 1_000_000;

thread_local! {
    static BEGINNING: Cell<Option<Beginning>> = const { Cell::new(None) };
}

/// What the kernel said of a thread when a hold began, or up to [`FRESH_NS`] before.
#[derive(Clone, Copy)]
struct Beginning {
    at_ticks: u64,
    /// [`FRESH_NS`] in ticks, so that an acquire converts nothing.
    fresh_ticks: u64,
    usage: Usage,
}

/// What the kernel has counted for the calling thread.
#[derive(Clone, Copy)]
pub struct Usage {
    /// CPU time in ns. It may lack what the thread ran since the last tick of the kernel, at most
    /// 10 ms; right after a wait it lacks nothing.
    pub cpu_ns: u64,
    /// How often it blocked.
    pub voluntary_switches: u64,
    /// How often the kernel took the processor away.
    pub involuntary_switches: u64,
}

/// What became of a hold.
#[derive(Clone, Copy)]
pub struct Ran {
    /// For how long the thread ran, in ns: never too little by more than an instant, and too much
    /// at most by what it ran in [`FRESH_NS`] and in one tick of the kernel before the hold.
    pub cpu_ns: u64,
    /// Whether it blocked meanwhile, or up to [`FRESH_NS`] before.
    pub blocked: bool,
}

/// Whether the kernel has to be asked for a hold that begins `now`.
#[inline]
pub fn is_to_begin(now: u64) -> bool {
    // Also if the counter has begun anew since, as it does when a computer was suspended.
    BEGINNING.get().is_none_or(|before| now.wrapping_sub(before.at_ticks) >= before.fresh_ticks)
}

/// A hold begins `now`, by a clock of such ticks.
pub fn begin(now: u64, tick: Tick, usage: Option<Usage>) {
    let fresh_ticks = tick.ticks(FRESH_NS);
    BEGINNING.set(usage.map(|usage| Beginning { at_ticks: now, fresh_ticks, usage }));
}

/// Nothing is known of how the hold began.
pub fn forget() {
    BEGINNING.set(None);
}

/// What became of the hold that began last, if the kernel tells.
#[cold]
pub fn end() -> Option<Ran> {
    let before = BEGINNING.get()?.usage;
    let now = usage()?;
    // Exact to the nanosecond, which `usage` is not after a long hold.
    let cpu_ns = clock::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).checked_sub(before.cpu_ns)?;
    Some(Ran { cpu_ns, blocked: now.voluntary_switches != before.voluntary_switches })
}

/// Asks the kernel. `None` if it does not answer.
#[cold]
pub fn usage() -> Option<Usage> {
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } != 0 {
        return None;
    }
    let ns = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0) * 1_000
    };
    Some(Usage {
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        voluntary_switches: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
        involuntary_switches: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
    })
}
