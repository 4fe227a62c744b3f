//! Whether a process still executes the program that made its table.
//!
//! `execve` keeps the process, and takes away its memory: the table is then in none of its mappings.
//! The hook notes the moment before it, as it does at the end of a process. A program that was
//! executed unnoticed, as by `fexecve`, is known by its own table, if it is a Python.

use crate::clock::now_ns;
use std::cell::Cell;
use std::fs;
use std::path::Path;

/// Mappings are read so often at most: a process that ends may take long for it.
const PERIOD_NS: u64 = 20_000_000;

/// The program of a process.
#[derive(Debug, Default)]
pub(super) struct Image {
    is_replaced: Cell<bool>,
    looked_ns: Cell<u64>,
    followed_ns: Option<u64>,
}

impl Image {
    /// The next program of the process has begun.
    pub(super) fn is_followed(&mut self, at_ns: u64) {
        self.followed_ns.get_or_insert(at_ns);
        self.is_replaced.set(true);
    }

    /// When it did, if that is known.
    pub(super) const fn followed_ns(&self) -> Option<u64> {
        self.followed_ns
    }

    /// Whether another program has taken its place. `said_end` is not 0 if it said that it ends.
    pub(super) fn is_replaced(&self, pid: u32, table: &Path, said_end: u64) -> bool {
        if said_end != 0 && !self.is_replaced.get() && self.is_time_to_look() {
            self.is_replaced.set(!may_be_mapped(pid, table));
        }
        self.is_replaced.get()
    }

    fn is_time_to_look(&self) -> bool {
        let now = now_ns();
        let is_time = now.saturating_sub(self.looked_ns.get()) >= PERIOD_NS;
        if is_time {
            self.looked_ns.set(now);
        }
        is_time
    }
}

/// Whether the file is mapped by the process, or its mappings cannot be read.
fn may_be_mapped(pid: u32, file: &Path) -> bool {
    let Ok(mappings) = fs::read_to_string(format!("/proc/{pid}/maps")) else { return true };
    // A process in a container may know the folder by another name.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_it = |line: &str| line.rsplit_once('/').is_some_and(|(_, last)| last == name);
    mappings.lines().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_replaced_once_its_table_is_in_no_mapping_and_it_said_that_it_ends() {
        let own = std::env::current_exe().unwrap();
        let (pid, no_file) = (std::process::id(), Path::new("/nowhere/7.0"));
        assert!(!Image::default().is_replaced(pid, no_file, 0));
        assert!(Image::default().is_replaced(pid, no_file, 1));
        assert!(!Image::default().is_replaced(pid, &own, 1));
    }

    #[test]
    fn the_next_program_of_a_process_replaces_the_one_before() {
        let mut image = Image::default();
        image.is_followed(70);
        image.is_followed(90);
        assert!(image.is_replaced(0, Path::new("0.0"), 0));
        assert_eq!(image.followed_ns(), Some(70));
    }
}
