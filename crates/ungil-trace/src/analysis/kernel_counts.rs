//! What the kernel has counted for one thread, at a few moments.

use crate::record::Record;

/// As many counts of a thread are kept, at most.
const MOST_COUNTS: usize = 4;

/// What the kernel had counted for a thread at one moment, as in [`Record::Scheduled`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) at_ns: u64,
    pub(super) ran_ns: u64,
    pub(super) delayed_ns: u64,
    pub(super) runnable: bool,
}

/// Some of the counts of one thread, in their order: the first one, the last two, and the last one
/// of before these that found the thread asleep, if neither of them did.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(Vec<Counted>);

impl Counted {
    /// From the record of that kind.
    pub(super) const fn of(record: &Record) -> Option<Self> {
        match *record {
            Record::Scheduled { at_ns, ran_ns, delayed_ns, runnable, .. } => {
                Some(Self { at_ns, ran_ns, delayed_ns, runnable })
            }
            _ => None,
        }
    }

    /// For how long the kernel has not run it since an earlier moment.
    pub(super) const fn delayed_since(&self, earlier: &Self) -> u64 {
        self.delayed_ns.saturating_sub(earlier.delayed_ns)
    }
}

impl Counts {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn add(&mut self, counted: Counted) {
        self.0.push(counted);
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
        later.0.into_iter().for_each(|counted| self.add(counted));
    }

    /// Takes out those that were made after `at_ns`: they may be told of before the event that
    /// happened then.
    pub(super) fn split_off(&mut self, at_ns: u64) -> Self {
        let later = self.0.iter().take_while(|counted| counted.at_ns <= at_ns).count();
        if later == self.0.len() { Self::default() } else { Self(self.0.split_off(later)) }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Counted> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_told_of_early_belong_to_the_hold_that_they_fall_into() {
        let mut early = Counts::default();
        for at_ns in [100, 200, 300] {
            early.add(Counted { at_ns, ran_ns: 0, delayed_ns: 0, runnable: true });
        }
        let later = early.split_off(200);
        assert_eq!(early.iter().map(|it| it.at_ns).collect::<Vec<_>>(), [100, 200]);
        assert_eq!(later.iter().map(|it| it.at_ns).collect::<Vec<_>>(), [300]);
        assert!(early.split_off(200).is_empty());
    }
}
