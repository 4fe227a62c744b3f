//! Starting processes and programs otherwise than by `fork`, of which libc tells
//! ([`crate::fork_and_exit`]).
//!
//! Whoever is started inherits how the kernel runs the thread that starts it ([`crate::slice`]) and
//! keeps it whatever it executes. Nobody in a child could change that: after `vfork` it has its
//! parent's memory, and after `execve` it may be any program. So the thread takes back its own
//! slice before. `pthread_create` is in `first_thread.rs`; a bare `clone` is not noticed.

use crate::interpreter::Replacement;
use crate::next::Next;
use crate::{any_libc, slice, stub, table};
use libc::{FILE, c_char, c_int, c_void, pid_t};
use std::ffi::CStr;
use std::mem::transmute;
use std::ptr::null_mut;

static VFORK: Next = Next::new(c"vfork");
static POSIX_SPAWN: Next = Next::new(c"posix_spawn");
static POSIX_SPAWNP: Next = Next::new(c"posix_spawnp");
static SYSTEM: Next = Next::new(c"system");
static POPEN: Next = Next::new(c"popen");
static EXECVE: Next = Next::new(c"execve");
static EXECV: Next = Next::new(c"execv");

/// What is defined here.
pub static STAND_INS: [(&CStr, Replacement); 7] = [
    (c"vfork", Replacement(vfork as *const c_void)),
    (c"posix_spawn", Replacement(posix_spawn as *const c_void)),
    (c"posix_spawnp", Replacement(posix_spawnp as *const c_void)),
    (c"system", Replacement(system as *const c_void)),
    (c"popen", Replacement(popen as *const c_void)),
    (c"execve", Replacement(execve as *const c_void)),
    (c"execv", Replacement(execv as *const c_void)),
];

/// Finds the functions that those here stand in for. Some may be called where nothing may be
/// looked up any more: in a signal handler, and in a child after fork.
pub fn find_next() {
    for next in [&VFORK, &POSIX_SPAWN, &POSIX_SPAWNP, &SYSTEM, &POPEN, &EXECVE, &EXECV] {
        next.address();
    }
}

/// Whether the calls of this process lead here: the stub or this library was preloaded.
pub fn is_noticed() -> bool {
    if stub::leads_here() {
        return true;
    }
    std::ptr::eq(any_libc::find(c"vfork"), vfork as *const c_void)
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

/// Defines what stands in for functions of this name: it calls the next one, with what it was called
/// with, once the thread has its own slice. `else` is what is returned if there is none. If the
/// function can end this program, that is noted `before`, and taken back `after` it has failed to.
macro_rules! stand_in {
    ($(
        $next:ident: $name:ident($($argument:ident: $type:ty),*) -> $result:ty, else $none:expr
        $(, before $before:path, after $after:path)?;
    )*) => {$(
        /// Stands in for the function of this name.
        ///
        /// # Safety
        /// As for the function itself.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            type Function = unsafe extern "C" fn($($type),*) -> $result;
            slice::before_a_start();
            let Some(next) = $next.address() else { return $none };
            // SAFETY: the next function of this name has its type.
            let next = unsafe { transmute::<*mut c_void, Function>(next) };
            $($before();)?
            // SAFETY: the caller's own arguments, unchanged.
            let result = unsafe { next($($argument),*) };
            $($after();)?
            result
        }
    )*};
}

/// The words of a command line, or of an environment.
type Words = *const *mut c_char;

stand_in! {
    POSIX_SPAWN: posix_spawn(
        process: *mut pid_t, file: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: Words, environment: Words
    ) -> c_int, else libc::ENOSYS;
    POSIX_SPAWNP: posix_spawnp(
        process: *mut pid_t, file: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: Words, environment: Words
    ) -> c_int, else libc::ENOSYS;
    SYSTEM: system(command: *const c_char) -> c_int, else -1;
    POPEN: popen(command: *const c_char, how: *const c_char) -> *mut FILE, else null_mut();
    // Programs keep the slice of whoever becomes them. Whoever does has the GIL, and lets go of it never.
    EXECVE: execve(file: *const c_char, arguments: Words, environment: Words) -> c_int, else -1,
        before table::end, after table::goes_on;
    EXECV: execv(file: *const c_char, arguments: Words) -> c_int, else -1,
        before table::end, after table::goes_on;
}
