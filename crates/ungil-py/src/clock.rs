//! The clocks of the system, in nanoseconds.
//!
//! What is measured is measured by `CLOCK_MONOTONIC`, which is Python's `time.monotonic`. People and
//! other machines are told the time of day, `CLOCK_REALTIME`, in seconds since 1970.

/// Nanoseconds on the clock that never goes back.
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Clocks that are read within so many nanoseconds are of one moment. Between others the thread was
/// interrupted, and the two are read again, so many times at most.
const AT_ONCE: u64 = 1_000;
const READINGS: u32 = 4;

/// What to add to [`now`] for nanoseconds since 1970, as the system's clock goes at this moment: it
/// is set now and then, and [`now`] stands still while the machine sleeps.
pub fn since_1970() -> i64 {
    let mut best = None;
    for _ in 0..READINGS {
        let before = now();
        let epoch = read(libc::CLOCK_REALTIME);
        let took = now().saturating_sub(before);
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, epoch.cast_signed() - before.cast_signed()));
        }
        if took <= AT_ONCE {
            break;
        }
    }
    best.map_or(0, |(_, offset)| offset)
}

/// Nanoseconds as the seconds that Python's users see.
pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Seconds of Python's users as nanoseconds; what is out of range is as near as can be.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Nanoseconds of processor that this process has used.
pub fn processor() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Nanoseconds of processor that this thread has used.
pub fn thread_processor() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable. The clocks above exist on every Linux, so it cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
