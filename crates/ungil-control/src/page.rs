//! The control page of another process: found among its mappings, checked, read and written.
//!
//! Nothing about the other process is trusted: not the name of the mapped file, which is opened
//! without waiting for anything and without following a link, nor what the file contains.

use std::ffi::c_void;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ungil_core::control_page::{CONTROL_ABI, CONTROL_BYTES, CONTROL_MAGIC, Control};
use ungil_core::request::{Answer, Request};

use crate::files;
use crate::mapping::Mapping;
use crate::namespaces::own_number;
use crate::no_page::{self, NoPage};

/// How long a process that uses its GIL may take to serve a request.
const SERVES: Duration = Duration::from_millis(100);
/// How long one may take that was woken, or has begun. Then it has ended, or has been stopped.
const FINISHES: Duration = Duration::from_secs(2);
/// Between two looks whether it has.
const LOOK: Duration = Duration::from_micros(200);

/// The control page of another process, mapped.
pub struct Page {
    start: *mut c_void,
    /// Locked by who asks the process for something.
    file: File,
}

impl Page {
    /// The page of process `pid`.
    ///
    /// # Errors
    /// [`NoPage::Unknown`] if there is no such process, or it is not ours to look into.
    pub fn of(pid: u32) -> Result<Self, NoPage> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let maps = match fs::read(process.join("maps")) {
            // It has rights that this one has not. Its page may be ours all the same.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Self::by_name(pid).ok_or_else(|| error.into());
            }
            maps => maps?,
        };
        let number = own_number(&process)?;
        let mappings: Vec<Mapping> =
            maps.split(|&byte| byte == b'\n').filter_map(Mapping::parse).collect();
        let mut refusal = None;
        for mapping in mappings.iter().filter(|mapping| mapping.is_control_page()) {
            match Self::open(&process, mapping) {
                Ok(page) => match page.objection(number) {
                    None => return Ok(page),
                    Some(why) => refusal = Some(why),
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    refusal = Some(NoPage::Never(
                        "its control page was removed, so only root can change its policy".into(),
                    ));
                }
                Err(error) => refusal = Some(error.into()),
            }
        }
        Err(refusal.unwrap_or_else(|| match no_page::why(&process, &mappings) {
            NoPage::Never(why) => NoPage::Without(why),
            other => other,
        }))
    }

    /// The page that a process of this user, and of this namespace, would have made.
    fn by_name(pid: u32) -> Option<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(files::page_path(pid).ok()?).ok()?;
        let facts = file.metadata().ok()?;
        if !facts.is_file() || facts.len() != CONTROL_BYTES as u64 {
            return None;
        }
        let page = Self::map(file).ok()?;
        page.objection(pid).is_none().then_some(page)
    }

    /// Maps what process `process` has mapped.
    fn open(process: &Path, mapping: &Mapping<'_>) -> io::Result<Self> {
        let file = mapping.open(process)?;
        let facts = file.metadata()?;
        if !facts.is_file() || facts.ino() != mapping.inode || facts.len() != CONTROL_BYTES as u64 {
            return Err(io::Error::other("its control page is not where it should be"));
        }
        Self::map(file)
    }

    /// Maps the whole of a file that has the size of a page.
    fn map(file: File) -> io::Result<Self> {
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
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start, file })
    }

    /// Whether no call of the process leads to the hook unless somebody asks for something.
    pub fn is_standby(&self) -> bool {
        self.control().standby.load(Ordering::Relaxed) != 0
    }

    /// Asks the process for something. `None` if it does not look at its page: it uses no GIL at the
    /// moment, or its calls do not lead to the hook yet. Then nothing was asked.
    ///
    /// `wake` wakes one that is in standby, and says whether it could.
    pub fn ask(&self, request: Request, wake: impl FnOnce() -> bool) -> io::Result<Option<Answer>> {
        // SAFETY: takes a descriptor, which lives as long as `self`.
        if unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_EX) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let control = self.control();
        control.ask(request);
        let patience = match self.is_standby() {
            false => SERVES,
            true if wake() => FINISHES,
            true => Duration::ZERO,
        };
        let begun = Instant::now();
        let answer = loop {
            match control.answer() {
                None if begun.elapsed() < patience => sleep(LOOK),
                None if control.withdraw() || begun.elapsed() > FINISHES => break None,
                // Somebody has begun to serve it.
                None => sleep(LOOK),
                answer => break answer,
            }
        };
        // SAFETY: as above.
        unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_UN) };
        Ok(answer)
    }

    /// What it contains.
    pub fn control(&self) -> &Control {
        // SAFETY: the mapping is longer than a `Control` and aligned for everything, lives as long
        // as `self`, and every content is a valid one, because all fields are atomic integers.
        unsafe { &*self.start.cast() }
    }

    /// Why this is not the page of process `number`, if it is not.
    fn objection(&self, number: u32) -> Option<NoPage> {
        let control = self.control();
        Some(NoPage::Never(match control.magic.load(Ordering::Acquire) {
            0 => return Some(NoPage::NotYet("its control page is empty".into())),
            magic if magic != CONTROL_MAGIC => "its control page is damaged".into(),
            _ if control.abi.load(Ordering::Relaxed) != CONTROL_ABI => {
                "it runs under another version of ungil".into()
            }
            _ if control.pid.load(Ordering::Relaxed) != number => {
                "its control page is that of another process".into()
            }
            _ => return None,
        }))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`; no reference into it outlives `self`.
        unsafe { libc::munmap(self.start, CONTROL_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use ungil_core::schedule::{Policy, Settings};

    use super::*;

    /// A page of this process as the hook makes it, under its name and mapped.
    fn own_page(path: &Path) -> Page {
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        file.set_len(CONTROL_BYTES as u64).unwrap();
        Page::map(file).unwrap()
    }

    fn why_not(pid: u32) -> String {
        match Page::of(pid) {
            Ok(_) => panic!("there is a page"),
            Err(NoPage::Never(why) | NoPage::Without(why) | NoPage::NotYet(why)) => why,
            Err(NoPage::Unknown(error)) => error.to_string(),
        }
    }

    /// One test, because all threads of this process have the same mappings.
    #[test]
    fn a_page_is_obeyed_if_it_is_whole_and_of_this_process() {
        let pid = std::process::id();
        assert!(why_not(pid).contains("does not run under ungil"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ungil-policy-test");
        let theirs = own_page(&path);
        assert_eq!(why_not(pid), "its control page is empty");
        theirs.control().abi.store(CONTROL_ABI, Ordering::Relaxed);
        theirs.control().pid.store(pid, Ordering::Relaxed);
        theirs.control().magic.store(CONTROL_MAGIC, Ordering::Release);
        let settings = Settings { policy: Policy::Batch, quantum_ns: 7_000_000 };
        Page::of(pid).expect("a whole page").control().set_settings(settings);
        assert_eq!(theirs.control().settings(), settings);

        theirs.control().pid.store(pid + 1, Ordering::Relaxed);
        assert_eq!(why_not(pid), "its control page is that of another process");
        theirs.control().abi.store(CONTROL_ABI + 1, Ordering::Relaxed);
        assert_eq!(why_not(pid), "it runs under another version of ungil");
        theirs.control().magic.store(1, Ordering::Relaxed);
        assert_eq!(why_not(pid), "its control page is damaged");
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error_of_the_system() {
        // No process has a number that large (PID_MAX_LIMIT is 2^22).
        let Err(NoPage::Unknown(error)) = Page::of(1 << 23) else { panic!("nobody is there") };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
