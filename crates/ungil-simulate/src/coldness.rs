//! What it costs to come after another thread: its work has pushed out of the caches what this one
//! needs.
//!
//! In a recorded convoy each request came after 5 ms of another thread's work, and its uses of the
//! GIL took 45 us on average. Under a policy, where requests came after requests, they took 8.4 us.
//! With one number for how slow a thread is, and one for how long, both can be told from each
//! other: docs/decisions/0053-a-use-of-the-gil-is-slow-after-another-threads-work.md.

use crate::lengths::scaled;

/// For so long at most those that come after another thread are slow.
const MOST_NS: u64 = 700_000;
/// After a hold of this length they are for half as long.
const HALF_AFTER_NS: u64 = 3_000_000;
/// So many times as slow.
const TIMES: f64 = 12.0;

/// How long others are still slow after the hold that left most behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coldness {
    most_ns: u64,
    /// Whose hold that was.
    by: Option<usize>,
    left_ns: u64,
}

impl Default for Coldness {
    fn default() -> Self {
        Self { most_ns: MOST_NS, ..Self::NEVER }
    }
}

impl Coldness {
    /// Of a machine whose caches hold all that is needed.
    pub(crate) const NEVER: Self = Self { most_ns: 0, by: None, left_ns: 0 };

    /// Which part of `ns`, in which a thread ran, is because it was slow.
    pub(crate) fn part_of(&mut self, thread: usize, ns: u64) -> u64 {
        if self.by == Some(thread) {
            return 0;
        }
        let slow_ns = ns.min(self.left_ns);
        self.left_ns -= slow_ns;
        slow_ns - scaled(slow_ns, 1.0 / TIMES)
    }

    /// How much longer a thread runs for what would take it `ns` if it were never slow.
    pub(crate) fn added_to(&mut self, thread: usize, ns: u64) -> u64 {
        self.part_of(thread, scaled(ns, TIMES))
    }

    /// A thread had the GIL for `ns`.
    pub(crate) fn held(&mut self, thread: usize, ns: u64) {
        let part = ns as f64 / ns.saturating_add(HALF_AFTER_NS) as f64;
        let left_ns = scaled(self.most_ns, part);
        if left_ns > self.left_ns {
            (self.by, self.left_ns) = (Some(thread), left_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: u64 = 1_000;

    #[test]
    fn after_another_threads_work_a_thread_is_slow_for_a_while_and_not_after_its_own() {
        let mut coldness = Coldness::default();
        coldness.held(0, 5_000 * US);
        assert_eq!(coldness.part_of(0, 100 * US), 0);
        assert_eq!(coldness.part_of(1, 120 * US), 110 * US);
        // The rest of it is for whoever comes next.
        let left_ns = coldness.left_ns;
        assert_eq!(coldness.part_of(2, 10_000 * US), left_ns - left_ns / 12);
        assert_eq!(coldness.part_of(2, 10_000 * US), 0);
    }

    #[test]
    fn a_short_hold_leaves_little_behind() {
        let mut coldness = Coldness::default();
        coldness.held(0, 5 * US);
        assert!(coldness.left_ns < 5 * US);
        coldness.held(1, 3_000 * US);
        assert_eq!((coldness.by, coldness.left_ns), (Some(1), 350 * US));
        coldness.held(2, 5 * US);
        assert_eq!((coldness.by, coldness.left_ns), (Some(1), 350 * US));
    }

    proptest! {
        /// What a recording is rid of is what a simulation that goes the same way adds.
        #[test]
        fn what_was_taken_out_comes_back(
            holds in prop::collection::vec((0usize..3, 0u64..3_000_000), 1..40)
        ) {
            let mut recorded = Coldness::default();
            for (thread, ns) in holds {
                let mut simulated = recorded;
                let warm_ns = ns - recorded.part_of(thread, ns);
                let again_ns = warm_ns + simulated.added_to(thread, warm_ns);
                prop_assert!(again_ns.abs_diff(ns) <= 12, "{ns} became {again_ns}");
                prop_assert!(recorded.left_ns.abs_diff(simulated.left_ns) <= 12);
                recorded.held(thread, ns);
            }
        }
    }
}
