//! What was kept, as the records of a trace, and what of it somebody wants to know at once.

use super::ids::ById;
use super::kept::Frozen;
use super::stalls::{Condition, Limit, Stall};
use crate::record::{Frame, Process, ProcessId, Record, ThreadId, ThreadTotals};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use ungil_core::Kind;

/// A hold that began so long before the kept seconds is worth a note.
const LONG_BEFORE_NS: u64 = 1_000_000_000;

/// What was kept when something happened, and how each thread and process stood then.
#[derive(Debug)]
pub struct Snapshot {
    /// What was kept.
    pub frozen: Frozen,
    /// What would have been told if the recording had ended then.
    pub last_words: Vec<Record>,
    /// The worst stall that made it.
    pub stall: Option<Stall>,
}

/// What stalled, and who was the cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The condition that it met.
    pub condition: Condition,
    /// The process.
    pub pid: u32,
    /// The thread that waited, or held.
    pub tid: u32,
    /// Its name.
    pub thread: String,
    /// For how long.
    pub length_ns: u64,
    /// Whether it went on.
    pub goes_on: bool,
    /// Who held the GIL, most of that time; `None` if nobody is known.
    pub holder: Option<Holder>,
}

/// Who held the GIL.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Holder {
    /// The thread,
    pub tid: u32,
    /// and its name.
    pub thread: String,
    /// The innermost line of the user's own code that it was seen in, or of any, as
    /// `function (file:line)`.
    pub line: Option<String>,
}

/// Ids of the snapshot, which count up from 0.
#[derive(Default)]
struct Ids {
    processes: HashMap<ProcessId, ProcessId>,
    threads: ById<ThreadId, ThreadId>,
}

impl Snapshot {
    /// Tells it as the records of a trace. `take` returns what the analysis says of a record: who
    /// held longest during a wait that it ends.
    pub fn tell(&self, take: impl FnMut(&Record) -> Option<ThreadId>) -> Option<Cause> {
        let mut telling = Telling {
            ids: Ids::default(),
            totals: ById::default(),
            cut: HashSet::new(),
            watching: self.stall.map(Watching::new),
            take,
        };
        let Frozen { standing, chunks, .. } = &self.frozen;
        let marks = chunks.first().map_or(&[][..], |chunk| &chunk.marks);
        for mark in marks {
            if let Record::ThreadEnded { thread, totals, .. } = mark {
                telling.totals.insert(*thread, *totals);
            }
        }
        let from_ns = self.frozen.from_ns();
        for hold in standing.holds() {
            telling.cut.insert((hold.thread, hold.gil));
            let before_ns = from_ns.saturating_sub(hold.since_ns);
            if before_ns >= LONG_BEFORE_NS {
                let text = format!(
                    "{} had already held the GIL for {:.1} s when this snapshot begins",
                    standing.name(hold.thread),
                    before_ns as f64 / 1e9
                );
                telling.put(Record::Note { text });
            }
        }
        let throttled = marks.iter().filter(|mark| matches!(mark, Record::Throttled { .. }));
        standing.tell(from_ns, throttled, |record| telling.put(record));
        // A recording that is all there begins with its program.
        if !standing.is_empty() {
            telling.put(Record::Snapshot { from_ns });
        }
        for chunk in chunks {
            chunk.each(|record| telling.happened(record));
        }
        for record in &self.last_words {
            telling.put(record.clone());
        }
        telling.watching.and_then(Watching::cause)
    }
}

/// A snapshot that is being told.
struct Telling<T> {
    ids: Ids,
    /// What threads had counted when it begins.
    totals: ById<ThreadId, ThreadTotals>,
    /// The holds in which it begins: for how long the kernel ran them is known of the whole only.
    cut: HashSet<(ThreadId, u8)>,
    watching: Option<Watching>,
    take: T,
}

impl<T: FnMut(&Record) -> Option<ThreadId>> Telling<T> {
    fn happened(&mut self, record: &Record) {
        if let Record::Gil { thread, event, .. } = record
            && !self.cut.is_empty()
        {
            match event.kind {
                Kind::Ran | Kind::RanAndBlocked if self.cut.contains(&(*thread, event.gil)) => {
                    return;
                }
                Kind::ReleaseVoluntary | Kind::ReleaseForced => {
                    self.cut.remove(&(*thread, event.gil));
                }
                _ => {}
            }
        }
        self.put(record.clone());
    }

    fn put(&mut self, record: Record) {
        if let Some(watching) = &mut self.watching {
            watching.see(&record);
        }
        let mut told = record;
        if let Record::ThreadEnded { thread, totals, .. } = &mut told
            && let Some(before) = self.totals.get(thread)
        {
            *totals = since(totals, before);
        }
        let original = match &told {
            Record::Gil { thread, event, .. } => Some((*thread, event.at_ns, event.gil)),
            _ => None,
        };
        if !self.ids.renumber(&mut told) {
            return;
        }
        let culprit = (self.take)(&told);
        if let Some(watching) = &mut self.watching
            && let Some((thread, at_ns, gil)) = original
            && watching.is_its_end(thread, at_ns, gil)
        {
            watching.culprit = culprit.and_then(|culprit| self.ids.original(culprit));
        }
    }
}

impl Ids {
    /// Gives a record the snapshot's own ids; whether it names only what is known.
    fn renumber(&mut self, record: &mut Record) -> bool {
        let next = |len: usize| u32::try_from(len).expect("ids have 32 bits");
        match record {
            Record::ProcessStarted(Process { process, .. }) => {
                let id = ProcessId(next(self.processes.len()));
                self.processes.insert(*process, id);
                *process = id;
                true
            }
            Record::ThreadStarted { thread, process, .. } => {
                let id = ThreadId(next(self.threads.len()));
                self.threads.insert(*thread, id);
                *thread = id;
                self.process(process)
            }
            Record::Gil { process, thread, .. } => self.process(process) && self.thread(thread),
            Record::Parked { thread, park } => {
                // One that has ended before the snapshot begins is not in it.
                if park.waker.as_mut().is_some_and(|waker| !self.thread(waker)) {
                    park.waker = None;
                }
                self.thread(thread)
            }
            Record::ThreadNamed { thread, .. }
            | Record::ThreadEnded { thread, .. }
            | Record::KernelCount { thread, .. }
            | Record::Stack { thread, .. }
            | Record::Stopped { thread, .. }
            | Record::NoStack { thread, .. }
            | Record::Look { thread, .. } => self.thread(thread),
            Record::ProcessEnded { process, .. }
            | Record::Throttled { process, .. }
            | Record::ParkStack { process, .. }
            | Record::GilSwitchedOn { process, .. }
            | Record::Libraries { process, .. } => self.process(process),
            Record::Snapshot { .. } | Record::Note { .. } => true,
        }
    }

    fn process(&self, id: &mut ProcessId) -> bool {
        self.processes.get(id).map(|new| *id = *new).is_some()
    }

    fn thread(&self, id: &mut ThreadId) -> bool {
        self.threads.get(id).map(|new| *id = *new).is_some()
    }

    /// The recording's own id of a thread of the snapshot.
    fn original(&self, id: ThreadId) -> Option<ThreadId> {
        self.threads.iter().find(|(_, new)| **new == id).map(|(original, _)| *original)
    }
}

/// Looks for what is to be told of a stall at once.
struct Watching {
    stall: Stall,
    pid: u32,
    /// Threads of the process: kernel thread ids and names.
    threads: HashMap<ThreadId, (u32, String)>,
    /// Who holds the GIL.
    holder: Option<ThreadId>,
    culprit: Option<ThreadId>,
    /// Stacks that were taken while it lasted.
    stacks: Vec<(ThreadId, Vec<Frame>)>,
}

impl Watching {
    fn new(stall: Stall) -> Self {
        let (threads, stacks) = (HashMap::new(), Vec::new());
        Self { stall, pid: 0, threads, holder: None, culprit: None, stacks }
    }

    fn see(&mut self, record: &Record) {
        let Stall { process: stalled, gil, since_ns, until_ns, .. } = self.stall;
        match record {
            Record::Gil { process, thread, event }
                if *process == stalled && event.gil == gil && event.at_ns <= until_ns =>
            {
                match event.kind {
                    Kind::Acquire if event.at_ns < until_ns => self.holder = Some(*thread),
                    Kind::ReleaseVoluntary | Kind::ReleaseForced if event.at_ns < until_ns => {
                        self.holder = None;
                    }
                    _ => {}
                }
            }
            Record::ProcessStarted(process) if process.process == stalled => self.pid = process.pid,
            Record::ThreadStarted { thread, process, tid, name, .. } if *process == stalled => {
                self.threads.insert(*thread, (*tid, name.clone()));
            }
            Record::ThreadNamed { thread, name } => {
                if let Some(known) = self.threads.get_mut(thread) {
                    known.1.clone_from(name);
                }
            }
            Record::Stack { thread, at_ns, frames, .. }
                if (since_ns..=until_ns).contains(at_ns) && self.threads.contains_key(thread) =>
            {
                self.stacks.push((*thread, frames.clone()));
            }
            _ => {}
        }
    }

    fn is_its_end(&self, thread: ThreadId, at_ns: u64, gil: u8) -> bool {
        let Stall { thread: stalled, until_ns, goes_on, .. } = self.stall;
        !goes_on && (stalled, until_ns, self.stall.gil) == (thread, at_ns, gil)
    }

    fn cause(self) -> Option<Cause> {
        let Stall { condition, thread, goes_on, .. } = self.stall;
        let (tid, name) = self.threads.get(&thread)?.clone();
        let holder = match condition.limit {
            Limit::Hold => Some(thread),
            // One that waits for long waits for whoever holds.
            Limit::Wait => self.culprit.or(self.holder),
        };
        let holder = holder.and_then(|holder| {
            let (tid, thread) = self.threads.get(&holder)?.clone();
            Some(Holder { tid, thread, line: self.line(holder) })
        });
        let length_ns = self.stall.length_ns();
        Some(Cause { condition, pid: self.pid, tid, thread: name, length_ns, goes_on, holder })
    }

    /// Where a thread was most often seen while it lasted.
    fn line(&self, holder: ThreadId) -> Option<String> {
        let mut seen: Vec<(String, u32)> = Vec::new();
        for (_, frames) in self.stacks.iter().filter(|(thread, _)| *thread == holder) {
            let users = Frame::innermost_of_the_user(frames);
            let Some(Frame { function, file, line }) = users.or(frames.first()) else { continue };
            let text = format!("{function} ({file}:{line})");
            match seen.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) => *count += 1,
                None => seen.push((text, 1)),
            }
        }
        let most = seen.iter().map(|(_, count)| *count).max()?;
        seen.into_iter().find(|(_, count)| *count == most).map(|(line, _)| line)
    }
}

/// What a thread has counted since.
fn since(now: &ThreadTotals, before: &ThreadTotals) -> ThreadTotals {
    ThreadTotals {
        waits: now.waits.saturating_sub(before.waits),
        waited_ns: now.waited_ns.saturating_sub(before.waited_ns),
        holds: now.holds.saturating_sub(before.holds),
        held_ns: now.held_ns.saturating_sub(before.held_ns),
        voluntary: now.voluntary.saturating_sub(before.voluntary),
        forced: now.forced.saturating_sub(before.forced),
        drop_requests: now.drop_requests.saturating_sub(before.drop_requests),
        cpu_ns: now.cpu_ns.saturating_sub(before.cpu_ns),
        voluntary_switches: now.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: now.involuntary_switches.saturating_sub(before.involuntary_switches),
        lost_events: now.lost_events.saturating_sub(before.lost_events),
    }
}
