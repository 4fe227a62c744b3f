//! Threads that wait until others have got as far as they had when they were recorded.

use super::events::Events;
use crate::plan::{Begins, Until};
use std::collections::BTreeMap;

/// How far all threads are, and who waits for that.
#[derive(Debug)]
pub(super) struct Following {
    /// When each thread began its uses.
    began_ns: Vec<Vec<u64>>,
    /// Who waits for which use of it, and for how long after that.
    waiting: Vec<BTreeMap<usize, Vec<(usize, u64)>>>,
    has_ended: Vec<bool>,
}

impl Following {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            began_ns: vec![Vec::new(); threads],
            waiting: vec![BTreeMap::new(); threads],
            has_ended: vec![false; threads],
        }
    }

    /// Thread `number` begins, perhaps again: it is worth waiting for.
    pub(super) fn begins(&mut self, number: usize) {
        self.has_ended[number] = false;
    }

    /// Thread `number` begins to use the GIL.
    pub(super) fn began(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        let count = self.began_ns[number].len();
        self.began_ns[number].push(now_ns);
        for (follower, after_ns) in self.waiting[number].remove(&count).unwrap_or_default() {
            events.plan(follower, now_ns.saturating_add(after_ns));
        }
    }

    /// What a thread waits for that goes away now: the number of a use.
    pub(super) fn number(&self, until: Until) -> usize {
        match until.begins {
            Begins::Number(number) => number,
            Begins::Turn(turn) => self.began_ns[until.thread].len() + turn - 1,
        }
    }

    /// When thread `follower` goes on that waits for use `number`; `None` if only the other one
    /// knows, and will tell.
    pub(super) fn wait(
        &mut self,
        follower: usize,
        Until { thread, after_ns, .. }: Until,
        number: usize,
        now_ns: u64,
    ) -> Option<u64> {
        match self.began_ns[thread].get(number) {
            Some(began_ns) => Some(began_ns.saturating_add(after_ns).max(now_ns)),
            None if self.has_ended[thread] => Some(now_ns),
            None => {
                self.waiting[thread].entry(number).or_default().push((follower, after_ns));
                None
            }
        }
    }

    /// Thread `number` has ended: nobody need wait for it.
    pub(super) fn ended(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        self.has_ended[number] = true;
        for (follower, _) in std::mem::take(&mut self.waiting[number]).into_values().flatten() {
            events.plan(follower, now_ns);
        }
    }
}
