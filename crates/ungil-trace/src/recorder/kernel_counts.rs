//! What the kernel does with a thread, by its own account in `/proc/PID/task/TID`.
//!
//! The holder itself tells for how long it ran in a long hold, but not whether it slept or was not
//! run for the rest, and nothing at all if it is killed. The kernel's count of how long a thread
//! wanted to run and did not (its run delay) tells these apart, if it is read before the hold,
//! during it, and after it.

use crate::clock::now_ns;
use crate::record::KernelCount;
use std::fs;

/// The condition variables and mutexes of a GIL lie together, from the one that is known on.
const GIL_BYTES: u64 = 192;

/// Asks. `None` if the thread is gone, or if the kernel does not count.
///
/// A thread that sleeps until the mutex of one of `gils` is free, which are known by their
/// addresses, does so because the kernel does not run the thread that has it.
pub fn kernel_count(pid: u32, tid: u32, gils: &[u64]) -> Option<KernelCount> {
    let counted = || times(&read(pid, tid, "schedstat"));
    let [ran_ns, delayed_ns, runs] = counted()?;
    let at_ns = now_ns();
    let sleeps =
        !is_runnable(&read(pid, tid, "stat")) && sleeps_elsewhere(gils, &read(pid, tid, "syscall"));
    // This thread may not be run itself in between. One that sleeps now and has not run since it was
    // asked about slept then, too. One that was on a processor then is put on none again, but runs.
    let has_run = || counted().is_none_or(|[ran, _, times]| (ran, times) != (ran_ns, runs));
    let runnable = !sleeps || has_run();
    Some(KernelCount { at_ns, ran_ns, delayed_ns, runnable })
}

/// How long a thread has been on a processor; 0 if it is gone, or if the kernel does not count.
pub fn ran_ns(pid: u32, tid: u32) -> u64 {
    times(&read(pid, tid, "schedstat")).map_or(0, |[ran_ns, ..]| ran_ns)
}

/// Voluntary and involuntary context switches of a thread; zeroes if it is gone.
pub fn switches(pid: u32, tid: u32) -> [u64; 2] {
    let status = read(pid, tid, "status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"].map(|it| field(it).unwrap_or(0))
}

/// A file of the thread; empty if it cannot be read.
fn read(pid: u32, tid: u32, file: &str) -> String {
    // The name of a thread, which is in `stat`, may be any bytes.
    let bytes = fs::read(format!("/proc/{pid}/task/{tid}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `proc_pid_schedstat` in Linux's `fs/proc/base.c`: time on a processor, run delay, and how often
/// the thread was put on a processor, which is 0 where nothing is counted.
fn times(schedstat: &str) -> Option<[u64; 3]> {
    let mut numbers = schedstat.split_whitespace().map(|word| word.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let (ran_ns, delayed_ns, times) = (next()?, next()?, next()?);
    (times > 0).then_some([ran_ns, delayed_ns, times])
}

/// Whether a thread that sleeps does so for anything but the mutex of a GIL. One that has woken
/// meanwhile does not tell what it slept for; it may have been that mutex.
fn sleeps_elsewhere(gils: &[u64], syscall: &str) -> bool {
    syscall.trim_end() != "running" && !is_at_one(gils, syscall)
}

/// `proc_pid_syscall`: number and arguments of the call that a thread sleeps in. A file that may not
/// be read tells nothing.
pub fn is_at_one(gils: &[u64], syscall: &str) -> bool {
    let mut words = syscall.split_whitespace();
    let is_futex = words.next().is_some_and(|number| number.parse() == Ok(libc::SYS_futex));
    let address = words.next().and_then(|word| word.strip_prefix("0x"));
    let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    is_futex
        && address.is_some_and(|it| gils.iter().any(|gil| (*gil..gil + GIL_BYTES).contains(&it)))
}

/// `proc_pid_stat`: id, name in parentheses, state. What is not known may be runnable, and so would
/// be a thread that stands still because it is traced.
fn is_runnable(stat: &str) -> bool {
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_none_or(|state| matches!(state, 'R' | 't'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_count_has_no_answer() {
        assert_eq!(times("4373795 12 7\n"), Some([4_373_795, 12, 7]));
        for text in ["0 0 0\n", "", "1 2", "-1 2 3", "a b c"] {
            assert_eq!(times(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_thread_may_have_any_name() {
        assert!(is_runnable("22914 (cat) R 22899 22899"));
        assert!(!is_runnable("22914 (a) R (b) S 22899 22899"));
        assert!(!is_runnable("22914 (a) D 1"));
        assert!(is_runnable("22914 (a) t 1"), "ungil itself has stopped it for a moment");
        assert!(is_runnable(""), "what is not known may be runnable");
    }

    #[test]
    fn this_very_thread_has_run() {
        // SAFETY: gettid has no preconditions.
        let tid = u32::try_from(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap();
        let answer = kernel_count(std::process::id(), tid, &[]);
        assert_eq!(answer.is_some(), fs::metadata("/proc/self/schedstat").is_ok());
        assert!(kernel_count(u32::MAX, 1, &[]).is_none());
    }

    #[test]
    fn a_thread_that_waits_for_the_mutex_of_a_gil_is_known_by_its_address() {
        let gils = [0x5000, 0x9000];
        let call =
            |number: i64, address: &str| format!("{number} {address} 0x80 0x2 0x0 0x7ffc 0x7f");
        assert!(is_at_one(&gils, &call(libc::SYS_futex, "0x5030")));
        assert!(is_at_one(&gils, &call(libc::SYS_futex, "0x9000")));
        assert!(!is_at_one(&gils, &call(libc::SYS_futex, "0x8fff")));
        assert!(!is_at_one(&gils, &call(libc::SYS_futex, "0x50c0")));
        assert!(!is_at_one(&gils, &call(libc::SYS_nanosleep, "0x5030")));
        assert!(!is_at_one(&[], &call(libc::SYS_futex, "0x5030")));
        for text in ["running\n", "", "-1 0x7ffc 0x7f"] {
            assert!(!is_at_one(&gils, text), "{text:?}");
        }
    }

    #[test]
    fn a_thread_that_has_woken_meanwhile_may_have_slept_for_the_mutex() {
        let gils = [0x5000];
        assert!(!sleeps_elsewhere(&gils, "running\n"));
        assert!(!sleeps_elsewhere(&gils, &format!("{} 0x5030 0x80", libc::SYS_futex)));
        assert!(sleeps_elsewhere(&gils, &format!("{} 0x0 0x0 0x7ffc", libc::SYS_clock_nanosleep)));
        assert!(sleeps_elsewhere(&gils, ""), "where it may not be read, the state is all there is");
    }
}
