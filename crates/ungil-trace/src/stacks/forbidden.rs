//! Why the platform does not let one process read another one's memory, and what to do.
//!
//! The rules are those of ptrace(2), "Ptrace access mode checking", and of the Yama security
//! module (Documentation/admin-guide/LSM/Yama.rst of the kernel).

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use ungil_unwind::filter::{Call, kills};

/// A sentence without a final dot, if no process can be read where this one is.
pub fn why_all_are_forbidden() -> Option<String> {
    why_proc_is_of_no_use().map(str::to_owned).or_else(|| {
        kills(Call::Read).then(|| {
            "a seccomp filter kills processes that read another one (process_vm_readv): allow the \
             call in the profile of this container or service"
                .to_owned()
        })
    })
}

/// Programs are looked into by the numbers that they have here.
fn why_proc_is_of_no_use() -> Option<&'static str> {
    match fs::read_link("/proc/self") {
        Ok(own) if own == Path::new(&std::process::id().to_string()) => None,
        Err(error) if error.kind() != ErrorKind::NotFound => None,
        Err(_) => Some(
            "/proc is not mounted here, and ungil cannot inspect a process without it: mount it \
             (mount -t proc proc /proc)",
        ),
        Ok(_) => Some(
            "the /proc that is mounted here belongs to another PID namespace, where process ids \
             differ: mount the one of this namespace (mount -t proc proc /proc)",
        ),
    }
}

/// A sentence without a final dot about process `pid`, which could not be read.
pub fn why_forbidden(pid: u32) -> String {
    let owner = fs::read_to_string(format!("/proc/{pid}/status")).ok().and_then(|it| user_id(&it));
    let reader = fs::read_to_string("/proc/self/status").ok().and_then(|it| user_id(&it));
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    sentence(pid, owner, reader, scope.as_deref().map(str::trim))
}

fn sentence(pid: u32, owner: Option<u32>, reader: Option<u32>, scope: Option<&str>) -> String {
    match (owner, reader, scope) {
        (Some(owner), Some(reader), _) if owner != reader && reader != 0 => format!(
            "process {pid} belongs to user {owner} but ungil runs as user {reader}: run both as \
             the same user"
        ),
        (_, _, Some("1")) => format!(
            "kernel.yama.ptrace_scope is 1, so ungil can read only its own descendants, and \
             process {pid} is not one: keep it in the foreground, or set ptrace_scope to 0"
        ),
        (_, _, Some("2")) => {
            "kernel.yama.ptrace_scope is 2, so only a process with CAP_SYS_PTRACE \
                              may read another one: set it to 1 or 0"
                .into()
        }
        (_, _, Some("3")) => "kernel.yama.ptrace_scope is 3, so no process may read another one: \
                              set a lower value at boot"
            .into(),
        _ => format!(
            "the platform does not let ungil read process {pid} (process_vm_readv was refused): \
             in a container, add the capability SYS_PTRACE or a seccomp profile that allows the \
             call"
        ),
    }
}

/// The real user id in the text of a `/proc/PID/status`.
fn user_id(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_what_forbids_it() {
        let other_user = sentence(7, Some(1000), Some(1001), Some("1"));
        assert!(other_user.contains("user 1000") && other_user.contains("user 1001"));
        for scope in ["1", "2", "3"] {
            let yama = sentence(7, Some(1000), Some(1000), Some(scope));
            assert!(yama.starts_with(&format!("kernel.yama.ptrace_scope is {scope}")));
        }
        assert!(sentence(7, Some(1000), Some(0), Some("0")).contains("SYS_PTRACE"));
        assert!(sentence(7, None, None, None).contains("SYS_PTRACE"));
    }

    #[test]
    fn the_user_id_is_read_from_a_status() {
        assert_eq!(user_id("Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\n"), Some(1000));
        assert_eq!(user_id("Name:\tx\n"), None);
    }
}
