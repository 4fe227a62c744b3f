//! Who woke a thread that had waited for a lock.
//!
//! CPython's locks are semaphores (`Python/thread_pthread.h`; from 3.13 on some are of
//! `Python/parking_lot.c`, whose waiters sleep on a semaphore each): whoever lets go of one calls
//! `sem_post`, and a thread that waits for one calls `sem_wait` or one of its kind without the GIL.
//! A thread that was woken like that is in no greater hurry than the one that woke it
//! ([`ungil_core::schedule::Waker`]). As with [`crate::handoff`], the calls lead here only once there
//! has been a policy.

use crate::next::Next;
use crate::own::Own;
use crate::process;
use libc::{c_int, c_void, clockid_t, sem_t, timespec};
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Semaphores are told apart by so many bits of a hash of their addresses.
const PLACES: usize = 1 << 12;

/// What was done last with the semaphores at one place of the table. Threads are noted with the
/// lower half of the semaphore's address.
struct Place {
    /// Who called `sem_post`.
    posted_by: AtomicU64,
    /// `Account::place_ns` of that thread then.
    place_ns: AtomicU64,
    /// Who took it.
    taken_by: AtomicU64,
}

impl Place {
    const UNUSED: Self = Self {
        posted_by: AtomicU64::new(0),
        place_ns: AtomicU64::new(0),
        taken_by: AtomicU64::new(0),
    };
}

static TABLE: [Place; PLACES] = [const { Place::UNUSED }; PLACES];

/// A thread that has let go of a lock.
#[derive(Clone, Copy)]
pub struct Poster {
    /// Of [`crate::thread::token`], or 0 for none.
    pub token: u32,
    /// Its `Account::place_ns` then. If two threads post at one place of the table at once, it may be
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
    let place = place_of(sem);
    Own::with(|own| {
        let this_thread = by(own, sem);
        place.place_ns.store(own.account.get().place_ns(), Relaxed);
        place.posted_by.store(this_thread, Relaxed);
        // A lock that another thread has taken may be where once was one of this thread.
        if !own.taken.pop_last(sem as usize) && place.taken_by.load(Relaxed) == this_thread {
            own.taken.pop(sem as usize);
        }
    });
    // SAFETY: the caller's own argument, unchanged.
    unsafe { libc::sem_post(sem) }
}

/// Stands in for `sem_trywait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn try_wait(sem: *mut sem_t) -> c_int {
    // SAFETY: the caller's own argument, unchanged.
    let result = unsafe { libc::sem_trywait(sem) };
    if result == 0 {
        Own::with(|own| has_taken(own, sem, place_of(sem)));
    }
    result
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
        let place = place_of(sem);
        let (posted_by, taken_by) = (place.posted_by.load(Relaxed), place.taken_by.load(Relaxed));
        let is_known = posted_by >> 32 == half_address(sem);
        Own::with(|own| {
            if is_known {
                let place_ns = place.place_ns.load(Relaxed);
                #[expect(clippy::cast_possible_truncation, reason = "the lower half is the token")]
                own.waker.set(Poster { token: posted_by as u32, place_ns });
            }
            if is_known && posted_by == taken_by {
                has_taken(own, sem, place);
            } else {
                // Who lets go of what another has taken gives a signal, and nobody has that.
                place.taken_by.store(by(own, sem), Relaxed);
            }
        });
    }
    result
}

/// The calling thread has taken the lock that `sem` is.
#[inline]
fn has_taken(own: &Own, sem: *mut sem_t, place: &Place) {
    place.taken_by.store(by(own, sem), Relaxed);
    own.taken.push(sem as usize);
}

#[inline]
fn place_of(sem: *mut sem_t) -> &'static Place {
    // The heaps that malloc makes for threads are alike, but for the upper half of an address.
    let hash = (sem as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(hash >> (u64::BITS - PLACES.ilog2())) as usize]
}

/// The thread to which `own` belongs, in the table.
#[inline]
fn by(own: &Own, sem: *mut sem_t) -> u64 {
    half_address(sem) << 32 | u64::from(own.token())
}

#[inline]
fn half_address(sem: *mut sem_t) -> u64 {
    sem as u64 & 0xffff_ffff
}
