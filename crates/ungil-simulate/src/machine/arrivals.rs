//! Threads that begin after others: at once, or where another starts one for each that arrives.

use super::events::Events;
use std::collections::VecDeque;

/// Who lives, and who has arrived where.
#[derive(Debug)]
pub(super) struct Arrivals {
    lives: Vec<Life>,
    doors: Vec<Door>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Life {
    goes_on: bool,
    /// It is to begin again once it has ended.
    again: bool,
}

/// Where one thread starts others.
#[derive(Clone, Debug, Default)]
struct Door {
    /// Those that have arrived.
    arrived: VecDeque<usize>,
    /// Those of them that were let in, and wait to be started.
    let_in: VecDeque<usize>,
    is_waited_at: bool,
    /// The thread has ended.
    is_closed: bool,
}

impl Arrivals {
    pub(super) fn new(threads: usize) -> Self {
        Self { lives: vec![Life::default(); threads], doors: vec![Door::default(); threads] }
    }

    /// Thread `number` is to begin at `at_ns`, or at its end if it lives still.
    pub(super) fn plan(&mut self, number: usize, at_ns: u64, events: &mut Events) {
        let life = &mut self.lives[number];
        if life.goes_on {
            life.again = true;
        } else {
            events.plan(number, at_ns);
        }
    }

    /// Thread `number` begins.
    pub(super) fn begins(&mut self, number: usize) {
        self.lives[number].goes_on = true;
    }

    /// Thread `number` arrives where `starter` is to start it. Whether that one will.
    pub(super) fn arrives(
        &mut self,
        number: usize,
        starter: usize,
        now_ns: u64,
        events: &mut Events,
    ) -> bool {
        let door = &mut self.doors[starter];
        if door.is_closed {
            return false;
        }
        door.arrived.push_back(number);
        if std::mem::take(&mut door.is_waited_at) {
            events.plan(starter, now_ns);
        }
        true
    }

    /// Thread `starter` lets in the first one that has arrived. Whether there is one; if not, it is
    /// woken when one arrives.
    pub(super) fn lets_in(&mut self, starter: usize) -> bool {
        let door = &mut self.doors[starter];
        let first = door.arrived.pop_front();
        door.let_in.extend(first);
        door.is_waited_at = first.is_none();
        first.is_some()
    }

    /// Whom thread `starter` starts now.
    pub(super) fn starts(&mut self, starter: usize) -> Option<usize> {
        self.doors[starter].let_in.pop_front()
    }

    /// Thread `number` has ended. Those that it was to start begin without it.
    pub(super) fn ended(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        if std::mem::take(&mut self.lives[number]).again {
            events.plan(number, now_ns);
        }
        let door = &mut self.doors[number];
        door.is_closed = true;
        for waiting in door.let_in.drain(..).chain(door.arrived.drain(..)) {
            events.plan(waiting, now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(events: &mut Events) -> Vec<(usize, u64)> {
        std::iter::from_fn(|| events.next()).collect()
    }

    #[test]
    fn who_arrives_is_let_in_and_started_in_order() {
        let (mut arrivals, mut events) = (Arrivals::new(3), Events::new(3));
        assert!(!arrivals.lets_in(0));
        assert!(arrivals.arrives(1, 0, 10, &mut events));
        assert!(arrivals.arrives(2, 0, 20, &mut events));
        assert_eq!(next(&mut events), [(0, 10)], "the starter is woken once");
        assert!(arrivals.lets_in(0));
        assert_eq!([arrivals.starts(0), arrivals.starts(0)], [Some(1), None]);
        assert!(arrivals.lets_in(0));
        assert_eq!(arrivals.starts(0), Some(2));
    }

    #[test]
    fn a_thread_begins_again_only_once_it_has_ended() {
        let (mut arrivals, mut events) = (Arrivals::new(1), Events::new(1));
        arrivals.begins(0);
        arrivals.plan(0, 10, &mut events);
        assert_eq!(next(&mut events), []);
        arrivals.ended(0, 50, &mut events);
        assert_eq!(next(&mut events), [(0, 50)]);
    }

    #[test]
    fn who_waits_for_a_starter_that_ends_begins_without_it() {
        let (mut arrivals, mut events) = (Arrivals::new(3), Events::new(3));
        assert!(arrivals.arrives(1, 0, 10, &mut events));
        assert!(arrivals.lets_in(0));
        assert!(arrivals.arrives(2, 0, 20, &mut events));
        arrivals.ended(0, 30, &mut events);
        assert_eq!(next(&mut events), [(1, 30), (2, 30)]);
        assert!(!arrivals.arrives(1, 0, 40, &mut events));
    }
}
