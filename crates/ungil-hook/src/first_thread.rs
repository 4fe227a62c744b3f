//! Waiting for the first thread beside the main one.
//!
//! A program of one thread has nobody to schedule, so a policy is to cost it nothing: unless
//! something is recorded, the interpreter's calls are redirected when a second thread is about to
//! be created. Every library's call of `pthread_create` comes here, because a preloaded library
//! is searched before libc; `dlopen` has no such effect, and there nothing waits.
//!
//! A thread created in another way (by a bare `clone`) is not noticed, and is then scheduled by
//! CPython itself until the program creates one in the usual way.

use crate::interpreter::{Interpreter, Replacement};
use crate::next::Next;
use crate::{gil, slice};
use libc::{c_int, c_void, pthread_attr_t, pthread_t};
use std::ffi::CStr;
use std::mem::transmute;
use std::sync::atomic::{
    AtomicU8,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// There is one thread, and nobody asked to be told of the second.
const ALONE: u8 = 0;
/// The calls are to be redirected when a second thread is created.
const AWAITED: u8 = 1;
/// There has been a second thread, or it is no longer waited for.
const NOT_ALONE: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ALONE);

/// Redirects the calls of `interpreter` when this process creates a thread, or now if it has
/// already.
pub fn await_it(interpreter: &Interpreter) {
    if STATE.compare_exchange(ALONE, AWAITED, AcqRel, Acquire).is_ok() {
        interpreter.hook_beginnings();
    } else {
        interpreter.hook(gil::Seen::FromTheStart);
    }
}

/// There has been a second thread before calls came here.
pub fn has_come() {
    STATE.store(NOT_ALONE, Relaxed);
}

/// Redirects them now, if that is still to be done.
pub fn anticipate() {
    if STATE.load(Relaxed) != NOT_ALONE
        && STATE.swap(NOT_ALONE, AcqRel) == AWAITED
        && let Some(interpreter) = Interpreter::find()
    {
        interpreter.hook(gil::Seen::FromTheStart);
    }
}

/// What is defined here.
pub static STAND_INS: [(&CStr, Replacement); 2] = [
    (c"pthread_create", Replacement(pthread_create as *const c_void)),
    (c"thrd_create", Replacement(thrd_create as *const c_void)),
];

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type CreatePosix = unsafe extern "C" fn(
    *mut pthread_t,
    *const pthread_attr_t,
    Option<Start>,
    *mut c_void,
) -> c_int;
type StartC11 = extern "C" fn(*mut c_void) -> c_int;
type CreateC11 = unsafe extern "C" fn(*mut pthread_t, Option<StartC11>, *mut c_void) -> c_int;

/// Stands in for POSIX's function of this name.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Option<Start>,
    argument: *mut c_void,
) -> c_int {
    static NEXT: Next = Next::new(c"pthread_create");
    anticipate();
    slice::before_a_start();
    let Some(next) = NEXT.address() else { return libc::EAGAIN };
    // SAFETY: the next function of this name has its type.
    let next = unsafe { transmute::<*mut c_void, CreatePosix>(next) };
    // SAFETY: the caller's own arguments, unchanged.
    unsafe { next(thread, attributes, start, argument) }
}

/// Stands in for C11's function of this name, which glibc does not build on the other one.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(
    thread: *mut pthread_t,
    start: Option<StartC11>,
    argument: *mut c_void,
) -> c_int {
    static NEXT: Next = Next::new(c"thrd_create");
    /// `thrd_error` of glibc's `<threads.h>`.
    const ERROR: c_int = 2;
    anticipate();
    slice::before_a_start();
    let Some(next) = NEXT.address() else { return ERROR };
    // SAFETY: the next function of this name has its type.
    let next = unsafe { transmute::<*mut c_void, CreateC11>(next) };
    // SAFETY: the caller's own arguments, unchanged.
    unsafe { next(thread, start, argument) }
}
