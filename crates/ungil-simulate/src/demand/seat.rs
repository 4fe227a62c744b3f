//! One thread at one GIL, as the events of a trace come in.

use super::links::{Dependence, Follows, Link, OWN_NS, keeps_time};
use super::races::{self, Race};
use super::{Burst, Unanswered};
use crate::delays::Seen;
use crate::lengths::Lengths;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use ungil_core::schedule::{Policy, Settings};
use ungil_trace::record::{KernelCount, ThreadId};

/// A thread that lets go so soon after it was asked does so because of that.
const AT_ONCE_NS: u64 = 200_000;
/// One that lets go later may have come to a call that blocks: if it lets go by itself more often
/// than this in such a time.
const CALLS: f64 = 0.5;
/// What left a drop request unanswered for so many switch intervals, and for so long, certainly was
/// native code: each such call is in the recording, if a thread waited.
const NATIVE_INTERVALS: u64 = 2;
const NATIVE_NS: u64 = 10_000_000;
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
    /// How long before that it had been asked to, if it had.
    asked: Option<u64>,
    /// When another thread first got it after that, and which one.
    taken: Option<(u64, usize)>,
}

/// What lies between two releases, and the time away after it.
#[derive(Clone, Copy, Debug)]
struct Piece {
    burst: Burst,
    /// When it wanted the GIL for it.
    wanted_ns: u64,
    /// When it got it.
    began_ns: u64,
    /// How long before its end it was asked to let go, if it was.
    asked: Option<u64>,
    /// Who got it then.
    taker: Option<usize>,
}

/// What a thread did, once all is known.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) bursts: Vec<Burst>,
    /// Whether it mostly waits for other threads of the program.
    pub(super) follows: Follows,
    pub(super) unanswered: Vec<Unanswered>,
    /// When it wanted the GIL for each.
    pub(super) wanted_at_ns: Vec<u64>,
    /// When it got it.
    pub(super) began_at_ns: Vec<u64>,
    /// Of each piece, which burst it is of.
    pub(super) burst_of: Vec<u32>,
    /// How long it took to let go after it was asked, native code aside.
    pub(super) answers: Seen,
    /// How often it had the GIL for so long that others may ask for it.
    pub(super) computed: usize,
    pub(super) races: races::Seen,
    /// How long it took to go on after another had the GIL that it was forced to let go of, by
    /// that one.
    pub(super) switches: HashMap<Option<usize>, Seen>,
}

#[derive(Debug)]
pub(super) struct Seat {
    pub(super) thread: ThreadId,
    state: State,
    released: Option<Release>,
    /// For how long the holder ran, if it told.
    ran_ns: Option<(u64, bool)>,
    counts: VecDeque<KernelCount>,
    /// The burst that goes on, when the GIL was wanted for it, and when the thread got it.
    burst: Burst,
    wanted_ns: u64,
    began_ns: u64,
    /// When it was woken last, and came too late.
    awake_ns: u64,
    /// Whether the wait or hold that goes on began a burst.
    is_back: bool,
    pieces: Vec<Piece>,
    pub(super) begins_ns: Option<u64>,
    pub(super) waits: Lengths,
    pub(super) returns: Lengths,
    /// The race that it made possible when it let go last, if a thread waited.
    pub(super) race: Option<Race>,
    /// Races for which it was woken.
    pub(super) races: races::Seen,
    pub(super) held_ns: u64,
    pub(super) not_run_ns: u64,
    pub(super) dependence: Dependence,
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
            wanted_ns: 0,
            began_ns: 0,
            awake_ns: 0,
            is_back: true,
            pieces: Vec::new(),
            begins_ns: None,
            waits: Lengths::default(),
            returns: Lengths::default(),
            race: None,
            races: races::Seen::default(),
            held_ns: 0,
            not_run_ns: 0,
            dependence: Dependence::default(),
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
        *self = Self { state, begins_ns, wanted_ns: at_ns, ..Self::new(self.thread) };
    }

    /// Since when it waits, if it does.
    pub(super) fn waits_since_ns(&self) -> Option<u64> {
        match self.state {
            State::Waits { since_ns } => Some(since_ns),
            _ => None,
        }
    }

    /// It was woken, but too late: it sleeps again.
    pub(super) fn sleeps_again(&mut self, at_ns: u64) {
        self.awake_ns = at_ns;
    }

    /// For how long it has slept, if it waits.
    pub(super) fn slept_for_ns(&self, at_ns: u64) -> u64 {
        let since_ns = self.waits_since_ns().map_or(at_ns, |since_ns| since_ns.max(self.awake_ns));
        at_ns.saturating_sub(since_ns)
    }

    /// For how long it has had the GIL.
    pub(super) fn held_for_ns(&self, at_ns: u64) -> u64 {
        match self.state {
            State::Holds { since_ns } => at_ns.saturating_sub(since_ns),
            _ => 0,
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

    /// Another thread has got the GIL that this one let go of.
    pub(super) fn other_acquired(&mut self, at_ns: u64, taker: usize) {
        if let Some(released) = &mut self.released {
            released.taken.get_or_insert((at_ns, taker));
        }
    }

    /// Since when it is away, if it is and was not asked to be.
    pub(super) fn away_since_ns(&self) -> Option<u64> {
        let released = self.released.filter(|it| self.state == State::Away && it.asked.is_none());
        released.map(|released| released.at_ns)
    }

    /// Whether it lets go of the GIL only because it is asked, as far as can be told.
    pub(super) fn never_blocks(&self) -> bool {
        self.voluntary * 10 < self.forced
    }

    /// Whether it has the GIL, or has let go of it for less than `ns`.
    pub(super) fn had_it_within(&self, ns: u64, at_ns: u64) -> bool {
        self.holds() || self.released.is_some_and(|it| at_ns.saturating_sub(it.at_ns) <= ns)
    }

    /// Whether the hold that has just begun is the first one of a burst; which one.
    pub(super) fn began(&self) -> Option<usize> {
        self.is_back.then_some(self.pieces.len())
    }

    /// Whether it did not sleep after any of these uses.
    pub(super) fn is_awake_in(&self, uses: Range<u32>) -> bool {
        let pieces = self.pieces.get(uses.start as usize..uses.end as usize).unwrap_or_default();
        pieces.iter().all(|piece| piece.asked.is_some() || piece.burst.away_ns <= OWN_NS)
    }

    /// It wants the GIL, perhaps because of what another thread did.
    fn wants(&mut self, at_ns: u64, after: Option<Link>) {
        if self.state != State::Away {
            return; // An event was lost.
        }
        if self.begins_ns.is_none() {
            (self.begins_ns, self.wanted_ns) = (Some(at_ns), at_ns);
        }
        let Some(Release { at_ns: let_go_ns, asked, taken }) = self.released.take() else {
            self.is_back = true;
            return;
        };
        // Under CPython's own rules it sleeps until another has it.
        let (sleeps_until_ns, taker) = taken.filter(|_| asked.is_some()).unzip();
        let away_ns = at_ns.saturating_sub(sleeps_until_ns.unwrap_or(0).max(let_go_ns));
        let burst = Burst { away_ns, after, ..std::mem::take(&mut self.burst) };
        let wanted_ns = std::mem::replace(&mut self.wanted_ns, at_ns);
        let began_ns = self.began_ns;
        self.pieces.push(Piece { burst, wanted_ns, began_ns, asked, taker });
        self.is_back = asked.is_none_or(|asked_ns| !self.was_forced(asked_ns));
    }

    /// Whether it let go because it was asked, so long before.
    fn was_forced(&self, asked_ns: u64) -> bool {
        let per_ns = self.voluntary as f64 / self.held_ns.max(1) as f64;
        asked_ns <= AT_ONCE_NS || per_ns * (asked_ns as f64) < CALLS
    }

    pub(super) fn waits(&mut self, at_ns: u64, after: Option<Link>) {
        self.wants(at_ns, after);
        self.state = State::Waits { since_ns: at_ns };
    }

    /// It got the GIL.
    pub(super) fn acquires(&mut self, at_ns: u64, after: Option<Link>) {
        self.wants(at_ns, after);
        let waited_ns = self.waits_since_ns().map(|since_ns| at_ns.saturating_sub(since_ns));
        if let Some(ns) = waited_ns {
            self.waits.add(ns);
        }
        if self.is_back {
            self.returns.add(waited_ns.unwrap_or(0));
            self.began_ns = at_ns;
        }
        self.ran_ns = None;
        self.state = State::Holds { since_ns: at_ns };
    }

    /// The holder told until when its hold would have lasted if it had run all the time, and
    /// whether it blocked.
    pub(super) fn ran(&mut self, at_ns: u64, blocked: bool) {
        if let State::Holds { since_ns } = self.state {
            self.ran_ns = Some((at_ns.saturating_sub(since_ns), blocked));
        }
    }

    /// It let go of the GIL.
    pub(super) fn releases(&mut self, at_ns: u64, asked: Option<u64>, cold_ns: u64) {
        self.hold_ends(at_ns);
        self.burst.cold_ns = self.burst.cold_ns.saturating_add(cold_ns);
        if asked.is_some() {
            self.forced += 1;
        } else {
            self.voluntary += 1;
        }
        self.released = Some(Release { at_ns, asked, taken: None });
    }

    fn hold_ends(&mut self, at_ns: u64) {
        let State::Holds { since_ns } = self.state else { return };
        self.state = State::Away;
        let held_ns = at_ns.saturating_sub(since_ns);
        let not_run_ns = match self.ran_ns.take() {
            Some((ran_ns, false)) => held_ns.saturating_sub(ran_ns),
            // It slept with the GIL, which is its own doing, or was not run, which is not.
            Some((ran_ns, true)) => {
                self.delayed_ns(since_ns, at_ns).min(held_ns.saturating_sub(ran_ns))
            }
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
        let (away_ns, asked) = match self.released.take() {
            Some(Release { at_ns: let_go_ns, asked, .. }) => {
                (at_ns.saturating_sub(let_go_ns), asked)
            }
            None => (0, None),
        };
        if self.burst.held_ns > 0 || away_ns > 0 {
            let burst = Burst { away_ns, ..std::mem::take(&mut self.burst) };
            let (wanted_ns, began_ns) = (self.wanted_ns, self.began_ns);
            self.pieces.push(Piece { burst, wanted_ns, began_ns, asked, taker: None });
        }
    }

    /// All that it did, recorded under CPython's own rules or in a line of ungil.
    pub(super) fn settle(&mut self, settings: Settings) -> Settled {
        let is_stock = settings.policy == Policy::Stock;
        let native_ns = settings.quantum_ns.saturating_mul(NATIVE_INTERVALS).max(NATIVE_NS);
        let mut settled = Settled {
            bursts: Vec::new(),
            follows: Follows::Nobody,
            unanswered: Vec::new(),
            wanted_at_ns: Vec::new(),
            began_at_ns: Vec::new(),
            burst_of: Vec::new(),
            answers: Seen::default(),
            computed: 0,
            races: std::mem::take(&mut self.races),
            switches: HashMap::new(),
        };
        let mut goes_on = false;
        for Piece { burst, wanted_ns, began_ns, asked, taker } in std::mem::take(&mut self.pieces) {
            let own_ns = burst.held_ns;
            settled.computed += usize::from(own_ns > AT_ONCE_NS);
            if let Some(last) = settled.bursts.last_mut().filter(|_| goes_on) {
                last.held_ns = last.held_ns.saturating_add(burst.held_ns);
                last.not_run_ns = last.not_run_ns.saturating_add(burst.not_run_ns);
                last.cold_ns = last.cold_ns.saturating_add(burst.cold_ns);
                (last.away_ns, last.after) = (burst.away_ns, burst.after);
            } else {
                settled.bursts.push(burst);
                settled.wanted_at_ns.push(wanted_ns);
                settled.began_at_ns.push(began_ns);
            }
            let index = settled.bursts.len() - 1;
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            settled.burst_of.push(number);
            // While the kernel did not run it, it could not answer: that is in its hold already.
            let answered_ns = asked.map(|asked_ns| asked_ns.saturating_sub(burst.not_run_ns));
            match asked {
                Some(asked_ns) if answered_ns > Some(native_ns) => {
                    let to_ns = settled.bursts[index].held_ns;
                    // Behind those before, also where a trace says otherwise.
                    let from_ns = to_ns.saturating_sub(asked_ns.min(own_ns));
                    settled.unanswered.push(Unanswered { burst: number, from_ns, to_ns });
                }
                Some(asked_ns @ 1..) => {
                    if let Some(ns @ 1..) = answered_ns.filter(|ns| *ns > asked_ns / 2) {
                        settled.answers.add(ns);
                    }
                }
                // Nobody had asked, or the request was lost.
                Some(0) | None => {}
            }
            goes_on = asked.is_some_and(|asked_ns| self.was_forced(asked_ns));
            // One in a line of ungil waits from the release on, as its events say.
            if goes_on && is_stock {
                settled.switches.entry(taker).or_default().add(burst.away_ns);
            }
        }
        if !keeps_time(&settled.bursts) {
            settled.follows = self.dependence.follows();
        }
        settled
    }
}
