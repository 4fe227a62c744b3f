//! What threads have brought to others, and who sleeps until something is there.

use super::events::Events;
use crate::demand::Progress;
use crate::plan::Planned;
use std::sync::Arc;

/// What is there for each thread.
#[derive(Debug)]
pub(super) struct Deliveries {
    /// What each brings to whom.
    brings: Vec<Arc<[(Progress, usize)]>>,
    /// How much of what was brought to each it has not used.
    left: Vec<usize>,
    /// How long after the next delivery each goes on, if it sleeps for one.
    sleeps: Vec<Option<u64>>,
    /// Who brought what it slept for last.
    woken_by: Vec<Option<usize>>,
}

impl Deliveries {
    pub(super) fn new(threads: &[Planned]) -> Self {
        Self {
            brings: threads.iter().map(|thread| thread.brings.clone()).collect(),
            left: vec![0; threads.len()],
            sleeps: vec![None; threads.len()],
            woken_by: vec![None; threads.len()],
        }
    }

    /// Thread `number` has got so far.
    pub(super) fn reached(
        &mut self,
        number: usize,
        at: Progress,
        now_ns: u64,
        events: &mut Events,
    ) {
        let brings = &self.brings[number];
        let first = brings.partition_point(|it| it.0 < at);
        for &(_, to) in brings[first..].iter().take_while(|it| it.0 == at) {
            match self.sleeps[to].take() {
                Some(after_ns) => {
                    self.woken_by[to] = Some(number);
                    events.plan(to, now_ns.saturating_add(after_ns));
                }
                None => self.left[to] += 1,
            }
        }
    }

    /// Whether something is there for thread `number`, which uses it up.
    pub(super) fn takes(&mut self, number: usize) -> bool {
        let is_there = self.left[number] > 0;
        self.left[number] -= usize::from(is_there);
        is_there
    }

    /// Whether nothing is there for thread `number`: it sleeps, and goes on so long after something is.
    pub(super) fn has_to_sleep(&mut self, number: usize, after_ns: u64) -> bool {
        let is_there = self.takes(number);
        self.sleeps[number] = (!is_there).then_some(after_ns);
        !is_there
    }

    /// Thread `number` sleeps no longer, whether something is there or not: who brought it.
    pub(super) fn is_awake(&mut self, number: usize) -> Option<usize> {
        self.sleeps[number] = None;
        self.woken_by[number].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Progress = Progress { burst: 3, held_ns: 50 };

    /// Thread 0 brings something to thread 1 there.
    fn deliveries() -> (Deliveries, Events) {
        let brings = vec![[(AT, 1)].into(), [].into()];
        let (left, sleeps, woken_by) = (vec![0; 2], vec![None; 2], vec![None; 2]);
        (Deliveries { brings, left, sleeps, woken_by }, Events::new(2))
    }

    #[test]
    fn who_sleeps_goes_on_so_long_after_something_is_brought() {
        let (mut all, mut events) = deliveries();
        assert!(all.has_to_sleep(1, 10));
        all.reached(0, Progress { burst: 2, held_ns: 50 }, 100, &mut events);
        assert_eq!(events.next(), None);
        all.reached(0, AT, 200, &mut events);
        assert_eq!(events.next(), Some((1, 210)));
        assert_eq!(all.is_awake(1), Some(0));
        assert!(!all.takes(1), "it was used");
    }

    #[test]
    fn what_was_brought_to_one_that_was_awake_is_there_when_it_needs_it() {
        let (mut all, mut events) = deliveries();
        all.reached(0, AT, 100, &mut events);
        all.reached(0, AT, 200, &mut events);
        assert_eq!(events.next(), None);
        assert!(!all.has_to_sleep(1, 10));
        assert!(all.takes(1));
        assert!(!all.takes(1));
    }

    #[test]
    fn who_gave_up_waiting_finds_what_is_brought_after_that() {
        let (mut all, mut events) = deliveries();
        assert!(all.has_to_sleep(1, 10));
        assert_eq!(all.is_awake(1), None);
        all.reached(0, AT, 100, &mut events);
        assert_eq!(events.next(), None);
        assert!(all.takes(1));
    }
}
