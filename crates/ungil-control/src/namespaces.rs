//! The ids of processes and threads: each PID namespace, such as that of a container, has its own.

use std::fs;
use std::io;
use std::num::ParseIntError;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How a process or a thread, of which this is the folder in `/proc`, calls itself: the last number of
/// `NSpid`.
///
/// # Errors
/// There is no such process or thread, or the kernel does not tell.
pub fn own_number(folder: &Path) -> io::Result<u32> {
    let status = fs::read_to_string(folder.join("status"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .and_then(|numbers| numbers.split_ascii_whitespace().last())
        .ok_or_else(|| io::Error::other("the kernel does not say its process id"))?
        .parse()
        .map_err(|error: ParseIntError| io::Error::other(error))
}

/// The number of the PID namespace of a process, of which this is the folder in `/proc`; `None` if that
/// may not be looked up.
pub fn pid_namespace(folder: &Path) -> Option<u32> {
    u32::try_from(fs::metadata(folder.join("ns/pid")).ok()?.ino()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_calls_itself_as_getpid_says() {
        assert_eq!(own_number(Path::new("/proc/self")).unwrap(), std::process::id());
        assert_eq!(own_number(Path::new("/nowhere")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_process_and_its_child_are_of_one_namespace() {
        let own = pid_namespace(Path::new("/proc/self"));
        assert!(own.is_some());
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert_eq!(pid_namespace(Path::new(&format!("/proc/{}", child.id()))), own);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(pid_namespace(Path::new("/nowhere")), None);
    }
}
