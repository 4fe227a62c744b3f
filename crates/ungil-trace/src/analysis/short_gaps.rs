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
/// A sample stands for so many times the time at most in which the thread was not looked at: one
/// sample says little of many gaps.
const MOST: u64 = 2;

/// The gaps of a thread that were not told of as a whole, by their length.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortGaps {
    classes: [Class; CLASSES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    total_ns: u64,
    /// The times in which the thread was not looked at, before each sample of such a gap.
    unseen_ns: u64,
}

/// Samples of one thing that a thread did in such gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampled {
    pub(super) samples: u64,
    /// `unseen_ns` by class, of classes with samples.
    classes: Vec<(usize, u64)>,
}

impl ShortGaps {
    /// A gap of this length is over; a sample of it stands for so long, 0 if there is none.
    #[inline]
    pub(super) fn add(&mut self, ns: u64, unseen_ns: u64) {
        let class = &mut self.classes[class_of(ns)];
        class.total_ns = class.total_ns.saturating_add(ns);
        class.unseen_ns = class.unseen_ns.saturating_add(unseen_ns);
    }
}

impl Sampled {
    /// There was a sample of a gap of this length.
    pub(super) fn add(&mut self, ns: u64, unseen_ns: u64) {
        self.samples += 1;
        let class = class_of(ns);
        if let Some((_, sum_ns)) = self.classes.iter_mut().find(|(it, _)| *it == class) {
            *sum_ns = sum_ns.saturating_add(unseen_ns);
        } else {
            self.classes.push((class, unseen_ns));
        }
    }

    /// How long the thread did that, of all these gaps.
    pub(super) fn length_ns(&self, gaps: &ShortGaps) -> u64 {
        let lengths = self.classes.iter().map(|&(class, unseen_ns)| {
            let all = gaps.classes[class];
            let stand_for_ns = all.total_ns.min(all.unseen_ns.saturating_mul(MOST));
            let part =
                u128::from(stand_for_ns) * u128::from(unseen_ns) / u128::from(all.unseen_ns.max(1));
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

    #[test]
    fn samples_share_the_time_of_all_gaps_of_their_length() {
        let (mut gaps, mut read, mut sleep) =
            (ShortGaps::default(), Sampled::default(), Sampled::default());
        // 100 gaps of 20 ms, of which each fourth is sampled: in one of four it reads.
        for number in 0..100 {
            gaps.add(20 * MS, if number % 4 == 0 { 80 * MS } else { 0 });
            if number % 4 == 0 {
                let place = if number % 16 == 0 { &mut read } else { &mut sleep };
                place.add(20 * MS, 80 * MS);
            }
        }
        assert_eq!((read.samples, sleep.samples), (7, 18));
        assert_eq!(read.length_ns(&gaps), 2_000 * MS * 7 / 25);
        assert_eq!(read.length_ns(&gaps) + sleep.length_ns(&gaps), 2_000 * MS);
    }

    #[test]
    fn gaps_of_another_length_are_not_shared_out_and_one_sample_stands_for_little() {
        let (mut gaps, mut sleep) = (ShortGaps::default(), Sampled::default());
        // They are over too soon to be sampled.
        for _ in 0..1_000 {
            gaps.add(2 * MS, 0);
        }
        gaps.add(30 * MS, 50 * MS);
        sleep.add(30 * MS, 50 * MS);
        assert_eq!(sleep.length_ns(&gaps), 30 * MS);
        gaps.add(2 * MS, 50 * MS);
        sleep.add(2 * MS, 50 * MS);
        assert_eq!(sleep.length_ns(&gaps), 130 * MS, "twice the time without a look");
    }

    #[test]
    fn each_length_has_a_class() {
        assert_eq!(class_of(0), 0);
        assert_eq!(class_of(MS), 0);
        assert_eq!((class_of(20 * MS), class_of(30 * MS), class_of(40 * MS)), (5, 5, 6));
        assert_eq!((class_of(20_000 * MS), class_of(u64::MAX)), (CLASSES - 1, CLASSES - 1));
        let (mut gaps, mut all) = (ShortGaps::default(), Sampled::default());
        for _ in 0..2 {
            gaps.add(u64::MAX, u64::MAX);
            all.add(u64::MAX, u64::MAX);
        }
        assert_eq!(all.length_ns(&gaps), u64::MAX);
    }
}
