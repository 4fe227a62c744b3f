//! Clocks, read outside the traced program: that of all events, the counter of the processor that it
//! is made from, and others.

use std::fs;

/// Which counter the kernel makes its clocks from.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// How often both clocks are read at least, to find the reading that nothing got between.
const READINGS: u32 = 5;
/// How often, if something always does.
const MOST_READINGS: u32 = 200;
/// Between two readings of the counter with one of the clock between them; it takes 40 to 100 ns.
const NARROW_TICKS: u64 = 2_000;

/// What both clocks said at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The processor's counter.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`, which was read at most half of `width_ticks` before or after.
    pub ns: u64,
    /// How long the reading took.
    pub width_ticks: u64,
}

/// Now, in nanoseconds of `CLOCK_MONOTONIC`, the clock of all events.
pub(crate) fn now_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// What one of Linux's own clocks shows, in nanoseconds; 0 if it was set to before 1970.
pub(crate) fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing; a clock that does not exist leaves it alone.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// What `call` returns, and the CPU time that it took in this thread, in nanoseconds.
#[cfg(feature = "stacks")]
pub(crate) fn with_cpu_ns<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let begun_ns = read_ns(libc::CLOCK_THREAD_CPUTIME_ID);
    let returned = call();
    (returned, read_ns(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub(begun_ns))
}

/// Both clocks now, or `None` where the processor's counter is not what the kernel makes
/// `CLOCK_MONOTONIC` from, or may stop or change its pace.
pub(crate) fn read_both() -> Option<Reading> {
    (counter::is_invariant() && counter_is_trusted()).then(read_both_at_once)
}

/// The kernel's name for what it makes its clocks from, `""` if it does not say.
pub(crate) fn clock_source() -> String {
    fs::read_to_string(CLOCK_SOURCE).unwrap_or_default().trim_end().to_owned()
}

/// Whether the kernel still makes its clocks from the processor's counter: it gives that up when
/// it finds that the counter cannot be trusted.
pub(crate) fn counter_is_trusted() -> bool {
    clock_source() == counter::CLOCK_SOURCE
}

/// As [`read_both`], where that has returned something before.
pub(crate) fn read_both_at_once() -> Reading {
    let mut best = read_once();
    for count in 1..MOST_READINGS {
        if count >= READINGS && best.width_ticks <= NARROW_TICKS {
            break;
        }
        let again = read_once();
        if again.width_ticks < best.width_ticks {
            best = again;
        }
    }
    best
}

fn read_once() -> Reading {
    let before = counter::read();
    let ns = now_ns();
    let width_ticks = counter::read().wrapping_sub(before);
    Reading { ticks: before.wrapping_add(width_ticks / 2), ns, width_ticks }
}

/// The counter of the processor.
#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

    /// The kernel's name for it.
    pub const CLOCK_SOURCE: &str = "tsc";

    /// As the kernel reads it: not before what comes before, nor after what comes after.
    pub fn read() -> u64 {
        // SAFETY: SSE2, which every x86-64 has.
        unsafe { _mm_lfence() };
        // SAFETY: `rdtsc` is forbidden by `PR_SET_TSC` only, which forbids the kernel's own clock as
        // well.
        let ticks = unsafe { _rdtsc() };
        // SAFETY: the instruction is there, and touches no memory.
        unsafe { _mm_lfence() };
        ticks
    }

    /// Whether it runs at one pace whatever the processor does (AMD's and Intel's manuals, CPUID
    /// 8000_0007h, EDX bit 8).
    pub fn is_invariant() -> bool {
        const HIGHEST: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        #[allow(unused_unsafe, reason = "safe in later versions of Rust")]
        // SAFETY: every x86-64 has the instruction, and leaf 8000_0000h.
        unsafe {
            __cpuid(HIGHEST).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
        }
    }
}

/// Not used elsewhere, see the hook's `clock.rs`.
#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub const CLOCK_SOURCE: &str = "none";

    pub fn read() -> u64 {
        0
    }

    pub fn is_invariant() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one property that all the rest builds on, of the real clocks.
    #[test]
    fn the_clock_is_read_between_two_readings_of_the_counter() {
        let Some(first) = read_both() else {
            return; // There is nothing to read here.
        };
        let mut before = first;
        for _ in 0..1_000 {
            let now = read_both_at_once();
            assert!(now.ns >= before.ns);
            assert!(now.ticks.wrapping_sub(before.ticks).cast_signed() >= 0);
            before = now;
        }
    }
}
