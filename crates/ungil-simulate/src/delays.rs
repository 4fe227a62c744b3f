//! How long something took in the recording, to be drawn from in a simulation.

use fastrand::Rng;

/// As many are kept of one kind: the distribution of more would be no other.
const MOST_SEEN: usize = 50_000;
/// So many points of a distribution are kept.
const POINTS: usize = 512;
/// Where most are not seen to their end, no more is told of the longest ones than so many tell.
const LEAST_LEFT: usize = 10;

/// Delays as they are seen, some of them only in part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Each with whether it was seen to its end.
    all: Vec<(u64, bool)>,
}

/// A distribution of delays in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Equally likely ones, ascending; never empty.
    points: Vec<u64>,
}

impl Seen {
    /// One took this long.
    pub(crate) fn whole(&mut self, ns: u64) {
        self.add(ns, true);
    }

    /// One took longer than this; nobody knows how long.
    pub(crate) fn at_least(&mut self, ns: u64) {
        self.add(ns, false);
    }

    fn add(&mut self, ns: u64, is_whole: bool) {
        if self.all.len() == MOST_SEEN {
            // Every second one goes, so that what is left is of the whole run.
            let mut stays = false;
            self.all.retain(|_| {
                stays = !stays;
                stays
            });
        }
        self.all.push((ns, is_whole));
    }

    /// Adds all of another collection.
    fn merge(&mut self, other: &Self) {
        other.all.iter().for_each(|&(ns, is_whole)| self.add(ns, is_whole));
    }

    /// All of several collections.
    pub(crate) fn merged<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        all.fold(Self::default(), |mut sum, seen| {
            sum.merge(seen);
            sum
        })
    }

    /// Those that were seen to their end.
    pub(crate) fn whole_ones(&self) -> impl Iterator<Item = u64> + '_ {
        self.all.iter().filter(|(_, is_whole)| *is_whole).map(|(ns, _)| *ns)
    }

    /// How many were seen to their end.
    pub(crate) fn count(&self) -> usize {
        self.whole_ones().count()
    }

    /// All with `ns` less, but at least 0.
    pub(crate) fn less(mut self, ns: u64) -> Self {
        self.all.iter_mut().for_each(|(seen_ns, _)| *seen_ns = seen_ns.saturating_sub(ns));
        self
    }

    /// Their distribution by Kaplan and Meier's estimate (1958), which takes those that were not
    /// seen to their end for what they are. `None` if no delay was.
    pub(crate) fn distribution(self) -> Option<Delays> {
        self.distribution_with(None)
    }

    /// The same; those of which no end is known have `rest_ns`, or the longest that was seen.
    fn distribution_with(mut self, rest_ns: Option<u64>) -> Option<Delays> {
        // Of equal ones those that ended come first: the others went on.
        self.all.sort_unstable_by_key(|&(ns, is_whole)| (ns, !is_whole));
        let count = self.all.len();
        // What the last few tell that are left is chance.
        let told = count - LEAST_LEFT.min(count / LEAST_LEFT / 2);
        let mut left = 1.0;
        let mut steps = Vec::new();
        for (index, &(ns, is_whole)) in self.all.iter().enumerate() {
            if index >= told && !steps.is_empty() {
                break;
            }
            if is_whole {
                left *= 1.0 - 1.0 / (count - index) as f64;
                steps.push((ns, 1.0 - left));
            }
        }
        let rest_ns = rest_ns.unwrap_or(steps.last()?.0);
        let mut step = steps.iter().peekable();
        let points = (0..POINTS).map(|point| {
            let part = (point as f64 + 0.5) / POINTS as f64;
            while step.next_if(|(_, until)| *until < part).is_some() {}
            step.peek().map_or(rest_ns, |(ns, _)| *ns)
        });
        Some(Delays { points: points.collect() })
    }

    /// The same, where all that is not over after `ns` is [`Delays::NEVER`].
    pub(crate) fn distribution_until(mut self, ns: u64) -> Option<Delays> {
        for (seen_ns, is_whole) in self.all.iter_mut().filter(|(seen_ns, _)| *seen_ns > ns) {
            (*seen_ns, *is_whole) = (ns, false);
        }
        self.distribution_with(Some(Delays::NEVER))
    }

    /// Half of those that were seen to their end are shorter.
    pub(crate) fn median_ns(&self) -> Option<u64> {
        let mut whole: Vec<_> = self.whole_ones().collect();
        let middle = whole.len() / 2;
        (!whole.is_empty()).then(|| *whole.select_nth_unstable(middle).1)
    }
}

impl Delays {
    /// What does not end by itself.
    pub(crate) const NEVER: u64 = u64::MAX;

    /// Always the same.
    pub fn fixed(ns: u64) -> Self {
        Self { points: vec![ns] }
    }

    /// One of them.
    pub(crate) fn draw(&self, random: &mut Rng) -> u64 {
        self.points[random.usize(..self.points.len())]
    }

    /// Half of them are shorter.
    pub fn median_ns(&self) -> u64 {
        self.points[self.points.len() / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(whole: &[u64], at_least: &[u64]) -> Seen {
        let mut seen = Seen::default();
        for ns in whole {
            seen.whole(*ns);
        }
        for ns in at_least {
            seen.at_least(*ns);
        }
        seen
    }

    #[test]
    fn what_was_seen_whole_is_drawn_as_often_as_it_was_seen() {
        let delays = seen(&[10, 10, 10, 50], &[]).distribution().unwrap();
        assert_eq!(delays.points.iter().filter(|ns| **ns == 10).count(), POINTS * 3 / 4);
        assert_eq!(delays.points.last(), Some(&50));
    }

    #[test]
    fn what_was_cut_short_makes_the_longer_ones_more_likely() {
        let delays = seen(&[10, 100], &[20, 20]).distribution().unwrap();
        assert_eq!(delays.points.iter().filter(|ns| **ns == 10).count(), POINTS / 4);
        assert_eq!(delays.median_ns(), 100);
    }

    #[test]
    fn what_lasts_longer_than_asked_for_never_ends() {
        let delays = seen(&[10, 10, 20, 500], &[15]).distribution_until(50).unwrap();
        let never = delays.points.iter().filter(|ns| **ns == Delays::NEVER).count();
        // Of the two that lasted for longer than 15 one took 20, and the other more than 50. Three in
        // five had not ended by 15, as one that was not seen to its end was no sooner than the rest.
        assert_eq!(delays.points[0], 10);
        assert!((POINTS * 3 / 10..=POINTS * 3 / 10 + 1).contains(&never), "{never}");
    }

    #[test]
    fn nothing_is_known_where_none_was_seen_to_its_end() {
        assert_eq!(seen(&[], &[20]).distribution(), None);
    }

    #[test]
    fn of_very_many_enough_are_kept() {
        let mut seen = Seen::default();
        (0..3 * MOST_SEEN as u64).for_each(|ns| seen.whole(ns));
        assert!((MOST_SEEN / 2..=MOST_SEEN).contains(&seen.count()));
    }
}
