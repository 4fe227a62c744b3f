//! A round: items that were started at one level of concurrency, and how long they took.
//!
//! Rounds are compared with each other, so a round is a sample of whoever was started while its
//! level held. Its slow members are not waited for: that they are slow is known before they end.

mod place;

pub(super) use place::{LOOP_DELAY_NS, Place, UNKNOWN_NOISE};
use place::{SHARES, count, spots};

/// Members of a round at most. More would not make a comparison much better, only later.
pub(super) const MOST_MEMBERS: u32 = 256;

/// A round whose members hang is judged when so many times as long has gone by as it took until the
/// latest has come back.
const HANGS_AFTER: u64 = 4;

/// That needs one in so many to have come back: nothing can be said about fewer.
const BACK_ONE_IN: u32 = 4;

/// The share of the members that have been at their host before for a comparison with it.
const VISITED: f32 = 0.9;

/// A round that is going on. It never has more than [`MOST_MEMBERS`] members, for which there is room.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Zero before its first use.
    pub number: u32,
    /// The limit while it goes on.
    pub level: f32,
    opened: u64,
    /// How many have to be in flight for a start to count.
    from: f32,
    wanted: u32,
    /// Every how many starts one becomes a member.
    stride: u32,
    skipped: u32,
    entered: u32,
    levels: f32,
    last_start: u64,
    /// The share of the quickest that has to be known.
    share: f32,
    returned: u32,
    last_return: u64,
    /// Those of whom there is no latency, because they were refused.
    refused: u32,
    /// From when on nobody can come who belongs to the quickest; zero if that is not known yet.
    certain: u64,
    /// Square roots of latencies in ns.
    all: Vec<f32>,
    /// Square roots of latencies, relative to what is usual for the host.
    own: Vec<f32>,
}

/// How a round is sampled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    pub members: u32,
    pub stride: u32,
    /// Whether to judge by the quickest 30 % instead of 60 %: earlier, and not as well.
    pub early: bool,
    /// The share of the level that has to be in flight.
    pub from: f32,
}

impl Round {
    pub fn open(&mut self, number: u32, level: f32, sampling: Sampling, now: u64) {
        let (mut all, mut own) = (std::mem::take(&mut self.all), std::mem::take(&mut self.own));
        all.clear();
        own.clear();
        all.reserve(MOST_MEMBERS as usize);
        own.reserve(MOST_MEMBERS as usize);
        *self = Self {
            number,
            level,
            opened: now,
            from: level * sampling.from,
            wanted: sampling.members.min(MOST_MEMBERS),
            stride: sampling.stride.max(1),
            share: SHARES[1 + usize::from(sampling.early)],
            last_start: now,
            last_return: now,
            all,
            own,
            ..Self::default()
        };
    }

    /// An item starts while `in_flight` run, itself included. Says whether it becomes a member.
    pub fn enter(&mut self, in_flight: usize, now: u64) -> bool {
        if self.entered >= self.wanted || (in_flight as f32) < self.from {
            return false;
        }
        self.skipped += 1;
        if self.skipped < self.stride {
            return false;
        }
        self.skipped = 0;
        self.entered += 1;
        self.levels += in_flight as f32;
        self.last_start = now;
        true
    }

    /// No more members: the level has changed.
    pub fn close(&mut self) {
        self.wanted = self.entered;
    }

    /// A member has ended. `latency` is the square root of what it took, `own` is relative to what
    /// is usual for its host.
    pub fn returns(&mut self, now: u64, latency: Option<f32>, own: Option<f32>) {
        self.returned += 1;
        self.last_return = now;
        match latency {
            Some(latency) => self.all.push(latency),
            None => self.refused += 1,
        }
        self.own.extend(own);
    }

    /// Whether its quickest members are known, or the rest have kept everybody waiting.
    pub fn ready(&mut self, now: u64) -> bool {
        if self.entered < self.wanted {
            return false;
        }
        if self.returned == self.entered {
            return true;
        }
        if self.certain != 0 {
            return now >= self.certain;
        }
        let members = self.entered - self.refused;
        let kept = count(self.share, members);
        if kept > 0 && self.all.len() >= kept {
            // Who still runs when as much time has gone by since the last start is slower.
            let (_, slowest, _) = self.all.select_nth_unstable_by(kept - 1, f32::total_cmp);
            self.certain = self.last_start.saturating_add(nanoseconds(*slowest)).max(1);
            return now >= self.certain;
        }
        let so_far = self.last_return.saturating_sub(self.opened);
        self.returned * BACK_ONE_IN >= self.entered
            && now.saturating_sub(self.opened) >= so_far.saturating_mul(HANGS_AFTER)
    }

    /// When its quickest members are known, if that is a matter of time.
    pub fn due(&self) -> Option<u64> {
        (self.certain != 0).then_some(self.certain)
    }

    /// What it has found, if that is anything. `own_ns` is for how long an item may have waited for
    /// this process at a level.
    pub fn place(&mut self, own_ns: impl FnOnce(f32) -> f32) -> Option<Place> {
        let members = self.entered - self.refused;
        if self.all.is_empty() {
            return None;
        }
        if (self.own.len() as f32) < VISITED * self.all.len() as f32 {
            // Too many were at their host for the first time.
            self.own.clear();
        }
        let level = self.levels / self.entered as f32;
        Some(Place {
            level,
            own_ns: own_ns(level),
            weight: members as f32,
            all: spots(&mut self.all, members),
            own: spots(&mut self.own, members),
        })
    }
}

/// The time whose square root this is.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time is positive, and beyond the range the conversion saturates"
)]
fn nanoseconds(root: f32) -> u64 {
    (root * root) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Sampling = Sampling { members: 10, stride: 1, early: false, from: 0.0 };

    fn round(sampling: Sampling, starts: usize) -> Round {
        let mut round = Round::default();
        round.open(1, 10.0, sampling, 0);
        for running in 1..=starts {
            round.enter(running, 0);
        }
        round
    }

    #[test]
    fn a_round_is_judged_when_its_quickest_members_are_known() {
        let mut round = round(ALL, 10);
        for latency in [100.0_f32, 200.0, 300.0, 400.0, 500.0] {
            round.returns(500, Some(latency.sqrt()), None);
            assert!(!round.ready(500));
        }
        round.returns(600, Some(600.0_f32.sqrt()), None);
        // Six of ten, and the other four have run for as long as the slowest of them.
        assert!(round.ready(601));
        assert!(round.place(|_| 0.0).is_some_and(|place| place.weight > 9.9));
    }

    #[test]
    fn a_quick_member_that_started_late_is_waited_for() {
        let mut round = round(ALL, 9);
        for _ in 0..9 {
            round.returns(1_000, Some(1_000.0_f32.sqrt()), None);
        }
        round.enter(10, 900);
        assert!(!round.ready(1_100), "it may yet be one of the quickest");
        assert!(round.ready(1_901));
    }

    #[test]
    fn members_that_hang_do_not_hold_a_round_for_ever() {
        let mut round = round(ALL, 10);
        for _ in 0..3 {
            round.returns(1_000, Some(30.0), None);
        }
        assert!(!round.ready(3_999));
        assert!(round.ready(4_000));
        let place = round.place(|_| 0.0).expect("three have come back");
        assert_eq!(place.all.map(|spot| spot.is_some()), [false, false, true]);
    }

    #[test]
    fn a_round_of_which_all_were_refused_has_found_nothing() {
        let mut round = round(ALL, 10);
        (0..10).for_each(|_| round.returns(1, None, None));
        assert!(round.ready(1) && round.place(|_| 0.0).is_none());
    }

    #[test]
    fn only_starts_near_the_top_of_the_level_count() {
        let mut round = round(Sampling { from: 0.8, ..ALL }, 7);
        assert_eq!(round.entered, 0);
        assert!(round.enter(8, 0));
    }

    #[test]
    fn twice_the_latency_is_a_rise_of_ln_2_and_the_slowest_do_not_matter() {
        let place = |factor: f32| {
            let mut round = round(ALL, 10);
            for number in 1_u8..=10 {
                let slow = if number > 6 { 1e6 } else { 1.0 };
                let latency = factor * (1e9 + 1e7 * f32::from(number)) * slow;
                round.returns(1, Some(latency.sqrt()), None);
            }
            round.place(|_| 0.0).expect("all have come back")
        };
        let gap = place(2.0).since(&place(1.0));
        assert!((gap.rise - std::f32::consts::LN_2).abs() < 0.01, "{gap:?}");
    }

    #[test]
    fn hosts_that_differ_are_compared_with_themselves() {
        let place = |factor: f32| {
            let mut round = round(ALL, 10);
            for number in 1_u8..=10 {
                let usual = 1e4 * f32::from(number).powi(2);
                round.returns(1, Some(factor * usual), Some(factor));
            }
            round.place(|_| 0.0).expect("all have come back")
        };
        let gap = place(1.1).since(&place(1.0));
        assert!((gap.rise - 2.0 * 1.1_f32.ln()).abs() < 0.01 && gap.error < 0.05, "{gap:?}");
    }

    #[test]
    fn nothing_is_said_before_a_quarter_has_come_back() {
        let mut round = round(ALL, 10);
        (0..2).for_each(|_| round.returns(1_000, Some(30.0), None));
        assert!(!round.ready(u64::MAX));
    }

    #[test]
    fn a_round_that_is_wanted_early_is_judged_by_the_quickest_30_percent() {
        let mut round = round(Sampling { early: true, ..ALL }, 10);
        (0..2).for_each(|_| round.returns(900, Some(30.0), None));
        assert!(!round.ready(901));
        round.returns(900, Some(30.0), None);
        assert!(round.ready(901));
    }

    #[test]
    fn hosts_are_compared_with_themselves_if_nine_of_ten_are_known() {
        for (known, compared) in [(17, false), (18, true)] {
            let mut round = round(Sampling { members: 20, ..ALL }, 20);
            for number in 0..20 {
                round.returns(900, Some(30.0), (number < known).then_some(1.0));
            }
            let place = round.place(|_| 0.0).expect("all have come back");
            assert_eq!(place.own.iter().any(Option::is_some), compared, "{known}");
        }
    }

    #[test]
    fn a_round_has_256_members_at_most() {
        assert_eq!(round(Sampling { members: 1_000, ..ALL }, 1_000).entered, 256);
    }
}
