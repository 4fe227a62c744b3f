//! What `/proc` tells of a process.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use ungil_core::HOOK_FILE;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
}

/// A stretch of its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// Whether code in it may run.
    pub is_executable: bool,
    /// Where in its file it begins.
    pub offset: u64,
    /// The inode of its file, 0 if it has none.
    pub inode: u64,
    /// Its file as the process names it, or what the kernel calls it; empty if it is anonymous.
    pub path: Vec<u8>,
}

impl Process {
    /// The folder that the kernel keeps of it.
    pub fn folder(self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.pid))
    }

    /// What it has mapped, in the order of addresses.
    pub fn mappings(self) -> io::Result<Vec<Mapping>> {
        let text = fs::read(self.folder().join("maps"))?;
        Ok(text.split(|&byte| byte == b'\n').filter_map(Mapping::parse).collect())
    }

    /// Its threads.
    pub fn threads(self) -> io::Result<Vec<u32>> {
        let entries = fs::read_dir(self.folder().join("task"))?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
    }

    /// A number of its `status`, such as that of `TracerPid`.
    pub fn number(self, name: &str) -> Option<u64> {
        number(&self.folder(), name)
    }

    /// Who traces a thread of it, if anybody does: only one process can at a time.
    pub fn tracer(self) -> Option<Self> {
        let threads = self.threads().ok()?.into_iter();
        let by =
            threads.filter_map(|it| number(&self.folder().join(format!("task/{it}")), "TracerPid"));
        by.filter_map(|it| u32::try_from(it).ok()).find(|&it| it != 0).map(|pid| Self { pid })
    }

    /// Whether a signal has stopped it, all of its threads, until SIGCONT comes.
    pub fn is_stopped(self) -> bool {
        let status = fs::read_to_string(self.folder().join("status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:\tT "))
    }

    /// Whether it sees the same files under the same names as this one.
    pub fn shares_files(self) -> bool {
        let namespace = |process: &Path| fs::read_link(process.join("ns/mnt"));
        let root = |process: &Path| fs::read_link(process.join("root"));
        let (own, theirs) = (Path::new("/proc/self"), self.folder());
        let same = |it: &dyn Fn(&Path) -> io::Result<PathBuf>| matches!((it(own), it(&theirs)), (Ok(one), Ok(other)) if one == other);
        same(&namespace) && same(&root)
    }

    /// Where a file that it has open under this number is found from outside.
    pub fn opened(self, descriptor: u32) -> PathBuf {
        self.folder().join("fd").join(descriptor.to_string())
    }
}

/// "process 17 (strace)", or without a name if it has ended.
impl fmt::Display for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "process {}", self.pid)?;
        let name = fs::read(self.folder().join("comm")).unwrap_or_default();
        match String::from_utf8_lossy(name.trim_ascii_end()) {
            name if name.is_empty() => Ok(()),
            name => write!(formatter, " ({name})"),
        }
    }
}

/// What a process or a thread, whose folder this is, does now, in the letter that `/proc` has for it:
/// `R` if it is runnable. `None` if it is gone.
pub fn state(folder: &Path) -> Option<u8> {
    let stat = fs::read(folder.join("stat")).ok()?;
    // Its name may have any character, also a parenthesis.
    let name_ends = stat.iter().rposition(|&it| it == b')')?;
    stat.get(name_ends + 2).copied()
}

/// A number in the `status` of a process or a thread, whose folder this is.
pub fn number(folder: &Path, name: &str) -> Option<u64> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

impl Mapping {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.split_at_checked(rest.iter().position(|&it| it == b' ')?)?;
            rest = after.trim_ascii_start();
            str::from_utf8(word).ok()
        };
        let (range, access, offset, _device) = (word()?, word()?, word()?, word()?);
        let inode = word()?.parse().ok()?;
        let (start, end) = range.split_once('-')?;
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            is_executable: access.contains('x'),
            offset: u64::from_str_radix(offset, 16).ok()?,
            inode,
            path: rest.to_vec(),
        })
    }

    /// The last part of its path.
    pub fn file_name(&self) -> &[u8] {
        let name = self.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        name.strip_prefix(b"memfd:").unwrap_or(name)
    }

    /// Whether it is one of the hook's.
    pub fn is_hook(&self) -> bool {
        self.file_name() == HOOK_FILE.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_taken_apart_with_the_spaces_of_its_path() {
        let line =
            b"7f00-7f10 r-xp 00001000 fe:01 4711                       /opt/my python/libc.so.6";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.inode), (0x7f00, 0x7f10, 4711));
        assert!(mapping.is_executable && !mapping.is_hook());
        assert_eq!(mapping.file_name(), b"libc.so.6");
        assert!(Mapping::parse(b"7f00-7f10 rw-p 00000000 00:00 0 ").unwrap().path.is_empty());
        assert!(Mapping::parse(b"7f00-7f10 r-xp").is_none());
    }

    #[test]
    fn the_hook_is_known_however_it_came() {
        for path in [
            "/a/libungil_hook.so",
            "/memfd:libungil_hook.so (deleted)",
            "/a/libungil_hook.so (deleted)",
        ] {
            let line = format!("1-2 r-xp 0 fe:01 1 {path}");
            assert!(Mapping::parse(line.as_bytes()).unwrap().is_hook(), "{path}");
        }
    }

    #[test]
    fn this_process_is_told_of() {
        let own = Process { pid: std::process::id() };
        assert!(own.mappings().unwrap().iter().any(|mapping| mapping.is_executable));
        assert!(!own.threads().unwrap().is_empty());
        assert_eq!(own.number("TracerPid"), Some(0));
        assert_eq!(own.number("NoSuchThing"), None);
        assert!(own.shares_files());
    }
}
