//! A hold that goes on: what others wait in it, moment by moment, and what was sampled.

use crate::stacks::StackId;
use ungil_trace::record::ThreadId;

/// Stacks kept of one hold. The recorder takes far fewer.
const SAMPLES: usize = 1_000;

/// How many threads wait from a moment on, and what was waited until then.
#[derive(Clone, Copy, Debug)]
struct Change {
    at_ns: u64,
    waiters: u64,
    waited_ns: u64,
}

/// A hold, while it goes on and as long as a late sample may come.
#[derive(Clone, Debug)]
pub struct Running {
    /// The holder.
    pub thread: ThreadId,
    /// When it began.
    pub since_ns: u64,
    /// The first drop request in it.
    pub asked_ns: Option<u64>,
    /// Until when it would have lasted if the holder had run all the time.
    pub ran_until_ns: Option<u64>,
    /// The most threads that waited at a time.
    pub waiters_max: u64,
    /// Whether it was looked at because it is long, and not only because it was time for a look.
    pub is_long: bool,
    changes: Vec<Change>,
    samples: Vec<(u64, StackId)>,
}

/// A sample of a hold, with the part of the hold that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was taken; within the hold.
    pub at_ns: u64,
    /// What it shows.
    pub stack: StackId,
    /// The length of that part.
    pub held_ns: u64,
    /// What others waited in that part, summed.
    pub waited_ns: u64,
}

impl Running {
    /// Begins when `waiters` threads wait already.
    pub fn new(thread: ThreadId, since_ns: u64, waiters: u64) -> Self {
        Self {
            thread,
            since_ns,
            asked_ns: None,
            ran_until_ns: None,
            waiters_max: waiters,
            is_long: false,
            changes: vec![Change { at_ns: since_ns, waiters, waited_ns: 0 }],
            samples: Vec::new(),
        }
    }

    /// One more thread waits from `at_ns` on, which may be a little before what is known already.
    pub fn waits(&mut self, at_ns: u64) {
        let at_ns = at_ns.max(self.since_ns);
        let place = self.changes.partition_point(|change| change.at_ns <= at_ns);
        let before = self.changes[place - 1];
        let waited_ns = before.waited_ns + before.waiters * (at_ns - before.at_ns);
        let change = Change { at_ns, waiters: before.waiters, waited_ns };
        self.changes.insert(place, change);
        for change in &mut self.changes[place..] {
            change.waited_ns += change.at_ns - at_ns;
            change.waiters += 1;
            self.waiters_max = self.waiters_max.max(change.waiters);
        }
    }

    /// A thread that waited does so no longer, because it ends, or its wait is forgotten.
    pub fn leaves(&mut self, at_ns: u64) {
        let Some(&last) = self.changes.last() else { return };
        let at_ns = at_ns.max(last.at_ns);
        let waited_ns = last.waited_ns + last.waiters * (at_ns - last.at_ns);
        self.changes.push(Change { at_ns, waiters: last.waiters.saturating_sub(1), waited_ns });
    }

    /// What others waited from its beginning to `at_ns`, summed.
    pub fn waited_ns(&self, at_ns: u64) -> u64 {
        let place = self.changes.partition_point(|change| change.at_ns <= at_ns);
        let Some(change) = self.changes[..place].last() else { return 0 };
        change.waited_ns.saturating_add(change.waiters.saturating_mul(at_ns - change.at_ns))
    }

    /// Notes what the holder did at a moment of it.
    pub fn sampled(&mut self, at_ns: u64, stack: StackId) {
        if self.samples.len() < SAMPLES {
            self.samples.push((at_ns, stack));
        }
    }

    /// Its samples, if it ends at `end_ns`. Each stands for what is nearer to it than to any other.
    pub fn samples(&self, end_ns: u64) -> Vec<Sample> {
        let mut samples = self.samples.clone();
        for (at_ns, _) in &mut samples {
            *at_ns = (*at_ns).clamp(self.since_ns, end_ns);
        }
        samples.sort_unstable();
        let mut from_ns = self.since_ns;
        let mut parts = Vec::with_capacity(samples.len());
        for (index, &(at_ns, stack)) in samples.iter().enumerate() {
            let next = samples.get(index + 1);
            let to_ns = next.map_or(end_ns, |(next_ns, _)| at_ns.midpoint(*next_ns));
            let waited_ns = self.waited_ns(to_ns).saturating_sub(self.waited_ns(from_ns));
            parts.push(Sample { at_ns, stack, held_ns: to_ns - from_ns, waited_ns });
            from_ns = to_ns;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In the most naive way: each wait by itself, in whatever order they were told.
        #[test]
        fn what_is_waited_is_the_sum_of_all_waits_in_it(
            waits in prop::collection::vec(0u64..200, 0..20),
            waiters in 0u64..5,
            to_ns in 100u64..300,
        ) {
            let mut hold = Running::new(ThreadId(0), 100, waiters);
            for &at_ns in &waits {
                hold.waits(at_ns);
            }
            let naive: u64 = waits.iter().map(|&at_ns| to_ns.saturating_sub(at_ns.max(100))).sum();
            prop_assert_eq!(hold.waited_ns(to_ns), naive + waiters * (to_ns - 100));
        }

        #[test]
        fn the_parts_of_samples_add_up_to_the_hold(
            at_ns in prop::collection::vec(0u64..300, 1..10),
            waits in prop::collection::vec(100u64..200, 0..5),
        ) {
            let mut hold = Running::new(ThreadId(0), 100, 0);
            for &at_ns in &waits {
                hold.waits(at_ns);
            }
            for &at_ns in &at_ns {
                hold.sampled(at_ns, StackId(0));
            }
            let samples = hold.samples(200);
            prop_assert_eq!(samples.iter().map(|it| it.held_ns).sum::<u64>(), 100);
            prop_assert_eq!(samples.iter().map(|it| it.waited_ns).sum::<u64>(), hold.waited_ns(200));
        }
    }
}
