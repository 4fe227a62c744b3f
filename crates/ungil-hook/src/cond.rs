//! CPython >= 3.7: what the calls on condition variables say about the GIL.
//!
//! `take_gil` (`Python/ceval_gil.c`) waits with `pthread_cond_timedwait(cond)` while the GIL is
//! locked and signals `switch_cond` once it has it; `drop_gil` signals `cond`. The calling thread
//! holds the GIL's mutex in all three, so what is noted here is in the order of the GIL.

use crate::gil::{self, Gil, Role};
use crate::{clock, free_threaded, handoff, requests, settings, system, table, thread, turn};
use libc::{c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use std::sync::atomic::Ordering::Relaxed;

/// Stands in for `pthread_cond_init`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn init(cond: *mut pthread_cond_t, how: *const pthread_condattr_t) -> c_int {
    gil::initialised(cond as usize, how as usize);
    // A child after fork makes its GIL anew, which is when it takes its page.
    settings::in_force();
    // SAFETY: the caller's own arguments, unchanged.
    unsafe { libc::pthread_cond_init(cond, how) }
}

/// Stands in for `pthread_cond_destroy`: a GIL goes with its interpreter, which holds it to the end.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn destroy(cond: *mut pthread_cond_t) -> c_int {
    if let Some(Role::Free(gil)) = gil::role(cond as usize, false) {
        system::keeping_errno(|| gil.end());
    }
    // SAFETY: the caller's own argument, unchanged.
    unsafe { libc::pthread_cond_destroy(cond) }
}

/// Stands in for `pthread_cond_timedwait`: the thread waits for the GIL, and if it waited for a
/// whole switch interval in which the GIL did not go to another thread, it asks the holder to let
/// go.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const timespec,
) -> c_int {
    let Some(Role::Free(gil)) = gil::role(cond as usize, true) else {
        // SAFETY: the caller's own arguments, unchanged.
        return unsafe { libc::pthread_cond_timedwait(cond, mutex, deadline) };
    };
    // If calls were redirected while it was held, this was not seen.
    gil.locked.store(true, Relaxed);
    let switches = gil.switches.load(Relaxed);
    let result = if let Some(settings) = turn::policy() {
        // SAFETY: take_gil holds the GIL's mutex, which is this one.
        unsafe { turn::wait(gil, mutex, settings) }
    } else {
        // SAFETY: the caller's own argument, which pthread_cond_timedwait is about to read.
        begins_to_wait(gil, unsafe { &*deadline });
        gil.stock_waiters.fetch_add(1, Relaxed);
        // SAFETY: the caller's own arguments, unchanged.
        let result = unsafe { libc::pthread_cond_timedwait(cond, mutex, deadline) };
        gil.stock_waiters.fetch_sub(1, Relaxed);
        result
    };
    if result == libc::ETIMEDOUT
        // The condition under which take_gil sets the drop request.
        && gil.locked.load(Relaxed)
        && gil.switches.load(Relaxed) == switches
        // Later waiters repeat a request that is already pending.
        && !gil.drop_requested.swap(true, Relaxed)
        && let Some(thread) = thread::current()
    {
        thread.asked_to_drop(gil, clock::now_ticks_after_others());
    }
    result
}

/// Notes that the thread waits, and for how long before it asks the holder to let go.
fn begins_to_wait(gil: &'static Gil, deadline: &timespec) {
    if thread::current().is_some_and(|thread| thread.waits_for(gil)) {
        let deadline_ns = clock::timespec_ns(deadline);
        table::saw_deadline(deadline_ns.saturating_sub(clock::monotonic_ns()));
    }
}

/// Stands in for `clock_nanosleep`, with which `time.sleep` sleeps since 3.11: it is alone in not
/// leaving in errno that a signal has ended it, where [`turn`] looks for that.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    rest: *mut timespec,
) -> c_int {
    // SAFETY: the caller's own arguments, unchanged.
    let result = unsafe { libc::clock_nanosleep(clock, flags, time, rest) };
    if result == libc::EINTR {
        system::set_errno(result);
    }
    result
}

/// Stands in for `pthread_cond_signal`: a release, an acquire, or something else altogether.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn signal(cond: *mut pthread_cond_t) -> c_int {
    match gil::role(cond as usize, false) {
        Some(Role::Free(gil)) => {
            requests::look();
            let forced = gil.drop_requested.load(Relaxed);
            // Not a swap: the GIL's mutex guards it, and every release comes here.
            let is_release = gil.locked.load(Relaxed) || !free_threaded::is_build();
            gil.locked.store(false, Relaxed);
            free_threaded::used(gil);
            // A thread that finds the GIL switched off wakes the next one as if it had held it.
            match thread::current() {
                Some(thread) if is_release => thread.released(gil, clock::now_ticks(), forced),
                Some(thread) => thread.stopped_waiting(),
                None => {}
            }
            let policy = turn::policy();
            if handoff::is_seen() {
                if policy.is_some() || !gil.line.is_empty() {
                    turn::released(gil);
                }
                if gil.line.is_spared() {
                    handoff::was_spared(gil);
                } else if forced {
                    handoff::was_forced(gil);
                }
                if policy.is_some() && gil.stock_waiters.load(Relaxed) == 0 {
                    return 0; // Nobody sleeps on it.
                }
            }
        }
        Some(Role::Taken(gil)) => {
            gil.locked.store(true, Relaxed);
            gil.drop_requested.store(false, Relaxed);
            free_threaded::used(gil);
            let token = thread::token();
            let is_handoff = gil.last_holder.load(Relaxed) != token;
            if is_handoff {
                gil.last_holder.store(token, Relaxed);
                gil.switches.store(gil.switches.load(Relaxed).wrapping_add(1), Relaxed);
            }
            if let Some(thread) = thread::current() {
                let now =
                    if is_handoff { clock::now_ticks_after_others() } else { clock::now_ticks() };
                thread.acquired(gil, now);
            }
            if handoff::is_seen() {
                turn::acquired(gil);
                handoff::acquired();
            }
        }
        None => {}
    }
    // SAFETY: the caller's own argument, unchanged.
    unsafe { libc::pthread_cond_signal(cond) }
}
