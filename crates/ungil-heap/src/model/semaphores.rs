//! Semaphores: units that are given to those who sleep.

use loom::thread;

use super::*;
use crate::sync::{bounded, semaphore};

/// Two wait for a unit each; the units come one after the other.
const UNITS: Model = Model::with_calls(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let heap = first.heap();
    let at = heap.make(|op| semaphore::create(op, 0)).unwrap().at();
    let others = [&second, &third].map(|process| {
        let heap = process.heap();
        thread::spawn(move || assert!(semaphore::acquire(&heap, at, None).unwrap()))
    });
    semaphore::release(&heap, at, 1).unwrap();
    semaphore::release(&heap, at, 1).unwrap();
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(semaphore::value(&heap, at).unwrap(), 0);
});

#[test]
fn who_waits_for_a_unit_gets_one() {
    UNITS.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_unit_sleeps_on_without_a_call() {
    UNITS.holds_without("semaphore: a call");
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_unit_sleeps_on_if_a_call_ends_with_who_is_called() {
    UNITS.holds_without("semaphore: a call is handed on");
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_unit_sleeps_on_if_another_forgets_that() {
    UNITS.holds_without("semaphore: others may sleep still");
}

/// One has both units and gives them back; two wait for one each.
const BOUNDED: Model = Model::with_calls(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let heap = first.heap();
    let at = heap.make(|op| bounded::create(op, 2)).unwrap().at();
    for _ in 0..2 {
        assert!(bounded::acquire(&heap, at, None).unwrap().is_some());
    }
    let others = [&second, &third].map(|process| {
        let heap = process.heap();
        thread::spawn(move || assert!(bounded::acquire(&heap, at, None).unwrap().is_some()))
    });
    for _ in 0..2 {
        assert!(bounded::release(&heap, at).unwrap());
    }
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(bounded::value(&heap, at).unwrap(), 0);
});

#[test]
fn who_waits_for_a_place_gets_one() {
    BOUNDED.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_place_sleeps_on_without_a_call() {
    BOUNDED.holds_without("bounded: a call");
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_place_sleeps_on_if_a_call_ends_with_who_is_called() {
    BOUNDED.holds_without("bounded: a call is handed on");
}
