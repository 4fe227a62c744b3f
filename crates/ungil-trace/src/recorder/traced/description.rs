//! What a process tells about itself when it is first seen.

use crate::numbers::Numbers;
use crate::record::{Process, ProcessId};
use std::fs;
use ungil_core::atomic::Ordering::Relaxed;
use ungil_core::table::{Header, Status, load_bytes, load_text};

/// The process of this table; `ran_before` if it ran before the recording began.
pub(super) fn describe(
    header: &Header,
    process: ProcessId,
    numbers: &Numbers,
    at_ns: u64,
    ran_before: bool,
) -> Process {
    let mut command = load_bytes(&header.command);
    let (room, length) = (command.len(), header.command_bytes.load(Relaxed) as usize);
    command.truncate(length);
    // A longer one is there as a whole until the process ends, or executes another program.
    if length == 0 || length >= room {
        let whole = fs::read(format!("/proc/{}/cmdline", numbers.pid())).unwrap_or_default();
        if whole.starts_with(&command) {
            command = whole;
        }
    }
    let argv = command
        .strip_suffix(b"\0")
        .unwrap_or(&command)
        .split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .filter(|_| !command.is_empty())
        .collect();
    let version = load_text(&header.python);
    let not_recorded = match Status::from_number(header.status.load(Relaxed)) {
        // Whether a free-threaded build has a GIL is known in the end.
        Some(Status::Hooked | Status::FreeThreaded) => None,
        Some(Status::NotSeen) => Some(
            "a Python was loaded, but the hook saw nothing of its start: it was not started, or \
             it was loaded in a way that hides it (RTLD_DEEPBIND)",
        ),
        Some(Status::PyPy) => Some("PyPy's GIL does not call libc, so ungil cannot see it"),
        Some(Status::UnknownInterpreter) | None => Some(
            "this Python does not make the libc calls by which ungil knows a GIL; CPython 2.7, \
             and 3.7 or newer, do",
        ),
    };
    Process {
        process,
        pid: numbers.told_pid(),
        parent_pid: numbers.parent_pid(header),
        at_ns,
        argv,
        python: version.split_whitespace().next().unwrap_or_default().to_owned(),
        not_recorded: not_recorded.map(str::to_owned),
        ran_before,
        processors: None,
    }
}
