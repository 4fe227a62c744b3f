//! How long something took in the recording, to be drawn from in a simulation.

use crate::sample::Sample;
use fastrand::Rng;

/// As many are kept of one kind: the distribution of more would be no other.
const MOST_SEEN: usize = 50_000;
/// So many points of a distribution are kept.
const POINTS: usize = 512;

/// Delays as they are seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Sample<u64, MOST_SEEN>);

/// A distribution of delays in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Equally likely ones, ascending; never empty.
    points: Vec<u64>,
}

impl Seen {
    /// One took this long.
    pub(crate) fn add(&mut self, ns: u64) {
        self.0.add(ns);
    }

    /// All of several collections.
    pub(crate) fn merged<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        all.flat_map(|seen| seen.0.kept()).for_each(|ns| sum.add(*ns));
        sum
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.kept().len()
    }

    /// Their distribution; `None` if there are none.
    pub(crate) fn distribution(&self) -> Option<Delays> {
        let mut all = self.0.kept().to_vec();
        all.sort_unstable();
        let at = |point| all.get((2 * point + 1) * all.len() / (2 * POINTS)).copied();
        let points: Option<_> = (0..POINTS).map(at).collect();
        Some(Delays { points: points? })
    }
}

impl Delays {
    /// Always the same.
    pub fn fixed(ns: u64) -> Self {
        Self { points: vec![ns] }
    }

    /// All with `ns` less, but at least 0.
    pub(crate) fn less(mut self, ns: u64) -> Self {
        self.points.iter_mut().for_each(|point_ns| *point_ns = point_ns.saturating_sub(ns));
        self
    }

    /// One of them.
    pub(crate) fn draw(&self, random: &mut Rng) -> u64 {
        self.points[random.usize(..self.points.len())]
    }

    /// Half of them are shorter.
    #[cfg(test)]
    pub(crate) fn median_ns(&self) -> u64 {
        self.points[self.points.len() / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(all: impl IntoIterator<Item = u64>) -> Seen {
        let mut seen = Seen::default();
        all.into_iter().for_each(|ns| seen.add(ns));
        seen
    }

    #[test]
    fn what_was_seen_is_drawn_as_often_as_it_was_seen() {
        let delays = seen([10, 50, 10, 10]).distribution().unwrap();
        assert_eq!(delays.points.iter().filter(|ns| **ns == 10).count(), POINTS * 3 / 4);
        assert_eq!(delays.points.last(), Some(&50));
        assert_eq!(delays.median_ns(), 10);
    }

    #[test]
    fn nothing_is_known_where_none_was_seen() {
        assert_eq!(seen([]).distribution(), None);
    }
}
