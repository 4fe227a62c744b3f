//! How far threads have got in work that each does once, and who waits for that.

use super::events::Events;
use crate::demand::Progress;

/// How far all threads are.
#[derive(Debug)]
pub(super) struct Progresses {
    reached: Vec<Option<Progress>>,
    waiting: Vec<Vec<Waiting>>,
    has_ended: Vec<bool>,
}

/// Who waits until a thread has got so far, and how much later it goes on.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: Progress,
    thread: usize,
    after_ns: u64,
}

impl Progresses {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            reached: vec![None; threads],
            waiting: vec![Vec::new(); threads],
            has_ended: vec![false; threads],
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
        self.reached[number] = Some(at);
        self.waiting[number].retain(|it| {
            let is_there = it.at <= at;
            if is_there {
                events.plan(it.thread, now_ns.saturating_add(it.after_ns));
            }
            !is_there
        });
    }

    /// Whether thread `waiting` has to wait until thread `number` has got so far: it goes on by itself
    /// then.
    pub(super) fn has_to_wait(
        &mut self,
        waiting: usize,
        number: usize,
        at: Progress,
        after_ns: u64,
    ) -> bool {
        let is_there = self.has_ended[number] || self.reached[number] >= Some(at);
        if !is_there {
            self.waiting[number].push(Waiting { at, thread: waiting, after_ns });
        }
        !is_there
    }

    /// Thread `number` has ended: nobody need wait for it.
    pub(super) fn ended(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        self.has_ended[number] = true;
        for it in std::mem::take(&mut self.waiting[number]) {
            events.plan(it.thread, now_ns.saturating_add(it.after_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(burst: usize, held_ns: u64) -> Progress {
        Progress { burst, held_ns }
    }

    #[test]
    fn who_waits_goes_on_so_long_after_the_other_has_got_there() {
        let (mut all, mut events) = (Progresses::new(3), Events::new(3));
        assert!(all.has_to_wait(1, 0, at(0, 5), 10));
        assert!(all.has_to_wait(2, 0, at(0, Progress::END), 10));
        all.reached(0, at(0, 4), 100, &mut events);
        assert_eq!(events.next(), None);
        all.reached(0, at(0, 5), 200, &mut events);
        assert_eq!(events.next(), Some((1, 210)));
        all.reached(0, at(0, Progress::END), 300, &mut events);
        assert_eq!(events.next(), Some((2, 310)));
    }

    #[test]
    fn nobody_waits_for_what_is_done_or_for_one_that_has_ended() {
        let (mut all, mut events) = (Progresses::new(3), Events::new(3));
        all.reached(0, at(1, 5), 100, &mut events);
        assert!(!all.has_to_wait(1, 0, at(0, Progress::END), 10));
        assert!(all.has_to_wait(1, 0, at(7, 0), 10));
        all.ended(0, 200, &mut events);
        assert_eq!(events.next(), Some((1, 210)));
        assert!(!all.has_to_wait(1, 0, at(9, 0), 10));
    }
}
