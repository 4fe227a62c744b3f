//! How many are started before anything has come back.
//!
//! Until then nothing is known, and whatever is started meanwhile cannot be taken back. Ten thousand
//! hosts want to be started at once; a service for twenty does not. What tells them apart is where
//! the items say they go. If they do not say, they are taken to share a service.

use std::collections::HashMap;

use super::round::{MOST, Round, Sampling};
use super::search::RAMP;

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

/// The state of the limit while it opens.
#[derive(Debug)]
pub(super) struct Start {
    pub opening: Opening,
    /// Whether that was concluded from their groups.
    concluded: bool,
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
    pub fn ended(&mut self, group: Option<u64>) {
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
        let stride = ((level - round.level) / MOST as f32).ceil() as u32;
        let mut done = std::mem::take(round);
        done.close();
        self.rungs.push(done);
        round.open(number, level, Sampling { members: MOST, stride, early: true, from: 0.0 }, now);
    }
}
