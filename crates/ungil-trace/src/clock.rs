//! Clocks, read outside the traced program.

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
