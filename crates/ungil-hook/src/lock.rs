//! Who woke a thread that had waited for a lock.
//!
//! CPython's locks are semaphores (`Python/thread_pthread.h`; from 3.13 on some are of
//! `Python/parking_lot.c`, whose waiters sleep on a semaphore each): whoever lets go of one calls
//! `sem_post`, and a thread that waits for one calls `sem_wait` or one of its kind without the GIL.
//! A thread that was woken like that is in no greater hurry than the one that woke it
//! ([`ungil_core::schedule::Waker`]). As with [`crate::handoff`], that is noted only once there has
//! been a policy. The calls come from [`crate::park`], which has another use for them.

use crate::handoff;
use crate::next::Next;
use crate::own::Own;
use crate::places::{PLACES, place_of};
use crate::system;
use libc::{c_int, c_void, clockid_t, sem_t, timespec};
use std::mem::transmute;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The semaphores at one place of the table.
struct Place {
    /// How many threads wait for one of them. Whoever lets go of a lock that nobody waits for has
    /// nothing to note. (Threads that never come back from a wait are counted for ever.)
    waiting: AtomicU32,
    /// Which of them was posted last, and by whom: [`Posted`].
    posted: AtomicU64,
    /// `Account::place_ns` of that thread then.
    place_ns: AtomicU64,
}

impl Place {
    const fn unused() -> Self {
        Self { waiting: AtomicU32::new(0), posted: AtomicU64::new(0), place_ns: AtomicU64::new(0) }
    }
}

/// Who posted which semaphore: the lower half of its address, whose lowest bit says whether it was
/// a lock of that thread, and the thread's token.
#[derive(Clone, Copy)]
struct Posted(u64);

impl Posted {
    const WAS_OWN: u64 = 1 << 32;

    fn new(sem: *mut sem_t, token: u32, was_own: bool) -> Self {
        Self((sem as u64) << 32 | u64::from(token) | if was_own { Self::WAS_OWN } else { 0 })
    }

    fn is_of(self, sem: *mut sem_t) -> bool {
        (self.0 & !Self::WAS_OWN) >> 32 == sem as u64 & 0xffff_ffff
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half is the token")]
    fn token(self) -> u32 {
        self.0 as u32
    }

    fn was_own(self) -> bool {
        self.0 & Self::WAS_OWN != 0
    }
}

static TABLE: [Place; PLACES] = [const { Place::unused() }; PLACES];

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
    if handoff::is_seen() {
        Own::with(|own| {
            let was_own = own.taken.pop(sem as usize);
            let place = place_of(&TABLE, sem);
            if place.waiting.load(Relaxed) != 0 {
                note(own, sem, place, was_own);
            }
        });
    }
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
    if result == 0 && handoff::is_seen() {
        Own::with(|own| own.taken.push(sem as usize));
    }
    result
}

/// Stands in for `sem_wait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn wait(sem: *mut sem_t) -> c_int {
    // SAFETY: the caller's own argument, unchanged.
    waiting(sem, || unsafe { libc::sem_wait(sem) })
}

/// Stands in for `sem_timedwait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn timed_wait(sem: *mut sem_t, deadline: *const timespec) -> c_int {
    // SAFETY: the caller's own arguments, unchanged.
    waiting(sem, || unsafe { libc::sem_timedwait(sem, deadline) })
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
        system::set_errno(libc::ENOSYS);
        return -1;
    };
    // SAFETY: the next function of this name has its type.
    let next = unsafe { transmute::<*mut c_void, ClockWait>(next) };
    // SAFETY: the caller's own arguments, unchanged.
    waiting(sem, || unsafe { next(sem, clock, deadline) })
}

/// Notes that the thread to which `own` belongs lets go of `sem`, for whoever waits for it.
#[cold]
fn note(own: &Own, sem: *mut sem_t, place: &Place, was_own: bool) {
    place.place_ns.store(own.account.get().place_ns(), Relaxed);
    place.posted.store(Posted::new(sem, own.token(), was_own).0, Relaxed);
}

/// Waits for `sem` by `wait`, whose result it returns, and notes who ended the wait.
fn waiting(sem: *mut sem_t, wait: impl FnOnce() -> c_int) -> c_int {
    if !handoff::is_seen() {
        return wait();
    }
    let place = place_of(&TABLE, sem);
    place.waiting.fetch_add(1, Relaxed);
    // A thread that waits for what it has taken waits for a signal.
    Own::with(|own| own.taken.pop(sem as usize));
    let result = wait();
    place.waiting.fetch_sub(1, Relaxed);
    let posted = Posted(place.posted.load(Relaxed));
    if result == 0 && posted.is_of(sem) {
        Own::with(|own| {
            own.waker.set(Poster { token: posted.token(), place_ns: place.place_ns.load(Relaxed) });
            // Who lets go of what another has taken gives a signal, and nobody has that.
            if posted.was_own() {
                own.taken.push(sem as usize);
            }
        });
    }
    result
}
