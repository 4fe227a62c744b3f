//! How much memory there is, asked before it is taken: shared memory that is not there gets
//! processes killed instead of calls refused.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::header::CHUNK;

/// What has to be left over, for everything else that the process is about to do.
const RESERVE: usize = 8 << 20;
/// The kernel keeps less than this part of the memory for itself (`totalreserve_pages`).
const KEPT: usize = 16;
/// From here on a limit of version 1 is none: it says the greatest that the kernel can count.
const UNLIMITED: usize = 1 << 60;
/// More than any of the files says. All but long lists of groups are read in one step.
const MOST_TEXT: u64 = 1 << 16;
const USUAL_TEXT: usize = 1 << 13;

/// How long an answer holds: a new heap is made in several steps, all of which ask.
const MOMENT: Duration = Duration::from_millis(5);
/// And for how much. The reserve has room for it.
const MOST_UNASKED: usize = 1 << 20;

/// When somebody asked last, and how much may be taken since then without another question.
static LAST: Mutex<Option<(Instant, usize)>> = Mutex::new(None);

/// Which limit speaks against taking `bytes` more, if any does. Less than a chunk is not worth the
/// question.
pub fn lacking(bytes: usize) -> Option<&'static str> {
    if bytes < CHUNK {
        return None;
    }
    // Whoever forked while another thread was here asks again, each time.
    let mut last = LAST.try_lock().ok();
    if let Some(Some((asked, left))) = last.as_deref_mut()
        && *left >= bytes
        && asked.elapsed() < MOMENT
    {
        *left -= bytes;
        return None;
    }
    let limit = asked(bytes);
    if let Some(last) = last.as_deref_mut() {
        *last = limit.is_none().then(|| (Instant::now(), MOST_UNASKED));
    }
    limit
}

fn asked(bytes: usize) -> Option<&'static str> {
    let is_too_much = |free: usize| bytes.saturating_add(RESERVE) > free;
    if unused().is_none_or(is_too_much) {
        let meminfo = text(Path::new("/proc/meminfo")).unwrap_or_default();
        if available(&meminfo).is_some_and(is_too_much) {
            return Some("the machine has too little memory available");
        }
    }
    let groups = text(Path::new("/proc/self/cgroup")).unwrap_or_default();
    if group_room(Path::new("/sys/fs/cgroup"), &groups).is_some_and(is_too_much) {
        return Some("the memory limit of the control group (container) does not allow it");
    }
    None
}

/// What a file of the kernel's says. Those do not know their sizes, so asking for it is in vain.
fn text(path: &Path) -> Option<String> {
    let mut text = String::with_capacity(USUAL_TEXT);
    File::open(path).ok()?.take(MOST_TEXT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What nobody uses for anything, in bytes. It is less than `MemAvailable`, which also counts what
/// gives way, and which takes a hundred times as long to read.
fn unused() -> Option<usize> {
    // SAFETY: integers, for which any bits are a value.
    let mut told: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: it writes to `told` only.
    if unsafe { libc::sysinfo(&raw mut told) } != 0 {
        return None;
    }
    let bytes = |units: libc::c_ulong| {
        usize::try_from(units).ok()?.checked_mul(usize::try_from(told.mem_unit).ok()?)
    };
    Some(bytes(told.freeram)?.saturating_sub(bytes(told.totalram)? / KEPT))
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// What the control group of a process, and those that it is in, may still take, in bytes. `groups`
/// is its `/proc/PID/cgroup`: a line `0::/path` for version 2, `N:memory:/path` for version 1.
fn group_room(root: &Path, groups: &str) -> Option<usize> {
    let room = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let path = path.trim_start_matches('/');
        if number == "0" {
            lowest(root, path, "memory.max", "memory.current", "")
        } else if controllers.split(',').any(|name| name == "memory") {
            let root = root.join("memory");
            lowest(&root, path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        } else {
            None
        }
    };
    groups.lines().filter_map(room).min()
}

/// The least room of a group and those that it is in. The page cache is no hindrance: it gives way.
fn lowest(root: &Path, path: &str, limit: &str, used: &str, prefix: &str) -> Option<usize> {
    let room = |folder: &Path| {
        let number = |name| text(&folder.join(name))?.trim().parse::<usize>().ok();
        let limit = number(limit).filter(|&limit| limit < UNLIMITED)?;
        let statistics = text(&folder.join("memory.stat")).unwrap_or_default();
        let cache = ["inactive_file", "active_file"].map(|name| {
            let line = |line: &str| {
                let value = line.strip_prefix(prefix)?.strip_prefix(name)?.strip_prefix(' ')?;
                value.parse::<usize>().ok()
            };
            statistics.lines().find_map(line).unwrap_or(0)
        });
        let used = number(used)?.saturating_sub(cache[0].saturating_add(cache[1]));
        Some(limit.saturating_sub(used))
    };
    let folder = root.join(path);
    folder.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(room).min()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder that is removed at the end.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("ungil-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn what_the_machine_has_available_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:     1024 kB\n"), Some(1 << 20));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn a_group_without_a_limit_limits_nothing() {
        let root = Folder::new("unlimited");
        root.write("a/memory.max", "max\n");
        root.write("a/memory.current", "100\n");
        assert_eq!(group_room(&root.0, "0::/a\n"), None);
        assert_eq!(group_room(&root.0, ""), None);
    }

    #[test]
    fn the_narrowest_group_counts_and_the_page_cache_does_not() {
        let root = Folder::new("nested");
        root.write("a/memory.max", "1000\n");
        root.write("a/memory.current", "900\n");
        root.write("a/memory.stat", "anon 100\ninactive_file 300\nactive_file 200\n");
        root.write("a/b/memory.max", "5000\n");
        root.write("a/b/memory.current", "100\n");
        assert_eq!(group_room(&root.0, "0::/a/b\n"), Some(600));
    }

    #[test]
    fn a_group_of_version_1_counts_too() {
        let root = Folder::new("old");
        root.write("memory/a/memory.limit_in_bytes", "1000\n");
        root.write("memory/a/memory.usage_in_bytes", "700\n");
        root.write("memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
        assert_eq!(group_room(&root.0, "4:cpu:/a\n3:memory,hugetlb:/a\n"), Some(400));
    }

    #[test]
    fn a_group_of_version_1_without_a_limit_limits_nothing() {
        let root = Folder::new("old-unlimited");
        root.write("memory/a/memory.limit_in_bytes", "9223372036854771712\n");
        root.write("memory/a/memory.usage_in_bytes", "700\n");
        assert_eq!(group_room(&root.0, "3:memory:/a\n"), None);
    }

    #[test]
    fn what_is_unused_is_also_available() {
        // Both change all the time: what is used beside this test must not decide it.
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
        assert!(unused().unwrap() / 2 < available(&meminfo).unwrap());
    }

    #[test]
    fn more_than_any_machine_has_is_lacking() {
        assert!(lacking(1 << 60).is_some());
        assert!(lacking(CHUNK).is_none());
        assert!(lacking(1 << 60).is_some(), "an answer is about so much only");
    }
}
