//! What happens next: each thread has one moment at most at which it goes on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The moments of all threads. Of equal ones the one that was told first comes first.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// When, in which order, which thread, and the number of its plan.
    heap: BinaryHeap<Reverse<(u64, u64, usize, u32)>>,
    /// Of each thread: the number of its newest plan, and when that is due.
    plans: Vec<(u32, Option<u64>)>,
    order: u64,
}

impl Events {
    pub(super) fn new(threads: usize) -> Self {
        Self { plans: vec![(0, None); threads], ..Self::default() }
    }

    /// Thread `number` goes on at `at_ns`, and not before.
    pub(super) fn plan(&mut self, number: usize, at_ns: u64) {
        let (plan, due_ns) = &mut self.plans[number];
        *plan = plan.wrapping_add(1);
        *due_ns = Some(at_ns);
        self.order += 1;
        self.heap.push(Reverse((at_ns, self.order, number, *plan)));
    }

    /// It goes on at `at_ns` if it would not before.
    pub(super) fn hasten(&mut self, number: usize, at_ns: u64) {
        if self.plans[number].1.is_none_or(|due_ns| at_ns < due_ns) {
            self.plan(number, at_ns);
        }
    }

    /// Its moment does not come.
    pub(super) fn cancel(&mut self, number: usize) {
        let (plan, due_ns) = &mut self.plans[number];
        *plan = plan.wrapping_add(1);
        *due_ns = None;
    }

    /// Whether any thread has a moment to come.
    pub(super) fn are_left(&self) -> bool {
        self.plans.iter().any(|(_, due_ns)| due_ns.is_some())
    }

    /// The next thread that goes on, and when.
    pub(super) fn next(&mut self) -> Option<(usize, u64)> {
        while let Some(Reverse((at_ns, _, number, plan))) = self.heap.pop() {
            if self.plans[number].0 == plan {
                self.cancel(number);
                return Some((number, at_ns));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_in_their_order_and_only_the_newest_of_a_thread() {
        let mut events = Events::new(4);
        events.plan(0, 30);
        events.plan(1, 20);
        events.plan(2, 20);
        events.plan(3, 5);
        events.plan(0, 10);
        events.hasten(1, 25);
        events.hasten(2, 15);
        events.cancel(3);
        let come: Vec<_> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(come, [(0, 10), (2, 15), (1, 20)]);
    }
}
