//! Who woke a thread that had waited for a lock.
//!
//! CPython's locks are semaphores (`Python/thread_pthread.h`; from 3.13 on some are of
//! `Python/parking_lot.c`, whose waiters sleep on a semaphore each): whoever lets go of one calls
//! `sem_post`, and a thread that waits for one calls `sem_wait` or one of its kind without the GIL.
//! A thread that was woken like that is in no greater hurry than the one that woke it
//! ([`ungil_core::schedule::Waker`]). As with [`crate::handoff`], the calls lead here only once there
//! has been a policy.

use crate::next::Next;
use crate::{process, thread, turn};
use libc::{c_int, c_void, clockid_t, sem_t, timespec};
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Semaphores are told apart by these bits of their addresses, of which the lowest is always 0.
const PLACES: usize = 1 << 10;
const LOWEST_BIT: usize = 4;

/// The last `sem_post` on the semaphores at one place of the table.
struct Post {
    /// The lower half of the semaphore's address, and of the thread's token.
    who: AtomicU64,
    place_ns: AtomicU64,
}

static POSTS: [Post; PLACES] =
    [const { Post { who: AtomicU64::new(0), place_ns: AtomicU64::new(0) } }; PLACES];

/// A thread that has let go of a lock.
#[derive(Clone, Copy)]
pub struct Poster {
    /// Of [`thread::token`], or 0 for none.
    pub token: u32,
    /// Its [`turn::place_ns`] then. If two threads post at one place of the table at once, it may be
    /// that of the other: it is a hint, whose effect is limited.
    pub place_ns: u64,
}

impl Poster {
    /// Of a thread that waited for the kernel.
    pub const NOBODY: Self = Self { token: 0, place_ns: 0 };
}

type ClockWait = unsafe extern "C" fn(*mut sem_t, clockid_t, *const timespec) -> c_int;

/// `sem_clockwait`, which glibc has since 2.30.
static CLOCK_WAIT: Next = Next::new(c"sem_clockwait");

/// Finds `sem_clockwait`, if there is one, before calls of it are redirected: a hooked call must
/// not search for it.
pub fn find_clock_wait() {
    CLOCK_WAIT.address();
}

/// Stands in for `sem_post`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn post(sem: *mut sem_t) -> c_int {
    let post = post_at(sem);
    post.place_ns.store(turn::place_ns(), Relaxed);
    post.who.store(half_address(sem) << 32 | u64::from(thread::token()), Relaxed);
    // SAFETY: the caller's own argument, unchanged.
    unsafe { libc::sem_post(sem) }
}

/// Stands in for `sem_wait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn wait(sem: *mut sem_t) -> c_int {
    // SAFETY: the caller's own argument, unchanged.
    has_waited(sem, unsafe { libc::sem_wait(sem) })
}

/// Stands in for `sem_timedwait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn timed_wait(sem: *mut sem_t, deadline: *const timespec) -> c_int {
    // SAFETY: the caller's own arguments, unchanged.
    has_waited(sem, unsafe { libc::sem_timedwait(sem, deadline) })
}

/// Stands in for `sem_clockwait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn clock_wait(
    sem: *mut sem_t,
    clock: clockid_t,
    deadline: *const timespec,
) -> c_int {
    let Some(next) = CLOCK_WAIT.address() else {
        process::set_errno(libc::ENOSYS);
        return -1;
    };
    // SAFETY: the next function of this name has its type; the caller's own arguments, unchanged.
    has_waited(sem, unsafe { transmute::<*mut c_void, ClockWait>(next)(sem, clock, deadline) })
}

/// Notes who ended a wait for `sem`, whose result it returns.
#[inline]
fn has_waited(sem: *mut sem_t, result: c_int) -> c_int {
    if result == 0 {
        let post = post_at(sem);
        let who = post.who.load(Relaxed);
        if who >> 32 == half_address(sem) {
            let place_ns = post.place_ns.load(Relaxed);
            #[expect(clippy::cast_possible_truncation, reason = "the lower half is the token")]
            turn::was_woken_by(Poster { token: who as u32, place_ns });
        }
    }
    result
}

#[inline]
fn post_at(sem: *mut sem_t) -> &'static Post {
    &POSTS[(sem as usize >> LOWEST_BIT) % PLACES]
}

#[inline]
fn half_address(sem: *mut sem_t) -> u64 {
    sem as u64 & 0xffff_ffff
}
