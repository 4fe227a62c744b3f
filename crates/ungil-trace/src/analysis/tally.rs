//! What is counted of a trace, record by record: its processes, threads and GILs.

use super::ended::{Ended, Place};
use super::forked::own;
use super::judged::Least;
use super::process::{Chair, Process, Startup, SwitchedOn, Thread};
use super::samples::Sample;
use super::seat::Detail;
use super::sleeps::Sleeps;
use crate::dense::Dense;
use crate::record::{Doing, Frame, KernelCount, Park, ProcessId, Record, ThreadId, ThreadTotals};
use crate::report::{JudgedReport, OtherProcesses};
use crate::wall_clock::WallClock;
use ungil_core::Event;
use ungil_core::park::Cause;

/// Notes kept at most.
const NOTES: usize = 100;

/// What has been counted of a trace so far.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) blame_after_ns: u64,
    pub(super) processes: Dense<Process>,
    pub(super) threads: Dense<Thread>,
    /// Ended ones whose details are still kept.
    pub(super) ended_threads: Vec<ThreadId>,
    pub(super) ended_processes: Vec<ProcessId>,
    pub(super) other_processes: OtherProcesses,
    pub(super) lost_events: u64,
    pub(super) notes: Vec<String>,
    /// Start of the first process, and the latest time any record told.
    pub(super) started_ns: Option<u64>,
    pub(super) now_ns: u64,
    /// Before it nothing is counted, if it is not the start of the trace.
    pub(super) floor_ns: Option<u64>,
    /// How many threads wait, over all GILs.
    pub(super) waiting: usize,
    /// What day it is.
    pub(super) wall_clock: Option<WallClock>,
    /// From where on holds and waits are judged one by one, if they are.
    pub(super) judged: Option<Least>,
    /// What was judged of processes that are forgotten.
    pub(super) judged_before: JudgedReport,
    /// Whether what ends is told one by one,
    pub(super) tells_ended: bool,
    /// what ended in processes that are forgotten,
    pub(super) ended_before: Vec<(Place, Vec<Ended>)>,
    /// and each sleep.
    pub(super) sleeps: Option<Sleeps>,
}

impl Tally {
    /// Has counted nothing yet; see [`super::Analysis::new`].
    pub(super) fn new(blame_after_ns: u64) -> Self {
        Self {
            blame_after_ns,
            processes: Dense::new(),
            threads: Dense::new(),
            ended_threads: Vec::new(),
            ended_processes: Vec::new(),
            other_processes: OtherProcesses::default(),
            lost_events: 0,
            notes: Vec::new(),
            started_ns: None,
            now_ns: 0,
            floor_ns: None,
            waiting: 0,
            wall_clock: None,
            judged: None,
            judged_before: JudgedReport::default(),
            tells_ended: false,
            ended_before: Vec::new(),
            sleeps: None,
        }
    }

    /// What is known of what lives, with nothing counted yet: from `at_ns` on.
    pub(super) fn reopened(&self, at_ns: u64, detail: Detail) -> Self {
        Self {
            processes: self.processes.filter_map(|process| process.reopened(at_ns, detail)),
            threads: self.threads.filter_map(|thread| thread.reopened(at_ns)),
            started_ns: self.started_ns,
            now_ns: self.now_ns.max(at_ns),
            floor_ns: Some(at_ns),
            waiting: self.waiting,
            wall_clock: self.wall_clock,
            ..Self::new(self.blame_after_ns)
        }
    }

    /// Nothing of what was told so far counts: the trace begins at `at_ns`, with what stands then.
    fn begin(&mut self, at_ns: u64) {
        let (notes, tells_ended) = (std::mem::take(&mut self.notes), self.tells_ended);
        *self = Self { started_ns: Some(at_ns), notes, ..self.reopened(at_ns, Detail::All) };
        // How many threads they have had is not told.
        for process in self.processes.iter_mut() {
            process.startup = Startup::Before;
        }
        if tells_ended {
            self.tell_ended();
        }
    }

    /// Takes in one record; see [`super::Analysis::push`].
    #[inline]
    pub(super) fn push(&mut self, record: &Record) -> Option<ThreadId> {
        match record {
            Record::Gil { thread, event, .. } => return self.gil_event(*thread, *event),
            Record::Parked { thread, park } => self.parked(*thread, park),
            Record::ParkStack { process, number, frames } => {
                if let Some(process) = self.processes.get_mut(process.0) {
                    process.park_stacks.know(*number, own(frames));
                }
            }
            Record::GilSwitchedOn { process, library, frames, .. } => {
                if let Some(process) = self.processes.get_mut(process.0) {
                    let (library, frames) = (library.clone(), own(frames).to_vec());
                    process.switched_on = Some(SwitchedOn { library, frames });
                }
            }
            &Record::KernelCount { thread, count } => self.kernel_counted(thread, count),
            Record::Throttled { process, times, stopped_ns, at_ns } => {
                let is_early = self.is_early(*at_ns);
                if let Some(process) = self.processes.get_mut(process.0) {
                    process.throttled = Some((*times, *stopped_ns));
                    if is_early {
                        process.throttled_before = (*times, *stopped_ns);
                    }
                }
            }
            Record::Stopped { at_ns, .. } | Record::Look { at_ns, .. } if self.is_early(*at_ns) => {
            }
            Record::Stack { thread, at_ns, frames, native } => {
                self.sampled(*thread, *at_ns, &Sample::of(own(frames), native.as_deref()));
            }
            Record::Stopped { thread, at_ns, stood_ns } => {
                self.sampled(*thread, *at_ns, &Sample::Stop(*stood_ns));
                let process = self.threads.get(thread.0).map(|thread| thread.process);
                if let Some(process) = process.and_then(|it| self.processes.get_mut(it.0)) {
                    process.stops.add(*stood_ns);
                }
            }
            Record::Look { thread, at_ns, doing, frames } => {
                self.looked_at(*thread, *at_ns, doing, own(frames));
            }
            Record::NoStack { thread, at_ns, why } => {
                self.sampled(*thread, *at_ns, &Sample::Missing(why.clone()));
            }
            Record::Libraries { process, files, .. } => {
                if let Some(process) = self.processes.get_mut(process.0) {
                    process.libraries.clone_from(files);
                }
            }
            Record::ProcessStarted(process) => {
                let floor_ns = self.floor_ns.unwrap_or(0);
                let mut known = process.clone();
                known.at_ns = known.at_ns.max(floor_ns);
                let started = Process {
                    judged: self.judged,
                    tells_ended: self.tells_ended,
                    floor_ns,
                    ..Process::new(known)
                };
                if self.processes.insert(process.process.0, started) {
                    self.saw(process.at_ns);
                    let started_ns = self.started_ns.unwrap_or(u64::MAX);
                    self.started_ns = Some(started_ns.min(process.at_ns));
                }
            }
            Record::ProcessEnded { process, at_ns, totals } => {
                self.end_process(*process, *at_ns, *totals);
            }
            Record::ThreadStarted { thread, process, tid, at_ns, name } => {
                self.start_thread(*thread, Thread::new(*process, *tid, *at_ns, name.clone()));
            }
            Record::ThreadNamed { thread, name } => {
                if let Some(thread) = self.threads.get_mut(thread.0) {
                    thread.name.clone_from(name);
                }
            }
            Record::ThreadEnded { thread, at_ns, totals } => {
                self.end_thread(*thread, *at_ns, Some(totals));
            }
            &Record::Snapshot { from_ns } => self.begin(from_ns),
            Record::Note { text } => {
                if self.notes.len() < NOTES && !self.notes.contains(text) {
                    self.notes.push(text.clone());
                }
            }
        }
        None
    }

    /// Whether this was before counting began.
    pub(super) fn is_early(&self, at_ns: u64) -> bool {
        self.floor_ns.is_some_and(|floor_ns| at_ns < floor_ns)
    }

    pub(super) fn saw(&mut self, at_ns: u64) {
        self.now_ns = self.now_ns.max(at_ns);
    }

    #[inline]
    fn gil_event(&mut self, id: ThreadId, event: Event) -> Option<ThreadId> {
        let thread = self.threads.get_mut(id.0).filter(|thread| thread.ended_ns.is_none())?;
        let process = self.processes.get_mut(thread.process.0)?;
        let chair = thread.chair(event.gil).unwrap_or_else(|| process.seat(id, thread, event.gil));
        self.now_ns = self.now_ns.max(event.at_ns);
        let gil = &mut process.gils[chair.place];
        let waiting = gil.waiting();
        let culprit = gil.apply(chair.seat, event, self.blame_after_ns);
        self.waiting = self.waiting + gil.waiting() - waiting;
        culprit
    }

    /// Counts a park, or what of it lies in the time that counts. It may be told after its thread has
    /// ended.
    fn parked(&mut self, id: ThreadId, park: &Park) {
        let Some(thread) = self.threads.get(id.0) else { return };
        let Some(process) = self.processes.get_mut(thread.process.0) else { return };
        let floor_ns = self.floor_ns.unwrap_or(0);
        if park.until_ns >= floor_ns {
            self.now_ns = self.now_ns.max(park.until_ns);
            let off_gil = park.cause == Cause::OffGil;
            let parks = if off_gil { &mut process.locks } else { &mut process.parks };
            let since_ns = park.since_ns.max(floor_ns);
            if off_gil {
                process.behind_locks.slept(id, park, since_ns);
            }
            let counted = parks.get_or_insert_default().add(id, park, since_ns);
            if let (Some(sleeps), Some(counted)) = (&mut self.sleeps, counted) {
                sleeps.add(process.known.process, park, since_ns, counted);
            }
        }
    }

    /// Adds to what was sampled of the hold that a thread had at `at_ns`.
    fn sampled(&mut self, id: ThreadId, at_ns: u64, sample: &Sample) {
        let Some(thread) = self.threads.get(id.0) else { return };
        let Some(process) = self.processes.get_mut(thread.process.0) else { return };
        for chair in &thread.chairs {
            process.gils[chair.place].sampled(chair.seat, at_ns, sample);
        }
    }

    /// At the GIL that it used last: a thread is off that one.
    fn looked_at(&mut self, id: ThreadId, at_ns: u64, doing: &Doing, frames: &[Frame]) {
        let Some(thread) = self.threads.get(id.0) else { return };
        let Some(process) = self.processes.get_mut(thread.process.0) else { return };
        process.behind_locks.look(id, at_ns, doing, frames);
        let last = thread
            .chairs
            .iter()
            .max_by_key(|chair| process.gils[chair.place].seats[chair.seat as usize].last_ns);
        if let Some(chair) = last {
            process.gils[chair.place].looked_at(chair.seat, at_ns, doing, frames);
        }
    }

    fn kernel_counted(&mut self, id: ThreadId, count: KernelCount) {
        let Some(thread) = self.threads.get_mut(id.0) else { return };
        let Some(process) = self.processes.get_mut(thread.process.0) else { return };
        if thread.chairs.is_empty() {
            thread.counts.add(count);
        }
        for chair in &thread.chairs {
            process.gils[chair.place].count(chair.seat, count);
        }
    }

    fn start_thread(&mut self, id: ThreadId, thread: Thread) {
        let started_ns = thread.started_ns;
        let thread = Thread { started_ns: started_ns.max(self.floor_ns.unwrap_or(0)), ..thread };
        let Some(process) = self.processes.get_mut(thread.process.0) else { return };
        if process.ended_ns.is_none() && self.threads.insert(id.0, thread) {
            process.begin_thread(id, started_ns);
            self.saw(started_ns);
        }
    }

    /// Whether anything was counted that the thread did.
    fn has_counted(&self, id: ThreadId) -> bool {
        let floor_ns = self.floor_ns.unwrap_or(0);
        self.threads.get(id.0).is_some_and(|thread| {
            let Some(process) = self.processes.get(thread.process.0) else { return false };
            let seat = |chair: &Chair| &process.gils[chair.place].seats[chair.seat as usize];
            thread.chairs.iter().any(|chair| seat(chair).last_ns > floor_ns)
        })
    }

    /// A thread ended before counting began.
    pub(super) fn had_ended(&mut self, id: ThreadId) {
        // What is told once more at the end of its process is told of a thread that is known.
        let Some(thread) = self.threads.get(id.0).filter(|it| it.ended_ns.is_none()) else {
            return;
        };
        let Some(process) = self.processes.get_mut(thread.process.0) else { return };
        process.live.remove(&id);
        for chair in &thread.chairs {
            let gil = &mut process.gils[chair.place];
            let waiting = gil.waiting();
            gil.had_left(chair.seat);
            self.waiting = self.waiting + gil.waiting() - waiting;
        }
        self.threads.remove(id.0);
    }

    /// Ends a thread, or completes one that has ended with its process, by its own totals.
    pub(super) fn end_thread(&mut self, id: ThreadId, at_ns: u64, totals: Option<&ThreadTotals>) {
        if self.is_early(at_ns) && !self.has_counted(id) {
            return self.had_ended(id);
        }
        let Some(thread) = self.threads.get_mut(id.0) else { return };
        let Some(process) = self.processes.get_mut(thread.process.0) else { return };
        let newly_ended = thread.ended_ns.is_none();
        if newly_ended {
            thread.ended_ns = Some(at_ns.max(thread.started_ns));
            process.live.remove(&id);
            for chair in &thread.chairs {
                let gil = &mut process.gils[chair.place];
                let waiting = gil.waiting();
                gil.leave(chair.seat, at_ns, self.blame_after_ns);
                self.waiting = self.waiting + gil.waiting() - waiting;
            }
        }
        if let Some(totals) = totals.filter(|_| thread.totals.is_none()) {
            self.lost_events = self.lost_events.saturating_add(totals.lost_events);
            process.adopt(id, thread, totals);
        }
        if newly_ended {
            self.saw(at_ns);
            self.ended_threads.push(id);
            self.fold_threads();
        }
    }
}
