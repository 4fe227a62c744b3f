//! What producers have brought, and consumers wait for.

use super::events::Events;
use crate::plan::{Planned, Queue};
use std::sync::Arc;

/// All queues between the threads of a simulation.
#[derive(Debug)]
pub(super) struct Supplies {
    queues: Vec<Filled>,
    /// Of each thread, the queues into which it puts something, and the one from which it lives.
    fills: Vec<Vec<usize>>,
    empties: Vec<Option<usize>>,
    has_ended: Vec<bool>,
}

/// A queue, and what has become of it.
#[derive(Debug)]
struct Filled {
    queue: Arc<Queue>,
    /// How many uses its producers have begun, and its consumers.
    brought: u64,
    used: usize,
    /// The consumers that sleep.
    waiting: Vec<usize>,
}

impl Supplies {
    pub(super) fn new(threads: &[Planned]) -> Self {
        let mut queues: Vec<Filled> = Vec::new();
        let mut fills = vec![Vec::new(); threads.len()];
        let mut empties = vec![None; threads.len()];
        for (queue, _) in threads.iter().filter_map(|thread| thread.lives_on.as_ref()) {
            if queues.iter().any(|it| Arc::ptr_eq(&it.queue, queue)) {
                continue;
            }
            queue.producers.iter().for_each(|it| fills[*it].push(queues.len()));
            queue.consumers.iter().for_each(|it| empties[*it] = Some(queues.len()));
            let (queue, waiting) = (queue.clone(), Vec::new());
            queues.push(Filled { queue, brought: 0, used: 0, waiting });
        }
        Self { queues, fills, empties, has_ended: vec![false; threads.len()] }
    }

    /// Whether there is something for thread `number`, if it is a consumer. If not, it sleeps, and is
    /// told when there may be.
    pub(super) fn is_there(&mut self, number: usize) -> bool {
        let Some(queue) = self.empties[number] else { return true };
        let filled = &mut self.queues[queue];
        let is_there = filled.is_filled()
            || filled.queue.producers.iter().all(|producer| self.has_ended[*producer]);
        if !is_there {
            filled.waiting.push(number);
        }
        is_there
    }

    /// Thread `number` begins, perhaps again.
    pub(super) fn begins(&mut self, number: usize) {
        self.has_ended[number] = false;
    }

    /// Thread `number` begins to use the GIL.
    pub(super) fn began(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        if let Some(queue) = self.empties[number] {
            self.queues[queue].used += 1;
        }
        for queue in &self.fills[number] {
            let filled = &mut self.queues[*queue];
            filled.brought += 1;
            if filled.is_filled() {
                filled.wake(now_ns, events);
            }
        }
    }

    /// Thread `number` has ended: nobody need wait for it.
    pub(super) fn ended(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        self.has_ended[number] = true;
        for queue in &self.fills[number] {
            self.queues[*queue].wake(now_ns, events);
        }
    }
}

impl Filled {
    /// Whether there is something left.
    fn is_filled(&self) -> bool {
        self.brought >= self.queue.needed(self.used)
    }

    /// All consumers look again.
    fn wake(&mut self, now_ns: u64, events: &mut Events) {
        for consumer in self.waiting.drain(..) {
            events.plan(consumer, now_ns.saturating_add(self.queue.supply.after_ns));
        }
    }
}
