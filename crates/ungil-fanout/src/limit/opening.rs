//! How many are started before anything has come back.
//!
//! Until then nothing is known, and whatever is started meanwhile cannot be taken back. Ten thousand
//! hosts want to be started at once; a service for twenty does not. What tells them apart is where
//! the items say they go, and if they do not say, how soon something comes back.

use super::round::{MOST, Round, Sampling};
use super::search::RAMP;

/// What the items are taken for before anything has come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    /// Each goes to a host of its own: all that the ceiling allows are started at once.
    Hosts,
    /// They share one service: a few are started, and more when these have come back.
    Service,
    /// If the first of them name groups, hosts or a service, as the groups are different or not. If
    /// they do not, a few are started, and twice as many every millisecond until something
    /// comes back.
    #[default]
    Unknown,
}

/// How many are started at first. A service that cannot stand these cannot stand anybody.
pub(super) const FEW: usize = 16;

/// After how long the limit is doubled while nothing has come back. A service that answers within
/// a few of these is spared, and thousands of hosts are started within ten or so.
const DOUBLES_NS: u64 = 1_000_000;

/// The state of the limit while it opens.
#[derive(Debug)]
pub(super) struct Start {
    pub opening: Opening,
    groups: [Option<u64>; FEW],
    started: usize,
    /// When the limit is to be doubled, as long as it is.
    pub doubles: Option<u64>,
    /// A round for each [`RAMP`] of the items in flight, lowest first, without the one that goes on.
    pub rungs: Vec<Round>,
    /// How many of them have been judged.
    pub judged: usize,
}

impl Start {
    pub fn new(opening: Opening, now: u64) -> Self {
        let doubles = (opening == Opening::Unknown).then_some(now.saturating_add(DOUBLES_NS));
        Self { opening, groups: [None; FEW], started: 0, doubles, rungs: Vec::new(), judged: 0 }
    }

    /// An item starts. Says what the items are taken for if that is known from now on.
    pub fn started(&mut self, group: Option<u64>) -> Option<Opening> {
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
        self.doubles = None;
        Some(self.opening)
    }

    /// The limit at this time, if it is `limit`, that many run, and nothing has come back.
    pub fn doubled(&mut self, limit: usize, now: u64) -> usize {
        if self.doubles.is_none_or(|due| now < due) {
            return limit;
        }
        self.doubles = Some(now.saturating_add(DOUBLES_NS)).filter(|due| *due != u64::MAX);
        limit.saturating_mul(2)
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
