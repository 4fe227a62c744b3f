//! Who held a GIL, and who waited for it, from when to when: the picture that a report's sums
//! cannot give.

use crate::record::{Record, ThreadId};
use std::collections::HashMap;
use ungil_core::Kind;

/// A thread that did one thing for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Kernel process id.
    pub pid: u32,
    /// Which GIL of the process.
    pub gil: u8,
    /// Kernel thread id.
    pub tid: u32,
    /// Whether it held the GIL; otherwise it waited for it.
    pub held: bool,
    /// When it began, in ns since the start of the first process.
    pub begin_ns: u64,
    /// When it ended, likewise.
    pub end_ns: u64,
}

/// Collects the stretches that begin within a window. What had not ended by the end of the trace,
/// or of which an event was lost, is left out.
#[derive(Debug)]
pub struct Timeline {
    from_ns: u64,
    until_ns: u64,
    started_ns: Option<u64>,
    pids: HashMap<u32, u32>,
    threads: HashMap<ThreadId, (u32, u32)>,
    /// What a thread does at a GIL: whether it holds, and since when.
    open: HashMap<(ThreadId, u8), (bool, u64)>,
    stretches: Vec<Stretch>,
}

impl Timeline {
    /// Of the window from `from_ns` to `until_ns`, in ns since the start of the first process.
    pub fn new(from_ns: u64, until_ns: u64) -> Self {
        Self {
            from_ns,
            until_ns,
            started_ns: None,
            pids: HashMap::new(),
            threads: HashMap::new(),
            open: HashMap::new(),
            stretches: Vec::new(),
        }
    }

    /// Takes in one record; the records of a trace come in its order.
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::ProcessStarted(process) => {
                self.started_ns.get_or_insert(process.at_ns);
                self.pids.insert(process.process.0, process.pid);
            }
            Record::ThreadStarted { thread, process, tid, .. } => {
                let pid = self.pids.get(&process.0).copied().unwrap_or_default();
                self.threads.insert(*thread, (pid, *tid));
            }
            Record::Gil { thread, event, .. } => {
                let doing = (*thread, event.gil);
                match event.kind {
                    Kind::DropRequest | Kind::Ran | Kind::RanAndBlocked => {}
                    Kind::Wait => {
                        self.open.insert(doing, (false, event.at_ns));
                    }
                    Kind::Acquire => {
                        self.close(doing, false, event.at_ns);
                        self.open.insert(doing, (true, event.at_ns));
                    }
                    Kind::ReleaseVoluntary | Kind::ReleaseForced => {
                        self.close(doing, true, event.at_ns);
                    }
                }
            }
            &Record::Snapshot { from_ns } => {
                self.started_ns = Some(from_ns);
                self.stretches.clear();
            }
            _ => {}
        }
    }

    /// The stretches, in the order in which they ended.
    pub fn stretches(self) -> Vec<Stretch> {
        self.stretches
    }

    /// Ends what the thread did, if that was it.
    fn close(&mut self, doing: (ThreadId, u8), held: bool, at_ns: u64) {
        let Some((_, since_ns)) = self.open.remove(&doing).filter(|(holds, _)| *holds == held)
        else {
            return;
        };
        let Some(&(pid, tid)) = self.threads.get(&doing.0) else { return };
        let started_ns = self.started_ns.unwrap_or_default();
        let begin_ns = since_ns.saturating_sub(started_ns);
        if (self.from_ns..self.until_ns).contains(&begin_ns) {
            let end_ns = at_ns.saturating_sub(started_ns);
            self.stretches.push(Stretch { pid, gil: doing.1, tid, held, begin_ns, end_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Process, ProcessId};
    use ungil_core::Event;

    const PID: u32 = 70;

    fn begun(timeline: &mut Timeline) {
        timeline.push(&Record::ProcessStarted(Process {
            process: ProcessId(0),
            pid: PID,
            parent_pid: 1,
            at_ns: 1_000,
            argv: Vec::new(),
            python: String::new(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        }));
        for number in 0..2 {
            timeline.push(&Record::ThreadStarted {
                thread: ThreadId(number),
                process: ProcessId(0),
                tid: PID + number,
                at_ns: 1_000,
                name: String::new(),
            });
        }
    }

    fn does(timeline: &mut Timeline, thread: u32, at_ns: u64, kind: Kind) {
        let event = Event { at_ns, kind, gil: 0, seq: 0 };
        let (thread, process) = (ThreadId(thread), ProcessId(0));
        timeline.push(&Record::Gil { process, thread, event });
    }

    fn stretch(thread: u32, held: bool, begin_ns: u64, end_ns: u64) -> Stretch {
        Stretch { pid: PID, gil: 0, tid: PID + thread, held, begin_ns, end_ns }
    }

    #[test]
    fn holds_and_waits_are_told_with_their_times_since_the_start() {
        let mut timeline = Timeline::new(0, u64::MAX);
        begun(&mut timeline);
        does(&mut timeline, 0, 1_010, Kind::Acquire);
        does(&mut timeline, 1, 1_020, Kind::Wait);
        does(&mut timeline, 1, 1_025, Kind::DropRequest);
        does(&mut timeline, 0, 1_030, Kind::ReleaseForced);
        does(&mut timeline, 1, 1_032, Kind::Acquire);
        does(&mut timeline, 1, 1_040, Kind::ReleaseVoluntary);
        let expected =
            [stretch(0, true, 10, 30), stretch(1, false, 20, 32), stretch(1, true, 32, 40)];
        assert_eq!(timeline.stretches(), expected);
    }

    #[test]
    fn what_begins_outside_of_the_window_or_lacks_an_event_is_left_out() {
        let mut timeline = Timeline::new(20, 40);
        begun(&mut timeline);
        does(&mut timeline, 0, 1_010, Kind::Acquire);
        does(&mut timeline, 0, 1_030, Kind::ReleaseVoluntary);
        // Its release was lost.
        does(&mut timeline, 0, 1_031, Kind::Acquire);
        does(&mut timeline, 0, 1_032, Kind::Wait);
        does(&mut timeline, 0, 1_035, Kind::Acquire);
        does(&mut timeline, 0, 1_050, Kind::ReleaseVoluntary);
        does(&mut timeline, 1, 1_040, Kind::Acquire);
        does(&mut timeline, 1, 1_041, Kind::ReleaseVoluntary);
        let expected = [stretch(0, false, 32, 35), stretch(0, true, 35, 50)];
        assert_eq!(timeline.stretches(), expected);
    }
}
