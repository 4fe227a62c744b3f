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
    waiting: Vec<BTreeMap<usize, Vec<Follower>>>,
    /// How many of them need not wait any longer than until it sleeps.
    until_asleep: Vec<usize>,
    has_ended: Vec<bool>,
    /// How often each has ended.
    lives: Vec<usize>,
    /// How many uses each had begun when it slept last.
    began_before_sleep: Vec<usize>,
}

/// Who waits for a use.
#[derive(Clone, Copy, Debug)]
struct Follower {
    thread: usize,
    after_ns: u64,
    /// From which use on it goes on if the other one sleeps, if it does.
    from: Option<usize>,
}

impl Following {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            began_ns: vec![Vec::new(); threads],
            waiting: vec![BTreeMap::new(); threads],
            until_asleep: vec![0; threads],
            has_ended: vec![false; threads],
            lives: vec![0; threads],
            began_before_sleep: vec![0; threads],
        }
    }

    /// Thread `number` begins, perhaps again: it is worth waiting for.
    pub(super) fn begins(&mut self, number: usize) {
        self.has_ended[number] = false;
    }

    /// How often thread `number` has lived before.
    pub(super) fn lives(&self, number: usize) -> usize {
        self.lives[number]
    }

    /// Thread `number` begins to use the GIL.
    pub(super) fn began(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        let count = self.began_ns[number].len();
        self.began_ns[number].push(now_ns);
        for it in self.waiting[number].remove(&count).unwrap_or_default() {
            self.until_asleep[number] -= usize::from(it.from.is_some());
            events.plan(it.thread, now_ns.saturating_add(it.after_ns));
        }
    }

    /// Thread `number` is about to sleep: what it had to do for others is done.
    pub(super) fn sleeps(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        let until_asleep = &mut self.until_asleep[number];
        let began_ns = &self.began_ns[number];
        self.began_before_sleep[number] = began_ns.len();
        let Some(last_ns) = began_ns.last().filter(|_| *until_asleep > 0) else { return };
        self.waiting[number].retain(|_, followers| {
            followers.retain(|it| {
                let goes_on = it.from.is_some_and(|from| began_ns.len() > from);
                if goes_on {
                    *until_asleep -= 1;
                    events.plan(it.thread, last_ns.saturating_add(it.after_ns).max(now_ns));
                }
                !goes_on
            });
            !followers.is_empty()
        });
    }

    /// Whether a thread waits for a use of thread `number`.
    pub(super) fn is_waited_for(&self, number: usize) -> bool {
        !self.waiting[number].is_empty()
    }

    /// What a thread waits for that goes away now: the number of a use.
    pub(super) fn number(&self, until: Until) -> usize {
        match until.begins {
            Begins::Number(number) => number,
            Begins::Turn { turn, .. } => self.began_ns[until.thread].len() + turn - 1,
        }
    }

    /// When thread `follower` goes on that waits for use `number`; `None` if only the other one
    /// knows, and will tell.
    pub(super) fn wait(
        &mut self,
        follower: usize,
        Until { thread, after_ns, begins, .. }: Until,
        number: usize,
        now_ns: u64,
    ) -> Option<u64> {
        let from = match begins {
            Begins::Turn { turn, awake: true } => Some(number + 1 - turn),
            _ => None,
        };
        // It may have done that, and sleep already.
        let before_sleep = self.began_before_sleep[thread];
        let is_done = |from: &usize| before_sleep > *from && !self.has_ended[thread];
        let done = from.filter(is_done).map(|_| before_sleep - 1);
        let began_ns = &self.began_ns[thread];
        if let Some(began_ns) = began_ns.get(number).or_else(|| began_ns.get(done?)) {
            return Some(began_ns.saturating_add(after_ns).max(now_ns));
        }
        if self.has_ended[thread] {
            return Some(now_ns);
        }
        self.until_asleep[thread] += usize::from(from.is_some());
        let follower = Follower { thread: follower, after_ns, from };
        self.waiting[thread].entry(number).or_default().push(follower);
        None
    }

    /// Thread `number` has ended: nobody need wait for it.
    pub(super) fn ended(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        self.has_ended[number] = true;
        self.lives[number] += 1;
        self.until_asleep[number] = 0;
        for it in std::mem::take(&mut self.waiting[number]).into_values().flatten() {
            events.plan(it.thread, now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thread 1 waits for the second use from now on of thread 0.
    fn waiting(awake: bool) -> (Following, Events) {
        let (mut following, events) = (Following::new(2), Events::new(2));
        let begins = Begins::Turn { turn: 2, awake };
        let until = Until { thread: 0, begins, after_ns: 10, posted: false };
        let number = following.number(until);
        assert_eq!(following.wait(1, until, number, 0), None);
        (following, events)
    }

    #[test]
    fn who_waits_for_a_use_goes_on_so_long_after_it() {
        let (mut following, mut events) = waiting(false);
        following.began(0, 100, &mut events);
        following.sleeps(0, 150, &mut events);
        assert_eq!(events.next(), None);
        following.began(0, 200, &mut events);
        assert_eq!(events.next(), Some((1, 210)));
    }

    #[test]
    fn what_was_done_by_one_that_was_awake_is_done_before_it_sleeps() {
        let (mut following, mut events) = waiting(true);
        following.sleeps(0, 50, &mut events);
        assert_eq!(events.next(), None);
        following.began(0, 100, &mut events);
        following.sleeps(0, 150, &mut events);
        assert_eq!(events.next(), Some((1, 150)));
        following.began(0, 200, &mut events);
        assert_eq!(events.next(), None);
    }

    #[test]
    fn who_still_ran_when_the_other_one_slept_does_not_wait_for_what_was_done() {
        let (mut following, mut events) = (Following::new(2), Events::new(2));
        let begins = Begins::Turn { turn: 2, awake: true };
        let until = Until { thread: 0, begins, after_ns: 10, posted: false };
        let number = following.number(until);
        following.began(0, 100, &mut events);
        assert_eq!(following.wait(1, until, number, 120), None, "it is awake");
        following.sleeps(0, 150, &mut events);
        assert_eq!(events.next(), Some((1, 150)));
        assert_eq!(following.wait(1, until, number, 170), Some(170));
    }
}
