//! How long the gaps were that were sampled.
//!
//! Events tell the length of each gap, samples what a thread did in some of them. So a sample stands
//! for its part of all gaps of about the same length. Those of another length do not count: a gap of
//! a few milliseconds is mostly over before it can be sampled, and what the samples show is what the
//! thread did in longer ones.

/// Classes of lengths: below 1 ms, below 2 ms, and so on; the last one is of 17 s and longer.
const CLASSES: usize = 16;
/// Below so many bits a length is in the first class.
const FIRST_BITS: u32 = 20;

/// The gaps of a thread that were not told of as a whole, by their length.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortGaps {
    classes: [Class; CLASSES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    total_ns: u64,
    seen: Seen,
    /// Gaps that were told of as a whole.
    told: u64,
}

/// Samples of gaps of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    samples: u64,
    /// The times before each of them in which the thread was not looked at.
    unseen_ns: u64,
}

/// Samples of one thing that a thread did.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampled {
    /// How many gaps were sampled that were not told of as a whole.
    pub(super) samples: u64,
    /// By class, of classes with samples or gaps that were told of.
    classes: Vec<(usize, Seen, u64)>,
}

impl ShortGaps {
    /// A gap of this length is over, and was not told of as a whole.
    #[inline]
    pub(super) fn add(&mut self, ns: u64) {
        let class = &mut self.classes[class_of(ns)];
        class.total_ns = class.total_ns.saturating_add(ns);
    }

    /// A gap of this length is over, and was told of as a whole.
    pub(super) fn tell(&mut self, ns: u64) {
        self.classes[class_of(ns)].told += 1;
    }

    /// There was a sample of a gap of this length, after the thread was not looked at for so long.
    pub(super) fn sample(&mut self, ns: u64, unseen_ns: u64) {
        self.classes[class_of(ns)].seen.add(unseen_ns);
    }
}

impl Class {
    /// How long the gaps were that the samples stand for. Few samples say little of many gaps, unless
    /// so many gaps that were `told` of show nothing else.
    fn known_ns(&self, told: u64) -> u64 {
        let Seen { samples, unseen_ns } = self.seen;
        self.total_ns.min(unseen_ns.saturating_mul(samples.saturating_add(told).saturating_add(1)))
    }
}

impl Seen {
    fn add(&mut self, unseen_ns: u64) {
        self.samples += 1;
        self.unseen_ns = self.unseen_ns.saturating_add(unseen_ns);
    }
}

impl Sampled {
    /// There was a sample of it in a gap of this length.
    pub(super) fn add(&mut self, ns: u64, unseen_ns: u64) {
        self.class(ns).1.add(unseen_ns);
    }

    /// A gap of this length was told of as a whole, as one of it.
    pub(super) fn tell(&mut self, ns: u64) {
        self.class(ns).2 += 1;
    }

    fn class(&mut self, ns: u64) -> &mut (usize, Seen, u64) {
        let class = class_of(ns);
        let place = self.classes.iter().position(|(it, ..)| *it == class).unwrap_or_else(|| {
            self.classes.push((class, Seen::default(), 0));
            self.classes.len() - 1
        });
        &mut self.classes[place]
    }

    /// How long the thread did that, of the gaps that were not told of as a whole.
    pub(super) fn length_ns(&self, gaps: &ShortGaps) -> u64 {
        let lengths = self.classes.iter().map(|&(class, seen, told)| {
            let all = gaps.classes[class];
            let is_all = (seen.samples, told) == (all.seen.samples, all.told);
            let known_ns = all.known_ns(if is_all { told } else { 0 });
            let part = u128::from(known_ns) * u128::from(seen.unseen_ns)
                / u128::from(all.seen.unseen_ns.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        });
        lengths.fold(0, u64::saturating_add)
    }
}

#[inline]
const fn class_of(ns: u64) -> usize {
    let bits = (u64::BITS - ns.leading_zeros()).saturating_sub(FIRST_BITS) as usize;
    if bits < CLASSES { bits } else { CLASSES - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// So many gaps of a length, and a sample of each of these.
    fn gaps(all: &mut ShortGaps, number: u64, ns: u64, seen: [(&mut Sampled, u64); 2]) {
        (0..number).for_each(|_| all.add(ns));
        for (place, samples) in seen {
            for _ in 0..samples {
                all.sample(ns, 80 * MS);
                place.add(ns, 80 * MS);
            }
        }
    }

    #[test]
    fn samples_share_the_time_of_all_gaps_of_their_length() {
        let (mut all, mut read, mut sleep) =
            (ShortGaps::default(), Sampled::default(), Sampled::default());
        gaps(&mut all, 100, 20 * MS, [(&mut read, 7), (&mut sleep, 18)]);
        assert_eq!(read.length_ns(&all), 2_000 * MS * 7 / 25);
        assert_eq!(read.length_ns(&all) + sleep.length_ns(&all), 2_000 * MS);
        // Gaps of another length are mostly over before they can be sampled.
        gaps(&mut all, 1_000, 2 * MS, [(&mut read, 0), (&mut sleep, 0)]);
        assert_eq!(read.length_ns(&all) + sleep.length_ns(&all), 2_000 * MS);
    }

    #[test]
    fn few_samples_stand_for_few_gaps() {
        let (mut all, mut sleep, mut none) =
            (ShortGaps::default(), Sampled::default(), Sampled::default());
        gaps(&mut all, 1_000, 2 * MS, [(&mut sleep, 1), (&mut none, 0)]);
        assert_eq!(sleep.length_ns(&all), 160 * MS, "twice the time without a look");
        gaps(&mut all, 0, 2 * MS, [(&mut sleep, 2), (&mut none, 0)]);
        assert_eq!(sleep.length_ns(&all), 960 * MS, "four times");
        gaps(&mut all, 0, 2 * MS, [(&mut sleep, 2), (&mut none, 0)]);
        assert_eq!(sleep.length_ns(&all), 2_000 * MS);
    }

    #[test]
    fn gaps_that_were_told_of_bear_witness_for_the_samples_that_show_the_same() {
        let of = |told_of_another: u64| {
            let (mut all, mut sleep) = (ShortGaps::default(), Sampled::default());
            let mut none = Sampled::default();
            gaps(&mut all, 20, 150 * MS, [(&mut sleep, 1), (&mut none, 0)]);
            (0..15 + told_of_another).for_each(|_| all.tell(150 * MS));
            (0..15).for_each(|_| sleep.tell(150 * MS));
            sleep.length_ns(&all)
        };
        assert_eq!(of(0), 17 * 80 * MS);
        assert_eq!(of(1), 2 * 80 * MS, "a gap of that length may be of something else");
    }

    #[test]
    fn each_length_has_a_class() {
        assert_eq!(class_of(0), 0);
        assert_eq!(class_of(MS), 0);
        assert_eq!((class_of(20 * MS), class_of(30 * MS), class_of(40 * MS)), (5, 5, 6));
        assert_eq!((class_of(20_000 * MS), class_of(u64::MAX)), (CLASSES - 1, CLASSES - 1));
        let (mut all, mut seen) = (ShortGaps::default(), Sampled::default());
        for _ in 0..2 {
            all.add(u64::MAX);
            all.sample(u64::MAX, u64::MAX);
            seen.add(u64::MAX, u64::MAX);
        }
        assert_eq!(seen.length_ns(&all), u64::MAX);
    }
}
