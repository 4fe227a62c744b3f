//! The control page of another process: found among its mappings, checked, read and written.
//!
//! Nothing about the other process is trusted: not the name of the mapped file, which is opened
//! without waiting for anything and without following a link, nor what the file contains.

use std::ffi::{OsStr, c_void};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::num::ParseIntError;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use ungil_core::control::{
    CONTROL_ABI, CONTROL_BYTES, CONTROL_FOLDER, CONTROL_MAGIC, CONTROL_PREFIX, Control,
};
use ungil_core::schedule::{Policy, Settings};

/// Name of the hook library's file.
const HOOK: &str = "libungil_hook.so";

/// The policy of a running process and its quantum in nanoseconds.
#[pyfunction]
pub fn process_policy(pid: u32) -> PyResult<(&'static str, u64)> {
    Ok(shown(Page::of(pid)?.control().settings()))
}

/// Changes the policy of a running process and returns what it was; a quantum of 0 nanoseconds is
/// the policy's own.
#[pyfunction]
pub fn set_process_policy(
    pid: u32,
    policy: &str,
    quantum_ns: u64,
) -> PyResult<(&'static str, u64)> {
    let policy: Policy = policy
        .parse()
        .map_err(|_| PyValueError::new_err(format!("there is no policy {policy:?}")))?;
    let quantum_ns = if quantum_ns == 0 { policy.quantum_ns() } else { quantum_ns };
    let page = Page::of(pid)?;
    let before = page.control().settings();
    page.control().set_settings(Settings { policy, quantum_ns });
    Ok(shown(before))
}

/// Removes the control pages that killed processes of this user have left.
#[pyfunction]
pub fn remove_stale_pages() {
    // Of other PID namespaces, which may share the folder, nobody here can tell who has ended.
    let Ok(namespace) = fs::metadata("/proc/self/ns/pid") else { return };
    let Ok(entries) = fs::read_dir(CONTROL_FOLDER) else { return };
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let ours = format!("{CONTROL_PREFIX}{user}-{}-", namespace.ino());
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(&ours)?.parse().ok());
        if pid.is_some_and(has_ended) {
            // If somebody else has removed it meanwhile, all the better.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether there is no process of that number.
fn has_ended(pid: libc::pid_t) -> bool {
    // SAFETY: signal 0 is only checked, not sent.
    pid > 0
        && unsafe { libc::kill(pid, 0) } == -1
        && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

fn shown(settings: Settings) -> (&'static str, u64) {
    (settings.policy.name(), settings.quantum_ns)
}

/// The control page of another process, mapped.
struct Page {
    start: *mut c_void,
}

impl Page {
    /// The page of process `pid`. `RuntimeError`, in a sentence, if it has none; `OSError` if
    /// there is no such process, or it is not ours to look into.
    fn of(pid: u32) -> PyResult<Self> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let maps = fs::read(process.join("maps"))?;
        let number = number_in_its_own_namespace(&process)?;
        let mappings = maps.split(|&byte| byte == b'\n').filter_map(Mapping::parse);
        let mut refusal = None;
        let mut is_hooked = false;
        for mapping in mappings {
            is_hooked |= mapping.file_name() == HOOK.as_bytes();
            if !mapping.is_control_page() {
                continue;
            }
            match Self::open(&process, &mapping) {
                Ok(page) => match page.objection(number) {
                    None => return Ok(page),
                    Some(why) => refusal = Some(PyRuntimeError::new_err(why)),
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let why =
                        "its control page was removed, so that only root can change its policy";
                    refusal = Some(PyRuntimeError::new_err(why));
                }
                Err(error) => refusal = Some(error.into()),
            }
        }
        Err(refusal.unwrap_or_else(|| {
            PyRuntimeError::new_err(if is_hooked {
                "ungil is loaded into it, but schedules no GIL there"
            } else {
                "it does not run under ungil; start it with: ungil run"
            })
        }))
    }

    /// Maps what process `process` has mapped.
    fn open(process: &Path, mapping: &Mapping<'_>) -> io::Result<Self> {
        let file = mapping.open(process)?;
        let facts = file.metadata()?;
        if !facts.is_file() || facts.ino() != mapping.inode || facts.len() != CONTROL_BYTES as u64 {
            return Err(io::Error::other("its control page is not where it should be"));
        }
        // SAFETY: a new mapping of a file of that size, at an address of the kernel's choice. The
        // descriptor may be closed afterwards.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                CONTROL_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { start }) }
    }

    fn control(&self) -> &Control {
        // SAFETY: the mapping is longer than a `Control` and aligned for everything, lives as long
        // as `self`, and every content is a valid one, because all fields are atomic integers.
        unsafe { &*self.start.cast() }
    }

    /// Why this is not the page of process `number`, if it is not.
    fn objection(&self, number: u32) -> Option<&'static str> {
        let control = self.control();
        if control.magic.load(Ordering::Acquire) != CONTROL_MAGIC {
            Some("its control page is damaged")
        } else if control.abi.load(Ordering::Relaxed) != CONTROL_ABI {
            Some("it runs under another version of ungil")
        } else if control.pid.load(Ordering::Relaxed) != number {
            Some("its control page is that of another process")
        } else {
            None
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`; no reference into it outlives `self`.
        unsafe { libc::munmap(self.start, CONTROL_BYTES) };
    }
}

/// A line of `/proc/PID/maps`: `start-end permissions offset device inode path`.
struct Mapping<'a> {
    range: &'a [u8],
    inode: u64,
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
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

    fn is_control_page(&self) -> bool {
        self.file_name().starts_with(CONTROL_PREFIX.as_bytes())
    }

    /// Opens the mapped file: the very one, which only root may, or the one of that name in the
    /// process's own root.
    fn open(&self, process: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let mapped = process.join("map_files").join(OsStr::from_bytes(self.range));
        if let Ok(file) = options.open(mapped) {
            return Ok(file);
        }
        let mut path = process.join("root").into_os_string();
        path.push(OsStr::from_bytes(self.path));
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
    }
}

/// How a process, maybe of a container, calls itself: the last number of `NSpid`.
fn number_in_its_own_namespace(process: &Path) -> io::Result<u32> {
    let status = fs::read_to_string(process.join("status"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .and_then(|numbers| numbers.split_ascii_whitespace().last())
        .ok_or_else(|| io::Error::other("the kernel does not tell its number"))?
        .parse()
        .map_err(|error: ParseIntError| io::Error::other(error))
}
