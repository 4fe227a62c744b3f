//! The functions that this library stands in for where it, or the stub, is preloaded.

use crate::{any_libc, stub};
use libc::c_void;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A function of the libraries that are searched after this one, or after the stub.
pub struct Next {
    name: &'static CStr,
    known: AtomicPtr<c_void>,
}

impl Next {
    /// That of this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, known: AtomicPtr::new(null_mut()) }
    }

    /// Where it is. It is looked up the first time; whoever needs it in a hooked call asks before.
    pub fn address(&self) -> Option<*mut c_void> {
        let mut address = self.known.load(Relaxed);
        if address.is_null() {
            address = stub::next(self.name).unwrap_or_else(|| any_libc::find_next(self.name));
            self.known.store(address, Relaxed);
        }
        (!address.is_null()).then_some(address)
    }
}
