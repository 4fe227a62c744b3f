//! The files by which processes and commands find each other: control pages and marks.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use pyo3::prelude::*;
use ungil_core::control::{CONTROL_FOLDER, CONTROL_PREFIX, MARK_PREFIX};

/// The path of the mark that this process may have, as `ungil run`.
#[pyfunction]
pub fn mark_path() -> io::Result<String> {
    Ok(format!("{CONTROL_FOLDER}{MARK_PREFIX}{}{}", of_this_user()?, std::process::id()))
}

/// Removes the control pages and the marks that killed processes of this user have left.
#[pyfunction]
pub fn remove_stale_pages() {
    // Of other PID namespaces, which may share the folder, nobody here can tell who has ended.
    let Ok(ours) = of_this_user() else { return };
    let Ok(entries) = fs::read_dir(CONTROL_FOLDER) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = [CONTROL_PREFIX, MARK_PREFIX].into_iter().find_map(|prefix| {
            name.to_str()?.strip_prefix(prefix)?.strip_prefix(ours.as_str())?.parse().ok()
        });
        if pid.is_some_and(has_ended) {
            // If somebody else has removed it meanwhile, all the better.
            let _ = fs::remove_file(entry.path());
        }
    }
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
    // SAFETY: signal 0 is only checked, not sent.
    pid > 0
        && unsafe { libc::kill(pid, 0) } == -1
        && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}
