//! How the kernel runs a thread that has little to do, and is late with it on a busy machine.
//!
//! A thread with a short slice of the processor goes before those with longer ones once it has
//! something to do (Linux 6.12 and later). It gets no more of the processor than its share.

use std::fs;

/// The shortest that the kernel allows, in ns.
const SHORTEST_NS: u64 = 100_000;
/// `SCHED_FLAG_RESET_ON_FORK`: what the thread starts has slices as usual.
const RESET_ON_FORK: u64 = 1;

/// `struct sched_attr` (`<linux/sched/types.h>`), as far as all kernels know it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The slice of a thread of `SCHED_OTHER`; 0 before Linux 6.12.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Lets the kernel run the calling thread soon when it wakes up, where it can. A process in a
/// sandbox is left alone: it may be killed for the call.
pub fn be_prompt() {
    if !is_free() {
        return;
    }
    let mut own = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: `own` is valid for writing that many bytes.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut own, size, 0) };
    if known != 0 || own.policy != libc::SCHED_OTHER.cast_unsigned() || own.runtime == 0 {
        return;
    }
    let short = Attributes { flags: own.flags | RESET_ON_FORK, runtime: SHORTEST_NS, ..own };
    // SAFETY: `short` is valid for reading as many bytes as its size says.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const short, 0) };
}

/// Whether no filter says which system calls this process may make.
fn is_free() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "0"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_thread_has_a_short_slice_where_the_kernel_has_any_and_its_children_do_not() {
        let slice = || {
            let mut own = Attributes::default();
            let size = size_of::<Attributes>();
            // SAFETY: `own` is valid for writing that many bytes.
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut own, size, 0) };
            own.runtime
        };
        let usual = slice();
        let after = std::thread::spawn(move || {
            be_prompt();
            (slice(), std::thread::spawn(slice).join().unwrap())
        });
        let expected = if usual > 0 && is_free() { SHORTEST_NS } else { usual };
        assert_eq!(after.join().unwrap(), (expected, usual));
    }
}
