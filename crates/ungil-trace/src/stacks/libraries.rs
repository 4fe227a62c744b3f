//! The shared libraries of a process that its user may have built: what to name when compiled code
//! keeps the GIL, because nothing tells which function it is.

use std::collections::BTreeSet;
use std::fs;

use crate::origin::is_users_library;

/// Their files, sorted; `None` if the process cannot be read, or has no memory any more because it
/// is ending. Costs up to a few milliseconds in a process with very many mappings.
pub fn users_libraries(pid: u32) -> Option<Vec<String>> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok().filter(|maps| !maps.is_empty())?;
    Some(in_maps(&String::from_utf8_lossy(&maps)))
}

/// As in `/proc/PID/maps`, see proc_pid_maps(5): the file is the sixth word, with its spaces.
fn in_maps(maps: &str) -> Vec<String> {
    let file = |line: &str| {
        let path = &line[line.find('/')?..];
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        is_users_library(path).then(|| path.to_owned())
    };
    maps.lines().filter_map(file).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_process_that_has_ended_nothing_is_known() {
        let mut child = std::process::Command::new("true").spawn().expect("true starts");
        let ended = loop {
            // It has no memory any more, but it is there until somebody waits for it.
            let state = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("a child");
            if state.contains(") Z ") {
                break child.id();
            }
            std::thread::yield_now();
        };
        assert_eq!(users_libraries(ended), None);
        child.wait().expect("it has ended");
    }

    #[test]
    fn each_library_of_the_user_is_listed_once() {
        let maps = "\
7f10-7f20 r--p 00000000 fd:01 7 /usr/lib/x86_64-linux-gnu/libc.so.6
7f20-7f30 r--p 00000000 fd:01 8 /srv/my app/truth.so
7f30-7f40 r-xp 00001000 fd:01 8 /srv/my app/truth.so
7f40-7f50 rw-p 00000000 00:00 0 [heap]
7f50-7f60 r-xp 00000000 fd:01 9 /srv/a.so (deleted)
7f60-7f70 rw-p 00000000 00:00 0
";
        assert_eq!(in_maps(maps), ["/srv/a.so", "/srv/my app/truth.so"]);
    }
}
