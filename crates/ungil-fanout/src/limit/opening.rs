//! How many are started before anything has come back.
//!
//! Until then nothing is known, and whatever is started meanwhile cannot be taken back. Ten thousand
//! hosts want to be started at once; a service for twenty does not. What tells them apart is where
//! the items say they go. If they do not say, they are taken to share a service.

use std::collections::HashMap;

use super::round::{MOST_MEMBERS, Round, Sampling};
use super::search::RAMP;
use super::{Adaptive, Reason, Release, whole};

/// What the items are taken for before anything has come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    /// Each goes to a host of its own: all that the ceiling allows are started at once, as long as
    /// no host is visited by more than a few.
    Hosts,
    /// They share one service: a few are started, and more when these have come back.
    Service,
    /// A service, until the first of them have named their groups: hosts or a service, as those are
    /// different or not.
    #[default]
    Unknown,
}

/// How many are started at first. A service that cannot stand these cannot stand anybody.
pub const FEW: usize = 16;

/// How many have to end before what an item takes of the processor is known.
const ENDED: u32 = 48;

/// What was seen of items that do nothing but sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slept {
    /// Nothing, or that they do something else.
    Unseen,
    /// The first of them all slept.
    Once,
    /// So did as many as may be started at once, when some had ended.
    Again,
}

/// What those took that have ended.
#[derive(Debug, Default)]
struct Ends {
    number: u32,
    took_ns: f32,
    /// How many had ended, and the processor time of the process, when the first had, and of late.
    /// What it took to start those that are started at once is in neither.
    first: Option<(u32, u64)>,
    latest: (u32, u64),
}

impl Ends {
    fn count(&mut self, latency_ns: f32, cpu_so_far: u64) {
        self.number += 1;
        self.took_ns += latency_ns;
        if cpu_so_far > self.latest.1 {
            // The processor's time is not read at each end.
            self.latest = (self.number, cpu_so_far);
            self.first.get_or_insert(self.latest);
        }
    }

    /// How long an item takes, ns.
    fn latency_ns(&self) -> f32 {
        self.took_ns / self.number.max(1) as f32
    }

    /// What an item takes of the processor, ns, if enough have ended.
    fn each_ns(&self) -> Option<f32> {
        let (number, cpu) = self.first?;
        let ended = self.latest.0 - number;
        (ended >= ENDED).then(|| (self.latest.1 - cpu) as f32 / ended as f32)
    }
}

/// The state of the limit while it opens.
#[derive(Debug)]
pub(super) struct Start {
    pub opening: Opening,
    /// Whether that was concluded from their groups.
    concluded: bool,
    slept: Slept,
    ends: Ends,
    groups: [Option<u64>; FEW],
    started: usize,
    /// How many run, of each group.
    visits: HashMap<u64, usize>,
    /// A round for each [`RAMP`] of the items in flight, lowest first, without the one that goes on.
    pub rungs: Vec<Round>,
    /// How many of them have been judged.
    pub judged: usize,
}

impl Start {
    pub fn new(opening: Opening) -> Self {
        Self {
            opening,
            concluded: false,
            slept: Slept::Unseen,
            ends: Ends::default(),
            groups: [None; FEW],
            started: 0,
            visits: HashMap::new(),
            rungs: Vec::new(),
            judged: 0,
        }
    }

    /// An item starts. Says what the items are taken for if that is known from now on.
    pub fn started(&mut self, group: Option<u64>) -> Option<Opening> {
        if let Some(group) = group.filter(|_| self.opening != Opening::Service) {
            *self.visits.entry(group).or_default() += 1;
        }
        if self.opening != Opening::Unknown || self.started == FEW {
            return None;
        }
        self.groups[self.started] = group;
        self.started += 1;
        if self.started < FEW || self.groups.contains(&None) {
            return None;
        }
        self.groups.sort_unstable();
        let different = 1 + self.groups.windows(2).filter(|pair| pair[0] != pair[1]).count();
        self.opening = if different * 2 > FEW { Opening::Hosts } else { Opening::Service };
        self.concluded = true;
        Some(self.opening)
    }

    /// An item has ended.
    pub fn ended(&mut self, group: Option<u64>, latency_ns: f32, cpu_so_far: u64) {
        self.ends.count(latency_ns, cpu_so_far);
        if let Some(visits) = group.and_then(|group| self.visits.get_mut(&group)) {
            *visits = visits.saturating_sub(1);
        }
    }

    /// Whether the items do not go to hosts of their own after all: this one has a few by now.
    pub fn is_shared(&self, group: Option<u64>) -> bool {
        let visits = group.and_then(|group| self.visits.get(&group));
        self.opening == Opening::Hosts
            && self.concluded
            && visits.is_some_and(|visits| *visits >= FEW)
    }

    /// The next rung after `round`, which has as many in flight as it is for.
    pub fn rung(&mut self, round: &mut Round, limit: usize, now: u64) {
        let number = round.number + 1;
        let level = (round.level * RAMP).min(limit as f32);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the size of a rung over that of a round"
        )]
        let stride = ((level - round.level) / MOST_MEMBERS as f32).ceil() as u32;
        let mut done = std::mem::take(round);
        done.close();
        self.rungs.push(done);
        round.open(
            number,
            level,
            Sampling { members: MOST_MEMBERS, stride, early: true, from: 0.0 },
            now,
        );
    }
}

/// While it opens.
impl Adaptive {
    /// An item starts.
    #[cold]
    pub(super) fn opens(&mut self, now: u64, group: Option<u64>) {
        let active = self.active() as f32;
        let Some(start) = &mut self.opening else { return };
        if start.started(group) == Some(Opening::Hosts) {
            self.slots = Release::at(self.at_once);
        }
        if start.is_shared(group) {
            // What runs may be as much as they can stand.
            start.opening = Opening::Service;
            self.slots = Release::at(self.in_flight);
        }
        let limit = self.slots.open;
        self.story.highest = self.story.highest.max(limit);
        if active > self.round.level {
            self.trouble.changed(limit as f32, now);
            start.rung(&mut self.round, limit, now);
        }
    }

    /// Whether somebody should look if those that run do nothing but sleep, and say
    /// [`asleep`](Self::asleep): nothing has ended yet of items that do not say where they go, and
    /// no more may start; or they slept then, and it is known by now what an item takes.
    pub fn is_in_the_dark(&self) -> bool {
        let Some(start) = &self.opening else { return false };
        match start.slept {
            Slept::Unseen => {
                let unknown = start.opening == Opening::Unknown;
                unknown && self.story.finished == 0 && self.is_full()
            }
            Slept::Once => self.slots.open < self.ceiling && start.ends.each_ns().is_some(),
            Slept::Again => false,
        }
    }

    /// All that run do nothing but sleep: they are asking nothing of any service. Said again when
    /// some have ended, it lets as many run as one processor can keep up with.
    pub fn asleep(&mut self, now: u64) {
        let Some(start) = &mut self.opening else { return };
        start.opening = Opening::Hosts;
        let limit = if start.slept == Slept::Unseen {
            start.slept = Slept::Once;
            self.at_once
        } else {
            start.slept = Slept::Again;
            self.processor.sleep = true;
            let each_ns = start.ends.each_ns().unwrap_or(f32::INFINITY);
            // Little's law. None more: a thread takes as long to start as some items.
            let enough = start.ends.latency_ns() / each_ns;
            whole(enough, self.ceiling).max(self.slots.open)
        };
        self.slots = Release::at(limit);
        self.story.highest = self.story.highest.max(self.slots.open);
        self.trouble.changed(self.slots.open as f32, now);
    }

    /// Judges what is known of the opening's rounds, lowest first.
    pub(super) fn judge_rungs(&mut self, now: u64) {
        while let Some(start) = &mut self.opening {
            let Some(rung) = start.rungs.get_mut(start.judged) else { return };
            if !rung.ready(now) {
                return;
            }
            start.judged += 1;
            let level = rung.level;
            let Some(place) = rung.place(|level| self.processor.own_ns(level)) else { continue };
            self.processor.round(true);
            self.story.level(level, place.latency_ns());
            let limit = self.slots.wanted;
            if let Some(knee) = self.search.rung(place, level) {
                self.opening = None;
                self.set(knee, Reason::Latency, now);
                self.next_round(Some(&place), now);
            } else if self.processor_cap() < limit as f32 {
                self.slots = Release::at(whole(self.processor_cap(), limit));
            }
        }
    }
}
