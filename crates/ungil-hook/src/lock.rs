//! Who woke a thread that waited for a lock.
//!
//! CPython's locks are semaphores (`Python/thread_pthread.h`, and from 3.13 on those of
//! `Python/parking_lot.c`): a thread that lets go of one calls `sem_post`, one that waits calls
//! `sem_wait` or one of its kind without the GIL.

use crate::{thread, turn};
use libc::{c_int, clockid_t, sem_t, timespec};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Semaphores are told apart by so many bits of their addresses.
const PLACES: usize = 1 << 10;

/// Who posted last, at the place of a semaphore: the upper half of the word is the lower half of the semaphore's address, the lower half the thread's
/// token.
static POSTED: [[AtomicU64; 2]; PLACES] =
    [const { [AtomicU64::new(0), AtomicU64::new(0)] }; PLACES];

thread_local! {
    static WAKER: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

fn place(sem: *mut sem_t) -> &'static [AtomicU64; 2] {
    // A semaphore is 32 bytes long.
    &POSTED[(sem as usize >> 4) % PLACES]
}

/// Stands in for `sem_post`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn post(sem: *mut sem_t) -> c_int {
    let [who, rank] = place(sem);
    rank.store(turn::place_ns(), Relaxed);
    who.store((sem as u64) << 32 | u64::from(thread::token()), Relaxed);
    // SAFETY: the caller's own argument, unchanged.
    unsafe { libc::sem_post(sem) }
}

/// Stands in for `sem_wait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn wait(sem: *mut sem_t) -> c_int {
    // SAFETY: the caller's own argument, unchanged.
    woken(sem, unsafe { libc::sem_wait(sem) })
}

unsafe extern "C" {
    fn sem_clockwait(sem: *mut sem_t, clock: clockid_t, deadline: *const timespec) -> c_int;
}

/// Stands in for `sem_timedwait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn timedwait(sem: *mut sem_t, deadline: *const timespec) -> c_int {
    // SAFETY: the caller's own arguments, unchanged.
    woken(sem, unsafe { libc::sem_timedwait(sem, deadline) })
}

/// Stands in for `sem_clockwait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn clockwait(
    sem: *mut sem_t,
    clock: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's own arguments, unchanged.
    woken(sem, unsafe { sem_clockwait(sem, clock, deadline) })
}

fn woken(sem: *mut sem_t, result: c_int) -> c_int {
    if result == 0 {
        let [who, rank] = place(sem);
        let posted = who.load(Relaxed);
        if posted >> 32 == (sem as u64) & 0xffff_ffff {
            WAKER.set((rank.load(Relaxed), posted as u32));
        }
    }
    result
}

/// The token of the thread that woke the calling one since it last had the GIL, or 0.
pub fn waker() -> (u64, u32) {
    WAKER.get()
}

/// The calling thread has the GIL.
pub fn forget_waker() {
    WAKER.set((0, 0));
}
