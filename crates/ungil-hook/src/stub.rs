//! The stub, which is what `LD_PRELOAD` names: it opened this library, or would have.
//!
//! A library that is opened is searched after libc, so nobody calls what it defines. The stub is
//! searched before, defines the same functions, and leads their calls on. Its source is in `stub/`.

use crate::{any_libc, first_thread, late, starting};
use libc::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

type Next = extern "C" fn(*const c_char) -> *mut c_void;
type StandIn = extern "C" fn(*const c_char, *mut c_void) -> c_int;

/// The stub's function that tells what this library stands in for, or null.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// Whether the stub leads calls here.
static LEADS_HERE: AtomicBool = AtomicBool::new(false);

/// Has the stub, if there is one, lead calls here from now on. Only for the constructor.
pub fn on_load() {
    let next = any_libc::find(c"ungil_next_v1");
    let stand_in = any_libc::find(c"ungil_stand_in_v1");
    if next.is_null() || stand_in.is_null() {
        return;
    }
    NEXT.store(next, Relaxed);
    // SAFETY: the stub defines the function of this name so; the number in it changes when that
    // does.
    let stand_in = unsafe { transmute::<*mut c_void, StandIn>(stand_in) };
    // Before their calls come here, what they lead to is found.
    starting::find_next();
    for (name, function) in late::STAND_INS.iter().chain(&starting::STAND_INS) {
        stand_in(name.as_ptr(), function.0.cast_mut());
    }
    for (name, function) in &first_thread::STAND_INS {
        // It says whether threads have been started.
        if stand_in(name.as_ptr(), function.0.cast_mut()) > 0 {
            first_thread::has_come();
        }
    }
    LEADS_HERE.store(true, Relaxed);
}

/// Whether the calls of this process come here by way of the stub.
pub fn leads_here() -> bool {
    LEADS_HERE.load(Relaxed)
}

/// What the function `name` of this library stands in for, if its calls come here by way of the
/// stub.
pub fn next(name: &CStr) -> Option<*mut c_void> {
    let next = NEXT.load(Relaxed);
    if next.is_null() {
        return None;
    }
    // SAFETY: as in `on_load`.
    let next = unsafe { transmute::<*mut c_void, Next>(next) };
    let found = next(name.as_ptr());
    (!found.is_null()).then_some(found)
}
