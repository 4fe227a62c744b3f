//! What the kernel has counted for one thread, at a few moments.

use crate::record::KernelCount;

/// As many counts of a thread are kept, at most.
const MOST_COUNTS: usize = 4;

/// Some of the counts of one thread, in their order: the first one, the last two, and the last one
/// of before these that found the thread asleep, if neither of them did.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelCounts(Vec<KernelCount>);

impl KernelCounts {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn add(&mut self, count: KernelCount) {
        self.0.push(count);
        if let [_, earlier, later, ..] = self.0[..]
            && self.0.len() > MOST_COUNTS
        {
            let keeps_earlier = !earlier.runnable && later.runnable;
            self.0.remove(if keeps_earlier { 2 } else { 1 });
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn append(&mut self, later: Self) {
        later.0.into_iter().for_each(|count| self.add(count));
    }

    /// Takes out those that were made after `at_ns`: they may be told of before the event that
    /// happened then.
    pub(super) fn split_off(&mut self, at_ns: u64) -> Self {
        let later = self.0.iter().take_while(|count| count.at_ns <= at_ns).count();
        if later == self.0.len() { Self::default() } else { Self(self.0.split_off(later)) }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &KernelCount> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_told_of_early_belong_to_the_hold_that_they_fall_into() {
        let mut early = KernelCounts::default();
        for at_ns in [100, 200, 300] {
            early.add(KernelCount { at_ns, ran_ns: 0, delayed_ns: 0, runnable: true });
        }
        let later = early.split_off(200);
        assert_eq!(early.iter().map(|it| it.at_ns).collect::<Vec<_>>(), [100, 200]);
        assert_eq!(later.iter().map(|it| it.at_ns).collect::<Vec<_>>(), [300]);
        assert!(early.split_off(200).is_empty());
    }
}
