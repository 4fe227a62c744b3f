//! What another process has mapped.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ungil_core::control::CONTROL_PREFIX;

/// A line of `/proc/PID/maps`: `start-end permissions offset device inode path`.
pub struct Mapping<'a> {
    range: &'a [u8],
    pub inode: u64,
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.split_at_checked(rest.iter().position(|&it| it == b' ')?)?;
            rest = after.trim_ascii_start();
            Some(word)
        };
        let (range, _permissions, _offset, _device) = (word()?, word()?, word()?, word()?);
        let inode = str::from_utf8(word()?).ok()?.parse().ok()?;
        Some(Self { range, inode, path: rest })
    }

    pub fn file_name(&self) -> &[u8] {
        self.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }

    pub fn is_control_page(&self) -> bool {
        self.file_name().starts_with(CONTROL_PREFIX.as_bytes())
    }

    /// Whether it is the library of a Python, by its name.
    pub fn is_interpreter(&self) -> bool {
        let name = self.file_name();
        name.starts_with(b"libpython") || name.starts_with(b"libpypy")
    }

    /// Where the file is found by those who may have another root than `process`.
    pub fn path_from_outside(&self, process: &Path) -> PathBuf {
        let mut path = process.join("root").into_os_string();
        path.push(OsStr::from_bytes(self.path));
        path.into()
    }

    /// Opens the mapped file: the very one, which only root may, or the one of that name in the
    /// process's own root.
    pub fn open(&self, process: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let mapped = process.join("map_files").join(OsStr::from_bytes(self.range));
        if let Ok(file) = options.open(mapped) {
            return Ok(file);
        }
        options
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(self.path_from_outside(process))
    }
}
