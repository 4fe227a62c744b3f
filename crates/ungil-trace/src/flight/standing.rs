//! What stands at a moment of a recording: who lives, holds and waits.
//!
//! The records of what has been take it there, and it can be told as a few records of that moment,
//! which take an analysis there as well. Where events make no sense, because others were lost, it
//! follows the analysis (`analysis/gil.rs`).

use super::ids::ById;
use crate::record::{Doing, KernelCount, Process, ProcessId, Record, ThreadId};
use ungil_core::{Event, Kind};

/// Samples of a hold that goes on are kept up to this number, the latest ones.
const SAMPLES: usize = 16;
/// What the kernel had counted is told again if it is no older than this.
const COUNT_NS: u64 = 1_000_000_000;

/// What stands.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    processes: ById<ProcessId, Living>,
    threads: ById<ThreadId, Thread>,
    notes: Vec<String>,
}

#[derive(Clone, Debug)]
struct Living {
    known: Process,
    libraries: Vec<String>,
    /// What only a free-threaded interpreter has: stacks of parks, how its GIL was switched on.
    free_threaded: Vec<Record>,
    /// By number, in the order in which they were used first.
    gils: Vec<(u8, Gil)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Gil {
    holder: Option<ThreadId>,
    last_holder: Option<ThreadId>,
    /// Whether the holder was asked to let go.
    asked: bool,
}

#[derive(Clone, Debug)]
struct Thread {
    process: ProcessId,
    tid: u32,
    name: String,
    gils: Vec<(u8, Stands)>,
    count: Option<KernelCount>,
    /// Stacks of the hold that goes on, or why there are none; what it does off the GIL.
    samples: Vec<Record>,
}

/// How a thread stands at a GIL.
#[derive(Clone, Copy, Debug, Default)]
struct Stands {
    waits_ns: Option<u64>,
    holds_ns: Option<u64>,
    /// The last release since the last acquire, and whether it was voluntary.
    released: Option<(u64, bool)>,
}

/// A hold that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// Whose.
    pub thread: ThreadId,
    /// Of which GIL of its process.
    pub gil: u8,
    /// Since when.
    pub since_ns: u64,
}

impl Standing {
    /// Takes in one record.
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::Gil { process, thread, event } => self.event(*process, *thread, *event),
            Record::KernelCount { thread, count } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.count = Some(*count);
                }
            }
            Record::Stack { thread, .. } | Record::NoStack { thread, .. } => {
                let thread = self.threads.get_mut(thread);
                if let Some(thread) = thread.filter(|thread| thread.holds()) {
                    if thread.samples.len() == SAMPLES {
                        thread.samples.remove(0);
                    }
                    thread.samples.push(record.clone());
                }
            }
            Record::Look { thread, doing: Doing::Off { stands_for_ns: 0, .. }, .. } => {
                let thread = self.threads.get_mut(thread);
                if let Some(thread) = thread.filter(|thread| !thread.holds()) {
                    thread.samples = vec![record.clone()];
                }
            }
            Record::ParkStack { process, .. } | Record::GilSwitchedOn { process, .. } => {
                if let Some(process) = self.processes.get_mut(process) {
                    process.free_threaded.push(record.clone());
                }
            }
            Record::Libraries { process, files, .. } => {
                if let Some(process) = self.processes.get_mut(process) {
                    process.libraries.clone_from(files);
                }
            }
            Record::ProcessStarted(known) => {
                let (libraries, gils) = (Vec::new(), Vec::new());
                let free_threaded = Vec::new();
                let living = Living { known: known.clone(), libraries, free_threaded, gils };
                self.processes.insert(known.process, living);
            }
            Record::ProcessEnded { process, .. } => {
                self.processes.remove(process);
                self.threads.retain(|_, thread| thread.process != *process);
            }
            Record::ThreadStarted { thread, process, tid, name, .. } => {
                let thread_started = Thread {
                    process: *process,
                    tid: *tid,
                    name: name.clone(),
                    gils: Vec::new(),
                    count: None,
                    samples: Vec::new(),
                };
                self.threads.insert(*thread, thread_started);
            }
            Record::ThreadNamed { thread, name } => {
                if let Some(thread) = self.threads.get_mut(thread) {
                    thread.name.clone_from(name);
                }
            }
            Record::ThreadEnded { thread, .. } => self.end_thread(*thread),
            Record::Note { text } => {
                if !self.notes.contains(text) {
                    self.notes.push(text.clone());
                }
            }
            Record::Look { .. }
            | Record::Parked { .. }
            | Record::Throttled { .. }
            | Record::Snapshot { .. }
            | Record::Stopped { .. } => {}
        }
    }

    fn end_thread(&mut self, id: ThreadId) {
        let Some(thread) = self.threads.remove(&id) else { return };
        let Some(process) = self.processes.get_mut(&thread.process) else { return };
        for (_, gil) in process.gils.iter_mut().filter(|(_, gil)| gil.holder == Some(id)) {
            (gil.holder, gil.asked) = (None, false);
        }
    }

    #[inline]
    fn event(&mut self, process: ProcessId, id: ThreadId, event: Event) {
        let Event { at_ns, kind, gil: number, .. } = event;
        let Some(process) = self.processes.get_mut(&process) else { return };
        let gil = of_gil(&mut process.gils, number);
        let holder = gil.holder;
        match kind {
            Kind::Ran | Kind::RanAndBlocked => return,
            Kind::DropRequest => {
                gil.asked |= holder.is_some_and(|holder| holder != id);
                return;
            }
            Kind::Acquire => {
                *gil = Gil { holder: Some(id), last_holder: Some(id), asked: false };
            }
            Kind::ReleaseVoluntary | Kind::ReleaseForced => {
                (gil.holder, gil.asked) = (None, false);
            }
            Kind::Wait if holder == Some(id) => (gil.holder, gil.asked) = (None, false),
            Kind::Wait => {}
        }
        // Its release was lost.
        if kind != Kind::Wait
            && let Some(other) = holder.filter(|holder| *holder != id)
            && let Some(other) = self.threads.get_mut(&other)
        {
            other.doing(number).holds_ns = None;
            other.samples.clear();
        }
        let Some(thread) = self.threads.get_mut(&id) else { return };
        thread.samples.clear();
        let doing = thread.doing(number);
        match kind {
            Kind::Wait => (doing.waits_ns, doing.holds_ns) = (Some(at_ns), None),
            Kind::Acquire => {
                *doing = Stands { holds_ns: Some(at_ns), ..Stands::default() };
            }
            _ => {
                let released = Some((at_ns, kind == Kind::ReleaseVoluntary));
                *doing = Stands { released, ..Stands::default() };
            }
        }
    }

    /// Whether no process lives.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// The holds that go on, in the order of their threads.
    pub fn holds(&self) -> impl Iterator<Item = Holds> + '_ {
        sorted(&self.threads).into_iter().flat_map(|(thread, known)| {
            let holds = move |&(gil, doing): &(u8, Stands)| {
                doing.holds_ns.map(|since_ns| Holds { thread, gil, since_ns })
            };
            known.gils.iter().filter_map(holds)
        })
    }

    /// The name of a thread.
    pub fn name(&self, thread: ThreadId) -> &str {
        self.threads.get(&thread).map_or("", |thread| &thread.name)
    }

    /// Tells what stands, as if all of it had begun at `at_ns`. `throttled` is how often a CPU
    /// limit had stopped processes until then.
    pub fn tell<'a>(
        &'a self,
        at_ns: u64,
        throttled: impl Iterator<Item = &'a Record> + Clone,
        mut give: impl FnMut(Record),
    ) {
        for note in &self.notes {
            give(Record::Note { text: note.clone() });
        }
        let (processes, threads) = (sorted(&self.processes), sorted(&self.threads));
        for &(process, living) in &processes {
            give(Record::ProcessStarted(Process { at_ns, ..living.known.clone() }));
            for record in &living.free_threaded {
                give(record.clone());
            }
            if !living.libraries.is_empty() {
                give(Record::Libraries { process, at_ns, files: living.libraries.clone() });
            }
        }
        for record in throttled {
            if let Record::Throttled { process, times, stopped_ns, .. } = *record
                && self.processes.contains_key(&process)
            {
                give(Record::Throttled { process, at_ns, times, stopped_ns });
            }
        }
        for &(thread, known) in &threads {
            let &Thread { process, tid, ref name, .. } = known;
            give(Record::ThreadStarted { thread, process, tid, at_ns, name: name.clone() });
        }
        for &(process, living) in &processes {
            let threads = threads.iter().filter(|(_, thread)| thread.process == process);
            let threads: Vec<_> = threads.copied().collect();
            for &(number, ref gil) in &living.gils {
                tell_gil(&threads, number, gil, |thread, kind| {
                    let event = Event { at_ns, kind, gil: number, seq: 0 };
                    give(Record::Gil { process, thread, event });
                });
            }
        }
        for &(thread, known) in &threads {
            for record in &known.samples {
                give(at(record.clone(), at_ns));
            }
            if let Some(count) = known.count.filter(|it| it.at_ns.saturating_add(COUNT_NS) >= at_ns)
            {
                give(Record::KernelCount { thread, count });
            }
        }
    }
}

/// Tells how the threads of a process stand at one of its GILs.
fn tell_gil(
    threads: &[(ThreadId, &Thread)],
    number: u8,
    gil: &Gil,
    mut give: impl FnMut(ThreadId, Kind),
) {
    let doing = |&(id, thread): &(ThreadId, &Thread)| {
        let found = thread.gils.iter().find(|(it, _)| *it == number)?;
        Some((id, found.1))
    };
    let doing: Vec<_> = threads.iter().filter_map(doing).collect();
    if let Some(last) = gil.last_holder.filter(|last| threads.iter().any(|(id, _)| id == last)) {
        give(last, Kind::Acquire);
    }
    for &(thread, Stands { released, .. }) in &doing {
        if let Some((_, voluntary)) = released {
            give(thread, release(voluntary));
        }
    }
    if let Some(holder) = gil.holder
        && doing.iter().any(|(_, doing)| doing.released.is_some())
    {
        give(holder, Kind::Acquire);
    }
    let mut waits: Vec<_> =
        doing.iter().filter_map(|(id, doing)| Some((doing.waits_ns?, *id))).collect();
    waits.sort_unstable();
    for &(_, thread) in &waits {
        give(thread, Kind::Wait);
    }
    // Its wait may have been lost, or be over because the thread has ended.
    let others = threads.iter().map(|(id, _)| *id).filter(|id| Some(*id) != gil.holder);
    let asked_by = waits.first().map(|(_, waiter)| *waiter).or_else(|| others.min());
    if let Some(asker) = asked_by.filter(|_| gil.asked) {
        give(asker, Kind::DropRequest);
    }
}

impl Thread {
    fn doing(&mut self, gil: u8) -> &mut Stands {
        of_gil(&mut self.gils, gil)
    }

    fn holds(&self) -> bool {
        self.gils.iter().any(|(_, doing)| doing.holds_ns.is_some())
    }
}

/// What belongs to a GIL; nearly always there is one.
fn of_gil<T: Default>(all: &mut Vec<(u8, T)>, gil: u8) -> &mut T {
    let place = all.iter().position(|(number, _)| *number == gil);
    let place = place.unwrap_or_else(|| {
        all.push((gil, T::default()));
        all.len() - 1
    });
    &mut all[place].1
}

/// In the order of ids.
fn sorted<K: Ord + Copy, V>(all: &ById<K, V>) -> Vec<(K, &V)> {
    let mut all: Vec<_> = all.iter().map(|(id, it)| (*id, it)).collect();
    all.sort_by_key(|(id, _)| *id);
    all
}

const fn release(voluntary: bool) -> Kind {
    if voluntary { Kind::ReleaseVoluntary } else { Kind::ReleaseForced }
}

/// The sample with another time.
fn at(record: Record, now_ns: u64) -> Record {
    match record {
        Record::Stack { thread, frames, native, .. } => {
            Record::Stack { thread, at_ns: now_ns, frames, native }
        }
        Record::NoStack { thread, why, .. } => Record::NoStack { thread, at_ns: now_ns, why },
        Record::Look { thread, doing, frames, .. } => {
            Record::Look { thread, at_ns: now_ns, doing, frames }
        }
        other => other,
    }
}
