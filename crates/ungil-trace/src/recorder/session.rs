//! The directory through which traced processes and the recorder find each other.
//!
//! It is locked as long as its recorder lives ([`crate::flock`]); one that is not was left by a
//! recorder that was killed ([`super::leftover`]).

use super::leftover::{opened, remove_dead_in};
use crate::flock::try_lock;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use ungil_control::preload;
use ungil_core::request::Request;
use ungil_core::tick::Tick;

/// Free space below which a place is not used: a container's default is 64 MiB.
const ENOUGH_BYTES: u64 = 32 << 20;
/// Where a session may be in any case.
const USUAL_PLACES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];
/// What the names of sessions begin with.
pub const PREFIX: &str = "ungil-session-";

/// A session directory, removed with everything in it at the end of the recording.
#[derive(Debug)]
pub struct Session {
    /// As this process reaches it.
    directory: PathBuf,
    /// As the recorded processes do.
    seen: PathBuf,
    /// Its lock.
    _open: File,
    /// The folder it is in, of a process that sees other files: by its name it could be reached only
    /// as long as that process lives.
    place: Option<File>,
}

/// There is no place for a session: what is wrong with each.
#[derive(Debug, thiserror::Error)]
pub enum NoPlace {
    /// In the files that this process sees.
    #[error(
        "there is no room for the recording's buffers ({}); set TMPDIR to a folder on a disk with {} \
         MiB free, or mount a tmpfs at /dev/shm", .0.join("; "), ENOUGH_BYTES >> 20
    )]
    Here(Vec<String>),
    /// In those that another one sees.
    #[error(
        "there is no room for the recording's buffers where it sees other files than ungil ({}); \
         mount a tmpfs of {} MiB or more there, such as at /dev/shm", .0.join("; "), ENOUGH_BYTES >> 20
    )]
    There(Vec<String>),
}

impl Session {
    /// Creates the directory in shared memory, or in a temporary directory where shared memory is
    /// missing or short.
    pub fn create() -> Result<Self, NoPlace> {
        first(places(), Self::create_in).map_err(NoPlace::Here)
    }

    /// Creates one that process `pid` sees, if it sees other files than this process, as in a
    /// container, and this session is not among them.
    pub fn elsewhere(&self, pid: u32) -> Result<Option<Self>, NoPlace> {
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        let facts = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        // What cannot be looked up is taken to be as here: who may not look may not attach either.
        let is_here = facts(&root).is_none()
            || facts(&below(&root, &self.directory)) == facts(&self.directory);
        if is_here {
            return Ok(None);
        }
        let create = |place: &Path| Self::create_below(&root, place);
        let usual = USUAL_PLACES.map(PathBuf::from).to_vec();
        first(usual, create).map(Some).map_err(NoPlace::There)
    }

    /// Notes that process `pid` is recorded, whose table is elsewhere.
    pub fn is_for(&self, pid: u32) -> io::Result<()> {
        File::create(self.directory.join(format!("{pid}-0"))).map(drop)
    }

    /// Creates one in `place`.
    pub(super) fn create_in(place: &Path) -> io::Result<Self> {
        room(place)?;
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

    /// Creates one in what a process whose root is `root` sees as `place`.
    fn create_below(root: &Path, place: &Path) -> io::Result<Self> {
        let open = open_below(root, place)?;
        let here = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        remove_dead_in(&here);
        let mut session = Self::create_in(&here)?;
        session.seen = place.join(session.directory.file_name().unwrap_or_default());
        session.place = Some(open);
        Ok(session)
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
        let seen = directory.clone();
        Ok((is_locked && is_there).then(|| Self { directory, seen, _open: open, place: None }))
    }

    /// Where processes put their tables, as this process reaches it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The folder that this directory is in, as those processes see it.
    pub fn folder(&self) -> &Path {
        self.seen.parent().unwrap_or(&self.seen)
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
    /// What makes a process join that runs, and that this session is for.
    pub fn request(&self, follow_children: bool, tick: Option<Tick>) -> io::Result<Request> {
        let path = self.seen.as_os_str().as_bytes();
        Request::join(path, follow_children, tick).ok_or_else(|| {
            let what = format!("the path {} is too long for a session", self.seen.display());
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

/// The session in the first place that has one; what is wrong with each if none has.
fn first(
    places: Vec<PathBuf>,
    create: impl Fn(&Path) -> io::Result<Session>,
) -> Result<Session, Vec<String>> {
    let mut problems = Vec::new();
    for place in places {
        match create(&place) {
            Ok(session) => return Ok(session),
            Err(error) => {
                let text = error.to_string();
                // As a person would say it, without the number.
                let text = text.split(" (os error").next().unwrap_or_default();
                let mut letters = text.chars();
                let first = letters.next().into_iter().flat_map(char::to_lowercase);
                let text: String = first.chain(letters).collect();
                problems.push(format!("{}: {text}", place.display()));
            }
        }
    }
    Err(problems)
}

/// The folder that a process whose root is `root` sees as `path`. No link is followed: whoever may write
/// there could have it lead to files of this process.
fn open_below(root: &Path, path: &Path) -> io::Result<File> {
    let mut names = path.components().filter(|it| matches!(it, Component::Normal(_)));
    names.try_fold(File::open(root)?, |folder, name| {
        opened(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
    })
}

/// What a process whose root is `root` sees as `path`.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Where a session may be, the best place first. Temporary directories are those of Python's
/// `tempfile`.
pub fn places() -> Vec<PathBuf> {
    let [shared, usual @ ..] = USUAL_PLACES.map(PathBuf::from);
    let mut places = vec![shared, env::temp_dir()];
    for usual in usual {
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
    fn a_folder_of_another_process_is_not_reached_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("dev/shm")).unwrap();
        std::os::unix::fs::symlink("/tmp", root.path().join("tmp")).unwrap();
        std::os::unix::fs::symlink("/var", root.path().join("var")).unwrap();
        let open = |path: &str| open_below(root.path(), Path::new(path));
        let inode = fs::metadata(root.path().join("dev/shm")).unwrap().ino();
        assert_eq!(open("/dev/shm").unwrap().metadata().unwrap().ino(), inode);
        assert!(open("/tmp").is_err());
        assert!(open("/var/tmp").is_err());
        assert_eq!(open("/nowhere").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn where_there_is_no_place_each_is_named_with_what_is_wrong_with_it() {
        let problems = ["/nowhere: no such file or directory", "/full: 3 MiB free"];
        assert_eq!(
            NoPlace::Here(problems.map(str::to_owned).to_vec()).to_string(),
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
