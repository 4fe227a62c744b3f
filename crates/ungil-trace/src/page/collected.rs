//! From the records of a trace to what its page tells, in one pass.

use super::gil::{Gil, Scale};
use super::stacks::{Look, Stacks};
use crate::analysis::{Analysis, Ended, Part, Place, ProcessSleeps, Span};
use crate::record::{Doing, Frame, ProcessId, Record, ThreadId};
use crate::report::Report;
use crate::wall_clock::WallClock;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Records between two looks at what has ended.
const RECORDS: usize = 8_192;
/// The narrowest bucket, about.
const WIDTH_NS: u64 = 100_000;
/// Rows of one GIL, and of all, beyond which buckets become wider.
const ROWS_OF_ONE: usize = 600_000;
const ROWS: usize = 1_200_000;
/// GILs beyond which the lightest of processes that have ended are forgotten,
const GILS: usize = 1_000;
/// and beyond which those of others are, too.
const LIVE_GILS: usize = 8_000;
/// The place of a GIL that is forgotten.
const FORGOTTEN: usize = usize::MAX;

/// What is known of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessFacts {
    pub(super) pid: u32,
    pub(super) started_ns: u64,
    has_ended: bool,
}

/// What is known of a thread.
#[derive(Clone, Debug)]
pub(super) struct ThreadFacts {
    pub(super) process: ProcessId,
    pub(super) tid: u32,
    pub(super) name: String,
    pub(super) started_ns: u64,
    pub(super) ended_ns: Option<u64>,
}

/// A look at a holder of which the same sample's stack may still come, with native frames.
#[derive(Debug)]
struct FairLook {
    thread: ThreadId,
    at_ns: u64,
    waiters: u32,
    frames: Vec<Frame>,
}

/// Counts the trace, or a part of it.
#[derive(Debug)]
enum Source {
    Whole(Box<Analysis>),
    Part(Box<Part>),
}

/// Everything that a trace tells.
#[derive(Debug)]
pub(super) struct Collected {
    source: Source,
    unit_ns: u64,
    /// Known from the first record on.
    scale: Option<Scale>,
    pub(super) span: Span,
    /// From and to when, if it is about a part.
    part: Option<(u64, u64)>,
    pub(super) processes: HashMap<ProcessId, ProcessFacts>,
    pub(super) threads: HashMap<ThreadId, ThreadFacts>,
    pub(super) gils: Vec<(Place, Gil)>,
    by_place: HashMap<Place, usize>,
    pub(super) stacks: Stacks,
    pub(super) lost_looks: u64,
    fair_look: Option<FairLook>,
    pub(super) forgotten_gils: usize,
    since: usize,
    most_bytes: usize,
}

impl Collected {
    /// Of the whole trace, or of a part of it. In a page of `most_bytes`.
    pub(super) fn new(
        blame_after_ns: u64,
        clock: Option<WallClock>,
        part: Option<(u64, u64)>,
        unit_ns: u64,
        most_bytes: usize,
    ) -> Self {
        let source = match part {
            None => {
                let analysis = Analysis::new(blame_after_ns).with_wall_clock(clock);
                Source::Whole(Box::new(analysis.telling_ended()))
            }
            Some((from_ns, to_ns)) => {
                let part = Part::new(blame_after_ns, clock, from_ns, to_ns);
                Source::Part(Box::new(part.telling_ended()))
            }
        };
        Self {
            source,
            unit_ns,
            scale: part.map(|(base_ns, _)| Scale { base_ns, unit_ns }),
            span: Span::default(),
            part,
            processes: HashMap::new(),
            threads: HashMap::new(),
            gils: Vec::new(),
            by_place: HashMap::new(),
            stacks: Stacks::new(),
            lost_looks: 0,
            fair_look: None,
            forgotten_gils: 0,
            since: 0,
            most_bytes,
        }
    }

    /// Takes in one record.
    pub(super) fn push(&mut self, record: &Record) {
        self.span.push(record);
        if !matches!(record, Record::Gil { .. }) {
            self.learn(record);
        }
        match &mut self.source {
            Source::Whole(analysis) => _ = analysis.push(record),
            Source::Part(part) => part.push(record),
        }
        self.since += 1;
        if self.since >= RECORDS {
            self.take_ended();
        }
    }

    /// The report of what was pushed, and the end of all that goes on.
    pub(super) fn finish(&mut self) -> Report {
        self.take_fair_look();
        let report = match &mut self.source {
            Source::Whole(analysis) => {
                let report = analysis.report();
                analysis.end();
                report
            }
            Source::Part(part) => {
                let report = part.report();
                part.end();
                report
            }
        };
        self.take_ended();
        self.gils.iter_mut().for_each(|(_, gil)| gil.finish());
        report
    }

    /// The sleeps that the report counts; see [`Analysis::sleeps`].
    pub(super) fn sleeps(&self) -> (Vec<(ProcessId, ProcessSleeps)>, u64) {
        match &self.source {
            Source::Whole(analysis) => analysis.sleeps(),
            Source::Part(part) => part.sleeps(),
        }
    }

    /// Where the page begins, and how its times are told.
    pub(super) fn scale(&self) -> Scale {
        let base_ns = self.span.started_ns();
        self.scale.unwrap_or(Scale { base_ns, unit_ns: self.unit_ns })
    }

    /// Where the page ends.
    pub(super) fn end_ns(&self) -> u64 {
        self.part.map_or(self.span.end_ns(), |(_, to_ns)| to_ns)
    }

    /// How the report says this moment, of something that began then: as the time since the start of
    /// the trace, or that at which counting began.
    pub(super) fn moments(&self, at_ns: u64) -> [u64; 2] {
        let started_ns = self.span.started_ns();
        let seconds = |ns: u64| (ns.saturating_sub(started_ns) as f64 / 1e9).to_bits();
        [seconds(at_ns), seconds(at_ns.max(self.scale().base_ns))]
    }

    fn learn(&mut self, record: &Record) {
        match record {
            Record::ProcessStarted(process) => {
                let (pid, started_ns) = (process.pid, process.at_ns);
                let facts = ProcessFacts { pid, started_ns, has_ended: false };
                self.processes.entry(process.process).or_insert(facts);
                let base_ns = self.span.started_ns();
                self.scale.get_or_insert(Scale { base_ns, unit_ns: self.unit_ns });
            }
            Record::ThreadStarted { thread, process, tid, at_ns, name } => {
                self.threads.entry(*thread).or_insert_with(|| ThreadFacts {
                    process: *process,
                    tid: *tid,
                    name: name.clone(),
                    started_ns: *at_ns,
                    ended_ns: None,
                });
            }
            Record::ThreadNamed { thread, name } => {
                if let Some(facts) = self.threads.get_mut(thread) {
                    facts.name.clone_from(name);
                }
            }
            Record::ThreadEnded { thread, at_ns, .. } => self.end_thread(*thread, *at_ns),
            Record::ProcessEnded { process, .. } => {
                if let Some(facts) = self.processes.get_mut(process) {
                    facts.has_ended = true;
                }
            }
            Record::Snapshot { from_ns } => {
                self.fair_look = None;
                self.take_ended();
                self.gils.clear();
                self.by_place.clear();
                if self.part.is_none() {
                    self.scale = Some(Scale { base_ns: *from_ns, unit_ns: self.unit_ns });
                }
            }
            Record::Look {
                thread,
                at_ns,
                doing: Doing::Held { waiters: waiters @ 1.. },
                frames,
            } => {
                self.take_fair_look();
                let (thread, at_ns, waiters) = (*thread, *at_ns, *waiters);
                let frames = frames.clone();
                self.fair_look = Some(FairLook { thread, at_ns, waiters, frames });
            }
            Record::Stack { thread, at_ns, frames, native } => {
                let waiters = self.waiters_of(*thread, *at_ns);
                match self.stacks.stack(native.as_deref().unwrap_or_default(), frames) {
                    Some(stack) => self.look(*thread, *at_ns, stack as u64 + 1, 0, waiters),
                    None => self.lost_looks += 1,
                }
            }
            Record::NoStack { thread, at_ns, why } => {
                let waiters = self.waiters_of(*thread, *at_ns);
                let why = self.stacks.why(why) as u64 + 1;
                self.look(*thread, *at_ns, 0, why, waiters);
            }
            _ => {}
        }
    }

    /// Of a thread that shares its lane nobody will ask.
    fn end_thread(&mut self, thread: ThreadId, at_ns: u64) {
        let Some(facts) = self.threads.get_mut(&thread) else { return };
        facts.ended_ns.get_or_insert(at_ns);
        let gil = self.by_place.get(&(facts.process, 0)).and_then(|&place| self.gils.get(place));
        if gil.is_some_and(|(_, gil)| gil.lanes.is_full && !gil.lanes.has(thread)) {
            self.threads.remove(&thread);
        }
    }

    /// How many threads waited when a stack was taken, if that was one of the looks that are taken at
    /// regular times; else 0.
    fn waiters_of(&mut self, thread: ThreadId, at_ns: u64) -> u32 {
        let look = self.fair_look.take_if(|it| (it.thread, it.at_ns) == (thread, at_ns));
        if look.is_none() {
            self.take_fair_look();
        }
        look.map_or(0, |look| look.waiters)
    }

    /// Of the look that came last no stack will come.
    fn take_fair_look(&mut self) {
        let Some(FairLook { thread, at_ns, waiters, frames }) = self.fair_look.take() else {
            return;
        };
        match self.stacks.stack(&[], &frames) {
            Some(stack) => self.look(thread, at_ns, stack as u64 + 1, 0, waiters),
            None => self.lost_looks += 1,
        }
    }

    /// Somebody looked at a hold of this thread. It may have ended, so that is taken in first.
    fn look(&mut self, thread: ThreadId, at_ns: u64, stack: u64, why: u64, waiters: u32) {
        if self.part.is_some_and(|(from_ns, to_ns)| !(from_ns..to_ns).contains(&at_ns)) {
            return;
        }
        self.take_ended();
        let Some(process) = self.threads.get(&thread).map(|facts| facts.process) else { return };
        let (scale, width) = self.measures();
        if !self.by_place.contains_key(&(process, 0))
            && !self.gils.iter().any(|((of, _), _)| *of == process)
        {
            // The hold that was looked at is the first thing that happens at its GIL.
            self.by_place.insert((process, 0), self.gils.len());
            self.gils.push(((process, 0), Gil::new(scale, width)));
        }
        for (_, gil) in self.gils.iter_mut().filter(|((of, _), _)| *of == process) {
            let at = gil.scale.at(at_ns);
            gil.looks.look(thread, Look { at, stack, why, waiters });
        }
    }

    fn measures(&self) -> (Scale, u64) {
        let scale = self.scale();
        (scale, (WIDTH_NS / scale.unit_ns).max(1).next_power_of_two())
    }

    fn take_ended(&mut self) {
        self.since = 0;
        let (scale, width) = self.measures();
        let Self { source, gils, by_place, .. } = self;
        let mut last: Option<(Place, usize)> = None;
        let mut take = |place: Place, ended: &Ended| {
            let index = match last {
                Some((known, index)) if known == place => index,
                _ => *by_place.entry(place).or_insert_with(|| {
                    gils.push((place, Gil::new(scale, width)));
                    gils.len() - 1
                }),
            };
            last = Some((place, index));
            if let Some((_, gil)) = gils.get_mut(index) {
                gil.take(ended);
            }
        };
        match source {
            Source::Whole(analysis) => analysis.take_ended(&mut take),
            Source::Part(part) => part.take_ended(&mut take),
        }
        self.keep_within_bounds();
    }

    /// Forgets GILs that matter least, if there are too many.
    fn forget_gils(&mut self) {
        let Self { gils, processes, by_place, .. } = self;
        let has_ended = |process: ProcessId| processes.get(&process).is_none_or(|it| it.has_ended);
        let mut order: Vec<_> = gils
            .iter()
            .enumerate()
            .map(|(index, (place, gil))| {
                let [held_ns, waited_ns] = gil.weight_ns;
                // Those that live come first: what they will do is not known.
                let weight = (!has_ended(place.0), waited_ns, held_ns);
                // Of those that are alike the first stay, as in the report.
                (Reverse(weight), *place, index)
            })
            .collect();
        order.sort_unstable();
        let live = order.iter().filter(|(Reverse((is_live, ..)), ..)| *is_live).count();
        let kept = (GILS / 2 + live).min(LIVE_GILS / 2);
        let mut is_kept = vec![false; gils.len()];
        for (.., index) in order.iter().take(kept) {
            is_kept[*index] = true;
        }
        self.forgotten_gils += gils.len().saturating_sub(kept);
        let mut is_kept = is_kept.into_iter();
        gils.retain(|(place, _)| {
            let stays = is_kept.next().unwrap_or(true);
            if !stays {
                by_place.insert(*place, FORGOTTEN);
            }
            stays
        });
        for (index, (place, _)) in gils.iter().enumerate() {
            by_place.insert(*place, index);
        }
    }

    /// How many GILs of processes that have ended there are.
    fn ended_gils(&self) -> usize {
        let processes = self.gils.iter().map(|((process, _), _)| process);
        let has_ended =
            |process: &&ProcessId| self.processes.get(process).is_none_or(|facts| facts.has_ended);
        processes.filter(has_ended).count()
    }

    /// Makes buckets wider, and leaves out holds, if there are too many.
    fn keep_within_bounds(&mut self) {
        let gils = self.gils.len();
        if gils > LIVE_GILS || (gils > GILS && self.ended_gils() > GILS) {
            self.forget_gils();
        }
        for (_, gil) in &mut self.gils {
            while gil.buckets.rows > ROWS_OF_ONE {
                let before = gil.buckets.rows;
                gil.buckets.coarsen();
                if gil.buckets.rows == before {
                    break;
                }
            }
        }
        while self.gils.iter().map(|(_, gil)| gil.buckets.rows).sum::<usize>() > ROWS {
            let most = self.gils.iter_mut().max_by_key(|(_, gil)| gil.buckets.rows);
            let Some((_, gil)) = most else { return };
            let before = gil.buckets.rows;
            gil.buckets.coarsen();
            if gil.buckets.rows == before {
                break;
            }
        }
        let held = |gils: &[(Place, Gil)]| -> usize {
            gils.iter().map(|(_, gil)| gil.holds.bytes()).sum()
        };
        // In base64 they are a third larger, so four times as much as can stay.
        if held(&self.gils) > self.most_bytes.saturating_mul(3) {
            super::bounded::leave_out(&mut self.gils, self.most_bytes.saturating_mul(2), |_, _| {
                false
            });
        }
    }
}
