//! Which threads are told of after one reading of all stacks, and when each could be told of last.
//!
//! So many are told of at most. Those that could not be for longest come first: no thread is left
//! out for long, however many there are.

use std::collections::HashMap;

/// Threads of which is told after one reading, at most: those in long gaps, and in others.
const LONG: usize = 64;
const SHORT: usize = 16;

/// When threads could be told of last, by ident.
#[derive(Debug, Default)]
pub struct Chances {
    last: HashMap<u64, u64>,
}

/// One reading.
pub struct Round {
    before: HashMap<u64, u64>,
    now: HashMap<u64, u64>,
    at_ns: u64,
    new_ns: u64,
    since_ns: u64,
    told: [usize; 2],
}

impl Chances {
    /// The stacks were read at `at_ns`. A new thread is taken to have lived for `new_ns`; at
    /// `since_ns` there was nothing to tell of any.
    pub fn begin(&mut self, at_ns: u64, new_ns: u64, since_ns: u64) -> Round {
        let before = std::mem::take(&mut self.last);
        Round { before, now: HashMap::new(), at_ns, new_ns, since_ns, told: [0; 2] }
    }

    /// It is over; who has not been seen in it is gone.
    pub fn end(&mut self, round: Round) {
        self.last = round.now;
    }
}

impl Round {
    /// By this threads are in their turn, as what is read before what: of this ident.
    pub fn turn(&self, ident: u64) -> u64 {
        self.before.get(&ident).copied().unwrap_or(0)
    }

    /// It is the turn of the thread of this ident: how long it could not be told of, `None` if it is
    /// not to be told of now, unless it is in a long gap.
    pub fn take(&mut self, ident: u64) -> Option<u64> {
        let new_ns = self.at_ns.saturating_sub(self.new_ns);
        let last_ns = self.before.get(&ident).copied().unwrap_or(new_ns);
        let has_chance = self.told[0] < SHORT;
        self.now.insert(ident, if has_chance { self.at_ns } else { last_ns });
        has_chance.then(|| self.at_ns.saturating_sub(last_ns.max(self.since_ns)).max(1))
    }

    /// What a look at that thread stands for, as it is told; `None` if it is not to be told of.
    pub fn stands_for_ns(&mut self, unseen_ns: Option<u64>, is_long: bool) -> Option<u64> {
        let told = &mut self.told[usize::from(is_long)];
        let stands_for_ns = if is_long { (*told < LONG).then_some(0) } else { unseen_ns };
        *told += usize::from(stands_for_ns.is_some());
        stands_for_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The idents that are told of, each with what that stands for, if all threads are in gaps.
    fn told(chances: &mut Chances, at_ns: u64, threads: u64, is_long: bool) -> Vec<(u64, u64)> {
        let mut round = chances.begin(at_ns, 50, 0);
        let mut idents: Vec<u64> = (0..threads).collect();
        idents.sort_by_key(|&ident| round.turn(ident));
        let tell = |ident| {
            let unseen_ns = round.take(ident);
            round.stands_for_ns(unseen_ns, is_long).map(|ns| (ident, ns))
        };
        let told = idents.into_iter().filter_map(tell).collect();
        chances.end(round);
        told
    }

    #[test]
    fn threads_are_told_of_in_turn_and_stand_for_the_time_since_their_last() {
        let mut chances = Chances::default();
        let mut of = |at_ns| told(&mut chances, at_ns, 40, false);
        let all = |idents: std::ops::Range<u64>, ns| idents.map(move |ident| (ident, ns));
        assert_eq!(of(100), all(0..16, 50).collect::<Vec<_>>());
        assert_eq!(of(150), all(16..32, 100).collect::<Vec<_>>());
        assert_eq!(of(250), all(32..40, 200).chain(all(0..8, 150)).collect::<Vec<_>>());
        assert_eq!(of(300), all(8..16, 200).chain(all(16..24, 150)).collect::<Vec<_>>());
    }

    #[test]
    fn of_long_gaps_more_are_told_each_as_a_whole() {
        let mut chances = Chances::default();
        let told = told(&mut chances, 100, 100, true);
        assert_eq!(told, (0..64).map(|ident| (ident, 0)).collect::<Vec<_>>());
    }

    #[test]
    fn a_thread_of_which_all_was_known_meanwhile_stands_for_what_came_then() {
        let mut chances = Chances::default();
        let mut round = chances.begin(100, 50, 0);
        assert_eq!(round.take(1), Some(50), "it is new");
        chances.end(round);
        let mut round = chances.begin(1_000, 50, 980);
        assert_eq!(round.take(1), Some(20));
        chances.end(round);
        assert_eq!(chances.begin(2_000, 50, 980).take(1), Some(1_000));
    }
}
