//! What the threads of a process had used of the processors before it was recorded.
//!
//! The kernel counts from a thread's beginning. A recording that attaches to a process begins in the
//! middle of its threads' lives, and is to tell only of what it has seen.

use super::kernel_counts::{ran_ns, switches};
use crate::clock::read_ns;
use std::collections::HashMap;
use std::fs;

/// A process whose table is younger than itself by this much did not begin with it. A program that
/// was started to be recorded has its table as soon as its libraries are loaded.
const LATER_NS: u64 = 250_000_000;

/// CPU time in nanoseconds, voluntary and involuntary context switches.
pub type Used = [u64; 3];

/// By kernel thread id.
#[derive(Debug, Default)]
pub struct UsedBefore(HashMap<u32, Used>);

impl UsedBefore {
    /// Asks the kernel about a process whose table is `table_age_ns` old.
    pub fn of(pid: u32, table_age_ns: u64) -> Self {
        let is_attached = age_ns(pid).is_some_and(|age_ns| age_ns > table_age_ns + LATER_NS);
        if !is_attached {
            return Self::default();
        }
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let tids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        Self(tids.map(|tid| (tid, used(pid, tid))).collect())
    }

    /// Whether it had run before.
    pub fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// What this thread had used; nothing if it began later.
    pub fn of_thread(&self, tid: u32) -> Used {
        self.0.get(&tid).copied().unwrap_or_default()
    }
}

/// What the kernel has counted for a thread since it began.
fn used(pid: u32, tid: u32) -> Used {
    let [voluntary, involuntary] = switches(pid, tid);
    [ran_ns(pid, tid), voluntary, involuntary]
}

/// How long ago a process began, by the 22nd field of `/proc/PID/stat`, to 10 ms on most kernels.
fn age_ns(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let began_ticks = began_ticks(&String::from_utf8_lossy(&stat))?;
    // SAFETY: sysconf has no preconditions.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    let began_ns = began_ticks.checked_mul(1_000_000_000)?.checked_div(per_second)?;
    read_ns(libc::CLOCK_BOOTTIME).checked_sub(began_ns)
}

/// The name, which may be any text, is in parentheses; the third field follows.
fn began_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_process_is_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 90 0 0 0 1 2 0 0 20 0 1 0 4711 8000 3";
        assert_eq!(began_ticks(stat), Some(4711));
        for text in ["", "7 (a", "7 (a) S 1 7", "7 (a) S 1 7 7 0 -1 4 90 0 0 0 1 2 0 0 20 0 1 0 x"]
        {
            assert_eq!(began_ticks(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_process_that_began_with_its_table_had_used_nothing_before() {
        let pid = std::process::id();
        assert!(UsedBefore::of(pid, u64::MAX / 2).0.is_empty());
        assert!(age_ns(pid).is_some_and(|age_ns| age_ns < 3_600_000_000_000));
    }

    #[test]
    fn of_one_that_is_older_each_thread_has_what_the_kernel_counted() {
        // Process 1 is older than any table; in a test's own container it may be of another user.
        let before = UsedBefore::of(1, 0);
        assert_eq!(before.0.contains_key(&1), age_ns(1).is_some_and(|age| age > LATER_NS));
        assert_eq!(before.of_thread(u32::MAX), [0; 3]);
    }
}
