//! The directory through which traced processes and the recorder find each other.
//!
//! It is locked as long as its recorder lives ([`crate::flock`]); one that is not was left by a
//! recorder that was killed ([`super::leftover`]).

use crate::flock::try_lock;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use ungil_control::preload;
use ungil_core::request::Request;
use ungil_core::tick::Tick;

/// Free space below which a place is not used: a container's default is 64 MiB.
const ENOUGH_BYTES: u64 = 32 << 20;
/// What the names of sessions begin with.
pub const PREFIX: &str = "ungil-session-";

/// A session directory, removed with everything in it at the end of the recording.
#[derive(Debug)]
pub struct Session {
    directory: PathBuf,
    /// Its lock.
    _open: File,
}

/// There is no place for a session: what is wrong with each.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no room for the recording's buffers ({}); set TMPDIR to a folder on a disk with {} MiB \
     free, or mount a tmpfs at /dev/shm", .0.join("; "), ENOUGH_BYTES >> 20
)]
pub struct NoPlace(Vec<String>);

impl Session {
    /// Creates the directory in shared memory, or in a temporary directory where shared memory is
    /// missing or short.
    pub fn create() -> Result<Self, NoPlace> {
        let mut problems = Vec::new();
        for place in places() {
            match room(&place).and_then(|()| Self::create_in(&place)) {
                Ok(session) => return Ok(session),
                Err(error) => {
                    let text = error.to_string();
                    // As a person would say it, without the number.
                    let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
                    problems.push(format!("{}: {text}", place.display()));
                }
            }
        }
        Err(NoPlace(problems))
    }

    /// Creates one in `place`.
    pub(super) fn create_in(place: &Path) -> io::Result<Self> {
        loop {
            let directory = make_directory(place)?;
            match Self::locked(directory) {
                // Somebody who cleans up took it for one that was left, before it was locked.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(Some(session)) => return Ok(session),
                Err(error) => return Err(error),
            }
        }
    }

    /// The session in a new directory, if that is still there.
    fn locked(directory: PathBuf) -> io::Result<Option<Self>> {
        // SAFETY: geteuid has no preconditions.
        let is_root = unsafe { libc::geteuid() } == 0;
        // A server that root starts forks workers as another user; they may add their tables, and
        // neither list nor touch those of others.
        let mode = if is_root { 0o1733 } else { 0o700 };
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode))?;
        let open = File::open(&directory)?;
        // Where there are no locks nobody cleans up.
        let is_locked = try_lock(&open).unwrap_or(true);
        let is_there = fs::metadata(&directory)?.ino() == open.metadata()?.ino();
        Ok((is_locked && is_there).then(|| Self { directory, _open: open }))
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
        let preload = preload::preload(hook, preload, false, || Ok(self.directory.clone()))?;
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
    /// What makes a process join that runs, in the root of which this directory has the same path.
    pub fn request(&self, follow_children: bool, tick: Option<Tick>) -> io::Result<Request> {
        let path = self.directory.as_os_str().as_bytes();
        Request::join(path, follow_children, tick).ok_or_else(|| {
            let what = format!("the path {} is too long for a session", self.directory.display());
            io::Error::new(io::ErrorKind::InvalidInput, what)
        })
    }

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

/// Where a session may be, the best place first. Temporary directories are those of Python's
/// `tempfile`.
pub fn places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("/dev/shm"), env::temp_dir()];
    for usual in ["/tmp", "/var/tmp"].map(PathBuf::from) {
        if !places.contains(&usual) {
            places.push(usual);
        }
    }
    places
}

fn make_directory(place: &Path) -> io::Result<PathBuf> {
    let template = place.join(format!("{PREFIX}XXXXXX")).into_os_string().into_vec();
    let template = CString::new(template)?.into_raw();
    // SAFETY: `template` is a NUL-terminated, writable string that ends in six X.
    let made = unsafe { libc::mkdtemp(template) };
    let error = io::Error::last_os_error();
    // SAFETY: the pointer came from `into_raw`, and mkdtemp kept its length.
    let directory = unsafe { CString::from_raw(template) };
    if made.is_null() {
        return Err(error);
    }
    Ok(PathBuf::from(OsString::from_vec(directory.into_bytes())))
}

/// Whether there is enough room at `place`; why not.
fn room(place: &Path) -> io::Result<()> {
    let path = CString::new(place.as_os_str().as_bytes())?;
    // SAFETY: all-zero is a valid statvfs.
    let mut info: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is NUL-terminated, `info` valid for writing.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut info) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let free = info.f_bavail.saturating_mul(info.f_frsize);
    if free < ENOUGH_BYTES {
        return Err(io::Error::other(format!("{} MiB free", free >> 20)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ungil_core::STUB_FOLDER;

    #[test]
    fn a_session_leaves_nothing_behind() {
        let session = Session::create().unwrap();
        let directory = session.directory().to_path_buf();
        fs::write(directory.join("1-0"), b"").unwrap();
        drop(session);
        assert!(!directory.exists());
    }

    #[test]
    fn where_there_is_no_place_each_is_named_with_what_is_wrong_with_it() {
        let problems = ["/nowhere: no such file or directory", "/full: 3 MiB free"];
        assert_eq!(
            NoPlace(problems.map(str::to_owned).to_vec()).to_string(),
            "there is no room for the recording's buffers (/nowhere: no such file or directory; \
             /full: 3 MiB free); set TMPDIR to a folder on a disk with 32 MiB free, or mount a \
             tmpfs at /dev/shm"
        );
        assert_eq!(room(Path::new("/nowhere")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_link_to_the_stubs_goes_with_the_session() {
        let session = Session::create().unwrap();
        let hook = Path::new("/with space/libungil_hook.so");
        let variables = session.environment(hook, None, true, None).unwrap();
        let stub = PathBuf::from(&variables[0].1);
        assert!(!stub.to_string_lossy().contains(' '));
        let link = session.directory().join(STUB_FOLDER);
        assert!(stub.starts_with(&link));
        assert_eq!(fs::read_link(link).unwrap(), hook.with_file_name(STUB_FOLDER));
    }
}
