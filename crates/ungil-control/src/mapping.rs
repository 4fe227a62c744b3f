//! What another process has mapped.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ungil_core::HOOK_FILE;
use ungil_core::control_page::CONTROL_PREFIX;

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

    fn file_name(&self) -> &[u8] {
        self.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }

    pub fn is_control_page(&self) -> bool {
        self.file_name().starts_with(CONTROL_PREFIX.as_bytes())
    }

    pub fn is_hook(&self) -> bool {
        self.file_name() == HOOK_FILE.as_bytes()
    }

    /// Whether it is the library of a Python, by its name.
    pub fn is_libpython(&self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] =
        b"7f00-7f10 r-xp 00001000 fe:01 4711                       /opt/my python/libpython3.13.so.1.0";

    #[test]
    fn a_line_of_the_kernel_is_taken_apart_with_the_spaces_of_its_path() {
        let mapping = Mapping::parse(LINE).unwrap();
        assert_eq!(mapping.inode, 4711);
        assert!(mapping.is_libpython() && !mapping.is_hook() && !mapping.is_control_page());
        let outside = mapping.path_from_outside(Path::new("/proc/7"));
        assert_eq!(outside, Path::new("/proc/7/root/opt/my python/libpython3.13.so.1.0"));
    }

    #[test]
    fn a_file_is_known_by_its_name_and_not_by_its_folder() {
        let named = |path: &'static [u8]| Mapping { range: b"", inode: 0, path };
        assert!(named(b"/a/libungil_hook.so").is_hook());
        assert!(!named(b"/libungil_hook.so/a").is_hook());
        assert!(named(b"/dev/shm/ungil-policy-0-1-2").is_control_page());
        assert!(!named(b"").is_control_page());
        assert!(named(b"/x/libpypy3.10-c.so").is_libpython());
    }

    #[test]
    fn what_is_no_mapping_is_left_out() {
        assert!(Mapping::parse(b"").is_none());
        assert!(Mapping::parse(b"7f00-7f10 r-xp 00001000 fe:01").is_none());
        assert!(Mapping::parse(b"7f00-7f10 r-xp 00001000 fe:01 inode /x").is_none());
        // Memory without a file has no path.
        assert!(Mapping::parse(b"7f00-7f10 rw-p 00000000 00:00 0 ").is_some());
    }
}
