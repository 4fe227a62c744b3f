//! CPython's own condition variable: who waits for it, and for how long.
//!
//! `take_gil` waits a switch interval at a time. When that is over and the GIL is still locked,
//! it asks the holder to let go if the GIL has not changed hands meanwhile, and waits again, as
//! the last in line. Nothing else happens then, so it is done here without going into the thread:
//! of thousands that wait each does that all the time.

use super::world::World;
use crate::rules::Gil;
use std::collections::VecDeque;
use ungil_core::schedule::Settings;

/// Those that wait, as glibc has them (`nptl/pthread_cond_wait.c`): a signal is for the group of
/// those that came before one who was signalled, in their order. When nobody is left of it, all that
/// wait are the next group.
#[derive(Debug)]
pub(super) struct Cond {
    group: VecDeque<(usize, u32)>,
    /// Who came later.
    line: VecDeque<(usize, u32)>,
    /// Of each thread: its newest place in line, and how often the GIL had changed hands when it
    /// took that; `None` if it has been signalled or does not wait.
    places: Vec<(u32, Option<u32>)>,
    waiting: usize,
}

impl Cond {
    pub(super) fn new(threads: usize) -> Self {
        let (group, line) = (VecDeque::new(), VecDeque::new());
        Self { group, line, places: vec![(0, None); threads], waiting: 0 }
    }

    /// How often the GIL had changed hands when the thread began to wait, if it does.
    fn saved(&self, number: usize) -> Option<u32> {
        self.places[number].1
    }

    /// The thread waits, as the last in line.
    fn enter(&mut self, number: usize, switches: u32) {
        let (place, saved) = &mut self.places[number];
        *place = place.wrapping_add(1);
        if saved.replace(switches).is_none() {
            self.waiting += 1;
        }
        self.line.push_back((number, *place));
        if self.line.len() > 4 * self.waiting + 64 {
            let places = &self.places;
            self.line
                .retain(|&(number, place)| places[number].0 == place && places[number].1.is_some());
        }
    }

    /// The thread does not wait any more. Whether it did.
    pub(super) fn leave(&mut self, number: usize) -> bool {
        let waited = self.places[number].1.take().is_some();
        self.waiting -= usize::from(waited);
        waited
    }

    fn is_there(&self, (number, place): (usize, u32)) -> bool {
        self.places[number].0 == place && self.places[number].1.is_some()
    }

    /// Takes out the one that a signal is for, and whether another was woken for nothing: the last
    /// one of its group takes it before the first has woken if it does not sleep yet.
    fn signal(&mut self, is_awake: impl Fn(usize) -> bool) -> Option<(usize, bool)> {
        while self.group.front().is_some_and(|first| !self.is_there(*first)) {
            self.group.pop_front();
        }
        if self.group.is_empty() {
            std::mem::swap(&mut self.group, &mut self.line);
            while self.group.front().is_some_and(|first| !self.is_there(*first)) {
                self.group.pop_front();
            }
        }
        let &(first, _) = self.group.front()?;
        let last = self.group.back().copied().filter(|last| self.is_there(*last));
        let number = match last {
            Some((last, _)) if is_awake(last) => last,
            _ => first,
        };
        self.leave(number);
        Some((number, number != first))
    }
}

impl World {
    /// Thread `number` waits for a switch interval.
    pub(super) fn wait_for_signal(&self, number: usize, settings: Settings) {
        self.cond.borrow_mut().enter(number, self.switches.get());
        self.after(number, self.timer_ns(settings.quantum_ns));
    }

    /// It has woken and does not wait any more.
    pub(super) fn has_woken(&self, number: usize) {
        self.cond.borrow_mut().leave(number);
        self.goes_on(number);
    }

    /// Thread `by` wakes one that waits.
    pub(super) fn signal(&self, by: usize) {
        let signalled = self.cond.borrow_mut().signal(|number| self.is_awake(number));
        match signalled {
            // Both want the mutex now, and one of them sleeps for it.
            Some((number, true)) => self.wake_asleep(number, by),
            Some((number, false)) => self.wake(number, by),
            None => {}
        }
    }

    /// The moment of thread `number` has come: whether it need not go on, because it only asks the
    /// holder and waits again.
    pub(super) fn is_looked_after(&self, number: usize) -> bool {
        let Gil::Scheduled(settings) = self.gil else { return false };
        let saved = self.cond.borrow().saved(number);
        let Some(switches) = saved.filter(|_| self.locked.get()) else { return false };
        // It was awake for that, and has to fall asleep again.
        self.has_slept(number);
        self.tasks.borrow_mut()[number].sleeps_since_ns = self.now_ns.get();
        if switches == self.switches.get() {
            self.request_drop(number);
        }
        self.wait_for_signal(number, settings);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_sleep_yet_takes_the_signal_of_its_own_group_only() {
        let mut cond = Cond::new(3);
        cond.enter(0, 0);
        cond.enter(1, 0);
        assert_eq!(cond.signal(|number| number == 1), Some((1, true)));
        // It came after a signal, so it is of the next group.
        cond.enter(2, 0);
        assert_eq!(cond.signal(|number| number == 2), Some((0, false)));
        assert_eq!(cond.signal(|_| false), Some((2, false)));
        assert_eq!(cond.signal(|_| false), None);
    }

    #[test]
    fn of_a_group_the_first_one_that_still_waits_is_signalled() {
        let mut cond = Cond::new(3);
        (0..3).for_each(|number| cond.enter(number, 0));
        cond.leave(0);
        assert_eq!(cond.signal(|_| false), Some((1, false)));
    }
}
