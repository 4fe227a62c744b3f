//! Who holds and who waits in a process now, by its table alone: of a process that this recorder
//! records, or another one.

use super::leftover::is_abandoned;
use super::session::PREFIX;
use super::table_file::TableFile;
use crate::clock;
use crate::numbers::Numbers;
use serde::Serialize;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use ungil_control::namespaces::own_number;
use ungil_core::atomic::Ordering::{Acquire, Relaxed};
use ungil_core::schedule::Policy;
use ungil_core::table::{
    ABI, Counters, MAGIC, Recording, Slot, SlotState, Status, Table, load_text,
};
use ungil_core::tick::Clock;

/// What a process did with its GILs at one moment. Times are in ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessNow {
    /// Which process.
    pub pid: u32,
    /// The moment.
    pub at_ns: u64,
    /// Since when its calls are seen. A thread that has held a GIL since before has no hold here
    /// until it lets go.
    pub seen_since_ns: u64,
    /// First word of `Py_GetVersion()`, or empty.
    pub python: String,
    /// Why nothing is seen of its GIL, if so.
    pub not_recorded: Option<&'static str>,
    /// The policy that the last waiter waited under; `None` before the first.
    pub policy: Option<&'static str>,
    /// The switch interval, or the quantum of the policy; `None` before the first wait.
    pub switch_interval_ns: Option<u64>,
    /// Threads that found no slot.
    pub unrecorded_threads: u64,
    /// Threads that have touched a GIL since then, and live.
    pub threads: Vec<ThreadNow>,
}

/// What a thread did at that moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadNow {
    /// Kernel thread id.
    pub tid: u32,
    /// `threading.get_ident()`.
    pub ident: u64,
    /// The GIL of its last event; 0 if that is not known.
    pub gil: u8,
    /// Since when it holds that GIL; `None` if it does not, as far as was seen.
    pub holding_since_ns: Option<u64>,
    /// Since when it waits for it; `None` if it does not.
    pub waiting_since_ns: Option<u64>,
    /// Whether nothing was seen of the thread before that wait, so that it may have begun earlier.
    pub is_first_wait: bool,
    /// How often it has let go of a GIL.
    pub releases: u64,
}

/// Now, by a table. `known` says the id of the thread of a slot, and the GIL of its last event.
pub fn now(
    table: Table,
    pid: u32,
    mut known: impl FnMut(usize, &Slot) -> (u32, u8),
    mut ns: impl FnMut(u64) -> u64,
) -> ProcessNow {
    let header = table.header();
    let moment = |ticks: u64, ns: &mut dyn FnMut(u64) -> u64| (ticks != 0).then(|| ns(ticks));
    let slots = table.used_slots().iter().enumerate();
    let threads = slots.filter(|(_, slot)| slot.state() == Some(SlotState::Live));
    let threads = threads.map(|(index, slot)| {
        let waiting = slot.waiting_since_ticks.load(Relaxed);
        let (tid, gil) = known(index, slot);
        ThreadNow {
            tid,
            ident: slot.ident.load(Relaxed),
            gil,
            holding_since_ns: moment(slot.holding_since_ticks.load(Relaxed), &mut ns),
            waiting_since_ns: moment(waiting, &mut ns),
            is_first_wait: waiting != 0 && is_fresh(slot),
            releases: releases(&slot.counters),
        }
    });
    let threads = threads.collect();
    let switch_interval_ns = Some(header.switch_interval_ns.load(Relaxed)).filter(|&ns| ns > 0);
    let policy = Policy::from_number(header.policy.load(Relaxed)).map(Policy::name);
    ProcessNow {
        pid,
        seen_since_ns: ns(header.started_ticks.load(Relaxed)),
        python: load_text(&header.python).split(' ').next().unwrap_or_default().to_owned(),
        not_recorded: why_not(header.status.load(Relaxed)),
        policy: policy.filter(|_| switch_interval_ns.is_some()),
        switch_interval_ns,
        unrecorded_threads: header.unrecorded_threads.load(Relaxed),
        threads,
        at_ns: clock::now_ns(),
    }
}

fn why_not(status: u32) -> Option<&'static str> {
    match Status::from_number(status) {
        Some(Status::Hooked) => None,
        Some(Status::FreeThreaded) => Some("its Python is free-threaded"),
        Some(Status::PyPy) => Some("its Python is PyPy, whose GIL cannot be seen"),
        Some(Status::UnknownInterpreter | Status::NotSeen) | None => {
            Some("the hook does not know its Python")
        }
    }
}

/// Whether the thread has done nothing so far but begin to wait.
fn is_fresh(slot: &Slot) -> bool {
    slot.counters.waits.load(Relaxed) == 0
        && slot.counters.holds.load(Relaxed) == 0
        && releases(&slot.counters) == 0
        && slot.holding_since_ticks.load(Relaxed) == 0
}

fn releases(counters: &Counters) -> u64 {
    counters.voluntary.load(Relaxed).saturating_add(counters.forced.load(Relaxed))
}

/// Now, of a process that somebody else records; `None` if nobody does. It is only read.
pub fn now_as_others_record_it(pid: u32) -> Option<ProcessNow> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let maps = fs::read(process.join("maps")).ok()?;
    let own_number = own_number(&process).ok()?;
    maps.split(|&byte| byte == b'\n').filter_map(path_of_a_table).find_map(|path| {
        let mut outside = process.join("root").into_os_string();
        outside.push(path);
        let file = TableFile::open(Path::new(&outside)).ok()?;
        let header = file.table().header();
        let is_recorded = header.magic.load(Acquire) == MAGIC
            && header.abi.load(Relaxed) == ABI
            // A recorder has the tables of others.
            && header.pid.load(Relaxed) == own_number
            && header.recording.load(Relaxed) == Recording::Yes as u32;
        // Nobody tells the process if its recorder is killed.
        let session = Path::new(&outside).parent();
        if !is_recorded || session.is_some_and(is_abandoned) {
            return None;
        }
        let clock = Clock::from_number(header.clock.load(Relaxed))?;
        let tick = header.tick();
        let reading = clock::read_both_at_once();
        let ns = |ticks: u64| match clock {
            Clock::Monotonic => ticks,
            Clock::Counter => {
                reading.ns - tick.ns(reading.ticks.saturating_sub(ticks)).min(reading.ns)
            }
        };
        // Only events tell of which GIL they are, and those belong to that recorder.
        let mut numbers = Numbers::of(header);
        // Only events tell of which GIL they are, and those belong to that recorder.
        let known = |_, slot: &Slot| (numbers.told_tid(slot.tid.load(Relaxed)), 0);
        Some(now(file.table(), pid, known, ns))
    })
}

/// The path in a line of `maps`, if it is that of a table in a session which is still there.
fn path_of_a_table(line: &[u8]) -> Option<&OsStr> {
    let path = &line[line.iter().position(|&byte| byte == b'/')?..];
    let path = Path::new(OsStr::from_bytes(path));
    let session = path.parent()?.file_name()?.as_bytes();
    let is_deleted = path.as_os_str().as_bytes().ends_with(b" (deleted)");
    (session.starts_with(PREFIX.as_bytes()) && !is_deleted).then_some(path.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_known_by_its_session() {
        let line = |path: &str| format!("7f00-7f01 rw-s 00000000 00:19 12 {path}").into_bytes();
        let is_table = |path: &str| path_of_a_table(&line(path)).is_some();
        assert!(is_table("/dev/shm/ungil-session-a1/12-0"));
        assert!(is_table("/tmp/with space/ungil-session-a1/12-0"));
        assert!(!is_table("/dev/shm/ungil-session-a1/12-0 (deleted)"));
        assert!(!is_table("/dev/shm/ungil-policy-0-1-12"));
        assert!(!is_table("[stack]"));
    }

    #[test]
    fn a_process_that_nobody_records_tells_nothing() {
        assert_eq!(now_as_others_record_it(std::process::id()), None);
        assert_eq!(now_as_others_record_it(u32::MAX), None);
    }
}
