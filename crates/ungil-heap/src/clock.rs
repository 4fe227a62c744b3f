//! The time until which somebody waits.

use std::time::{Duration, Instant};

/// What the clock says.
#[cfg(not(loom))]
#[inline]
pub fn now() -> Instant {
    Instant::now()
}

/// Does nothing for a while.
#[cfg(not(loom))]
pub fn sleep(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(loom)]
pub use model::{now, pass, sleep};

/// Time that passes only while somebody sleeps: a model does the same each time.
#[cfg(loom)]
mod model {
    use std::cell::Cell;
    use std::sync::OnceLock;

    use super::{Duration, Instant};

    thread_local! {
        // Loom runs all threads of a model in one.
        static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    pub fn now() -> Instant {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        *BEGIN.get_or_init(Instant::now) + PASSED.get()
    }

    /// Lets time pass.
    pub fn pass(time: Duration) {
        PASSED.set(PASSED.get() + time);
    }

    pub fn sleep(time: Duration) {
        pass(time);
        loom::thread::yield_now();
    }
}
