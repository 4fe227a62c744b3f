//! Holds and waits of a trace, one by one, as they end.
//!
//! What makes no sense, because events were lost, is treated as the analysis does it
//! (`ungil_trace::analysis`, `gil.rs`), so that what is exported adds up to what is reported.

use crate::known::{End, KnownProcess, KnownThread};
use crate::running::{Running, Sample};
use crate::stacks::{StackId, Stacks};
use std::collections::HashMap;
use std::ops::Range;
use ungil_core::{Event, Kind};
use ungil_trace::analysis::Analysis;
use ungil_trace::record::{Doing, ProcessId, ProcessTotals, Record, ThreadId};

/// A hold of at least so long may have been sampled, and waits for samples that come late.
const SAMPLED_NS: u64 = 1_000_000;

/// A hold that has ended. Times are in ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Of which process.
    pub process: ProcessId,
    /// Which of its GILs.
    pub gil: u8,
    /// The holder.
    pub thread: ThreadId,
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// How.
    pub end: End,
    /// What others waited in it, summed.
    pub waited_ns: u64,
    /// The most threads that waited at a time.
    pub waiters_max: u64,
    /// The first drop request in it.
    pub asked_ns: Option<u64>,
    /// For how long the holder ran, if it told.
    pub cpu_ns: Option<u64>,
    /// What was sampled; the parts that the samples stand for add up to the hold.
    pub samples: Vec<Sample>,
    /// Whether it was sampled because it is long.
    pub is_long: bool,
}

/// A wait that has ended, likewise.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Of which process.
    pub process: ProcessId,
    /// For which of its GILs.
    pub gil: u8,
    /// Who waited.
    pub thread: ThreadId,
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Whether it ended with an acquire.
    pub acquired: bool,
    /// Who held longest meanwhile.
    pub culprit: Option<ThreadId>,
    /// How often the thread asked the holder to let go.
    pub drop_requests: u32,
}

/// What a holder did while others waited, in a hold that was too short to be kept for it.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The holder.
    pub thread: ThreadId,
    /// When.
    pub at_ns: u64,
    /// What it did.
    pub stack: StackId,
}

/// What ended.
#[derive(Clone, Debug)]
pub enum Stretch {
    /// A hold.
    Hold(Hold),
    /// A wait.
    Wait(Wait),
    /// Some hold, which was looked at.
    Look(Look),
}

#[derive(Debug, Default)]
struct Lock {
    holder: Option<Running>,
    waiting: HashMap<ThreadId, (u64, u32)>,
    /// When the last hold ended.
    ended_ns: u64,
}

/// Turns records into stretches.
#[derive(Debug)]
pub struct Stretches {
    /// Knows who held longest during a wait.
    analysis: Analysis,
    /// The stacks that samples name.
    pub stacks: Stacks,
    /// By [`ProcessId`].
    pub processes: HashMap<u32, KnownProcess>,
    /// By [`ThreadId`].
    pub threads: HashMap<u32, KnownThread>,
    locks: HashMap<(ProcessId, u8), Lock>,
    /// The thread that was looked at last because it was time to, and when.
    looked: Option<(ThreadId, u64)>,
    started_ns: Option<u64>,
    end_ns: u64,
    from_ns: u64,
    to_ns: u64,
}

impl Stretches {
    /// Of what happens from `from_ns` on and before `to_ns`; what crosses an edge is cut there.
    pub fn new(from_ns: u64, to_ns: u64) -> Self {
        Self {
            analysis: Analysis::without_findings(u64::MAX),
            stacks: Stacks::default(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            locks: HashMap::new(),
            looked: None,
            started_ns: None,
            end_ns: 0,
            from_ns,
            to_ns,
        }
    }

    /// When the first process started.
    pub fn started_ns(&self) -> u64 {
        self.started_ns.unwrap_or(self.end_ns)
    }

    /// From when to when it is exported.
    pub fn part_ns(&self) -> Range<u64> {
        self.from_ns..self.to_ns
    }

    /// The end of what is exported, or the latest time so far if that is earlier.
    pub fn end_ns(&self) -> u64 {
        self.end_ns.min(self.to_ns)
    }

    /// Takes in one record, and hands over what has ended with it.
    pub fn push(&mut self, record: &Record, take: &mut impl FnMut(&Self, Stretch)) {
        let culprit = self.analysis.push(record);
        match record {
            &Record::Gil { thread, event, .. } => self.event(thread, event, culprit, take),
            Record::ProcessStarted(process) => {
                let started_ns = self.started_ns.unwrap_or(u64::MAX).min(process.at_ns);
                self.started_ns = Some(started_ns);
                self.saw(process.at_ns);
                let known = KnownProcess {
                    process: process.clone(),
                    ended_ns: None,
                    totals: ProcessTotals::default(),
                    gils: Vec::new(),
                    threads: Vec::new(),
                };
                self.processes.entry(process.process.0).or_insert(known);
            }
            Record::ThreadStarted { thread, process, tid, at_ns, name } => {
                let Some(owner) = self.processes.get_mut(&process.0) else { return };
                if owner.ended_ns.is_some() || self.threads.contains_key(&thread.0) {
                    return;
                }
                owner.threads.push(*thread);
                let known = KnownThread {
                    process: *process,
                    tid: *tid,
                    name: name.clone(),
                    started_ns: *at_ns,
                    ended_ns: None,
                    totals: None,
                    last_ns: 0,
                    ended: None,
                };
                self.threads.insert(thread.0, known);
                self.saw(*at_ns);
            }
            Record::ThreadNamed { thread, name } => {
                if let Some(thread) = self.threads.get_mut(&thread.0) {
                    thread.name.clone_from(name);
                }
            }
            Record::ThreadEnded { thread, at_ns, totals } => {
                self.end_thread(*thread, *at_ns, take);
                if let Some(thread) = self.threads.get_mut(&thread.0) {
                    thread.totals.get_or_insert(*totals);
                }
            }
            Record::ProcessEnded { process, at_ns, totals } => {
                let Some(owner) = self.processes.get_mut(&process.0) else { return };
                if owner.ended_ns.is_some() {
                    return;
                }
                owner.ended_ns = Some(*at_ns);
                owner.totals = *totals;
                let threads = std::mem::take(&mut owner.threads);
                self.saw(*at_ns);
                for thread in threads {
                    self.end_thread(thread, *at_ns, take);
                }
            }
            &Record::Look { thread, at_ns, doing: Doing::Held { waiters: 1.. }, .. } => {
                self.looked = Some((thread, at_ns));
            }
            Record::Stack { thread, at_ns, frames, native } if !frames.is_empty() => {
                let stack = self.stacks.id(frames, native.as_deref());
                self.sampled(Look { thread: *thread, at_ns: *at_ns, stack }, take);
            }
            &Record::Snapshot { from_ns } => self.begin(from_ns),
            _ => {}
        }
    }

    /// Ends what goes on when the trace ends.
    pub fn finish(&mut self, take: &mut impl FnMut(&Self, Stretch)) {
        let end_ns = self.end_ns;
        let mut threads: Vec<_> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            let is_live = self.threads.get(&thread).is_some_and(|it| it.ended_ns.is_none());
            if is_live {
                self.leave(ThreadId(thread), end_ns, take);
            }
            self.settle(ThreadId(thread), take);
        }
    }

    fn saw(&mut self, at_ns: u64) {
        self.end_ns = self.end_ns.max(at_ns);
    }

    /// The trace begins at `from_ns`, with what stands then.
    fn begin(&mut self, from_ns: u64) {
        self.started_ns = Some(from_ns);
        self.from_ns = self.from_ns.max(from_ns);
    }

    fn event(
        &mut self,
        id: ThreadId,
        event: Event,
        culprit: Option<ThreadId>,
        take: &mut impl FnMut(&Self, Stretch),
    ) {
        let Some(thread) = self.threads.get_mut(&id.0).filter(|it| it.ended_ns.is_none()) else {
            return;
        };
        let Some(process) = self.processes.get_mut(&thread.process.0) else { return };
        let at_ns = event.at_ns.max(thread.last_ns);
        thread.last_ns = at_ns;
        self.end_ns = self.end_ns.max(event.at_ns);
        if !process.gils.contains(&event.gil) {
            process.gils.push(event.gil);
        }
        let key = (thread.process, event.gil);
        match event.kind {
            Kind::Wait => {
                if self.holder(key) == Some(id) {
                    self.lose_hold(key, take);
                }
                self.forget_wait(key, id, at_ns);
                let lock = self.locks.entry(key).or_default();
                lock.waiting.insert(id, (at_ns, 0));
                if let Some(hold) = &mut lock.holder {
                    hold.waits(at_ns);
                }
            }
            Kind::Acquire => {
                self.lose_hold(key, take);
                let lock = self.locks.entry(key).or_default();
                let wait = lock.waiting.remove(&id);
                let since_ns = at_ns.max(lock.ended_ns);
                lock.holder = Some(Running::new(id, since_ns, lock.waiting.len() as u64));
                if let Some((begin_ns, drop_requests)) = wait {
                    self.waited(key, id, [begin_ns, at_ns], true, culprit, drop_requests, take);
                }
            }
            Kind::DropRequest => {
                let lock = self.locks.entry(key).or_default();
                if let Some((_, drop_requests)) = lock.waiting.get_mut(&id) {
                    *drop_requests = drop_requests.saturating_add(1);
                }
                if let Some(hold) = lock.holder.as_mut().filter(|hold| hold.thread != id)
                    && hold.since_ns <= at_ns
                {
                    hold.asked_ns.get_or_insert(at_ns);
                }
            }
            Kind::ReleaseVoluntary | Kind::ReleaseForced => {
                match event.kind {
                    _ if self.holder(key) != Some(id) => self.lose_hold(key, take),
                    Kind::ReleaseForced => self.end_hold(key, at_ns, End::Forced, take),
                    _ => self.end_hold(key, at_ns, End::Voluntary, take),
                }
                self.forget_wait(key, id, at_ns);
            }
            Kind::Ran | Kind::RanAndBlocked => {
                if let Some(hold) = self.locks.get_mut(&key).and_then(|lock| lock.holder.as_mut())
                    && hold.thread == id
                {
                    hold.ran_until_ns = Some(event.at_ns);
                }
            }
        }
    }

    fn holder(&self, key: (ProcessId, u8)) -> Option<ThreadId> {
        Some(self.locks.get(&key)?.holder.as_ref()?.thread)
    }

    fn forget_wait(&mut self, key: (ProcessId, u8), id: ThreadId, at_ns: u64) {
        let Some(lock) = self.locks.get_mut(&key) else { return };
        if lock.waiting.remove(&id).is_some()
            && let Some(hold) = &mut lock.holder
        {
            hold.leaves(at_ns);
        }
    }

    /// Ends a hold whose release was lost: nobody knows when it was.
    fn lose_hold(&mut self, key: (ProcessId, u8), take: &mut impl FnMut(&Self, Stretch)) {
        self.end_hold(key, 0, End::Unseen, take);
    }

    fn end_hold(
        &mut self,
        key: (ProcessId, u8),
        at_ns: u64,
        end: End,
        take: &mut impl FnMut(&Self, Stretch),
    ) {
        let Some(lock) = self.locks.get_mut(&key) else { return };
        let Some(hold) = lock.holder.take() else { return };
        let end_ns = at_ns.max(hold.since_ns);
        lock.ended_ns = end_ns;
        if end_ns - hold.since_ns < SAMPLED_NS {
            self.held(key, &hold, end_ns, end, take);
            return;
        }
        let thread = hold.thread;
        self.settle(thread, take);
        if let Some(thread) = self.threads.get_mut(&thread.0) {
            thread.ended = Some(Box::new((key.1, hold, end_ns, end)));
        }
    }

    /// Hands over the hold of a thread that waited for late samples.
    fn settle(&mut self, thread: ThreadId, take: &mut impl FnMut(&Self, Stretch)) {
        let Some(known) = self.threads.get_mut(&thread.0) else { return };
        if let Some(ended) = known.ended.take() {
            let (gil, hold, end_ns, end) = *ended;
            let key = (known.process, gil);
            self.held(key, &hold, end_ns, end, take);
        }
    }

    fn held(
        &self,
        (process, gil): (ProcessId, u8),
        hold: &Running,
        end_ns: u64,
        end: End,
        take: &mut impl FnMut(&Self, Stretch),
    ) {
        let (begin_ns, until_ns) = (hold.since_ns.max(self.from_ns), end_ns.min(self.to_ns));
        if begin_ns > until_ns || hold.since_ns >= self.to_ns || end_ns < self.from_ns {
            return;
        }
        let mut samples = hold.samples(end_ns);
        let is_cut = begin_ns > hold.since_ns || until_ns < end_ns;
        if is_cut {
            samples.retain(|sample| (begin_ns..=until_ns).contains(&sample.at_ns));
        }
        let waited_ns = hold.waited_ns(until_ns).saturating_sub(hold.waited_ns(begin_ns));
        take(
            self,
            Stretch::Hold(Hold {
                process,
                gil,
                thread: hold.thread,
                begin_ns,
                end_ns: until_ns,
                end: if until_ns < end_ns { End::Unseen } else { end },
                waited_ns,
                waiters_max: hold.waiters_max,
                asked_ns: hold.asked_ns.filter(|asked_ns| (begin_ns..=until_ns).contains(asked_ns)),
                cpu_ns: hold
                    .ran_until_ns
                    .filter(|_| !is_cut)
                    .map(|ns| ns.saturating_sub(hold.since_ns).min(end_ns - hold.since_ns)),
                samples,
                is_long: hold.is_long,
            }),
        );
    }

    #[allow(clippy::too_many_arguments, reason = "they are one wait")]
    fn waited(
        &self,
        (process, gil): (ProcessId, u8),
        thread: ThreadId,
        [begin_ns, end_ns]: [u64; 2],
        acquired: bool,
        culprit: Option<ThreadId>,
        drop_requests: u32,
        take: &mut impl FnMut(&Self, Stretch),
    ) {
        if begin_ns >= self.to_ns || end_ns < self.from_ns {
            return;
        }
        take(
            self,
            Stretch::Wait(Wait {
                process,
                gil,
                thread,
                begin_ns: begin_ns.max(self.from_ns),
                end_ns: end_ns.min(self.to_ns),
                acquired: acquired && end_ns < self.to_ns,
                culprit,
                drop_requests,
            }),
        );
    }

    fn end_thread(&mut self, id: ThreadId, at_ns: u64, take: &mut impl FnMut(&Self, Stretch)) {
        let Some(thread) = self.threads.get_mut(&id.0).filter(|it| it.ended_ns.is_none()) else {
            return;
        };
        thread.ended_ns = Some(at_ns.max(thread.started_ns));
        if let Some(process) = self.processes.get_mut(&thread.process.0)
            && let Some(place) = process.threads.iter().position(|it| *it == id)
        {
            process.threads.swap_remove(place);
        }
        self.saw(at_ns);
        self.leave(id, at_ns, take);
    }

    /// Ends what a thread does, because it ends.
    fn leave(&mut self, id: ThreadId, at_ns: u64, take: &mut impl FnMut(&Self, Stretch)) {
        let Some(thread) = self.threads.get(&id.0) else { return };
        let at_ns = at_ns.max(thread.last_ns);
        let process = thread.process;
        let gils = self.processes.get(&process.0).map(|it| it.gils.clone()).unwrap_or_default();
        for gil in gils {
            let key = (process, gil);
            if self.holder(key) == Some(id) {
                self.end_hold(key, at_ns, End::Unseen, take);
            }
            let Some(lock) = self.locks.get_mut(&key) else { continue };
            let culprit = lock.holder.as_ref().map(|hold| hold.thread);
            if let Some((begin_ns, drop_requests)) = lock.waiting.remove(&id) {
                if let Some(hold) = &mut lock.holder {
                    hold.leaves(at_ns);
                }
                self.waited(key, id, [begin_ns, at_ns], false, culprit, drop_requests, take);
            }
        }
    }

    /// A stack was taken of a holder, either because its hold is long, or at a regular moment.
    fn sampled(&mut self, look: Look, take: &mut impl FnMut(&Self, Stretch)) {
        let Look { thread: id, at_ns, stack } = look;
        let is_regular = self.looked.take() == Some((id, at_ns));
        if let Some(hold) = self.hold_at(id, at_ns) {
            hold.sampled(at_ns, stack);
            hold.is_long |= !is_regular;
        } else if is_regular && (self.from_ns..self.to_ns).contains(&at_ns) {
            take(self, Stretch::Look(look));
        }
    }

    /// The hold of a thread at a moment, if it goes on or is kept.
    fn hold_at(&mut self, id: ThreadId, at_ns: u64) -> Option<&mut Running> {
        let thread = self.threads.get_mut(&id.0)?;
        let process = thread.process;
        let gils = self.processes.get(&process.0).map_or(&[][..], |it| &it.gils);
        let is_it = |hold: &Running| hold.thread == id && hold.since_ns <= at_ns;
        let goes_on = gils.iter().find(|gil| {
            let holder = self.locks.get(&(process, **gil)).and_then(|lock| lock.holder.as_ref());
            holder.is_some_and(is_it)
        });
        if let Some(gil) = goes_on {
            return self.locks.get_mut(&(process, *gil))?.holder.as_mut();
        }
        let (_, hold, end_ns, _) = thread.ended.as_deref_mut()?;
        (hold.since_ns..=*end_ns).contains(&at_ns).then_some(hold)
    }
}
