//! The functions that this library stands in for where it is preloaded.

use libc::c_void;
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The function `name` of the library that is searched after this one, kept in `known`.
pub fn function(known: &AtomicPtr<c_void>, name: &CStr) -> Option<*mut c_void> {
    let mut address = known.load(Relaxed);
    if address.is_null() {
        // SAFETY: `name` is NUL-terminated.
        address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        known.store(address, Relaxed);
    }
    (!address.is_null()).then_some(address)
}
