//! A file of shared memory, mapped once and addressed by offsets.
//!
//! The file has its full size from the beginning, with holes; [`Segment::provide`] fills a range
//! before it is used, so that a full file system is an error and never a SIGBUS.
//!
//! What is in the segment is never trusted: every access names an offset and a length, which are
//! checked against the mapping. Shared words are only reached as atomics.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::header::{Header, Layout, MAX_SIZE, MIN_SIZE, PAGE};
use crate::{Error, Result};

/// A number of bytes from the beginning of the segment; 0 is nothing.
pub type Offset = usize;

/// A mapped file.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    layout: Layout,
    file: OwnedFd,
}

// SAFETY: the mapping belongs to the process, stays where it is until the segment is dropped, and
// is only reached through atomics and through pointers that others vouch for.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// A new anonymous file that lives as long as somebody has it open or mapped.
    pub fn anonymous(max_size: usize) -> Result<Self> {
        // SAFETY: the name is a C string; the result is checked.
        let fd = unsafe {
            libc::memfd_create(
                c"ungil-heap".as_ptr(),
                libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | libc::MFD_NOEXEC_SEAL,
            )
        };
        let fd = if fd < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
            // Before Linux 6.3 the last flag is not known.
            // SAFETY: as above.
            unsafe {
                libc::memfd_create(
                    c"ungil-heap".as_ptr(),
                    libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
                )
            }
        } else {
            fd
        };
        if fd < 0 {
            return Err(Error::last("memfd_create"));
        }
        // SAFETY: a new descriptor that nobody else owns.
        let segment = Self::sized(unsafe { OwnedFd::from_raw_fd(fd) }, max_size)?;
        // Nobody can shorten the file under us, which would be a SIGBUS.
        // SAFETY: takes integers.
        unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
        Ok(segment)
    }

    /// A new file, which must not exist yet, for the user alone.
    pub fn named(path: &Path, max_size: usize) -> Result<Self> {
        let file = open(path, libc::O_CREAT | libc::O_EXCL, 0o600)?;
        Self::sized(file, max_size).inspect_err(|_| drop(fs::remove_file(path)))
    }

    /// The file of another process, by its path; also `/proc/PID/fd/N`.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is not a regular file of this user that others cannot write.
    pub fn open(path: &Path) -> Result<Self> {
        let by_descriptor = path.starts_with("/proc");
        let file = open(path, if by_descriptor { 0 } else { libc::O_NOFOLLOW }, 0)?;
        // SAFETY: all zeros are a valid stat, filled by the call.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the structure lives during the call.
        if unsafe { libc::fstat(file.as_raw_fd(), &raw mut stat) } != 0 {
            return Err(Error::last("fstat"));
        }
        let shown = path.display();
        // SAFETY: no arguments, no failure.
        let user = unsafe { libc::geteuid() };
        if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
            return Err(Error::Refused(format!("{shown} is no regular file")));
        }
        if stat.st_uid != user {
            return Err(Error::Refused(format!(
                "{shown} belongs to user {}, not to you ({user})",
                stat.st_uid
            )));
        }
        if !by_descriptor && stat.st_mode & 0o077 != 0 {
            return Err(Error::Refused(format!(
                "{shown} has mode {:o}: others than you can use it, so it is not trusted",
                stat.st_mode & 0o777
            )));
        }
        let size = usize::try_from(stat.st_size).unwrap_or(0);
        if size < PAGE {
            return Err(Error::Refused(format!("{shown} is too short to be a heap")));
        }
        let map = map(&file, size)?;
        // SAFETY: the header is the first page, which the mapping covers; a page is aligned.
        let header = unsafe { map.cast::<Header>().as_ref() };
        let max_size = usize::try_from(header.max_size.load(Relaxed)).unwrap_or(usize::MAX);
        if !(MIN_SIZE..=MAX_SIZE).contains(&max_size) || Layout::new(max_size).end != size {
            // SAFETY: the mapping that was just made, and that nobody refers to any more.
            unsafe { libc::munmap(map.as_ptr().cast(), size) };
            return Err(Error::Refused(format!("{shown} is no heap of this version of ungil")));
        }
        Ok(Self { base: map, layout: Layout::new(max_size), file })
    }

    /// Gives an empty file its size and maps it.
    fn sized(file: OwnedFd, max_size: usize) -> Result<Self> {
        if !(MIN_SIZE..=MAX_SIZE).contains(&max_size) {
            return Err(Error::Refused(format!(
                "a heap has between {MIN_SIZE} and {MAX_SIZE} bytes, not {max_size}"
            )));
        }
        let layout = Layout::new(max_size);
        // SAFETY: takes integers.
        if unsafe { libc::ftruncate(file.as_raw_fd(), layout.end.cast_signed() as libc::off_t) }
            != 0
        {
            return Err(Error::last("ftruncate"));
        }
        let base = map(&file, layout.end)?;
        let segment = Self { base, layout, file };
        segment.provide(0, PAGE)?;
        segment.header().max_size.store(max_size as u64, Relaxed);
        Ok(segment)
    }

    /// Where its parts are.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The open file.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// A second, independent open file of the same memory.
    pub fn reopened(&self) -> Result<OwnedFd> {
        open(Path::new(&format!("/proc/self/fd/{}", self.descriptor())), 0, 0)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping is at least a page, aligned to one; the header is made of atomics.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Whether a range is inside of the segment.
    #[inline]
    pub const fn check(&self, at: Offset, bytes: usize) -> Result<()> {
        if bytes <= self.layout.end && at <= self.layout.end - bytes {
            Ok(())
        } else {
            Err(Error::Corrupt("an offset points outside of the heap"))
        }
    }

    /// A word of 32 bits.
    #[inline]
    pub fn word32(&self, at: Offset) -> Result<&AtomicU32> {
        self.check(at, 4)?;
        if !at.is_multiple_of(4) {
            return Err(Error::Corrupt("an offset is not aligned"));
        }
        // SAFETY: inside of the mapping and aligned; everybody uses this word as an atomic.
        Ok(unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) })
    }

    /// A word of 64 bits.
    #[inline]
    pub fn word(&self, at: Offset) -> Result<&AtomicU64> {
        Ok(&self.words(at, 1)?[0])
    }

    /// Words of 64 bits.
    #[inline]
    pub fn words(&self, at: Offset, count: usize) -> Result<&[AtomicU64]> {
        let Some(bytes) = count.checked_mul(8) else {
            return Err(Error::Corrupt("a length is beyond all memory"));
        };
        self.check(at, bytes)?;
        if !at.is_multiple_of(8) {
            return Err(Error::Corrupt("an offset is not aligned"));
        }
        // SAFETY: inside of the mapping and aligned; everybody uses these words as atomics.
        Ok(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at).cast(), count) })
    }

    /// Tells the processor that what is at an offset will be read soon.
    #[inline]
    pub fn prefetch(&self, at: Offset) {
        #[cfg(target_arch = "x86_64")]
        if self.check(at, 1).is_ok() {
            // SAFETY: inside of the mapping.
            let place = unsafe { self.base.as_ptr().add(at) };
            // SAFETY: a hint, which touches nothing.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }

    /// Makes sure that a range has memory behind it. What is there stays.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none: the file system's limit, or (asked before, because the
    /// kernel would kill somebody instead) the machine's or the control group's memory.
    pub fn provide(&self, at: Offset, bytes: usize) -> Result<()> {
        self.check(at, bytes)?;
        if let Some(limit) = crate::room::lacking(bytes) {
            return Err(Error::Full { wanted: bytes, limit });
        }
        loop {
            // SAFETY: takes integers.
            let result = unsafe {
                libc::fallocate(
                    self.descriptor(),
                    0,
                    at.cast_signed() as libc::off_t,
                    bytes.cast_signed() as libc::off_t,
                )
            };
            if result == 0 {
                return Ok(());
            }
            match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::ENOSPC) => {
                    return Err(Error::Full { wanted: bytes, limit: "its file system is full" });
                }
                _ => return Err(Error::last("fallocate")),
            }
        }
    }

    /// Gives the memory of a range of whole pages back. It reads as zeros afterwards.
    pub fn give_back(&self, at: Offset, bytes: usize) {
        // A failure costs memory, nothing else.
        // SAFETY: takes integers.
        unsafe {
            libc::fallocate(
                self.descriptor(),
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                at.cast_signed() as libc::off_t,
                bytes.cast_signed() as libc::off_t,
            )
        };
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrowed from the segment outlives it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.layout.end) };
    }
}

fn open(path: &Path, flags: libc::c_int, mode: libc::c_uint) -> Result<OwnedFd> {
    use std::os::unix::ffi::OsStrExt;
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Refused("a heap's name has no NUL in it".to_owned()))?;
    // SAFETY: the name is a C string; the result is checked.
    let fd = unsafe { libc::open(name.as_ptr(), flags | libc::O_RDWR | libc::O_CLOEXEC, mode) };
    if fd < 0 {
        return Err(Error::last("open"));
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn map(file: &OwnedFd, bytes: usize) -> Result<NonNull<u8>> {
    // SAFETY: a new mapping at a place of the kernel's choice; the result is checked.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(Error::last("mmap"));
    }
    NonNull::new(base.cast()).ok_or(Error::Corrupt("mapped at address 0"))
}
