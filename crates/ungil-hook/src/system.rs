//! What the system says about this process and to the calling thread.

use libc::c_int;

/// The number of this process, in its own namespace.
pub fn current_pid() -> u32 {
    // SAFETY: getpid has no preconditions.
    unsafe { libc::getpid() }.cast_unsigned()
}

/// The number of the namespace in which [`current_pid`] means this process, 0 if unknown.
pub fn pid_namespace() -> u32 {
    // SAFETY: all-zero is a valid stat.
    let mut facts: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated, `facts` valid for writing.
    unsafe { libc::stat(c"/proc/self/ns/pid".as_ptr(), &raw mut facts) };
    u32::try_from(facts.st_ino).unwrap_or(0)
}

/// A file that grows past the limit would raise SIGXFSZ in the program.
pub fn may_grow_to(bytes: usize) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    known && limit.rlim_cur >= bytes as libc::rlim_t
}

/// The calling thread's errno.
pub fn last_errno() -> c_int {
    // SAFETY: it has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the address of the calling thread's errno is always valid.
    unsafe { *errno }
}

/// Sets the calling thread's errno.
pub fn set_errno(value: c_int) {
    // SAFETY: it has no preconditions.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the address of the calling thread's errno is always valid.
    unsafe { *errno = value };
}

/// Runs `work` and leaves errno as it was: the hooked call's caller may rely on it.
pub fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    let before = last_errno();
    let result = work();
    set_errno(before);
    result
}
