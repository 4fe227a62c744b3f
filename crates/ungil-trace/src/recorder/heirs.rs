//! Processes that have inherited a session, also those that have no table yet: a child that a
//! program forks just before it ends, as one that becomes a daemon does, makes its own only when it
//! is first run.

use std::fs;
use std::io;
use std::path::Path;

use ungil_core::HOOK_FILE;

/// The processes of this user that inherited the session in `directory` and have the hook loaded.
///
/// Without `/proc`, and of programs that have cleared their environment, nothing is known.
pub fn heirs(directory: &Path) -> Vec<u32> {
    let variable = [b"UNGIL_SESSION=", directory.as_os_str().as_encoded_bytes()].concat();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| inherits(pid, &variable).unwrap_or(false))
        .collect()
}

/// Whether a process was to join a recording with all that it forks, and has the hook.
fn inherits(pid: u32, variable: &[u8]) -> io::Result<bool> {
    let environment = fs::read(format!("/proc/{pid}/environ"))?;
    let has = |wanted: &[u8]| environment.split(|&byte| byte == 0).any(|it| it == wanted);
    if !has(variable) || has(b"UNGIL_CHILDREN=0") {
        return Ok(false);
    }
    // What is no Python has the stub alone.
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    let hook = [b"/", HOOK_FILE.as_bytes()].concat();
    Ok(maps.split(|&byte| byte == b'\n').any(|line| line.ends_with(&hook)))
}

/// What a report says of processes that live on after the program: `recorded` are those that were
/// recorded, and `heirs` those that inherited the session, with or without having been recorded.
pub fn outlived(recorded: &[u32], heirs: &[u32]) -> Vec<String> {
    let missed: Vec<u32> = heirs.iter().copied().filter(|it| !recorded.contains(it)).collect();
    let said = |pids: &[u32], one: &str, several: &str| match *pids {
        [] => None,
        [pid] => Some(format!(
            "one process outlived the program that started it; {one}; to record it from now on: \
             ungil trace --pid {pid}"
        )),
        [first, ..] => Some(format!(
            "{} processes outlived the program that started them; {several}; to record one from \
             now on: ungil trace --pid {first}",
            pids.len()
        )),
    };
    let until = "recorded until the program ended";
    let was = said(recorded, &format!("it was {until}"), &format!("they were {until}"));
    let was_not = said(&missed, "it was not recorded", "they were not recorded");
    was.into_iter().chain(was_not).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn an_heir_has_the_sessions_variable_and_the_hook() {
        let folder = tempfile::tempdir().unwrap();
        let hook = folder.path().join(HOOK_FILE);
        fs::copy("/proc/self/exe", &hook).unwrap();
        let started = |session: &str, children: &str, program: &Path| {
            let mut child = Command::new(program)
                .args(["--exact", "recorder::heirs::tests::it_says_that_it_runs", "--nocapture"])
                .env("UNGIL_SESSION", folder.path().join(session))
                .env("UNGIL_CHILDREN", children)
                .env("HEIR", "1")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut all = Vec::new();
            while !all.ends_with(b"it runs\n") {
                let mut byte = [0];
                child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
                all.push(byte[0]);
            }
            child
        };
        let this = fs::read_link("/proc/self/exe").unwrap();
        let mut children = [
            started("ours", "1", &hook),
            started("ours", "0", &hook),
            started("ours", "1", &this),
            started("ours-2", "1", &hook),
        ];
        assert_eq!(heirs(&folder.path().join("ours")), [children[0].id()]);
        for child in &mut children {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        assert!(heirs(&folder.path().join("ours")).is_empty());
    }

    #[test]
    fn what_outlived_the_program_is_told_with_how_to_go_on() {
        assert!(outlived(&[], &[]).is_empty());
        assert_eq!(
            outlived(&[7], &[7, 8, 9]),
            [
                "one process outlived the program that started it; it was recorded until the \
                 program ended; to record it from now on: ungil trace --pid 7",
                "2 processes outlived the program that started them; they were not recorded; to \
                 record one from now on: ungil trace --pid 8",
            ]
        );
    }

    /// What the first test starts; by itself it does nothing.
    #[test]
    fn it_says_that_it_runs() {
        if std::env::var_os("HEIR").is_some() {
            // Not what the harness catches.
            writeln!(io::stdout(), "it runs").unwrap();
            io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
    }
}
