//! A file of shared memory, mapped once and addressed by offsets.
//!
//! The file has its full size from the beginning, with holes; [`Segment::provide`] fills a range
//! before it is used, so that a full file system is an error and never a SIGBUS.
//!
//! What is in the segment is never trusted: every access names an offset and a length, which are
//! checked against the mapping. Shared words are only reached as atomics.

use std::ffi::{CString, c_int};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed},
};

use crate::header::{Header, Layout, MAX_SIZE, MIN_SIZE, PAGE};
use crate::{Error, Result};

/// A number of bytes from the beginning of the segment; 0 is nothing.
pub type Offset = usize;

/// Memory is provided in pieces of so many bytes: the kernel undoes a call during which a signal
/// arrives, so that a longer one might never succeed under a profiler's timer.
const PIECE: usize = 1 << 20;

/// The limit that is also in force for files that are memory.
const TOO_LARGE: &str = "files may not be so large here (RLIMIT_FSIZE, ulimit -f)";
/// A heap takes addresses for all that it can become.
const NO_ADDRESSES: &str = "the process may not have so much address space (RLIMIT_AS, ulimit -v); \
                            a heap with a smaller max_size takes less";
/// What only those with a name meet: the others are in the kernel's own file system, without a limit.
const FULL: &str = "its file system is full; make room in /dev/shm, or a heap without a name";

/// What a row of words can be seen as.
///
/// # Safety
/// It is made of nothing but atomics, has no padding, and is aligned like a word.
pub unsafe trait Part {}

/// A mapped file.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    layout: Layout,
    /// How far offsets were allowed to reach when this process last looked: to the end of the chunks
    /// that the heap had then. What lies beyond may have no memory behind it.
    reach: AtomicUsize,
    file: OwnedFd,
    /// Device and number of the file: see [`Self::file`].
    identity: (u64, u64),
}

// SAFETY: the mapping belongs to the process, stays where it is until the segment is dropped, and
// is only reached through atomics and through pointers that others vouch for.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// A new anonymous file that lives as long as somebody has it open or mapped.
    pub fn anonymous(max_size: usize) -> Result<Self> {
        let make = |flags| {
            // SAFETY: the name is a C string; the result is checked.
            unsafe { libc::memfd_create(c"ungil-heap".as_ptr(), libc::MFD_CLOEXEC | flags) }
        };
        let mut fd = make(libc::MFD_ALLOW_SEALING | libc::MFD_NOEXEC_SEAL);
        if fd < 0 {
            // Before Linux 6.3 the last flag is not known.
            fd = make(libc::MFD_ALLOW_SEALING);
        }
        if fd < 0 {
            return Err(Error::last("memfd_create"));
        }
        // SAFETY: a new descriptor that nobody else owns.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        // As for a file with a name: others of this user may open it under /proc.
        // SAFETY: takes integers.
        if unsafe { libc::fchmod(fd, 0o600) } != 0 {
            return Err(Error::last("fchmod"));
        }
        let segment = Self::sized(file, max_size)?;
        // Nobody can shorten the file under us, which would be a SIGBUS.
        // SAFETY: takes integers.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) } != 0 {
            return Err(Error::last("fcntl(F_ADD_SEALS)"));
        }
        Ok(segment)
    }

    /// A new file in a folder, for the user alone, which has no name until [`Self::publish`].
    ///
    /// # Errors
    /// [`Error::Io`] with `EOPNOTSUPP` where the file system has no such files: neither would memory
    /// on it be shared well (tmpfs, ext4, xfs and btrfs have them).
    pub fn unnamed(folder: &Path, max_size: usize) -> Result<Self> {
        Self::sized(open(folder, libc::O_TMPFILE, 0o600)?, max_size)
    }

    /// Gives a file that [`Self::unnamed`] made its name, which nobody else must have.
    pub fn publish(&self, path: &Path) -> Result<()> {
        let from = c_string(&self.own_path()?)?;
        let to = c_string(path)?;
        // SAFETY: the names are C strings that live during the call.
        let result = unsafe {
            libc::linkat(
                libc::AT_FDCWD,
                from.as_ptr(),
                libc::AT_FDCWD,
                to.as_ptr(),
                libc::AT_SYMLINK_FOLLOW,
            )
        };
        if result != 0 { Err(Error::last("naming the heap").or_no_proc()) } else { Ok(()) }
    }

    /// The file of another process, by its path; also `/proc/PID/fd/N`.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if it is not this user's, or others can use it; [`Error::Refused`] if it is
    /// no regular file, or has not the size that its header tells.
    pub fn open(path: &Path) -> Result<Self> {
        // What stands under /proc are links, to files that need no name.
        let follow = if path.starts_with("/proc") { 0 } else { libc::O_NOFOLLOW };
        let file = open(path, follow, 0)?;
        let stat = status(file.as_fd())?;
        let shown = path.display();
        // SAFETY: no arguments, no failure.
        let user = unsafe { libc::geteuid() };
        if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
            return Err(Error::Refused(format!("{shown} is not a regular file")));
        }
        if stat.st_uid != user {
            return Err(Error::Untrusted(format!(
                "{shown} belongs to user {}, not to you ({user})",
                stat.st_uid
            )));
        }
        if stat.st_mode & 0o077 != 0 {
            return Err(Error::Untrusted(format!(
                "{shown} has mode {:o}: others than you can use it, so it is not trusted",
                stat.st_mode & 0o777
            )));
        }
        // Read, not mapped: what the file does not have is an error here and a SIGBUS there.
        let mut max_size = [0; 8];
        let place = std::mem::offset_of!(Header, max_size).cast_signed() as libc::off_t;
        // SAFETY: the buffer is as long as said.
        let read = unsafe {
            libc::pread(file.as_raw_fd(), max_size.as_mut_ptr().cast(), max_size.len(), place)
        };
        let max_size = usize::try_from(u64::from_ne_bytes(max_size)).unwrap_or(usize::MAX);
        let size = usize::try_from(stat.st_size).unwrap_or(0);
        if read != 8
            || !(MIN_SIZE..=MAX_SIZE).contains(&max_size)
            || Layout::new(max_size).end != size
        {
            return Err(Error::Refused(format!(
                "{shown} is not a heap of this version of ungil, or was cut off"
            )));
        }
        Self::mapped(file, max_size)
    }

    /// Gives an empty file its size and maps it.
    fn sized(file: OwnedFd, max_size: usize) -> Result<Self> {
        if !(MIN_SIZE..=MAX_SIZE).contains(&max_size) {
            return Err(Error::Refused(format!(
                "a heap has between {MIN_SIZE} and {MAX_SIZE} bytes, not {max_size}"
            )));
        }
        let end = Layout::new(max_size).end.cast_signed() as libc::off_t;
        // SAFETY: takes integers.
        if unsafe { libc::ftruncate(file.as_raw_fd(), end) } != 0 {
            let error = std::io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(libc::EFBIG) => Error::Full { wanted: max_size, limit: TOO_LARGE },
                _ => Error::Io { what: "ftruncate", error },
            });
        }
        let segment = Self::mapped(file, max_size)?;
        segment.provide(0, PAGE)?;
        segment.header().max_size.store(max_size as u64, Relaxed);
        Ok(segment)
    }

    fn mapped(file: OwnedFd, max_size: usize) -> Result<Self> {
        let layout = Layout::new(max_size);
        let stat = status(file.as_fd())?;
        let base = map(&file, layout.end, libc::PROT_READ | libc::PROT_WRITE)?;
        let identity = (stat.st_dev, stat.st_ino);
        Ok(Self { base, layout, reach: AtomicUsize::new(layout.data), file, identity })
    }

    /// Where its parts are.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The number of the open file.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The open file.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is not ours any more: some programs close all descriptors that they
    /// do not know, and the number may mean a file of theirs by now.
    pub fn file(&self) -> Result<BorrowedFd<'_>> {
        let stat = status(self.file.as_fd());
        if stat.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity) {
            return Ok(self.file.as_fd());
        }
        Err(Error::Refused("the program has closed the file of the heap".to_owned()))
    }

    /// Whether the file has this name.
    pub fn is_at(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        path.symlink_metadata().is_ok_and(|file| (file.dev(), file.ino()) == self.identity)
    }

    /// A second, independent open file of the same memory.
    pub fn reopened(&self) -> Result<OwnedFd> {
        open(&self.own_path()?, 0, 0).map_err(Error::or_no_proc)
    }

    fn own_path(&self) -> Result<std::path::PathBuf> {
        Ok(format!("/proc/self/fd/{}", self.file()?.as_raw_fd()).into())
    }

    /// The header.
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping is at least a page, aligned to one; the header is made of atomics.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Whether a range is inside of the part of the segment that is in use.
    #[inline]
    pub fn check(&self, at: Offset, bytes: usize) -> Result<()> {
        let reach = self.reach.load(Relaxed);
        if at <= reach && bytes <= reach - at { Ok(()) } else { self.check_again(at, bytes) }
    }

    /// As above, after the heap may have grown.
    #[cold]
    fn check_again(&self, at: Offset, bytes: usize) -> Result<()> {
        let chunks = usize::try_from(self.header().chunks.load(Acquire)).unwrap_or(usize::MAX);
        let reach = self.layout.chunk(chunks.min(self.layout.chunks));
        self.reach.fetch_max(reach, Relaxed);
        if at <= reach && bytes <= reach - at {
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
        // SAFETY: inside of the mapping.
        let place = unsafe { self.base.as_ptr().add(at) };
        // SAFETY: alive as long as the mapping, and aligned; everybody uses this word as an atomic.
        Ok(unsafe { AtomicU32::from_ptr(place.cast()) })
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
        // SAFETY: inside of the mapping.
        let first = unsafe { self.base.as_ptr().add(at) };
        // SAFETY: inside of the mapping to their end, and aligned; everybody uses these words as
        // atomics.
        Ok(unsafe { std::slice::from_raw_parts(first.cast(), count) })
    }

    /// Words in a row, as what they are.
    #[inline]
    pub fn part<T: Part>(&self, at: Offset) -> Result<&T> {
        let words = self.words(at, size_of::<T>() / 8)?;
        // SAFETY: a part is made of atomics, as large as these words and aligned like them.
        Ok(unsafe { &*words.as_ptr().cast::<T>() })
    }

    /// Where bytes of a program are in this process: nothing of the heap's own. They are there as long
    /// as the segment, and others may change them at any time.
    #[inline]
    pub fn pointer(&self, at: Offset, bytes: usize) -> Result<NonNull<u8>> {
        self.check(at, bytes)?;
        // SAFETY: inside of the mapping.
        Ok(unsafe { self.base.add(at) })
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

    /// Makes sure that a range has memory behind it. What is there stays; a range of more than
    /// a mebibyte has nothing in it yet, and may lose it if this fails.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none: the file system's limit, or (asked before, because the
    /// kernel would kill somebody instead) the machine's or the control group's memory.
    pub fn provide(&self, at: Offset, bytes: usize) -> Result<()> {
        if at > self.layout.end || bytes > self.layout.end - at {
            return Err(Error::Corrupt("memory outside of the heap is asked for"));
        }
        if let Some(limit) = crate::available_memory::lacking(bytes) {
            return Err(Error::Full { wanted: bytes, limit });
        }
        let file = self.file()?;
        let (mut done, mut piece) = (0, PIECE);
        while done < bytes {
            let length = piece.min(bytes - done);
            let Err(error) = allocate(file, 0, at + done, length) else {
                done += length;
                continue;
            };
            let limit = match error.raw_os_error() {
                Some(libc::EINTR) => {
                    piece = (piece / 2).max(PAGE);
                    continue;
                }
                Some(libc::ENOSPC | libc::EDQUOT) => FULL,
                Some(libc::ENOMEM) => "there is no memory",
                Some(libc::EFBIG) => TOO_LARGE,
                _ => return Err(Error::Io { what: "fallocate", error }),
            };
            if done >= PIECE {
                self.give_back(at, done);
            }
            return Err(Error::Full { wanted: bytes, limit });
        }
        Ok(())
    }

    /// Gives the memory of a range of whole pages back. It reads as zeros afterwards.
    ///
    /// A reader that still looks there, to find out later that it was too late, takes some of the
    /// memory again.
    pub fn give_back(&self, at: Offset, bytes: usize) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        if let Ok(file) = self.file() {
            // A failure costs memory, nothing else.
            drop(allocate(file, mode, at, bytes));
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrowed from the segment outlives it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.layout.end) };
    }
}

fn c_string(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Refused("a heap's name has no NUL in it".to_owned()))
}

fn open(path: &Path, flags: c_int, mode: libc::c_uint) -> Result<OwnedFd> {
    let name = c_string(path)?;
    let flags = flags | libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
    // SAFETY: the name is a C string; the result is checked.
    let fd = unsafe { libc::open(name.as_ptr(), flags, mode) };
    if fd < 0 {
        return Err(Error::last("opening the heap"));
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn status(file: BorrowedFd<'_>) -> Result<libc::stat> {
    // SAFETY: all zeros are a valid stat, filled by the call.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives during the call.
    if unsafe { libc::fstat(file.as_raw_fd(), &raw mut stat) } != 0 {
        return Err(Error::last("fstat"));
    }
    Ok(stat)
}

fn allocate(file: BorrowedFd<'_>, mode: c_int, at: Offset, bytes: usize) -> std::io::Result<()> {
    let (at, bytes) = (at.cast_signed() as libc::off_t, bytes.cast_signed() as libc::off_t);
    // SAFETY: takes integers.
    if unsafe { libc::fallocate(file.as_raw_fd(), mode, at, bytes) } == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error())
}

/// Maps the beginning of a file.
pub(crate) fn map(file: &OwnedFd, bytes: usize, protection: c_int) -> Result<NonNull<u8>> {
    // SAFETY: a new mapping at a place of the kernel's choice; the result is checked.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            protection,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        let error = std::io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::ENOMEM) => Error::Full { wanted: bytes, limit: NO_ADDRESSES },
            _ => Error::Io { what: "mmap", error },
        });
    }
    NonNull::new(base.cast()).ok_or(Error::Corrupt("mapped at address 0"))
}
