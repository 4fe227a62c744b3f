//! What a thread does in the kernel: the system call that it sleeps in, and on what.
//!
//! `/proc/PID/task/TID/syscall` has the number and the arguments of that call; it may be read by who
//! may trace the process (`ptrace(2)`), as its memory may.

use super::kernel_counts::is_at_one;
use crate::clock::read_ns;
use crate::record::{NO_DESCRIPTOR, SHORT_TIMEOUT};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// What a thread did in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The name of the call; `computing` if the thread ran, empty if that is not known.
    pub name: String,
    /// What its descriptor was: `socket`, `pipe`, `file`, `terminal`, or empty; or what else tells it
    /// apart ([`SHORT_TIMEOUT`], [`NO_DESCRIPTOR`]).
    pub on: String,
}

impl Call {
    /// Whether it ends by itself within milliseconds, for all that is known of its kind.
    pub fn is_timed(&self) -> bool {
        matches!(self.name.as_str(), "nanosleep" | "clock_nanosleep")
            || matches!(self.on.as_str(), SHORT_TIMEOUT | NO_DESCRIPTOR)
    }
}

/// A wait that ends by itself within this time has a short timeout.
const SHORT_NS: u64 = 20_000_000;

/// Those whose first argument is a descriptor.
const ON_A_DESCRIPTOR: [(i64, &str); 34] = [
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_preadv, "preadv"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_sync_file_range, "sync_file_range"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_recvmmsg, "recvmmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendmmsg, "sendmmsg"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_epoll_pwait2, "epoll_pwait2"),
    (libc::SYS_io_uring_enter, "io_uring_enter"),
    (libc::SYS_splice, "splice"),
    (libc::SYS_fchmod, "fchmod"),
];
const OTHERS: [(i64, &str); 16] = [
    (libc::SYS_futex, "futex"),
    (libc::SYS_futex_waitv, "futex_waitv"),
    (libc::SYS_semtimedop, "semtimedop"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_newfstatat, "newfstatat"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_sync, "sync"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
];
/// Those that newer platforms do without.
#[cfg(target_arch = "x86_64")]
const OLDER: [(i64, &str); 6] = [
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_select, "select"),
    (libc::SYS_open, "open"),
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_rename, "rename"),
    (libc::SYS_pause, "pause"),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [(i64, &str); 0] = [];
/// Those whose first argument is an array of `pollfd`, and the second its length.
#[cfg(target_arch = "x86_64")]
const POLLS: [(i64, &str); 2] = [(libc::SYS_poll, "poll"), (libc::SYS_ppoll, "ppoll")];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: [(i64, &str); 1] = [(libc::SYS_ppoll, "ppoll")];

/// Asks what thread `tid` of process `pid` does. `None` if it is on its way to one of `gils`, which
/// are known by their addresses: no event tells of a wait for the mutex of a GIL, which is long where
/// the kernel does not run the thread that has it.
pub fn call_of(pid: u32, tid: u32, gils: &[u64]) -> Option<Call> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap_or_default();
    if is_at_one(gils, &text) {
        return None;
    }
    let on = |descriptor: u64| {
        let descriptor = u32::try_from(descriptor).ok()?;
        kind_of(&fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?.to_string_lossy())
    };
    let is_short = |operation, timeout| is_short(operation, read_timeout(pid, timeout)?);
    Some(parse(&text, on, |address| first_of_poll(pid, address), is_short))
}

/// What `proc_pid_syscall` tells: `running`, or the number, the arguments and two addresses.
fn parse(
    text: &str,
    on: impl Fn(u64) -> Option<&'static str>,
    first_of_poll: impl Fn(u64) -> Option<u64>,
    is_short: impl Fn(u64, u64) -> Option<bool>,
) -> Call {
    let text = text.trim();
    if text == "running" {
        return Call { name: "computing".to_owned(), on: String::new() };
    }
    let mut words = text.split_whitespace();
    let number = words.next().and_then(|word| word.parse::<i64>().ok());
    let Some(number) = number.filter(|&number| number >= 0) else { return Call::default() };
    let mut argument = || {
        let digits = words.next()?.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    };
    let (first, second) = (argument(), argument());
    let name = |calls: &[(i64, &'static str)]| {
        calls.iter().find(|(it, _)| *it == number).map(|(_, name)| *name)
    };
    let (name, kind) = if let Some(name) = name(&ON_A_DESCRIPTOR) {
        (name.to_owned(), first.and_then(on))
    } else if let Some(name) = name(&POLLS) {
        // Of several descriptors none is the one that is waited for.
        let only = first.filter(|_| second == Some(1)).and_then(first_of_poll);
        (name.to_owned(), only.and_then(on))
    } else {
        let known = name(&OTHERS).or_else(|| name(&OLDER));
        let apart = match known {
            Some("futex") => {
                let timeout = argument().and_then(|_| argument()).filter(|address| *address != 0);
                let ends = second.zip(timeout).and_then(|(op, address)| is_short(op, address));
                ends.filter(|is_short| *is_short).map(|_| SHORT_TIMEOUT)
            }
            Some("select" | "pselect6") => first.filter(|it| *it == 0).map(|_| NO_DESCRIPTOR),
            _ => None,
        };
        (known.map_or_else(|| format!("system call {number}"), str::to_owned), apart)
    };
    Call { name, on: kind.unwrap_or_default().to_owned() }
}

/// The descriptor in the `pollfd` at this address.
fn first_of_poll(pid: u32, address: u64) -> Option<u64> {
    let mut bytes = [0; 4];
    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, address).ok()?;
    u64::try_from(i32::from_ne_bytes(bytes)).ok()
}

/// The `timespec` at this address, in nanoseconds.
fn read_timeout(pid: u32, address: u64) -> Option<u64> {
    let mut bytes = [[0; 8]; 2];
    File::open(format!("/proc/{pid}/mem"))
        .ok()?
        .read_exact_at(bytes.as_flattened_mut(), address)
        .ok()?;
    let [seconds, ns] = bytes.map(|it| u64::try_from(i64::from_ne_bytes(it)).ok());
    seconds?.checked_mul(1_000_000_000)?.checked_add(ns?)
}

/// Whether a wait for a futex by this operation ends within [`SHORT_NS`] by itself: with
/// `FUTEX_WAIT` the timeout is what is left, with `FUTEX_WAIT_BITSET` a moment.
fn is_short(operation: u64, timeout_ns: u64) -> Option<bool> {
    let flags = i32::try_from(operation).ok()?;
    let clock = match flags & libc::FUTEX_CLOCK_REALTIME {
        0 => libc::CLOCK_MONOTONIC,
        _ => libc::CLOCK_REALTIME,
    };
    match flags & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT => Some(timeout_ns <= SHORT_NS),
        libc::FUTEX_WAIT_BITSET => Some(timeout_ns.saturating_sub(read_ns(clock)) <= SHORT_NS),
        _ => None,
    }
}

/// What a descriptor is, by what `/proc/PID/fd` says of it.
fn kind_of(link: &str) -> Option<&'static str> {
    match link {
        _ if link.starts_with("socket:") => Some("socket"),
        _ if link.starts_with("pipe:") => Some("pipe"),
        _ if link.starts_with("/dev/pts/") || link == "/dev/tty" => Some("terminal"),
        _ if link.starts_with("/dev/") || !link.starts_with('/') => None,
        _ => Some("file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, String) {
        let on = |descriptor| match descriptor {
            0 => kind_of("/srv/a"),
            1 => kind_of("socket:[7]"),
            _ => kind_of("pipe:[8]"),
        };
        let is_short = |operation, timeout| (operation == 0x80).then_some(timeout == 0x7001);
        let Call { name, on } = parse(text, on, |address| Some(address - 0x1000), is_short);
        (name, on)
    }

    fn pair(name: &str, on: &str) -> (String, String) {
        (name.to_owned(), on.to_owned())
    }

    #[test]
    fn a_call_is_told_with_what_its_descriptor_is() {
        let read = |descriptor: u32| format!("{} 0x{descriptor:x} 0x7f 0x20", libc::SYS_read);
        assert_eq!(parsed(&read(0)), pair("read", "file"));
        assert_eq!(parsed(&read(1)), pair("read", "socket"));
        assert_eq!(parsed(&format!("{} 0x7f01 0x80 0x0\n", libc::SYS_futex)), pair("futex", ""));
        let poll = |count| format!("{} 0x1001 0x{count:x} 0x20", libc::SYS_ppoll);
        assert_eq!(parsed(&poll(1)), pair("ppoll", "socket"));
        assert_eq!(parsed(&poll(2)), pair("ppoll", ""));
    }

    #[test]
    fn a_wait_that_ends_by_itself_within_milliseconds_is_told_apart() {
        let wait = |op, timeout| format!("{} 0x7f01 {op} 0x0 {timeout} 0x0", libc::SYS_futex);
        assert_eq!(parsed(&wait("0x80", "0x7001")), pair("futex", SHORT_TIMEOUT));
        for others in [wait("0x80", "0x7002"), wait("0x80", "0x0"), wait("0x89", "0x7001")] {
            assert_eq!(parsed(&others), pair("futex", ""));
        }
        let (waits, bits) = (libc::FUTEX_WAIT | 128, libc::FUTEX_WAIT_BITSET | 128);
        let op = |flags: i32| u64::try_from(flags).unwrap();
        assert_eq!(is_short(op(waits), SHORT_NS), Some(true));
        assert_eq!(is_short(op(waits), SHORT_NS + 1), Some(false));
        let hour_ns = 3_600_000_000_000;
        for (clock, flag) in
            [(libc::CLOCK_MONOTONIC, 0), (libc::CLOCK_REALTIME, libc::FUTEX_CLOCK_REALTIME)]
        {
            assert_eq!(is_short(op(bits | flag), read_ns(clock)), Some(true));
            assert_eq!(is_short(op(bits | flag), read_ns(clock) + hour_ns), Some(false));
        }
        assert_eq!(is_short(op(libc::FUTEX_LOCK_PI), 0), None);
    }

    #[test]
    fn a_timeout_is_read_from_memory() {
        let time = libc::timespec { tv_sec: 3, tv_nsec: 7 };
        let address = &raw const time as u64;
        assert_eq!(read_timeout(std::process::id(), address), Some(3_000_000_007));
        assert_eq!(read_timeout(std::process::id(), 0), None);
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        assert_eq!(parsed("running\n"), pair("computing", ""));
        assert_eq!(parsed("99999 0x0"), pair("system call 99999", ""));
        for text in ["", "-1 0x7ffc 0x7f", "nonsense", "0x0"] {
            assert_eq!(parsed(text), pair("", ""), "{text:?}");
        }
        assert_eq!(kind_of("anon_inode:[eventpoll]"), None);
        assert_eq!(kind_of("/dev/null"), None);
    }

    #[test]
    fn a_thread_that_waits_for_the_mutex_of_a_gil_waits_for_no_other_lock() {
        let word = std::sync::atomic::AtomicU32::new(0);
        let (address, pid) = (word.as_ptr() as u64, std::process::id());
        let (tell, tids) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: it takes nothing.
                tell.send(u32::try_from(unsafe { libc::gettid() }).unwrap()).unwrap();
                while word.load(std::sync::atomic::Ordering::Acquire) == 0 {
                    let no_time = std::ptr::null::<libc::timespec>();
                    // SAFETY: the word lives until this thread has ended.
                    unsafe {
                        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, 0, no_time)
                    };
                }
            });
            let tid = tids.recv().unwrap();
            // Until it sleeps it does other things.
            while call_of(pid, tid, &[]).is_none_or(|call| call.name != "futex") {
                std::thread::yield_now();
            }
            assert_eq!(call_of(pid, tid, &[address]), None);
            assert!(call_of(pid, tid, &[address + 4]).is_some());
            word.store(1, std::sync::atomic::Ordering::Release);
            // SAFETY: the word lives until the thread has ended.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
        });
    }

    #[test]
    fn a_thread_that_reads_from_a_pipe_is_seen_to() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let reads = Call { name: "read".to_owned(), on: "pipe".to_owned() };
        // Until it has started it does other things.
        while call_of(pid, pid, &[]).as_ref() != Some(&reads) {
            std::thread::yield_now();
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(call_of(pid, pid, &[]), Some(Call::default()));
    }
}
