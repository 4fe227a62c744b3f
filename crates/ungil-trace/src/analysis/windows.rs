//! The worst ten seconds: stretches in which threads waited are analysed once more, by themselves,
//! so that idle time before and after hides nothing.
//!
//! * A *burst* begins when a thread begins to wait, at any GIL, and is over when for a second none
//!   has waited. Outside of bursts this costs nothing.
//! * *Windows* open at the beginning of a burst and every five seconds later, and last up to the
//!   last moment of the next ten seconds in which a thread waits. So two are open at a time, and
//!   of ten seconds that begin anywhere three quarters at least lie in one window.
//! * A window is a [`Tally`] that is opened with what lives at that moment.
//! * Of the windows that have passed, those are kept that are the worst for one finding at least,
//!   eight at most.

use super::incidents::{Key, incidents};
use super::seat::Detail;
use super::tally::Tally;
use crate::record::{ProcessId, Record, ThreadId};
use std::collections::VecDeque;
use ungil_core::{Event, Kind};

const SECOND_NS: u64 = 1_000_000_000;
/// A window is at most this long,
pub(super) const LENGTH_NS: u64 = 10 * SECOND_NS;
/// and the next one opens so much later.
const STEP_NS: u64 = LENGTH_NS / 2;
/// After so long without a wait a burst is over.
const QUIET_NS: u64 = SECOND_NS;
/// Records of a quiet moment that are held back until it is known whether the burst goes on. When
/// there are more, the window reaches to the last of them.
const HELD_BACK: usize = 16_384;
/// Windows that are kept.
const KEPT: usize = 8;

/// Windows that are open, and the worst that have passed.
#[derive(Debug, Default)]
pub(super) struct Windows {
    burst: Option<Burst>,
    kept: Vec<Kept>,
}

#[derive(Debug)]
struct Burst {
    /// Since when no thread has waited; `None` while one waits.
    quiet_since_ns: Option<u64>,
    /// Up to when the open windows count, if no thread waits.
    counted_ns: u64,
    /// When the next window opens.
    next_ns: u64,
    /// Oldest first.
    open: VecDeque<Open>,
    /// Records since the last wait.
    held_back: Vec<HeldBack>,
}

/// A record: the frequent one as small as it can be.
#[derive(Debug)]
enum HeldBack {
    Gil(ProcessId, ThreadId, Event),
    Other(Box<Record>),
}

#[derive(Debug)]
struct Open {
    start_ns: u64,
    tally: Box<Tally>,
    /// How many of the records that are held back were there before it opened.
    seen: usize,
}

/// A window that has passed.
#[derive(Debug)]
struct Kept {
    start_ns: u64,
    end_ns: u64,
    tally: Box<Tally>,
    costs: Vec<(Key, f64)>,
}

/// A window, open or past, for whoever asks what was wrong in it.
#[derive(Clone, Copy)]
pub(super) struct Passed<'a> {
    pub(super) tally: &'a Tally,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

impl Windows {
    /// `whole` is about to count `record`.
    #[inline]
    pub(super) fn before(&mut self, whole: &Tally, record: &Record) {
        let is_wait =
            matches!(record, Record::Gil { event, .. } if matches!(event.kind, Kind::Wait));
        if self.burst.is_some() || is_wait || whole.waiting > 0 {
            self.take(whole, record, is_wait);
        }
    }

    fn take(&mut self, whole: &Tally, record: &Record, is_wait: bool) {
        let now_ns = record.at_ns().unwrap_or(0).max(whole.now_ns);
        let is_over = |burst: &mut Burst| {
            burst.quiet_since_ns.is_some_and(|ns| now_ns.saturating_sub(ns) > QUIET_NS)
        };
        if let Some(burst) = self.burst.take_if(is_over) {
            burst.open.into_iter().for_each(|open| self.keep(whole, open, burst.counted_ns));
        }
        let mut burst = match self.burst.take() {
            Some(burst) => burst,
            None if whole.waiting > 0 => Burst::new(whole.now_ns),
            None if is_wait => Burst::new(now_ns),
            None => return,
        };
        self.advance(whole, &mut burst, now_ns);
        burst.take(record, is_wait, now_ns);
        self.burst = Some(burst);
    }

    /// Opens and closes windows up to now.
    fn advance(&mut self, whole: &Tally, burst: &mut Burst, now_ns: u64) {
        loop {
            let until_ns = burst.next_ns.min(now_ns);
            let ends = |open: &Open| open.start_ns.saturating_add(LENGTH_NS) <= until_ns;
            while burst.open.front().is_some_and(ends)
                && let Some(open) = burst.open.pop_front()
            {
                let end_ns = burst.end_ns(open.start_ns.saturating_add(LENGTH_NS));
                self.keep(whole, open, end_ns);
            }
            // The end of time is reached by corrupt traces only.
            if burst.next_ns > now_ns || burst.next_ns == u64::MAX {
                return;
            }
            let start_ns = burst.next_ns;
            burst.open.push_back(Open {
                start_ns,
                tally: Box::new(whole.reopened(start_ns, Detail::Verdict)),
                seen: burst.held_back.len(),
            });
            // Windows are all alike in a long time in which nothing happened but waiting.
            let steps = ((now_ns - start_ns) / STEP_NS).saturating_sub(3).max(1);
            burst.next_ns = start_ns.saturating_add(steps.saturating_mul(STEP_NS));
        }
    }

    /// `whole` has counted the record.
    #[inline]
    pub(super) fn after(&mut self, whole: &Tally) {
        if let Some(burst) = &mut self.burst {
            if whole.waiting > 0 {
                burst.quiet_since_ns = None;
            } else if burst.quiet_since_ns.is_none() {
                burst.quiet_since_ns = Some(whole.now_ns);
                burst.counted_ns = whole.now_ns;
            }
        }
    }

    /// Keeps a window that has passed if it is the worst for anything.
    fn keep(&mut self, whole: &Tally, open: Open, end_ns: u64) {
        let Open { start_ns, tally, .. } = open;
        if end_ns <= start_ns {
            return;
        }
        let found = incidents(&tally.processes_until(end_ns, whole));
        let mut costs: Vec<_> =
            found.into_iter().map(|incident| (incident.key, incident.cost_s)).collect();
        costs.retain(|(key, cost_s)| {
            let mut others = self.kept.iter().flat_map(|kept| &kept.costs);
            others.all(|other| other.0 != *key || other.1 < *cost_s)
        });
        if costs.is_empty() {
            return;
        }
        // For each window only that for which it is the worst is remembered.
        for kept in &mut self.kept {
            kept.costs.retain(|(key, _)| costs.iter().all(|(new, _)| new != key));
        }
        self.kept.retain(|kept| !kept.costs.is_empty());
        self.kept.push(Kept { start_ns, end_ns, tally, costs });
        if self.kept.len() > KEPT {
            let worst_s = |kept: &Kept| kept.costs.iter().map(|cost| cost.1).fold(0.0, f64::max);
            let least = (0..self.kept.len())
                .min_by(|&a, &b| worst_s(&self.kept[a]).total_cmp(&worst_s(&self.kept[b])));
            self.kept.remove(least.expect("there are more than a few"));
        }
    }

    /// All windows that may be the worst.
    pub(super) fn all(&self, whole: &Tally) -> Vec<Passed<'_>> {
        let kept = self.kept.iter().map(|kept| Passed {
            tally: &kept.tally,
            start_ns: kept.start_ns,
            end_ns: kept.end_ns,
        });
        let open = self.burst.iter().flat_map(|burst| {
            let end_ns = burst.end_ns(whole.now_ns);
            burst.open.iter().map(move |open| Passed {
                tally: &open.tally,
                start_ns: open.start_ns,
                end_ns: end_ns.min(open.start_ns.saturating_add(LENGTH_NS)),
            })
        });
        kept.chain(open).filter(|window| window.start_ns < window.end_ns).collect()
    }
}

impl Burst {
    fn new(start_ns: u64) -> Self {
        Self {
            quiet_since_ns: None,
            counted_ns: start_ns,
            next_ns: start_ns,
            open: VecDeque::new(),
            held_back: Vec::new(),
        }
    }

    /// Until when a window counts that would be over at `at_ns`.
    fn end_ns(&self, at_ns: u64) -> u64 {
        if self.quiet_since_ns.is_some() { at_ns.min(self.counted_ns) } else { at_ns }
    }

    /// Hands a record to the open windows, or holds it back while no thread waits.
    fn take(&mut self, record: &Record, is_wait: bool, now_ns: u64) {
        if self.quiet_since_ns.is_some() && !is_wait {
            self.held_back.push(match record {
                Record::Gil { process, thread, event } => HeldBack::Gil(*process, *thread, *event),
                other => HeldBack::Other(Box::new(other.clone())),
            });
            if self.held_back.len() >= HELD_BACK {
                self.catch_up();
                self.counted_ns = now_ns;
            }
            return;
        }
        if !self.held_back.is_empty() {
            self.catch_up();
        }
        for open in &mut self.open {
            open.tally.push(record);
        }
    }

    fn catch_up(&mut self) {
        for open in &mut self.open {
            for record in &self.held_back[std::mem::take(&mut open.seen)..] {
                match record {
                    &HeldBack::Gil(process, thread, event) => {
                        open.tally.push(&Record::Gil { process, thread, event })
                    }
                    HeldBack::Other(record) => open.tally.push(record),
                };
            }
        }
        self.held_back.clear();
    }
}
