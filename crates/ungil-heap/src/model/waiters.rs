//! Who waits, and who wakes: events and conditions.

use std::time::Duration;

use loom::thread;

use super::*;
use crate::clock;
use crate::sync::{condition, event};

/// Two wait for an event, which a third one sets.
const SET: Model = Model::with_calls(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let at = object(&first.heap()).at();
    let [one, two] = [&second, &third].map(|process| {
        let heap = process.heap();
        thread::spawn(move || assert!(event::wait(&heap, at, None).unwrap()))
    });
    event::set(&first.heap(), at).unwrap();
    one.join().unwrap();
    two.join().unwrap();
});

#[test]
fn who_waits_for_an_event_is_woken() {
    SET.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_an_event_sleeps_on_without_a_call() {
    SET.holds_without("event: a call");
}

/// One waits for an event that is set, and cleared before it can look.
const PULSE: Model = Model::with_calls(3, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let at = object(&first.heap()).at();
    let waiter = {
        let heap = second.heap();
        thread::spawn(move || assert!(event::wait(&heap, at, None).unwrap()))
    };
    let heap = first.heap();
    let is_waiting = segment.word32(at + BODY).unwrap().load(Relaxed) >> 31 == 1;
    event::set(&heap, at).unwrap();
    event::clear(&heap, at).unwrap();
    if !is_waiting {
        // It may not have begun before.
        event::set(&heap, at).unwrap();
    }
    waiter.join().unwrap();
});

#[test]
fn who_waits_for_an_event_sees_that_it_was_set_though_it_is_cleared() {
    PULSE.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_an_event_misses_it_without_a_count() {
    PULSE.holds_without("event: a count");
}

/// A condition, with a thing to wait for in word 1 of another object.
fn condition(heap: &Heap) -> (Offset, Offset) {
    let condition = heap.make(|op| condition::create(op, None)).unwrap().at();
    (condition, object(heap).at())
}

/// Waits until there is something, and takes it.
fn consume(heap: &Heap, (condition, thing): (Offset, Offset)) {
    let got = condition::acquire(heap, condition, None).unwrap();
    assert!(got.is_some());
    while body(heap, thing, 1).load(Relaxed) == 0 {
        assert!(condition::wait(heap, condition, None).unwrap());
    }
    body(heap, thing, 1).store(0, Relaxed);
    condition::release(heap, condition).unwrap();
}

fn produce(heap: &Heap, (condition, thing): (Offset, Offset)) -> usize {
    let got = condition::acquire(heap, condition, None).unwrap();
    assert!(got.is_some());
    body(heap, thing, 1).store(1, Relaxed);
    let notified = condition::notify(heap, condition, 1).unwrap();
    condition::release(heap, condition).unwrap();
    notified
}

/// One waits under a lock for what another does under it.
const NOTIFIED: Model = Model::with_calls(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let places = condition(&first.heap());
    let waiter = {
        let heap = second.heap();
        thread::spawn(move || consume(&heap, places))
    };
    produce(&first.heap(), places);
    waiter.join().unwrap();
    assert!(condition::waiting(&first.heap(), places.0).unwrap().is_empty());
});

#[test]
fn who_waits_under_a_lock_is_notified_of_what_happens_under_it() {
    NOTIFIED.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_under_a_lock_sleeps_on_without_a_call() {
    NOTIFIED.holds_without("waiters: a call");
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_under_a_lock_misses_what_happens_before_it_is_listed() {
    NOTIFIED.holds_without("wait: listed before the lock is let go");
}

/// One waits for a moment only, while another notifies.
const IN_TIME: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let places = condition(&first.heap());
    let waiter = {
        let heap = second.heap();
        thread::spawn(move || {
            let got = condition::acquire(&heap, places.0, None).unwrap();
            assert!(got.is_some());
            let end = clock::now() + Duration::from_millis(30);
            let was_notified = condition::wait(&heap, places.0, Some(end)).unwrap();
            condition::release(&heap, places.0).unwrap();
            was_notified
        })
    };
    let notified = produce(&first.heap(), places);
    assert_eq!(waiter.join().unwrap(), notified == 1, "a notification is lost, or made up");
    assert!(condition::waiting(&first.heap(), places.0).unwrap().is_empty());
});

#[test]
fn who_gives_up_was_notified_or_was_not() {
    IN_TIME.holds();
}

#[test]
#[should_panic(expected = "a notification is lost")]
fn who_gives_up_loses_a_notification_without_a_last_look() {
    IN_TIME.holds_without("withdraw: an answer that came late");
}

/// One of two who wait dies when it was notified and has not gone on; the other one comes meanwhile.
const DYING: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let places = condition(&first.heap());
    // The dying one has waited longest.
    let dying = third.heap();
    let mut op = dying.op().unwrap();
    op.lock(places.0).unwrap();
    sync::waiters::join(&mut op, places.0, dying.me().unwrap()).unwrap();
    op.commit().unwrap();
    let waiter = {
        let heap = second.heap();
        thread::spawn(move || consume(&heap, places))
    };
    produce(&first.heap(), places);
    dying.die();
    waiter.join().unwrap();
});

#[test]
fn the_notification_of_a_dead_one_goes_to_the_next() {
    DYING.holds();
}

#[test]
#[should_panic(expected = "branches")]
fn the_notification_of_a_dead_one_is_lost_if_nobody_inherits_it() {
    DYING.holds_without("wait: inherited");
}
