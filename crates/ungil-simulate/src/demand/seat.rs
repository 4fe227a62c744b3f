//! One thread at one GIL, as the events of a trace come in.

use super::Burst;
use crate::delays::Seen;
use crate::lengths::Lengths;
use std::collections::VecDeque;
use ungil_trace::record::{KernelCount, ThreadId};

/// A thread that was forced to let go wants the GIL again as soon as another has it. If it comes
/// later than this, it let go for a call that blocked, at which somebody had just asked.
const COMES_BACK_NS: u64 = 500_000;
/// As many of the kernel's counts of a hold are kept.
const MOST_COUNTS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Without the GIL, and does not want it.
    Away,
    Waits {
        since_ns: u64,
    },
    Holds {
        since_ns: u64,
    },
}

/// How a thread let go of the GIL last.
#[derive(Clone, Copy, Debug)]
struct Release {
    at_ns: u64,
    /// Whether it had been asked to.
    asked: bool,
    /// When another thread first got it after that.
    taken_ns: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Seat {
    pub(super) thread: ThreadId,
    state: State,
    released: Option<Release>,
    /// For how long the holder ran, if it told.
    ran_ns: Option<(u64, bool)>,
    counts: VecDeque<KernelCount>,
    /// The burst that goes on.
    burst: Burst,
    /// Whether the wait or hold that goes on began a burst.
    is_back: bool,
    /// Each with whether it ended at a release that somebody had asked for.
    bursts: Vec<(Burst, bool)>,
    pub(super) begins_ns: Option<u64>,
    pub(super) waits: Lengths,
    pub(super) returns: Lengths,
    pub(super) answers: Seen,
    /// From a release to its acquire, where it was waiting by then.
    wake_ups: Seen,
    /// From when another had the GIL, which it had been forced to let go of, to its wanting it
    /// again: under CPython's own rules it sleeps until then. Those that may have been calls that
    /// blocked are apart.
    comes_back: [Seen; 2],
    /// In a line of ungil it waits from when it is forced to let go, which no event tells: what
    /// such waits last, and from the last release to their end.
    stands_back: [Seen; 2],
    pub(super) held_ns: u64,
    pub(super) not_run_ns: u64,
    voluntary: u64,
    forced: u64,
}

impl Seat {
    pub(super) fn new(thread: ThreadId) -> Self {
        Self {
            thread,
            state: State::Away,
            released: None,
            ran_ns: None,
            counts: VecDeque::new(),
            burst: Burst::default(),
            is_back: true,
            bursts: Vec::new(),
            begins_ns: None,
            waits: Lengths::default(),
            returns: Lengths::default(),
            answers: Seen::default(),
            wake_ups: Seen::default(),
            comes_back: Default::default(),
            stands_back: Default::default(),
            held_ns: 0,
            not_run_ns: 0,
            voluntary: 0,
            forced: 0,
        }
    }

    /// Nothing that was told so far counts; what goes on began at `at_ns`.
    pub(super) fn begin_anew(&mut self, at_ns: u64) {
        let state = match self.state {
            State::Away => State::Away,
            State::Waits { .. } => State::Waits { since_ns: at_ns },
            State::Holds { .. } => State::Holds { since_ns: at_ns },
        };
        let begins_ns = (state != State::Away).then_some(at_ns);
        *self = Self { state, begins_ns, ..Self::new(self.thread) };
    }

    /// Since when it waits, if it does.
    pub(super) fn waits_since_ns(&self) -> Option<u64> {
        match self.state {
            State::Waits { since_ns } => Some(since_ns),
            _ => None,
        }
    }

    pub(super) fn holds(&self) -> bool {
        matches!(self.state, State::Holds { .. })
    }

    pub(super) fn counted(&mut self, count: KernelCount) {
        if self.counts.len() == MOST_COUNTS {
            self.counts.pop_front();
        }
        self.counts.push_back(count);
    }

    /// Another thread has got the GIL.
    pub(super) fn other_acquired(&mut self, at_ns: u64) {
        if let Some(released) = &mut self.released {
            released.taken_ns.get_or_insert(at_ns);
        }
    }

    /// It wants the GIL.
    pub(super) fn wants(&mut self, at_ns: u64) {
        if self.state != State::Away {
            return; // An event was lost.
        }
        self.begins_ns.get_or_insert(at_ns);
        let Some(Release { at_ns: let_go_ns, asked, taken_ns }) = self.released.take() else {
            self.is_back = true;
            return;
        };
        let since_ns = taken_ns.unwrap_or(let_go_ns).max(let_go_ns);
        if asked {
            let lag_ns = at_ns.saturating_sub(since_ns);
            self.comes_back[usize::from(lag_ns > COMES_BACK_NS)].whole(lag_ns);
        }
        if asked && at_ns.saturating_sub(since_ns) <= COMES_BACK_NS {
            self.is_back = false;
            return;
        }
        let from_ns = if asked { since_ns } else { let_go_ns };
        let away_ns = at_ns.saturating_sub(from_ns);
        self.bursts.push((Burst { away_ns, ..std::mem::take(&mut self.burst) }, asked));
        self.is_back = true;
    }

    pub(super) fn waits(&mut self, at_ns: u64) {
        self.wants(at_ns);
        self.state = State::Waits { since_ns: at_ns };
    }

    /// It got the GIL, of which another let go at `freed_ns` if one did.
    pub(super) fn acquires(&mut self, at_ns: u64, freed_ns: Option<u64>) {
        if let (State::Away, Some(released), Some(freed_ns)) = (self.state, self.released, freed_ns)
            && released.asked
            && released.taken_ns.is_some()
        {
            self.stands_back[0].whole(at_ns.saturating_sub(released.at_ns));
            self.stands_back[1].whole(at_ns.saturating_sub(freed_ns));
        }
        self.wants(at_ns);
        let waited_ns = self.waits_since_ns().map(|since_ns| at_ns.saturating_sub(since_ns));
        if let Some(waited_ns) = waited_ns {
            self.waits.add(waited_ns);
        }
        if self.is_back {
            self.returns.add(waited_ns.unwrap_or(0));
        }
        self.ran_ns = None;
        self.state = State::Holds { since_ns: at_ns };
    }

    /// It had the GIL so long after the release that woke it, or another had it first.
    pub(super) fn woke(&mut self, ns: u64, is_whole: bool) {
        if is_whole { self.wake_ups.whole(ns) } else { self.wake_ups.at_least(ns) }
    }

    /// The holder told until when its hold would have lasted if it had run all the time, and
    /// whether it blocked.
    pub(super) fn ran(&mut self, at_ns: u64, blocked: bool) {
        if let State::Holds { since_ns } = self.state {
            self.ran_ns = Some((at_ns.saturating_sub(since_ns), blocked));
        }
    }

    /// It let go of the GIL.
    pub(super) fn releases(&mut self, at_ns: u64, asked: bool) {
        self.hold_ends(at_ns);
        if asked {
            self.forced += 1;
        } else {
            self.voluntary += 1;
        }
        self.released = Some(Release { at_ns, asked, taken_ns: None });
    }

    fn hold_ends(&mut self, at_ns: u64) {
        let State::Holds { since_ns } = self.state else { return };
        self.state = State::Away;
        let held_ns = at_ns.saturating_sub(since_ns);
        let not_run_ns = match self.ran_ns.take() {
            Some((ran_ns, false)) => held_ns.saturating_sub(ran_ns),
            // It slept with the GIL, which is its own doing, or was not run, which is not.
            Some((ran_ns, true)) => self.delayed_ns(since_ns, at_ns).min(held_ns.saturating_sub(ran_ns)),
            None => self.delayed_ns(since_ns, at_ns).min(held_ns),
        };
        self.counts.clear();
        self.burst.held_ns = self.burst.held_ns.saturating_add(held_ns);
        self.burst.not_run_ns = self.burst.not_run_ns.saturating_add(not_run_ns);
        self.held_ns = self.held_ns.saturating_add(held_ns);
        self.not_run_ns = self.not_run_ns.saturating_add(not_run_ns);
    }

    /// For how long the kernel did not run it in the hold, at least, by its counts.
    fn delayed_ns(&self, since_ns: u64, at_ns: u64) -> u64 {
        let mut inside =
            self.counts.iter().filter(|count| (since_ns..=at_ns).contains(&count.at_ns));
        let Some(first) = inside.next() else { return 0 };
        let last = inside.next_back().unwrap_or(first);
        last.delayed_ns.saturating_sub(first.delayed_ns)
    }

    /// It has ended, or the recording has.
    pub(super) fn ends(&mut self, at_ns: u64) {
        match self.state {
            State::Holds { .. } => self.hold_ends(at_ns),
            State::Waits { since_ns } => {
                let waited_ns = at_ns.saturating_sub(since_ns);
                self.waits.add(waited_ns);
                if self.is_back {
                    self.returns.add(waited_ns);
                }
            }
            State::Away => {}
        }
        self.state = State::Away;
        let away_ns = match self.released.take() {
            Some(Release { at_ns: let_go_ns, .. }) => at_ns.saturating_sub(let_go_ns),
            None => 0,
        };
        if self.burst.held_ns > 0 || away_ns > 0 {
            self.bursts.push((Burst { away_ns, ..std::mem::take(&mut self.burst) }, false));
        }
    }

    fn never_blocks(&self) -> bool {
        self.voluntary * 10 < self.forced
    }

    /// How long it took to wake up, recorded under CPython's own rules or in a line of ungil.
    pub(super) fn wake_ups(&mut self, is_stock: bool) -> Seen {
        let mut all = std::mem::take(&mut self.wake_ups);
        let never_blocks = self.never_blocks();
        let [soon, late] = std::mem::take(&mut self.comes_back);
        if is_stock {
            all.merge(&soon);
            if never_blocks {
                all.merge(&late);
            }
        } else if never_blocks {
            let [waits, wake_ups] = std::mem::take(&mut self.stands_back);
            all.merge(&wake_ups);
            waits.whole_ones().for_each(|ns| self.waits.add(ns));
        }
        all
    }

    /// All that it did. A thread that hardly ever lets go by itself was only late where it seemed
    /// to have blocked after it was asked.
    pub(super) fn bursts(&mut self) -> Vec<Burst> {
        let all = std::mem::take(&mut self.bursts);
        let never_blocks = self.never_blocks();
        let mut bursts: Vec<Burst> = Vec::with_capacity(all.len());
        let mut goes_on = false;
        for (burst, asked) in all {
            match bursts.last_mut().filter(|_| goes_on) {
                Some(last) => {
                    last.held_ns = last.held_ns.saturating_add(burst.held_ns);
                    last.not_run_ns = last.not_run_ns.saturating_add(burst.not_run_ns);
                    last.away_ns = burst.away_ns;
                }
                None => bursts.push(burst),
            }
            goes_on = asked && never_blocks;
        }
        bursts
    }
}
