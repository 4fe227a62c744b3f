//! What must not be cut in two by a fork of this process.
//!
//! `ungil.gil.watch` looks into the process that it is in, from a thread of its own. A child has only
//! the thread that forked. What another one was initialising for the whole process at that moment,
//! such as the regular expressions of py-spy, stays half done there, and whoever needs it waits for
//! ever. So a fork waits until it is done.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Held while something is initialised, and during each fork. A mutex of the standard library could
/// not be unlocked by a function other than the one that locked it.
struct Gate(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: only the functions for mutexes, which are made for several threads, use what is in it.
unsafe impl Sync for Gate {}

static GATE: Gate = Gate(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

unsafe extern "C" {
    /// POSIX; the libc crate has it for some systems only.
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        in_parent: Option<extern "C" fn()>,
        in_child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}

/// Calls `initialise`, which no fork of this process can interrupt. It must not fork, and must not
/// call this function.
pub(super) fn done_before_forks<T>(initialise: impl FnOnce() -> T) -> T {
    register();
    lock();
    let _unlocks = Unlocks;
    initialise()
}

/// Unlocks the gate, after a panic as well.
struct Unlocks;

impl Drop for Unlocks {
    fn drop(&mut self) {
        unlock();
    }
}

/// Has forks wait. Not a `Once`, which a fork could cut in two as well.
fn register() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.swap(true, Ordering::AcqRel) {
        // SAFETY: the functions live as long as this library, which is never unloaded.
        unsafe { pthread_atfork(Some(lock), Some(unlock), Some(unlock)) };
    }
}

extern "C" fn lock() {
    // SAFETY: the mutex is initialised, is never moved, and this thread has not locked it.
    unsafe { libc::pthread_mutex_lock(GATE.0.get()) };
}

extern "C" fn unlock() {
    // SAFETY: this thread has locked it; in a child, this is the thread that forked.
    unsafe { libc::pthread_mutex_unlock(GATE.0.get()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    /// Forks, and has the child end with what `in_child` returns; what it ended with.
    fn forked(in_child: impl FnOnce() -> libc::c_int) -> libc::c_int {
        // SAFETY: the child calls `in_child` only, which allocates nothing, and ends.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let status = in_child();
            // SAFETY: ends the child without what the parent has registered.
            unsafe { libc::_exit(status) };
        }
        let mut status = 0;
        // SAFETY: `pid` is a child of this process, and `status` a valid place.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        status
    }

    static A_FORK_HAS_BEGUN: AtomicBool = AtomicBool::new(false);

    extern "C" fn note_the_fork() {
        A_FORK_HAS_BEGUN.store(true, Ordering::Release);
    }

    #[test]
    fn a_fork_waits_for_what_is_being_initialised() {
        static BEGAN: AtomicBool = AtomicBool::new(false);
        static VALUE: LazyLock<u8> = LazyLock::new(|| {
            BEGAN.store(true, Ordering::Release);
            while !A_FORK_HAS_BEGUN.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            17
        });
        register();
        // What is registered later is called earlier.
        // SAFETY: the function lives as long as this program.
        unsafe { pthread_atfork(Some(note_the_fork), None, None) };
        A_FORK_HAS_BEGUN.store(false, Ordering::Release);
        let thread = std::thread::spawn(|| done_before_forks(|| *VALUE));
        while !BEGAN.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let status = forked(|| {
            // A child that waits for a thread that it does not have is to fail the test.
            // SAFETY: no preconditions.
            unsafe { libc::alarm(30) };
            libc::c_int::from(*VALUE)
        });
        assert_eq!(status, 17 << 8);
        assert_eq!(thread.join().unwrap(), 17);
    }

    #[test]
    fn a_panic_lets_forks_go_on() {
        let panics = || done_before_forks(|| panic!("as py-spy does"));
        std::thread::spawn(panics).join().unwrap_err();
        assert_eq!(forked(|| done_before_forks(|| 3)), 3 << 8);
    }
}
