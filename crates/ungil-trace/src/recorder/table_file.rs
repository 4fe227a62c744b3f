//! The file through which a traced process tells of itself, in the memory of the recorder.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;
use ungil_core::table::{TABLE_BYTES, Table};

/// A table file, mapped.
pub struct TableFile {
    start: *mut libc::c_void,
}

// SAFETY: the mapping is owned, and everything in it is atomics.
unsafe impl Send for TableFile {}

impl TableFile {
    /// Maps the file at `path`; an error if it has not the length of a table.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Others may put files into the folder.
        let file =
            File::options().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
        if file.metadata()?.len() != TABLE_BYTES as u64 {
            return Err(io::Error::other("not a table"));
        }
        // SAFETY: a new shared mapping of a file of that length, at the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                TABLE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { start }) }
    }

    /// The table in it.
    pub fn table(&self) -> Table<'_> {
        // SAFETY: TABLE_BYTES are mapped for as long as `self` lives; the file began as zeroes.
        unsafe { Table::at(self.start.cast()) }
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`, of that length; no view outlives `self`.
        unsafe { libc::munmap(self.start, TABLE_BYTES) };
    }
}
