//! Deadlines, the earliest first.
//!
//! Ten thousand tasks that sleep equally long have deadlines in the order of their arrival. Such a
//! sorted run is a queue, and costs nothing; what comes out of order goes into a heap. With one
//! duration all is in the run, with random ones nearly all is in the heap.

use std::collections::VecDeque;

/// How many children a node of the heap has. Four lie in one cache line, and the heap is half as
/// deep as a binary one.
const CHILDREN: usize = 4;

/// So few stale entries are not worth a sweep.
const FEW: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timer {
    /// In nanoseconds, on the clock of the caller.
    deadline: u64,
    key: u64,
}

/// Which keys are due when. Keys with one deadline come in no particular order.
#[derive(Debug, Default)]
pub struct Timers {
    /// Ascending.
    run: VecDeque<Timer>,
    /// No node is later than its children.
    heap: Vec<Timer>,
    /// How many of both nobody waits for any more, at least.
    stale: usize,
}

impl Timers {
    /// Without a deadline.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `key` come out of [`Timers::pop`] at this time.
    pub fn add(&mut self, deadline: u64, key: u64) {
        let timer = Timer { deadline, key };
        if self.run.back().is_none_or(|last| last.deadline <= deadline) {
            self.run.push_back(timer);
        } else {
            self.heap.push(timer);
            self.rise(self.heap.len() - 1);
        }
    }

    /// The earliest deadline, which may be one that nobody waits for any more.
    pub fn next(&self) -> Option<u64> {
        match (self.run.front(), self.heap.first()) {
            (Some(run), Some(heap)) => Some(run.deadline.min(heap.deadline)),
            (first, second) => first.or(second).map(|timer| timer.deadline),
        }
    }

    /// The key with the earliest deadline, if that is not after `now`.
    pub fn pop(&mut self, now: u64) -> Option<u64> {
        let run = self.run.front().map_or(u64::MAX, |timer| timer.deadline);
        if let Some(&first) = self.heap.first()
            && first.deadline <= run
        {
            return (first.deadline <= now).then(|| {
                self.take_first();
                first.key
            });
        }
        if run <= now { self.run.pop_front().map(|timer| timer.key) } else { None }
    }

    /// Notes that nobody waits for one of the keys any more. It may come out of [`Timers::pop`] all
    /// the same: the caller knows which keys are `alive`. When most are not, they are removed, so
    /// that memory is bound to the number of those that are.
    pub fn forget(&mut self, alive: impl Fn(u64) -> bool) {
        self.stale += 1;
        if self.stale > FEW && self.stale > self.len() / 2 {
            self.sweep(alive);
        }
    }

    /// How many there are, forgotten ones included.
    pub fn len(&self) -> usize {
        self.run.len() + self.heap.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.run.is_empty() && self.heap.is_empty()
    }

    fn sweep(&mut self, alive: impl Fn(u64) -> bool) {
        self.stale = 0;
        self.run.retain(|timer| alive(timer.key));
        self.heap.retain(|timer| alive(timer.key));
        for at in (0..self.heap.len().div_ceil(CHILDREN)).rev() {
            self.sink(at);
        }
        self.run.shrink_to(2 * self.run.len() + FEW);
        self.heap.shrink_to(2 * self.heap.len() + FEW);
    }

    fn take_first(&mut self) {
        self.heap.swap_remove(0);
        if !self.heap.is_empty() {
            self.sink(0);
        }
    }

    fn rise(&mut self, mut at: usize) {
        let timer = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.heap[parent].deadline <= timer.deadline {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = timer;
    }

    fn sink(&mut self, mut at: usize) {
        let timer = self.heap[at];
        loop {
            let first = at * CHILDREN + 1;
            let last = (first + CHILDREN).min(self.heap.len());
            let Some(child) = (first..last).min_by_key(|&child| self.heap[child].deadline) else {
                break;
            };
            if timer.deadline <= self.heap[child].deadline {
                break;
            }
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = timer;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Add(u64),
        /// Of those that are there, counted from the earliest.
        Forget(usize),
        Pass(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..40_u64).prop_map(Step::Add),
            // Equal durations, the usual case.
            4 => Just(Step::Add(20)),
            3 => any::<usize>().prop_map(Step::Forget),
            2 => (0..10_u64).prop_map(Step::Pass),
        ];
        prop::collection::vec(step, 0..600)
    }

    proptest! {
        #[test]
        fn keys_come_when_they_are_due_and_not_after_they_were_forgotten(steps in steps()) {
            let mut timers = Timers::new();
            let mut model = BTreeSet::new();
            let (mut now, mut keys) = (0, 0);
            for step in steps {
                match step {
                    Step::Add(delay) => {
                        timers.add(now + delay, keys);
                        model.insert((now + delay, keys));
                        keys += 1;
                    }
                    Step::Forget(nth) if !model.is_empty() => {
                        let chosen = *model.iter().nth(nth % model.len()).unwrap();
                        model.remove(&chosen);
                        let alive: BTreeSet<u64> = model.iter().map(|&(_, key)| key).collect();
                        timers.forget(|key| alive.contains(&key));
                        prop_assert!(timers.len() <= 2 * model.len() + FEW + 1);
                    }
                    Step::Forget(_) => {}
                    Step::Pass(time) => now += time,
                }
                let mut last = 0;
                while let Some(key) = timers.pop(now) {
                    let Some(&known) = model.iter().find(|&&(_, other)| other == key) else {
                        continue; // It was forgotten, and not yet swept.
                    };
                    prop_assert!(last <= known.0 && known.0 <= now);
                    last = known.0;
                    model.remove(&known);
                }
                // None is late, and the next is not announced too late.
                if let Some(&(first, _)) = model.first() {
                    prop_assert!(now < first && timers.next().unwrap() <= first);
                }
            }
            while timers.pop(u64::MAX).is_some() {}
            prop_assert!(timers.is_empty());
        }

        #[test]
        fn random_deadlines_come_sorted(mut deadlines in prop::collection::vec(0..1000_u64, 0..300)) {
            let mut timers = Timers::new();
            for &deadline in &deadlines {
                timers.add(deadline, deadline);
            }
            deadlines.sort_unstable();
            let popped: Vec<u64> = std::iter::from_fn(|| timers.pop(u64::MAX)).collect();
            prop_assert_eq!(popped, deadlines);
        }
    }

    #[test]
    fn a_sorted_run_does_not_touch_the_heap() {
        let mut timers = Timers::new();
        for deadline in [5, 5, 7, 9] {
            timers.add(deadline, deadline);
        }
        assert!(timers.heap.is_empty());
        assert_eq!(timers.pop(4), None);
        assert_eq!(timers.pop(5), Some(5));
    }

    #[test]
    fn keys_that_are_forgotten_take_no_memory() {
        let mut timers = Timers::new();
        for key in 0..100_000 {
            timers.add(1_000_000 + key, key);
            timers.forget(|alive| alive > key);
        }
        assert!(timers.len() <= FEW + 1 && timers.run.capacity() < 1000);
    }
}
