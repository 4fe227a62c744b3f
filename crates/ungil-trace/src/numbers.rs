//! The ids of a traced process and its threads. Its table has those of its own PID namespace; a
//! container has one. The kernel is asked, and users are told, by those of the recorder's.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use ungil_control::namespaces::{own_number, pid_namespace};
use ungil_core::atomic::Ordering::Relaxed;
use ungil_core::table::Header;

/// The folder of this process.
const OWN: &str = "/proc/self";
/// Not that of any process or thread.
const NOBODY: u32 = 0;

/// A process, by its ids in two namespaces.
#[derive(Debug)]
pub struct Numbers {
    /// How the process calls itself.
    own_pid: u32,
    /// What the recorder calls it; [`NOBODY`] if it is not found, as once it has ended.
    pid: u32,
    /// If it is in another namespace, its threads: what the recorder calls each that calls itself so.
    threads: Option<HashMap<u32, u32>>,
}

impl Numbers {
    /// Those of the process that has this table.
    pub fn of(header: &Header) -> Self {
        let own_pid = header.pid.load(Relaxed);
        let theirs = header.pid_namespace.load(Relaxed);
        // One that does not know its namespace has no /proc, as none of this one may.
        if theirs == NOBODY || pid_namespace(Path::new(OWN)).is_none_or(|ours| ours == theirs) {
            return Self { own_pid, pid: own_pid, threads: None };
        }
        let pid = find(theirs, own_pid).unwrap_or(NOBODY);
        Self { own_pid, pid, threads: Some(HashMap::new()) }
    }

    /// Those of process `pid`, as this one calls it.
    #[cfg(feature = "stacks")]
    pub fn of_process(pid: u32) -> Self {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let (ours, theirs) = (pid_namespace(Path::new(OWN)), pid_namespace(&folder));
        let is_ours = ours.is_none() || theirs.is_none() || ours == theirs;
        let own_pid = own_number(&folder).ok().filter(|_| !is_ours).unwrap_or(pid);
        Self { own_pid, pid, threads: (!is_ours).then(HashMap::new) }
    }

    /// What the kernel calls the process here; 0 if it has ended before that was known.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// How the process calls itself.
    pub const fn own_pid(&self) -> u32 {
        self.own_pid
    }

    /// What users are told: if nothing else is known, how it calls itself.
    pub const fn told_pid(&self) -> u32 {
        if self.pid == NOBODY { self.own_pid } else { self.pid }
    }

    /// What the kernel calls here the process that started it, or that it was left to; 0 if it is not
    /// found.
    pub fn parent_pid(&self, header: &Header) -> u32 {
        if self.are_ours() {
            return header.parent_pid.load(Relaxed);
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent.and_then(|pid| pid.trim().parse().ok()).unwrap_or(NOBODY)
    }

    /// Whether it is in the recorder's namespace.
    pub const fn are_ours(&self) -> bool {
        self.threads.is_none()
    }

    /// What the kernel calls here the thread of the process that calls itself `own_tid`; 0 if it has
    /// ended before that was known.
    pub fn tid(&mut self, own_tid: u32) -> u32 {
        let Some(known) = &mut self.threads else { return own_tid };
        if own_tid == self.own_pid {
            return self.pid;
        }
        if !known.contains_key(&own_tid) {
            look_up(self.pid, known);
        }
        known.get(&own_tid).copied().unwrap_or(NOBODY)
    }

    /// What users are told of that thread: if nothing else is known, what it calls itself.
    pub fn told_tid(&mut self, own_tid: u32) -> u32 {
        match self.tid(own_tid) {
            NOBODY => own_tid,
            tid => tid,
        }
    }
}

/// The process of that namespace which calls itself so.
fn find(namespace: u32, own_pid: u32) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        pid_namespace(&folder) == Some(namespace) && own_number(&folder).ok() == Some(own_pid)
    })
}

/// Looks at those threads of the process that are not known, and forgets those that have ended.
fn look_up(pid: u32, known: &mut HashMap<u32, u32>) {
    let folder = PathBuf::from(format!("/proc/{pid}/task"));
    let tasks = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut tids: HashSet<u32> =
        tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
    known.retain(|_, tid| tids.remove(tid));
    for tid in tids {
        if let Ok(own) = own_number(&folder.join(tid.to_string())) {
            known.insert(own, tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_its_threads_are_found_in_their_namespace() {
        let namespace = pid_namespace(Path::new("/proc/self")).unwrap();
        let pid = std::process::id();
        assert_eq!(find(namespace, pid), Some(pid));
        assert_eq!(find(namespace, u32::MAX), None);
        assert_eq!(find(namespace + 1, pid), None);
        // SAFETY: gettid has no preconditions.
        let thread = || unsafe { libc::gettid() }.cast_unsigned();
        std::thread::scope(|scope| {
            let mut numbers = Numbers { own_pid: pid, pid, threads: Some(HashMap::new()) };
            let here = thread();
            scope.spawn(move || {
                assert_eq!(numbers.tid(thread()), thread());
                assert_eq!(numbers.tid(here), here);
                assert_eq!(numbers.tid(u32::MAX), NOBODY);
                assert_eq!(numbers.tid(pid), pid);
            });
        });
    }

    #[test]
    fn threads_that_have_ended_are_forgotten() {
        // SAFETY: gettid has no preconditions.
        let ended = std::thread::spawn(|| unsafe { libc::gettid() }.cast_unsigned());
        let mut known = HashMap::from([(7, ended.join().unwrap())]);
        look_up(std::process::id(), &mut known);
        assert!(!known.contains_key(&7));
        assert!(known.contains_key(&std::process::id()));
    }
}
