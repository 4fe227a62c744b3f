//! Every thread gets the GIL as often as it wants, one at a time, whatever the order in which the
//! threads run: loom tries all orders of two or three threads with few preemptions, shuttle random
//! ones of more.
//!
//! Mutations of line.rs that must fail here: no wake-up in `released` or `adopt`, or of a new
//! timekeeper in `acquired`; nobody keeps time; a waiter that returns and is still queued, or
//! remembered as the timekeeper or as the one that was granted the GIL.

use super::model::{Arc, Gil, Here, QUANTUM_NS, thread};
use crate::schedule::{Policy, Settings};

/// What happens at any time beside the threads that use the GIL.
type Event = fn(&Gil);

#[derive(Clone, Copy)]
struct Scenario {
    policy: Policy,
    threads: usize,
    /// How often each of them uses the GIL.
    times: u32,
    events: &'static [Event],
    /// Whether the main thread finalizes the interpreter while it uses the GIL.
    finalizes: bool,
    /// Whether they have a lock in the first half of each use.
    has_locks: bool,
}

const TWO: Scenario = Scenario {
    policy: Policy::Interactive,
    threads: 2,
    times: 2,
    events: &[],
    finalizes: false,
    has_locks: false,
};

impl Scenario {
    /// The caller is the main thread.
    fn play(self) {
        let settings = with_quantum(self.policy);
        let mut gil = Gil::new(self.threads + self.events.len(), settings);
        gil.finalizes = self.finalizes;
        gil.has_locks = self.has_locks;
        let gil = Arc::new(gil);
        let mut others: Vec<_> = (1..self.threads)
            .map(|number| {
                let gil = gil.clone();
                thread::spawn(move || self.live(&gil, number))
            })
            .collect();
        others.extend(self.events.iter().map(|&event| {
            let gil = gil.clone();
            thread::spawn(move || {
                event(&gil);
                gil.ended();
            })
        }));
        self.live(&gil, 0);
        for other in others {
            other.join().unwrap();
        }
        assert!(gil.line.is_empty());
        if !self.finalizes {
            let uses = u32::try_from(self.threads).unwrap() * self.times * 2;
            assert_eq!(*gil.object.lock().unwrap(), uses);
        }
    }

    fn live(self, gil: &Gil, number: usize) {
        let here = Here::new(gil, number);
        let done = (0..self.times).all(|_| here.work());
        assert!(done || self.finalizes && number != 0);
        gil.ended();
    }
}

fn with_quantum(policy: Policy) -> Settings {
    Settings { policy, quantum_ns: QUANTUM_NS }
}

fn alarm(gil: &Gil) {
    gil.alarm();
}

fn interrupt(gil: &Gil) {
    gil.interrupt();
}

fn to_stock(gil: &Gil) {
    *gil.page.lock().unwrap() = with_quantum(Policy::Stock);
}

fn to_fair(gil: &Gil) {
    *gil.page.lock().unwrap() = with_quantum(Policy::Fair);
}

fn to_priority(gil: &Gil) {
    *gil.page.lock().unwrap() = with_quantum(Policy::Priority);
}

#[cfg(loom)]
mod all_orders {
    use super::*;

    fn check(preemptions: usize, scenario: Scenario) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 10_000;
        builder.check(move || scenario.play());
    }

    #[test]
    fn two_threads_get_the_gil_as_often_as_they_want_it() {
        check(5, TWO);
    }

    #[test]
    fn three_threads_get_the_gil_once() {
        check(4, Scenario { threads: 3, times: 1, ..TWO });
    }

    #[test]
    fn a_timer_fires_at_any_time() {
        check(3, Scenario { events: &[alarm], ..TWO });
        check(2, Scenario { threads: 3, times: 1, events: &[alarm], ..TWO });
    }

    #[test]
    fn a_policy_changes_while_a_thread_waits() {
        let scenario = Scenario { policy: Policy::Fair, times: 1, ..TWO };
        check(3, Scenario { events: &[to_priority], ..scenario });
        check(3, Scenario { events: &[to_stock], ..scenario });
        check(3, Scenario { policy: Policy::Stock, events: &[to_fair], ..scenario });
    }

    #[test]
    fn a_thread_with_a_lock_takes_the_gil_back_and_is_asked_again() {
        let scenario = Scenario { has_locks: true, ..TWO };
        check(4, scenario);
        check(3, Scenario { threads: 3, times: 1, ..scenario });
        check(3, Scenario { times: 1, events: &[alarm], ..scenario });
        check(3, Scenario { times: 1, events: &[to_stock], ..scenario });
        check(3, Scenario { finalizes: true, ..scenario });
    }

    #[test]
    fn a_signal_interrupts_the_main_thread_in_its_wait() {
        check(3, Scenario { times: 1, events: &[interrupt], ..TWO });
    }

    #[test]
    fn a_thread_exits_in_its_wait_when_the_interpreter_is_finalized() {
        check(3, Scenario { finalizes: true, ..TWO });
    }
}

#[cfg(not(loom))]
mod random_orders {
    use super::*;

    const FOUR: Scenario = Scenario { threads: 4, times: 3, events: &[alarm, alarm], ..TWO };

    fn check(scenario: Scenario) {
        shuttle::check_random(move || scenario.play(), 250);
        shuttle::check_pct(move || scenario.play(), 250, 4);
    }

    #[test]
    fn every_thread_gets_the_gil_as_often_as_it_wants_it() {
        for policy in Policy::ALL {
            check(Scenario { policy, ..FOUR });
        }
    }

    #[test]
    fn threads_with_locks_take_the_gil_back_and_are_asked_again() {
        let scenario = Scenario { has_locks: true, ..FOUR };
        for policy in Policy::ALL {
            check(Scenario { policy, ..scenario });
        }
        check(Scenario { events: &[alarm, to_priority, to_stock, to_fair], ..scenario });
        check(Scenario { finalizes: true, ..scenario });
    }

    #[test]
    fn a_policy_changes_while_threads_wait() {
        let events: &[Event] = &[alarm, to_priority, to_fair, alarm];
        check(Scenario { events, ..FOUR });
        check(Scenario { events: &[alarm, to_stock, alarm], ..FOUR });
        let events: &[Event] = &[alarm, to_fair, to_stock, alarm];
        check(Scenario { policy: Policy::Stock, events, ..FOUR });
    }

    #[test]
    fn a_signal_interrupts_the_main_thread_in_its_wait() {
        check(Scenario { events: &[interrupt, alarm, interrupt], ..FOUR });
    }

    #[test]
    fn threads_exit_in_their_wait_when_the_interpreter_is_finalized() {
        check(Scenario { finalizes: true, ..FOUR });
    }
}
