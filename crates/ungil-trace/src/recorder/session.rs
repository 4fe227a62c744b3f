//! The directory through which traced processes and the recorder find each other.

use crate::preload;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use ungil_core::tick::Tick;

/// Free space below which shared memory is not used: a container's default is 64 MiB.
const ENOUGH_BYTES: u64 = 32 << 20;

/// A session directory, removed with everything in it at the end of the recording.
#[derive(Debug)]
pub struct Session {
    directory: PathBuf,
}

impl Session {
    /// Creates the directory in shared memory, or in the temporary directory where shared memory
    /// is missing or short.
    pub fn create() -> io::Result<Self> {
        let shared_memory = Path::new("/dev/shm");
        let places = [shared_memory.to_path_buf(), env::temp_dir()];
        let roomy = places.iter().filter(|place| free_bytes(place) >= ENOUGH_BYTES);
        let mut failure = io::Error::new(
            io::ErrorKind::StorageFull,
            format!(
                "neither /dev/shm nor {} has {} MiB free for the recording's buffers; \
                 set TMPDIR to a directory that has",
                places[1].display(),
                ENOUGH_BYTES >> 20
            ),
        );
        for place in roomy {
            match make_directory(place) {
                Ok(directory) => return Ok(Self { directory }),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Where processes put their tables.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The variables that make a program, and what it starts, join this session.
    ///
    /// `hook` is the hook library, `preload` the `LD_PRELOAD` in force, which is kept. Times are to
    /// be taken from the processor's counter if there is a `tick`.
    pub fn environment(
        &self,
        hook: &Path,
        preload: Option<&OsStr>,
        follow_children: bool,
        tick: Option<Tick>,
    ) -> io::Result<Vec<(OsString, OsString)>> {
        let preload = preload::preload(hook, preload, || Ok(self.directory.clone()))?;
        // Empty rather than absent: a session may be begun inside of another one.
        let tick = tick.map_or(String::new(), |tick| tick.fraction().to_string());
        Ok(vec![
            ("LD_PRELOAD".into(), preload),
            ("UNGIL_SESSION".into(), self.directory.clone().into_os_string()),
            ("UNGIL_CHILDREN".into(), if follow_children { "1" } else { "0" }.into()),
            ("UNGIL_TICK".into(), tick.into()),
        ])
    }
}

impl Session {
    /// Removes the directory. Nothing depends on it: processes that still run keep their mappings.
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.remove();
    }
}

fn make_directory(place: &Path) -> io::Result<PathBuf> {
    let template = place.join("ungil-XXXXXX").into_os_string().into_vec();
    let template = CString::new(template)?.into_raw();
    // SAFETY: `template` is a NUL-terminated, writable string that ends in six X.
    let made = unsafe { libc::mkdtemp(template) };
    let error = io::Error::last_os_error();
    // SAFETY: the pointer came from `into_raw`, and mkdtemp kept its length.
    let directory = unsafe { CString::from_raw(template) };
    if made.is_null() {
        return Err(error);
    }
    let directory = PathBuf::from(OsString::from_vec(directory.into_bytes()));
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        // A server that root starts forks workers as another user; they may add their tables, and
        // neither list nor touch those of others.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o1733))?;
    }
    Ok(directory)
}

/// Bytes that may still be written at `place`, 0 if it cannot be told.
fn free_bytes(place: &Path) -> u64 {
    let Ok(path) = CString::new(place.as_os_str().as_bytes()) else { return 0 };
    // SAFETY: all-zero is a valid statvfs.
    let mut info: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is NUL-terminated, `info` valid for writing.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut info) } != 0 {
        return 0;
    }
    info.f_bavail.saturating_mul(info.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_leaves_nothing_behind() {
        let session = Session::create().unwrap();
        let directory = session.directory().to_path_buf();
        fs::write(directory.join("1-0"), b"").unwrap();
        drop(session);
        assert!(!directory.exists());
    }

    #[test]
    fn a_link_to_the_hook_goes_with_the_session() {
        let session = Session::create().unwrap();
        let hook = Path::new("/with space/libungil_hook.so");
        let variables = session.environment(hook, None, true, None).unwrap();
        let link = PathBuf::from(&variables[0].1);
        assert!(!link.to_string_lossy().contains(' '));
        assert_eq!(fs::read_link(link).unwrap(), hook);
    }
}
