//! The names of snapshots: numbered, none twice, and never that of a file that is not ours.

use crate::perfetto::{Overwrite, Writer};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Snapshots of one recorder.
#[derive(Debug)]
pub struct SnapshotFiles {
    /// What stands before the number.
    stem: PathBuf,
    most: Option<usize>,
    number: u64,
    /// Those that were written and not removed, each with what tells that it is the same file.
    ours: VecDeque<(PathBuf, Identity)>,
}

type Identity = (u64, u64);

impl SnapshotFiles {
    /// Names them after `path`: `x.pftrace` gives `x-1.pftrace`, `x-2.pftrace` and so on. At most
    /// `most` of them stay.
    pub fn new(path: &Path, most: Option<usize>) -> Self {
        let is_trace = path.extension().is_some_and(|it| it == "pftrace");
        let stem = if is_trace { path.with_extension("") } else { path.to_owned() };
        Self { stem, most, number: 0, ours: VecDeque::new() }
    }

    /// Begins the next one.
    pub fn create(&mut self) -> io::Result<Writer> {
        loop {
            self.number += 1;
            let mut name = OsString::from(&self.stem);
            name.push(format!("-{}.pftrace", self.number));
            match Writer::create(Path::new(&name), Overwrite::Refuse) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => return other,
            }
        }
    }

    /// One is complete; those that are too many are removed, the oldest first.
    pub fn keep(&mut self, path: &Path) {
        self.ours.extend(identity(path).map(|identity| (path.to_owned(), identity)));
        while self.most.is_some_and(|most| self.ours.len() > most) {
            let Some((path, known)) = self.ours.pop_front() else { return };
            // Somebody may have put another file there.
            if identity(&path) == Some(known) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let facts = fs::symlink_metadata(path).ok()?;
    Some((facts.dev(), facts.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(files: &mut SnapshotFiles) -> String {
        let writer = files.create().unwrap();
        let path = writer.path().to_owned();
        writer.finish().unwrap();
        files.keep(&path);
        path.file_name().unwrap().to_string_lossy().into_owned()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|it| it.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_of_its_own_go_and_no_file_of_others_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x-2.pftrace"), "theirs").unwrap();
        let mut files = SnapshotFiles::new(&folder.path().join("x.pftrace"), Some(2));
        assert_eq!(write(&mut files), "x-1.pftrace");
        assert_eq!(write(&mut files), "x-3.pftrace");
        // Somebody takes one away and puts something else there.
        fs::rename(folder.path().join("x-3.pftrace"), folder.path().join("saved")).unwrap();
        fs::write(folder.path().join("x-3.pftrace"), "theirs").unwrap();
        assert_eq!(write(&mut files), "x-4.pftrace");
        assert_eq!(write(&mut files), "x-5.pftrace");
        let left = ["saved", "x-2.pftrace", "x-3.pftrace", "x-4.pftrace", "x-5.pftrace"];
        assert_eq!(names(folder.path()), left);
    }

    #[test]
    fn a_name_without_the_usual_ending_gets_it_after_the_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = SnapshotFiles::new(&folder.path().join("night.v2"), None);
        assert_eq!(write(&mut files), "night.v2-1.pftrace");
    }
}
