//! Handles on their way: pinned by one, adopted by others, while the object loses its other
//! references and collectors look for what is lost.

use std::time::Duration;

use loom::thread;

use super::*;
use crate::Error;
use crate::pin::Pin;

/// Adopts a pin and lets go of the object; whether it was there.
fn adopt(heap: &Heap, pin: &Pin) -> bool {
    match heap.adopt(pin) {
        Ok(root) => {
            assert!(heap.is_alive(&root).unwrap(), "what was adopted is no more");
            heap.release(root).unwrap();
            true
        }
        Err(Error::Stale) => false,
        Err(error) => panic!("a pin cannot be adopted: {error}"),
    }
}

/// Gives a process its table, so that none is made later.
fn settle(process: &Process) {
    let heap = process.heap();
    heap.release(object(&heap)).unwrap();
}

/// Two adopt the same pin, whose maker has let go of the object.
const TWICE: Model = Model::new(2, twice).with_chunks(6);

fn twice(segment: &Segment) {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let heap = first.heap();
    let root = object(&heap);
    let pin = heap.pin(&root).unwrap();
    heap.release(root).unwrap();
    settle(&second);
    settle(&third);
    let other = {
        let heap = second.heap();
        thread::spawn(move || adopt(&heap, &pin))
    };
    let mine = adopt(&third.heap(), &pin);
    let others = other.join().unwrap();
    assert!(mine || others, "nobody has got what was sent");
    assert!(!adopt(&heap, &pin), "an object is left that nobody has");
    verify(&heap);
}

#[test]
fn a_pin_that_two_adopt_is_one_reference() {
    TWICE.holds();
}

#[test]
#[should_panic(expected = "what was adopted is no more")]
fn a_pin_that_two_adopt_is_two_references_if_it_stays() {
    TWICE.holds_without("pin: taken over once");
}

#[test]
#[should_panic(expected = "what was adopted is no more")]
fn a_pin_that_two_adopt_is_two_references_if_tables_have_no_lock() {
    TWICE.holds_without("roots: a lock");
}

/// One unpickles again what was adopted before, while the last who holds it lets go.
const AGAIN: Model = Model::new(3, again).with_chunks(6);

fn again(segment: &Segment) {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let root = object(&heap);
    let pin = heap.pin(&root).unwrap();
    settle(&second);
    let adopted = second.heap().adopt(&pin).unwrap();
    second.heap().release(adopted).unwrap();
    let other = {
        let heap = second.heap();
        thread::spawn(move || _ = adopt(&heap, &pin))
    };
    heap.release(root).unwrap();
    let new = object(&heap);
    other.join().unwrap();
    assert!(heap.is_alive(&new).unwrap(), "a new object lost its reference");
    heap.release(new).unwrap();
    verify(&heap);
}

#[test]
fn who_adopts_again_gets_the_object_or_is_too_late() {
    AGAIN.holds();
}

#[test]
#[should_panic(expected = "a block was freed twice")]
fn who_adopts_again_gets_what_is_no_more_if_it_may_be_dead() {
    AGAIN.holds_without("retain: only if alive");
}

/// The sender has died: a collector gives its handles up, while somebody comes for one.
const COLLECTED: Model = Model::new(2, collected).with_chunks(6);

fn collected(segment: &Segment) {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let sender = Process::another(segment);
    settle(&second);
    let heap = sender.heap();
    let root = object(&heap);
    let pin = heap.pin(&root).unwrap();
    heap.die();
    let other = {
        let heap = second.heap();
        thread::spawn(move || adopt(&heap, &pin))
    };
    let heap = first.heap();
    let _ = heap.collect(Duration::from_millis(100)).unwrap();
    other.join().unwrap();
    let collected = heap.collect(Duration::from_millis(100)).unwrap();
    assert!(collected.is_some());
    verify(&heap);
}

#[test]
fn a_pin_of_a_dead_one_is_adopted_or_collected() {
    COLLECTED.holds();
}

#[test]
#[should_panic(expected = "what was adopted is no more")]
fn a_pin_of_a_dead_one_is_both_if_nobody_looks_at_the_gate() {
    COLLECTED.holds_without("enter: a look at the gate");
}

/// The process table is full, so that who joins it gives up the handles of a process that has left,
/// while somebody comes for one.
const JOINED: Model = Model::new(2, joined).with_chunks(8);

fn joined(segment: &Segment) {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let sender = Process::another(segment);
    settle(&second);
    let heap = sender.heap();
    let root = object(&heap);
    let pin = heap.pin(&root).unwrap();
    heap.release(root).unwrap();
    drop((heap, sender));
    let other = {
        let heap = second.heap();
        thread::spawn(move || _ = adopt(&heap, &pin))
    };
    let third = Process::another(segment);
    let mine = object(&third.heap());
    other.join().unwrap();
    assert!(third.heap().is_alive(&mine).unwrap());
    third.heap().release(mine).unwrap();
    let collected = first.heap().collect(Duration::from_millis(100)).unwrap();
    assert!(collected.is_some());
    verify(&first.heap());
}

#[test]
fn a_pin_is_adopted_or_given_up_when_somebody_joins() {
    JOINED.holds();
}

#[test]
#[should_panic(expected = "a pin cannot be adopted")]
fn a_pin_that_is_given_up_is_damage_if_it_is_looked_for_twice() {
    JOINED.holds_without("pin: one look at the table");
}
