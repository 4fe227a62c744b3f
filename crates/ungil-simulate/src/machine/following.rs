//! Threads that wait until others have got as far as they had when they were recorded.

use super::events::Events;
use crate::plan::Until;
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

    /// Thread `number` begins to use the GIL.
    pub(super) fn began(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        let count = self.began_ns[number].len();
        self.began_ns[number].push(now_ns);
        for (follower, after_ns) in self.waiting[number].remove(&count).unwrap_or_default() {
            events.plan(follower, now_ns.saturating_add(after_ns));
        }
    }

    /// When thread `number` goes on that waits for `until`; `None` if only the other one knows, and
    /// will tell.
    pub(super) fn wait(&mut self, number: usize, until: Until, now_ns: u64) -> Option<u64> {
        match self.began_ns[until.thread].get(until.begins) {
            Some(began_ns) => Some(began_ns.saturating_add(until.after_ns).max(now_ns)),
            None if self.has_ended[until.thread] => Some(now_ns),
            None => {
                let waiting = self.waiting[until.thread].entry(until.begins).or_default();
                waiting.push((number, until.after_ns));
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
