//! Functions of libraries that are loaded, by their names.

use std::ffi::{CStr, c_void};
use std::mem::transmute_copy;

/// Where `library`, a handle of the loader, has what is called `name`.
pub fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the loader looks handles up before it uses them, and the name ends with a zero.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// The function of that name.
///
/// # Safety
/// If there is one it is of type `F`, which is a function pointer. The library is never unloaded.
pub unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let address = symbol(library, name)?;
    // SAFETY: the caller says that this is an `F`; the loader gives a function's address as that of
    // data.
    Some(unsafe { transmute_copy(&address) })
}
