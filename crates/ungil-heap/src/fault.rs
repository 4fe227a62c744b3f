//! Places where a test lets a process die.
//!
//! Every step of an operation that another process could see half done calls [`point`]. Built with
//! the feature `fault`, the process kills itself at the step that [`arm`] named; otherwise a point
//! is nothing at all.

/// A step begins here.
#[cfg(not(feature = "fault"))]
#[inline(always)]
pub const fn point(_name: &'static str) {}

#[cfg(feature = "fault")]
pub use armed::{arm, passed, point};

#[cfg(feature = "fault")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    static PASSED: AtomicU64 = AtomicU64::new(0);
    static FATAL: AtomicU64 = AtomicU64::new(u64::MAX);
    static LAST_WORDS: OnceLock<fn(&'static str)> = OnceLock::new();

    /// A step begins here.
    pub fn point(name: &'static str) {
        if PASSED.fetch_add(1, Relaxed) == FATAL.load(Relaxed) {
            if let Some(last_words) = LAST_WORDS.get() {
                last_words(name);
            }
            // SAFETY: kills this process with SIGKILL, which touches no memory of it.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    }

    /// Begins to count; the process dies at point number `fatal`, counted from 0, after it has
    /// called `last_words` with the point's name.
    pub fn arm(fatal: u64, last_words: fn(&'static str)) {
        // The first one stays: a process dies once.
        let _ = LAST_WORDS.set(last_words);
        PASSED.store(0, Relaxed);
        FATAL.store(fatal, Relaxed);
    }

    /// How many points were passed since [`arm`].
    pub fn passed() -> u64 {
        PASSED.load(Relaxed)
    }
}
