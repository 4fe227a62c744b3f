//! Traces that have no end: what they are called, who still writes them, and why they end early.
//!
//! A trace is written under a temporary name beside its own one, `.NAME.PROCESS-NUMBER.tmp`, and
//! locked as long as its recorder lives.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{ffi::OsString, process};

use crate::flock::is_locked;

/// A name may have 255 bytes, of which this much is left to what is put around it.
const NAME_BYTES: usize = 200;
const SUFFIX: &[u8] = b".tmp";

/// A trace under its temporary name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Where it is.
    pub path: PathBuf,
    /// Whether its recorder lives.
    pub is_being_written: bool,
}

impl Unfinished {
    /// The unfinished traces that were to be called `path`, the one written last first.
    pub fn beside(path: &Path) -> Vec<Self> {
        let Some(start) = name_start(path) else { return Vec::new() };
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return Vec::new() };
        let mut found: Vec<_> = entries
            .filter_map(Result::ok)
            .filter(|entry| is_temporary(entry.file_name().as_bytes(), &start))
            .filter_map(|entry| Some((entry.metadata().ok()?, entry.file_name())))
            .filter(|(facts, _)| facts.is_file())
            .map(|(facts, name)| (facts.modified().ok(), path.with_file_name(name)))
            .collect();
        found.sort();
        let found = found.into_iter().rev();
        found.map(|(_, path)| Self { is_being_written: is_being_written(&path), path }).collect()
    }
}

/// The temporary name of a trace of this process.
pub fn temporary_name(path: &Path, number: u32) -> io::Result<PathBuf> {
    let mut name = name_start(path).ok_or_else(|| {
        let what = format!("{} is not the name of a file", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })?;
    name.extend_from_slice(format!("{}-{number}", process::id()).as_bytes());
    name.extend_from_slice(SUFFIX);
    Ok(path.with_file_name(OsString::from_vec(name)))
}

/// Why a trace that has no end ends where it does, as a clause.
pub fn why_cut(path: &Path) -> &'static str {
    let name = path.file_name().unwrap_or_default().as_bytes();
    if is_being_written(path) {
        "it is still being recorded"
    } else if is_temporary(name, b".") {
        "its recorder was killed"
    } else {
        "the disk was full, or the file was not copied as a whole"
    }
}

/// What a report says of a trace that has no end, and is so long.
pub fn what_is_cut(path: &Path, length_ns: u64) -> String {
    format!("the trace ends after {:.1} s: {}", length_ns as f64 / 1e9, why_cut(path))
}

/// What the temporary names of a trace begin with; `None` if there can be none.
fn name_start(path: &Path) -> Option<Vec<u8>> {
    let name = path.file_name()?.as_bytes();
    Some([b".", &name[..name.len().min(NAME_BYTES)], b"."].concat())
}

/// Whether `name` is `start`, two numbers with a dash between, and the suffix.
fn is_temporary(name: &[u8], start: &[u8]) -> bool {
    let numbers = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(SUFFIX));
    // Of a name that is not known, the last part.
    let numbers = numbers.and_then(|rest| rest.rsplit(|&byte| byte == b'.').next());
    let mut parts = numbers.unwrap_or_default().split(|&byte| byte == b'-');
    let mut is_number =
        || parts.next().is_some_and(|it| !it.is_empty() && it.iter().all(u8::is_ascii_digit));
    is_number() && is_number() && parts.next().is_none()
}

fn is_being_written(path: &Path) -> bool {
    // Where there are no locks, nobody knows, and a recorder that was killed is the likelier reason
    // to look at such a file.
    File::open(path).is_ok_and(|file| is_locked(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_name_is_known_by_its_form() {
        let name = temporary_name(Path::new("some/a trace.pftrace"), 3).unwrap();
        let expected = format!("some/.a trace.pftrace.{}-3.tmp", process::id());
        assert_eq!(name, Path::new(&expected));
        let name = name.file_name().unwrap().as_bytes();
        assert!(is_temporary(name, b".a trace.pftrace."));
        assert!(is_temporary(name, b"."));
        for other in ["t.pftrace", ".t.1-2", ".t.1.tmp", ".t.-1.tmp", ".t.1-2-3.tmp", ".t.1-x.tmp"]
        {
            assert!(!is_temporary(other.as_bytes(), b"."), "{other}");
        }
        assert!(!is_temporary(b".t.1-2.tmp", b".other."));
    }

    #[test]
    fn the_longest_name_has_a_temporary_one() {
        let long = "x".repeat(255);
        let name = temporary_name(Path::new(&long), u32::MAX).unwrap();
        assert!(name.as_os_str().len() <= 255);
    }

    #[test]
    fn of_several_unfinished_traces_the_latest_comes_first_and_others_names_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        for (seconds, name) in [".t.1-0.tmp", ".t.3-0.tmp", ".t.2-0.tmp", ".tt.4-0.tmp", "t", ".t"]
            .into_iter()
            .enumerate()
        {
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds as u64);
            File::create(file(name)).unwrap().set_modified(at).unwrap();
        }
        fs::create_dir(file(".t.9-0.tmp")).unwrap();
        let found = Unfinished::beside(&file("t"));
        let paths: Vec<_> = found.iter().map(|it| it.path.clone()).collect();
        assert_eq!(paths, [".t.2-0.tmp", ".t.3-0.tmp", ".t.1-0.tmp"].map(file));
        assert!(found.iter().all(|it| !it.is_being_written));
        assert_eq!(Unfinished::beside(&file("missing/t")), []);
    }
}
