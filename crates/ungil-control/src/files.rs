//! The files by which processes and commands find each other: control pages and marks.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ungil_core::control_page::{CONTROL_FOLDER, CONTROL_PREFIX, MARK_PREFIX};

/// The path of the mark that this process may have, as `ungil run`: whoever is scheduled under it
/// writes a byte there.
///
/// # Errors
/// Without `/proc`, which tells the namespace of process ids.
pub fn mark_path() -> io::Result<String> {
    Ok(format!("{CONTROL_FOLDER}{MARK_PREFIX}{}{}", of_this_user()?, std::process::id()))
}

/// The path of the control page of a process of this user and namespace, if it has one.
///
/// # Errors
/// As [`mark_path`].
pub fn page_path(pid: u32) -> io::Result<String> {
    Ok(format!("{CONTROL_FOLDER}{CONTROL_PREFIX}{}{pid}", of_this_user()?))
}

/// Removes the control pages and the marks that killed processes of this user have left: where they
/// were, and how many bytes they took.
pub fn remove_stale() -> Vec<(PathBuf, u64)> {
    remove_stale_in(Path::new(CONTROL_FOLDER))
}

fn remove_stale_in(folder: &Path) -> Vec<(PathBuf, u64)> {
    // Of other PID namespaces, which may share the folder, nobody here can tell who has ended.
    let Ok(ours) = of_this_user() else { return Vec::new() };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut removed = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = [CONTROL_PREFIX, MARK_PREFIX].into_iter().find_map(|prefix| {
            name.to_str()?.strip_prefix(prefix)?.strip_prefix(ours.as_str())?.parse().ok()
        });
        if pid.is_some_and(has_ended) {
            let bytes = entry.metadata().map_or(0, |facts| facts.blocks() * 512);
            // If somebody else has removed it meanwhile, all the better.
            if fs::remove_file(entry.path()).is_ok() {
                removed.push((entry.path(), bytes));
            }
        }
    }
    removed
}

/// What the names of this user's files have in the middle: the user, and the namespace in which
/// process ids mean what they mean here.
fn of_this_user() -> io::Result<String> {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    Ok(format!("{user}-{}-", fs::metadata("/proc/self/ns/pid")?.ino()))
}

/// Whether there is no process of that number.
fn has_ended(pid: libc::pid_t) -> bool {
    pid > 0
        // SAFETY: takes integers; signal 0 is only checked, not sent.
        && unsafe { libc::kill(pid, 0) } == -1
        && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_ended_processes_have_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        let ended = child.id();
        child.wait().unwrap();
        let (ours, own) = (of_this_user().unwrap(), std::process::id());
        let stale = [CONTROL_PREFIX, MARK_PREFIX].map(|prefix| format!("{prefix}{ours}{ended}"));
        let kept = [
            format!("{CONTROL_PREFIX}{ours}{own}"),
            format!("{CONTROL_PREFIX}0-1-{ended}"),
            format!("{CONTROL_PREFIX}{ours}-1"),
            format!("{CONTROL_PREFIX}{ours}x"),
            format!("another-{ours}{ended}"),
        ];
        for name in stale.iter().chain(&kept) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let mut removed = remove_stale_in(folder.path());
        removed.sort();
        let told: Vec<_> = removed.into_iter().map(|(path, _)| path).collect();
        assert_eq!(told, stale.each_ref().map(|name| folder.path().join(name)));
        assert!(remove_stale_in(folder.path()).is_empty());
        for name in &stale {
            assert!(!folder.path().join(name).exists(), "{name} is left");
        }
        for name in &kept {
            assert!(folder.path().join(name).exists(), "{name} is gone");
        }
    }

    #[test]
    fn a_mark_is_named_after_user_namespace_and_process() {
        let path = mark_path().unwrap();
        let name = path.strip_prefix("/dev/shm/ungil-run-").expect("the folder and the prefix");
        let parts: Vec<&str> = name.split('-').collect();
        assert_eq!(parts.len(), 3, "{name}");
        assert_eq!(parts[2], std::process::id().to_string());
    }
}
