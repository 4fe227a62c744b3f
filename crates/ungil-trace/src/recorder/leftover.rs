//! Sessions whose recorder was killed: found, and removed.
//!
//! One is removed only by the user who made it, and only while its lock is held, which a living
//! recorder has: also one in another container that shares `/dev/shm`. Programs that were recorded
//! and still run keep what they have mapped.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::session::{PREFIX, places};
use crate::flock::try_lock;

/// A session that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Where it was.
    pub path: PathBuf,
    /// The memory, or disk, that it took.
    pub bytes: u64,
}

/// Removes all sessions of this user whose recorders are dead. What cannot be removed stays.
pub fn remove_dead_sessions() -> Vec<Removed> {
    places().iter().flat_map(|place| remove_dead_in(place)).collect()
}

/// The same in one place.
pub(super) fn remove_dead_in(place: &Path) -> Vec<Removed> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter_map(|entry| remove(entry.path()))
        .collect()
}

fn remove(path: PathBuf) -> Option<Removed> {
    let _lock = locked(&path)?;
    let bytes = taken(&path);
    fs::remove_dir_all(&path).ok()?;
    Some(Removed { path, bytes })
}

/// Whether the recorder of that session is dead: nobody has the lock of its directory.
pub(super) fn is_abandoned(path: &Path) -> bool {
    opened(path).is_ok_and(|file| try_lock(&file).is_ok_and(|is_free| is_free))
}

/// The open directory, if it is ours and nobody's.
fn locked(path: &Path) -> Option<File> {
    let file = opened(path).ok()?;
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    // Where there are no locks nobody knows whether its recorder lives.
    (file.metadata().ok()?.uid() == user && try_lock(&file).ok()?).then_some(file)
}

/// The folder, if that is no link.
pub(super) fn opened(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn taken(path: &Path) -> u64 {
    let files = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    files.filter_map(|file| file.metadata().ok()).map(|facts| facts.blocks() * 512).sum()
}

#[cfg(test)]
mod tests {
    use super::super::session::Session;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::thread;

    /// A session as a recorder leaves it that is killed: nobody holds its lock.
    fn abandoned(place: &Path, name: &str) -> PathBuf {
        let path = place.join(format!("{PREFIX}{name}"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("1-0"), [1; 10_000]).unwrap();
        path
    }

    #[test]
    fn only_sessions_are_removed_and_what_they_took_is_told() {
        let place = tempfile::tempdir().unwrap();
        let dead = ["a", "b"].map(|name| abandoned(place.path(), name));
        let alive = abandoned(place.path(), "alive");
        let lock = File::open(&alive).unwrap();
        assert!(try_lock(&lock).unwrap());
        let elsewhere = tempfile::tempdir().unwrap();
        let link = place.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        fs::write(place.path().join(format!("{PREFIX}file")), "").unwrap();
        fs::create_dir(place.path().join("ungil-other")).unwrap();

        let mut removed = remove_dead_in(place.path());
        removed.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!(removed.iter().map(|it| &it.path).collect::<Vec<_>>(), [&dead[0], &dead[1]]);
        assert!(removed.iter().all(|it| it.bytes >= 10_000), "{removed:?}");
        assert!(alive.exists() && link.exists() && elsewhere.path().exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 4);
    }

    /// Counts also what ends by a failed assertion.
    struct Done<'a>(&'a AtomicUsize);

    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn whoever_cleans_up_never_takes_a_session_from_a_living_recorder() {
        let place = tempfile::tempdir().unwrap();
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while done.load(Relaxed) < 2 {
                        remove_dead_in(place.path());
                    }
                });
                scope.spawn(|| {
                    let _done = Done(&done);
                    for _ in 0..200 {
                        let session = Session::create_in(place.path()).unwrap();
                        fs::write(session.directory().join("1-0"), "").unwrap();
                        thread::yield_now();
                        assert!(session.directory().join("1-0").exists());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
