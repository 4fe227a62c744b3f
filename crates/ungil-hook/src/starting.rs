//! Starting processes and programs otherwise than by `fork`, of which libc tells
//! ([`crate::process`]).
//!
//! Whoever is started inherits how the kernel runs the thread that starts it ([`crate::slice`]) and
//! keeps it whatever it executes. Nobody in a child could change that: after `vfork` it has its
//! parent's memory, and after `execve` it may be any program. So the thread takes back its own
//! slice before. `pthread_create` is in `first_thread.rs`; a bare `clone` is not noticed.

use crate::{next, slice};
use libc::{FILE, c_char, c_int, c_void, pid_t};
use std::ffi::CStr;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

/// A function of the library that is searched after this one.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(null_mut()) }
    }

    fn address(&self) -> Option<*mut c_void> {
        next::function(&self.address, self.name)
    }
}

static VFORK: Next = Next::new(c"vfork");
static POSIX_SPAWN: Next = Next::new(c"posix_spawn");
static POSIX_SPAWNP: Next = Next::new(c"posix_spawnp");
static SYSTEM: Next = Next::new(c"system");
static POPEN: Next = Next::new(c"popen");
static EXECVE: Next = Next::new(c"execve");
static EXECV: Next = Next::new(c"execv");

/// Finds the functions that those here stand in for. Some may be called where nothing may be
/// looked up any more: in a signal handler, and in a child after fork.
pub fn on_load() {
    for next in [&VFORK, &POSIX_SPAWN, &POSIX_SPAWNP, &SYSTEM, &POPEN, &EXECVE, &EXECV] {
        next.address();
    }
}

/// Whether the calls of this process lead here: this library was preloaded.
pub fn is_noticed() -> bool {
    // SAFETY: the name is NUL-terminated.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"vfork".as_ptr()) };
    std::ptr::eq(found, vfork as *const c_void)
}

/// Stands in for POSIX's function of this name. It returns twice, the second time to a stack that
/// the child has used; so nothing of this function may be left on it.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn vfork() -> pid_t {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {before}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        before = sym before_vfork,
    );
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!(
        "hint #34", // The landing pad `bti c`, where processors know it.
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "bl {before}",
        "ldp x29, x30, [sp], #16",
        "mov x16, x0",
        "br x16",
        before = sym before_vfork,
    );
}

/// Returns the function that [`vfork`] stands in for.
extern "C" fn before_vfork() -> *const c_void {
    slice::before_a_start();
    // POSIX let them be the same.
    VFORK.address().map_or(libc::fork as *const c_void, <*mut c_void>::cast_const)
}

/// The actions, the attributes, and the two lists of words.
type Spawn = unsafe extern "C" fn(
    *mut pid_t,
    *const c_char,
    *const c_void,
    *const c_void,
    *const *mut c_char,
    *const *mut c_char,
) -> c_int;

/// Stands in for POSIX's function of this name.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    process: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    slice::before_a_start();
    let Some(next) = POSIX_SPAWN.address() else { return libc::ENOSYS };
    // SAFETY: the next function of this name has its type; the caller's own arguments, unchanged.
    unsafe {
        let next = transmute::<*mut c_void, Spawn>(next);
        next(process, file, actions, attributes, arguments, environment)
    }
}

/// Stands in for POSIX's function of this name.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    process: *mut pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: *const *mut c_char,
    environment: *const *mut c_char,
) -> c_int {
    slice::before_a_start();
    let Some(next) = POSIX_SPAWNP.address() else { return libc::ENOSYS };
    // SAFETY: as for `posix_spawn`.
    unsafe {
        let next = transmute::<*mut c_void, Spawn>(next);
        next(process, file, actions, attributes, arguments, environment)
    }
}

/// Stands in for C's function of this name.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    type System = unsafe extern "C" fn(*const c_char) -> c_int;
    slice::before_a_start();
    let Some(next) = SYSTEM.address() else { return -1 };
    // SAFETY: the next function of this name has its type; the caller's own argument, unchanged.
    unsafe { transmute::<*mut c_void, System>(next)(command) }
}

/// Stands in for POSIX's function of this name.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(command: *const c_char, how: *const c_char) -> *mut FILE {
    type Open = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut FILE;
    slice::before_a_start();
    let Some(next) = POPEN.address() else { return null_mut() };
    // SAFETY: the next function of this name has its type; the caller's own arguments, unchanged.
    unsafe { transmute::<*mut c_void, Open>(next)(command, how) }
}

/// Stands in for POSIX's function of this name. A program keeps the slice of who becomes it.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    file: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    type Execute =
        unsafe extern "C" fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;
    slice::before_a_start();
    let Some(next) = EXECVE.address() else { return -1 };
    // SAFETY: the next function of this name has its type; the caller's own arguments, unchanged.
    unsafe { transmute::<*mut c_void, Execute>(next)(file, arguments, environment) }
}

/// Stands in for POSIX's function of this name.
///
/// # Safety
/// As for the function itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(file: *const c_char, arguments: *const *const c_char) -> c_int {
    type Execute = unsafe extern "C" fn(*const c_char, *const *const c_char) -> c_int;
    slice::before_a_start();
    let Some(next) = EXECV.address() else { return -1 };
    // SAFETY: the next function of this name has its type; the caller's own arguments, unchanged.
    unsafe { transmute::<*mut c_void, Execute>(next)(file, arguments) }
}
