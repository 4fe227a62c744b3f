//! CPython >= 3.7: what happens around a handoff of the GIL, with fewer context switches.
//!
//! Left to itself, CPython wakes a waiting thread while it holds the mutex that this thread needs,
//! and makes a thread that was forced to let go sleep twice: on `switch_cond` until another has
//! taken the GIL (`drop_gil` in `Python/ceval_gil.c`), then for its turn. A thread that is woken
//! on the waker's processor takes it at once, so each of these costs several context switches.
//! Under a policy, the wake-up is made after the mutex has been let go, and the sleep on
//! `switch_cond` is left out: a thread that comes back before the other has woken waits in line.
//!
//! And two threads that come and go need that mutex at the same time, each for a microsecond: one
//! that would go to sleep for it looks again a few times first, see [`lock_patiently`].
//!
//! The interpreter locks and unlocks eight times to let go of the GIL and take it back, so these
//! calls lead here only once there has been a policy: until then nothing of this costs anything.

use crate::gil::{self, Gil, Role};
use crate::redirection::Redirections;
use crate::system::keeping_errno;
use crate::turn;
use libc::{c_int, pthread_cond_t, pthread_mutex_t};
use std::cell::Cell;
use std::ptr::null;
use std::sync::atomic::{
    AtomicU8,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

thread_local! {
    /// The GIL that this thread was forced to let go of, until it has one again.
    static FORCED_FROM: Cell<*const Gil> = const { Cell::new(null()) };
    /// The one that it takes back at once, because it was asked inside of a lock.
    static TAKES_BACK: Cell<*const Gil> = const { Cell::new(null()) };
}

/// How often a thread looks whether the mutex of a GIL is free before it sleeps for it, and how
/// many pauses of the processor lie between two looks: 2 to 6 us in all, which is longer than the
/// mutex is held and shorter than it takes to sleep and be woken.
const LOOKS: usize = 20;
const PAUSES: usize = 4;

/// The calls that are to lead here.
pub static CALLS: Redirections = Redirections::new();
static STATE: AtomicU8 = AtomicU8::new(NOT_YET);
/// They lead to libc.
const NOT_YET: u8 = 0;
/// A thread redirects them.
const CHANGING: u8 = 1;
/// They lead here.
const DONE: u8 = 2;
/// They cannot be redirected.
const FAILED: u8 = 3;

/// Whether the calls around a handoff lead here.
#[inline]
pub fn is_seen() -> bool {
    STATE.load(Acquire) == DONE
}

/// Sees to it that they do, from now on, and says whether they do.
#[cold]
pub fn see() -> bool {
    if STATE.compare_exchange(NOT_YET, CHANGING, AcqRel, Relaxed).is_ok() {
        let done = keeping_errno(|| CALLS.redirect());
        STATE.store(if done { DONE } else { FAILED }, Release);
    }
    is_seen()
}

/// They lead to libc again.
pub fn leave() {
    CALLS.undo();
    forget();
}

/// Their interpreter was unloaded; those of the next one lead to libc.
pub fn forget() {
    CALLS.forget();
    STATE.store(NOT_YET, Release);
}

/// In a child after fork: the thread that was redirecting them may not be there.
pub fn after_fork() {
    let _ = STATE.compare_exchange(CHANGING, NOT_YET, Relaxed, Relaxed);
}

/// The calling thread was forced to let go of `gil`. Also where `drop_gil` does not wait, because
/// another thread has it already: this one may be late, and come when it is free once more.
#[inline]
pub fn was_forced(gil: &'static Gil) {
    FORCED_FROM.set(gil);
}

/// The calling thread, which was forced to let go of `gil`, takes it back before any other.
#[inline]
pub fn was_spared(gil: &'static Gil) {
    TAKES_BACK.set(gil);
}

/// The calling thread has a GIL.
#[inline]
pub fn acquired() {
    FORCED_FROM.set(null());
    TAKES_BACK.set(null());
}

/// Stands in for `pthread_cond_wait`, which on `switch_cond` waits until another thread has taken
/// the GIL. `drop_gil` goes on after any return, and under a policy nobody needs to wait here.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    if let Some(Role::Taken(gil)) = gil::role(cond as usize, false)
        && turn::policy().is_some()
        && (gil.stock_waiters.load(Relaxed) == 0 || std::ptr::eq(TAKES_BACK.get(), gil))
    {
        return 0;
    }
    // SAFETY: the caller's own arguments, unchanged.
    unsafe { libc::pthread_cond_wait(cond, mutex) }
}

/// Stands in for `pthread_mutex_lock`: a thread that was forced to let go of the GIL does not take
/// it again before the one to which it was given, and nobody takes it before one that was spared.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn lock(mutex: *mut pthread_mutex_t) -> c_int {
    if gil::is_mutex_of_others(mutex as usize) {
        // SAFETY: the caller's own argument, unchanged.
        return unsafe { libc::pthread_mutex_lock(mutex) };
    }
    // SAFETY: the caller's own argument, unchanged.
    unsafe { lock_of_gil(mutex) }
}

/// A function of its own, so that what it needs of the stack is not made ready for the locks of
/// what is linked into the interpreter: SQLite has one for each allocation.
///
/// # Safety
/// As for `pthread_mutex_lock`.
#[inline(never)]
unsafe extern "C" fn lock_of_gil(mutex: *mut pthread_mutex_t) -> c_int {
    let Some(gil) = gil::of_mutex(mutex as usize) else {
        // SAFETY: the caller's own argument, unchanged.
        return unsafe { libc::pthread_mutex_lock(mutex) };
    };
    // SAFETY: the caller's own argument, unchanged.
    let result = unsafe { lock_patiently(mutex) };
    if gil.line.is_granted() {
        // SAFETY: it has just been locked.
        unsafe { lock_of_granted(gil, mutex) };
    }
    result
}

/// Locks the mutex of a GIL. It is only ever held for about a microsecond, unless the kernel puts
/// its owner aside.
///
/// # Safety
/// As for `pthread_mutex_lock`.
pub unsafe fn lock_patiently(mutex: *mut pthread_mutex_t) -> c_int {
    for _ in 0..LOOKS {
        // SAFETY: the caller's promise.
        let result = unsafe { libc::pthread_mutex_trylock(mutex) };
        if result != libc::EBUSY {
            return result;
        }
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
    }
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_mutex_lock(mutex) }
}

/// # Safety
/// The calling thread holds `mutex`, which is that of `gil`.
#[cold]
unsafe fn lock_of_granted(gil: &'static Gil, mutex: *mut pthread_mutex_t) {
    let is_passed_by = if gil.line.is_spared() {
        !std::ptr::eq(TAKES_BACK.get(), gil)
    } else {
        std::ptr::eq(FORCED_FROM.get(), gil)
    };
    if is_passed_by
        && !gil.locked.load(Relaxed)
        && let Some(settings) = turn::policy()
    {
        // SAFETY: the caller's promise. Whatever the answer, take_gil looks at the GIL now.
        unsafe { turn::wait(gil, mutex, settings) };
    }
}

/// Stands in for `pthread_mutex_unlock`: wakes the thread whose turn has come.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    if gil::is_mutex_of_others(mutex as usize) {
        // SAFETY: the caller's own argument, unchanged.
        return unsafe { libc::pthread_mutex_unlock(mutex) };
    }
    // SAFETY: the caller's own argument, unchanged.
    unsafe { unlock_of_gil(mutex) }
}

/// A function of its own, like [`lock_of_gil`].
///
/// # Safety
/// As for `pthread_mutex_unlock`.
#[inline(never)]
unsafe extern "C" fn unlock_of_gil(mutex: *mut pthread_mutex_t) -> c_int {
    let Some(gil) = gil::of_mutex(mutex as usize) else {
        // SAFETY: the caller's own argument, unchanged.
        return unsafe { libc::pthread_mutex_unlock(mutex) };
    };
    let to_wake = gil.to_wake.replace(null());
    // SAFETY: the caller's own argument, unchanged.
    let result = unsafe { libc::pthread_mutex_unlock(mutex) };
    if !to_wake.is_null() {
        turn::wake(to_wake);
    }
    result
}
