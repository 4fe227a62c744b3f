//! Holds and waits, one by one, by what was the holders' own doing.
//!
//! A test must fail because its code kept the GIL, and not because the machine was busy. So a hold
//! counts from when another thread asked for the GIL (before that nothing tells whether the holder
//! would have let go, unless it slept), and of that only its *own time*: the holder ran, or slept.
//! The rest is the kernel's, which wanted other programs to run. A wait is charged with the own time of the holds
//! that it waited for, and with nothing while nobody held.
//!
//! Where the kernel's part is only known within bounds, the greatest that it can have been counts:
//! an accusation is true.

use super::history::Past;
use super::hold::Hold;
use super::process::{Process, Thread};
use super::samples::Samples;
use super::seat::{Seat, Wait};
use super::tally::Tally;
use crate::dense::Dense;
use crate::record::ThreadId;
use crate::report::{JudgedHoldReport, JudgedReport, JudgedThreadReport, JudgedWaitReport};
use std::collections::BTreeMap;

/// As many holds and waits of a GIL are kept, at most, between two reports of them.
const MOST: usize = 100;

/// From where on holds and waits are told one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// Own time of a hold since somebody asked, in ns.
    pub hold_ns: u64,
    /// What a wait is charged with, in ns.
    pub wait_ns: u64,
}

/// A hold during which somebody asked for the GIL.
#[derive(Clone, Debug)]
struct JudgedHold {
    thread: ThreadId,
    start_ns: u64,
    end_ns: u64,
    /// [`Hold::kept_ns`]
    own_ns: u64,
    /// What the holder ran in all of it, if it told.
    cpu_ns: Option<u64>,
    samples: Samples,
}

/// A wait that has ended with an acquire.
#[derive(Clone, Copy, Debug)]
struct JudgedWait {
    thread: ThreadId,
    since_ns: u64,
    end_ns: u64,
    /// Own time of the holds that it waited for.
    own_ns: u64,
    /// Who held longest meanwhile.
    culprit: Option<ThreadId>,
}

/// What was judged at one GIL.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    least: Least,
    holds: Vec<JudgedHold>,
    holds_count: u64,
    waits: Vec<JudgedWait>,
    waits_count: u64,
    /// All waits of each thread, those that are not told one by one, too.
    threads: BTreeMap<ThreadId, Waited>,
    /// Threads that are forgotten.
    gone: BTreeMap<ThreadId, (u32, String)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Waited {
    count: u64,
    waited_ns: u64,
    own_ns: u64,
}

impl Judged {
    pub(super) const fn new(least: Least) -> Self {
        Self {
            least,
            holds: Vec::new(),
            holds_count: 0,
            waits: Vec::new(),
            waits_count: 0,
            threads: BTreeMap::new(),
            gone: BTreeMap::new(),
        }
    }

    /// Judges a hold of `seat` that has ended, and says in `past` how much of it was the holder's
    /// own.
    pub(super) fn end_hold(&mut self, hold: &Hold, past: &mut Past, seat: &Seat) {
        past.own_ns = hold.own_ns(&seat.counts, past.start_ns, past.end_ns);
        let kept_ns = hold.kept_ns(&seat.counts, *past);
        let Some((thread, own_ns)) = seat.thread.zip(kept_ns) else { return };
        if own_ns >= self.least.hold_ns {
            self.holds_count += 1;
            let judged = JudgedHold {
                thread,
                start_ns: past.start_ns,
                end_ns: past.end_ns,
                own_ns,
                cpu_ns: hold.cpu_ns(),
                samples: hold.samples.clone(),
            };
            keep(&mut self.holds, judged, |hold| hold.own_ns);
        }
    }

    /// Judges a wait of `seat` that ends at `end_ns`; `culprit` held longest meanwhile.
    pub(super) fn end_wait(
        &mut self,
        seat: &Seat,
        Wait { since_ns, own_ns, .. }: Wait,
        end_ns: u64,
        culprit: Option<ThreadId>,
    ) {
        let Some(thread) = seat.thread else { return };
        let waited = self.threads.entry(thread).or_default();
        waited.count += 1;
        waited.waited_ns = waited.waited_ns.saturating_add(end_ns - since_ns);
        waited.own_ns = waited.own_ns.saturating_add(own_ns);
        if own_ns >= self.least.wait_ns {
            self.waits_count += 1;
            let judged = JudgedWait { thread, since_ns, end_ns, own_ns, culprit };
            keep(&mut self.waits, judged, |wait| wait.own_ns);
        }
    }

    /// What was sampled of the hold of `thread` at `at_ns`, if it is kept.
    pub(super) fn samples_at(&mut self, thread: ThreadId, at_ns: u64) -> Option<&mut Samples> {
        let fits = |hold: &&mut JudgedHold| {
            hold.thread == thread && (hold.start_ns..=hold.end_ns).contains(&at_ns)
        };
        self.holds.iter_mut().find(fits).map(|hold| &mut hold.samples)
    }

    /// Notes who a thread was that is about to be forgotten.
    pub(super) fn fold(&mut self, thread: ThreadId, tid: u32, name: &str) {
        // Short-lived threads come without end, and nobody may ever ask what they waited.
        self.threads.remove(&thread);
        let waits = self.waits.iter().flat_map(|wait| [Some(wait.thread), wait.culprit]);
        let mut told = self.holds.iter().map(|hold| Some(hold.thread)).chain(waits);
        if told.any(|told| told == Some(thread)) {
            self.gone.insert(thread, (tid, name.to_owned()));
        }
    }
}

/// Adds one, and drops the least if there are too many.
fn keep<T>(all: &mut Vec<T>, one: T, weight: impl Fn(&T) -> u64) {
    if all.len() < MOST {
        all.push(one);
    } else if let Some(least) = all.iter_mut().min_by_key(|it| weight(it))
        && weight(least) < weight(&one)
    {
        *least = one;
    }
}

impl Tally {
    /// What was judged since the last call.
    pub(super) fn take_judged(&mut self) -> JudgedReport {
        let mut report = std::mem::take(&mut self.judged_before);
        let threads = &self.threads;
        for process in self.processes.iter_mut() {
            take(process, threads, &mut report);
        }
        report.holds.sort_by(|a, b| b.own_ms.total_cmp(&a.own_ms));
        report.waits.sort_by(|a, b| b.own_ms.total_cmp(&a.own_ms));
        report
    }
}

/// Moves what was judged in a process into `report`.
pub(super) fn take(process: &mut Process, threads: &Dense<Thread>, report: &mut JudgedReport) {
    let pid = process.known.pid;
    for gil in &mut process.gils {
        let Some(judged) = &mut gil.judged else { continue };
        let Judged { holds, holds_count, waits, waits_count, threads: waited, gone, .. } =
            std::mem::replace(judged, Judged::new(judged.least));
        let identity = |id: ThreadId| {
            let known = threads.get(id.0).map(|thread| (thread.tid, thread.name.clone()));
            known.or_else(|| gone.get(&id).cloned()).unwrap_or_default()
        };
        report.holds_count += holds_count;
        report.waits_count += waits_count;
        report.holds.extend(holds.into_iter().map(|hold| {
            let (tid, name) = identity(hold.thread);
            let stack = hold.samples.most_frequent();
            JudgedHoldReport {
                pid,
                gil: gil.number,
                tid,
                name,
                start_ns: hold.start_ns,
                end_ns: hold.end_ns,
                own_ms: milliseconds(hold.own_ns),
                cpu_ms: hold.cpu_ns.map(milliseconds),
                stack: stack.map_or_else(Vec::new, |stack| stack.lines.clone()),
                user_frame: stack.and_then(|stack| stack.user_line.clone()),
                stack_missing: hold.samples.why_none(true),
            }
        }));
        report.waits.extend(waits.into_iter().map(|wait| {
            let (tid, name) = identity(wait.thread);
            let culprit = wait.culprit.map(identity);
            let (culprit_tid, culprit_name) = culprit.unzip();
            JudgedWaitReport {
                pid,
                gil: gil.number,
                tid,
                name,
                start_ns: wait.since_ns,
                end_ns: wait.end_ns,
                own_ms: milliseconds(wait.own_ns),
                culprit_tid,
                culprit_name,
            }
        }));
        report.threads.extend(waited.into_iter().map(|(id, waited)| {
            let (tid, name) = identity(id);
            JudgedThreadReport {
                pid,
                gil: gil.number,
                tid,
                name,
                waits: waited.count,
                waited_ms: milliseconds(waited.waited_ns),
                own_ms: milliseconds(waited.own_ns),
            }
        }));
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}
