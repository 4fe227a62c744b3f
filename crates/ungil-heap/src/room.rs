//! How much memory there is, asked before it is taken: shared memory that is not there gets
//! processes killed instead of calls refused.

use std::fs;
use std::path::PathBuf;

/// Below this, asking would cost more than the memory is worth.
const WORTH_ASKING: usize = 1 << 20;

/// Which limit speaks against taking `bytes` more, if any does.
pub fn lacking(bytes: usize) -> Option<&'static str> {
    if bytes < WORTH_ASKING {
        return None;
    }
    if available().is_some_and(|free| bytes > free) {
        return Some("the machine has not so much memory available");
    }
    if group_room().is_some_and(|free| bytes > free) {
        return Some("the control group (container) may not have so much more memory");
    }
    None
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// What the control group (version 2) of this process may still take, in bytes.
fn group_room() -> Option<usize> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = PathBuf::from("/sys/fs/cgroup").join(path);
    let number = |name| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<usize>().ok();
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}
