//! What lets one build of this library work with two C libraries: the one it was built for, glibc or
//! musl, and musl.
//!
//! On machines of 64 bits both have the same functions with the same arguments, but for a few things,
//! which are here. musl's loader passes over versions of symbols, and takes `libc.so.6` for itself.
//! What else is needed it would not find: a library that musl's systems need not have, or a function
//! that only glibc has, would keep this one out of every process of musl.

use libc::{c_int, c_void};
use std::ffi::CStr;
use std::mem::transmute;
use std::sync::OnceLock;

/// A `pthread_mutex_t` of musl has so many bytes on every machine of 64 bits.
const MUTEX_BYTES_OF_MUSL: usize = 40;

type Handler = extern "C" fn();
type AtFork =
    unsafe extern "C" fn(Option<Handler>, Option<Handler>, Option<Handler>, *const c_void) -> c_int;

/// Finds out which C library this process has. Only for the constructor.
pub fn on_load() {
    is_musl();
}

/// Whether it is musl.
fn is_musl() -> bool {
    static IS_MUSL: OnceLock<bool> = OnceLock::new();
    *IS_MUSL.get_or_init(|| find(c"gnu_get_libc_version").is_null())
}

/// How many bytes a `pthread_mutex_t` has in this process: glibc's has 48 on aarch64.
#[inline]
pub fn mutex_bytes() -> usize {
    let own = size_of::<libc::pthread_mutex_t>();
    if own != MUTEX_BYTES_OF_MUSL && is_musl() { MUTEX_BYTES_OF_MUSL } else { own }
}

/// `pthread_atfork`, which in glibc is no function of the library: it is linked into whoever calls
/// it, and calls one that musl has not.
pub fn at_fork(before: Handler, in_child: Handler) {
    let mut register = find(c"__register_atfork");
    if register.is_null() {
        register = find(c"pthread_atfork");
    }
    if register.is_null() {
        return;
    }
    // SAFETY: `pthread_atfork` takes the first three arguments, and glibc's function the fourth as
    // well; one too many is not looked at.
    let register = unsafe { transmute::<*mut c_void, AtFork>(register) };
    // SAFETY: both are functions that live as long as this library, which is never unloaded.
    unsafe { register(Some(before), None, Some(in_child), std::ptr::null()) };
}

/// What everybody in this process finds by this name, or null.
pub fn find(name: &CStr) -> *mut c_void {
    find_by(libc::RTLD_DEFAULT, name)
}

/// What comes after this library by this name, or null.
pub fn find_next(name: &CStr) -> *mut c_void {
    find_by(libc::RTLD_NEXT, name)
}

fn find_by(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the name is NUL-terminated.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() {
        // What the loader says now, it does not say to the program later.
        // SAFETY: it has no preconditions.
        unsafe { libc::dlerror() };
    }
    found
}

/// Thread-local variables of a library that is opened are found by a function of the loader. A
/// reference to it would have the linker write down glibc's loader as a library that this one needs,
/// and musl has none of that name. So the compiler's calls come here, and go on from here.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod thread_local {
    use super::find;
    use libc::c_void;
    use std::mem::transmute;
    use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

    type Find = unsafe extern "C" fn(*const c_void) -> *mut c_void;

    /// Where the calls go.
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(first as *mut c_void);

    std::arch::global_asm!(
        ".pushsection .text.__tls_get_addr, \"ax\", @progbits",
        ".globl __tls_get_addr",
        ".hidden __tls_get_addr",
        ".type __tls_get_addr, @function",
        "__tls_get_addr:",
        "endbr64",
        "jmp qword ptr [rip + {next}]",
        ".size __tls_get_addr, . - __tls_get_addr",
        ".popsection",
        next = sym NEXT,
    );

    /// The first call: finds the loader's function. The constructor makes it, unless a thread is
    /// begun before.
    unsafe extern "C" fn first(variable: *const c_void) -> *mut c_void {
        let found = find(c"__tls_get_addr");
        if found.is_null() {
            // Without it the process has no thread-local variables, and no errno.
            std::process::abort();
        }
        NEXT.store(found, Relaxed);
        // SAFETY: the loader's function of this name has this type, in glibc and in musl.
        let next = unsafe { transmute::<*mut c_void, Find>(found) };
        // SAFETY: the caller's own argument, unchanged.
        unsafe { next(variable) }
    }
}

/// What the standard library calls to print where it panicked, and to unwind. This library aborts
/// instead, and libgcc_s, which has these functions, is not everywhere. An unwinder of the process
/// that comes through here asks by some of them what to do, and is told: nothing.
mod unwinder {
    macro_rules! define {
        ($($name:literal),* => $($code:literal),*) => {
            std::arch::global_asm!(
                ".pushsection .text.ungil_unwinder, \"ax\", %progbits",
                $(
                    concat!(".globl ", $name),
                    concat!(".hidden ", $name),
                    concat!(".type ", $name, ", %function"),
                    concat!($name, ":"),
                )*
                $($code,)*
                ".popsection",
            );
        };
    }

    macro_rules! define_all {
        ($zero:literal, $end:literal, $return:literal, $crash:literal) => {
            define!(
                "_Unwind_DeleteException", "_Unwind_FindEnclosingFunction", "_Unwind_GetCFA",
                "_Unwind_GetDataRelBase", "_Unwind_GetIP", "_Unwind_GetIPInfo",
                "_Unwind_GetLanguageSpecificData", "_Unwind_GetRegionStart",
                "_Unwind_GetTextRelBase", "_Unwind_SetGR", "_Unwind_SetIP"
                => $zero, $return
            );
            // _URC_END_OF_STACK: there are no frames.
            define!("_Unwind_Backtrace" => $end, $return);
            define!("_Unwind_RaiseException", "_Unwind_Resume" => $crash);
        };
    }

    #[cfg(target_arch = "x86_64")]
    define_all!("xor eax, eax", "mov eax, 5", "ret", "ud2");
    #[cfg(target_arch = "aarch64")]
    define_all!("mov x0, xzr", "mov w0, #5", "ret", "brk #1");
}
