//! What happens lately: what was counted between two looks, and the worst wait of the last minute.
//!
//! Holds and waits that cross a look are cut there, as in a part of a trace; a worst wait is whole.

use super::seat::Detail;
use super::tally::Tally;
use crate::record::{ProcessId, Record, ThreadId};
use crate::report::Report;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use ungil_core::{Event, Kind};

const SECOND_NS: u64 = 1_000_000_000;
/// Of so many seconds the worst wait is known.
const SECONDS: u64 = 60;
/// An event is told of so much later at most: a look counts up to then.
const LATE_NS: u64 = 20_000_000;

/// The longest wait of a thread that ended in the last minute, or goes on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorstWait {
    /// Of which process.
    pub pid: u32,
    /// Of which thread, by the kernel's number.
    pub tid: u32,
    /// How long it was.
    pub ms: f64,
}

/// What has been counted since the last look.
#[derive(Debug)]
pub struct Rolling {
    tally: Tally,
    waits: BTreeMap<ThreadId, Waits>,
}

/// The waits of a thread.
#[derive(Debug)]
struct Waits {
    process: ProcessId,
    tid: u32,
    /// Since when it waits.
    since_ns: Option<u64>,
    /// The longest that ended in each second, oldest first, with the number of the second.
    longest: VecDeque<(u64, u64)>,
}

impl Rolling {
    /// Nothing was counted yet; see [`super::Analysis::new`].
    pub fn new(blame_after_ns: u64) -> Self {
        Self { tally: Tally::new(blame_after_ns), waits: BTreeMap::new() }
    }

    /// Takes in one record.
    #[inline]
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::Gil { thread, event, .. } => {
                if let Some(waits) = self.waits.get_mut(thread) {
                    waits.take(*event);
                }
            }
            Record::ThreadStarted { thread, process, tid, .. } => {
                let (since_ns, longest) = (None, VecDeque::new());
                let waits = Waits { process: *process, tid: *tid, since_ns, longest };
                self.waits.insert(*thread, waits);
            }
            Record::ThreadEnded { thread, at_ns, .. } => {
                self.waits.remove(thread);
                let known = self.tally.threads.get(thread.0);
                let floor_ns = self.tally.floor_ns.unwrap_or(0);
                if known.is_some_and(|known| known.started_ns <= floor_ns) {
                    // Its totals are those of its whole life.
                    self.tally.end_thread(*thread, *at_ns, None);
                    return;
                }
            }
            _ => {}
        }
        self.tally.push(record);
    }

    /// What was counted since the last call, without findings, and the worst waits up to now.
    pub fn take(&mut self, now_ns: u64) -> (Report, Vec<WorstWait>) {
        let Self { tally, waits } = self;
        let until_ns = tally.now_ns.max(now_ns.saturating_sub(LATE_NS));
        tally.now_ns = until_ns;
        let report = tally.report(tally.processes_until(until_ns, tally), Vec::new());
        let worst = waits.values_mut().filter_map(|waits| {
            let pid = tally.processes.get(waits.process.0)?.known.pid;
            let ns = waits.worst_ns(now_ns);
            (ns > 0).then(|| WorstWait { pid, tid: waits.tid, ms: ns as f64 / 1e6 })
        });
        let worst = worst.collect();
        let notes = std::mem::take(&mut tally.notes);
        *tally = Tally { notes, ..tally.reopened(until_ns, Detail::All) };
        (report, worst)
    }
}

impl Waits {
    #[inline]
    fn take(&mut self, event: Event) {
        match event.kind {
            Kind::Wait => self.since_ns = Some(event.at_ns),
            Kind::Acquire => {
                if let Some(since_ns) = self.since_ns.take() {
                    self.ended(event.at_ns, event.at_ns.saturating_sub(since_ns));
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, at_ns: u64, ns: u64) {
        let second = at_ns / SECOND_NS;
        match self.longest.back_mut() {
            Some((last, longest_ns)) if *last >= second => *longest_ns = ns.max(*longest_ns),
            _ => self.longest.push_back((second, ns)),
        }
        self.forget(at_ns);
    }

    fn forget(&mut self, now_ns: u64) {
        let first = (now_ns / SECOND_NS).saturating_sub(SECONDS - 1);
        while self.longest.front().is_some_and(|(second, _)| *second < first) {
            self.longest.pop_front();
        }
    }

    /// The longest wait that ended in the last minute, or goes on.
    fn worst_ns(&mut self, now_ns: u64) -> u64 {
        self.forget(now_ns);
        let current_ns = self.since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        self.longest.iter().map(|(_, ns)| *ns).fold(current_ns, u64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Process, ThreadTotals};

    const MS: u64 = 1_000_000;
    const PROCESS: ProcessId = ProcessId(0);

    /// Threads 0 and 1 of one process.
    fn rolling() -> Rolling {
        let mut rolling = Rolling::new(20 * MS);
        rolling.push(&Record::ProcessStarted(Process {
            process: PROCESS,
            pid: 7,
            parent_pid: 1,
            at_ns: 0,
            argv: Vec::new(),
            python: String::new(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        }));
        for number in [0, 1] {
            rolling.push(&Record::ThreadStarted {
                thread: ThreadId(number),
                process: PROCESS,
                tid: 100 + number,
                at_ns: 0,
                name: String::new(),
            });
        }
        rolling
    }

    fn event(rolling: &mut Rolling, thread: u32, kind: Kind, at_ms: u64, seq: u32) {
        let event = Event { at_ns: at_ms * MS, kind, gil: 0, seq };
        rolling.push(&Record::Gil { process: PROCESS, thread: ThreadId(thread), event });
    }

    /// What a thread held and waited in milliseconds, since the last look.
    fn figures(report: &Report, tid: u32) -> (f64, f64) {
        let threads = &report.processes[0].gils[0].threads;
        let thread = threads.iter().find(|it| it.tid == tid).unwrap();
        ((thread.held_s * 1e3).round(), (thread.waited_s * 1e3).round())
    }

    #[test]
    fn what_crosses_a_look_is_cut_there_and_a_worst_wait_is_whole() {
        let mut rolling = rolling();
        event(&mut rolling, 0, Kind::Acquire, 0, 1);
        event(&mut rolling, 1, Kind::Wait, 400, 1);
        let (report, worst) = rolling.take(1_020 * MS);
        assert_eq!(figures(&report, 100), (1_000.0, 0.0));
        assert_eq!(figures(&report, 101), (0.0, 600.0));
        assert_eq!(worst, [WorstWait { pid: 7, tid: 101, ms: 620.0 }]);
        event(&mut rolling, 0, Kind::ReleaseForced, 1_500, 2);
        event(&mut rolling, 1, Kind::Acquire, 1_500, 3);
        let (report, worst) = rolling.take(2_020 * MS);
        assert_eq!(figures(&report, 100), (500.0, 0.0));
        assert_eq!(figures(&report, 101), (500.0, 500.0));
        assert_eq!(worst, [WorstWait { pid: 7, tid: 101, ms: 1_100.0 }]);
    }

    #[test]
    fn a_wait_is_the_worst_for_a_minute() {
        let mut rolling = rolling();
        event(&mut rolling, 1, Kind::Wait, 100, 0);
        event(&mut rolling, 1, Kind::Acquire, 900, 1);
        event(&mut rolling, 1, Kind::ReleaseVoluntary, 901, 2);
        event(&mut rolling, 1, Kind::Wait, 30_000, 2);
        event(&mut rolling, 1, Kind::Acquire, 30_001, 3);
        let mut worst = |at_ms: u64| rolling.take(at_ms * MS).1;
        assert_eq!(worst(59_999), [WorstWait { pid: 7, tid: 101, ms: 800.0 }]);
        assert_eq!(worst(60_000), [WorstWait { pid: 7, tid: 101, ms: 1.0 }]);
    }

    #[test]
    fn a_thread_that_ends_does_not_bring_the_totals_of_its_life() {
        let mut rolling = rolling();
        event(&mut rolling, 0, Kind::Acquire, 0, 1);
        rolling.take(1_020 * MS);
        event(&mut rolling, 0, Kind::ReleaseVoluntary, 1_100, 2);
        let totals = ThreadTotals { holds: 9, held_ns: 9_000 * MS, ..ThreadTotals::default() };
        rolling.push(&Record::ThreadEnded { thread: ThreadId(0), at_ns: 1_100 * MS, totals });
        let (report, _) = rolling.take(2_000 * MS);
        assert_eq!(figures(&report, 100), (100.0, 0.0));
    }
}
