//! The clock that the times in this process's table are of.
//!
//! The recorder decides, once, before the program starts ([`crate::session`]): the counter of the
//! processor where the kernel makes `CLOCK_MONOTONIC` from it, else that clock itself. Where
//! nobody records there is nobody who could say how long a tick is, and it is that clock too.

use libc::{clockid_t, timespec};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use ungil_core::tick::{Clock, Tick};

/// Whether times are of the counter. Never changes while there is a table.
static IS_COUNTER: AtomicBool = AtomicBool::new(false);
static TICK: AtomicU64 = AtomicU64::new(Tick::NANOSECOND.fraction());

/// Takes all times from the counter if it has a tick, which is so long. While there is no table.
pub fn choose(tick: Option<Tick>) {
    TICK.store(tick.unwrap_or(Tick::NANOSECOND).fraction(), Relaxed);
    IS_COUNTER.store(tick.is_some(), Relaxed);
}

/// The clock of this process.
pub fn clock() -> Clock {
    if IS_COUNTER.load(Relaxed) { Clock::Counter } else { Clock::Monotonic }
}

/// How long a tick of it is, as the recorder said at the start.
pub fn tick() -> Tick {
    Tick::from_fraction(TICK.load(Relaxed))
}

/// Now, in ticks.
///
/// The processor may read the counter before earlier instructions have finished. Two readings of
/// one thread are in order all the same; and what a thread read before it lets go of a mutex is
/// read when another thread can take it, because instructions complete in order.
#[inline]
pub fn now_ticks() -> u64 {
    if IS_COUNTER.load(Relaxed) { counter::read() } else { monotonic_ns() }
}

/// Now, in ticks, but not before all that other threads did until this one took its mutex.
#[inline]
pub fn now_ticks_after_others() -> u64 {
    if IS_COUNTER.load(Relaxed) { counter::read_in_order() } else { monotonic_ns() }
}

/// Now, in nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// What a clock says, in nanoseconds; 0 if there is none.
#[inline]
pub fn clock_ns(clock: clockid_t) -> u64 {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing. The vDSO serves the clocks used here, but for those of
    // CPU time; neither way fails or touches errno.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    timespec_ns(&now)
}

/// A time as nanoseconds; 0 if it is negative.
pub fn timespec_ns(time: &timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0).wrapping_mul(1_000_000_000)
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The counter of the processor.
#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};

    #[inline]
    pub fn read() -> u64 {
        // SAFETY: the recorder has read it, in a process of the same kernel; what forbids it
        // (`PR_SET_TSC`) forbids the kernel's own clock as well.
        unsafe { _rdtsc() }
    }

    /// As the kernel reads it (`rdtsc_ordered`): when all instructions before have completed.
    #[inline]
    pub fn read_in_order() -> u64 {
        // SAFETY: SSE2, which every x86-64 has.
        unsafe { _mm_lfence() };
        read()
    }
}

/// Elsewhere the recorder never asks for it: aarch64's has errata that only the kernel knows, and
/// reading its clock costs little more there.
#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub use super::{monotonic_ns as read, monotonic_ns as read_in_order};
}
