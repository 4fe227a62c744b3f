//! Lanes: taken, left behind by the dead, cleaned up by one of several who notice, and given to
//! somebody else.

use loom::thread;

use super::standstill::die_changing;
use super::*;
use crate::lane;
use crate::lock::{Holder, Liveness};

/// Two find a lock that a dead one has, and what it began to change.
const INHERITED: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let heap = first.heap();
    let at = object(&heap).at();
    die_changing(&third.heap(), at);
    let other = {
        let heap = second.heap();
        thread::spawn(move || add(&heap, at))
    };
    add(&heap, at);
    other.join().unwrap();
    assert_eq!(both(&heap, at), [2, 2], "a change is lost, or was not undone");
});

#[test]
fn what_a_dead_one_began_is_undone_once_by_one_of_two_who_notice() {
    INHERITED.holds();
}

#[test]
#[should_panic(expected = "a change is lost")]
fn what_a_dead_one_began_is_undone_too_late_if_both_do_it() {
    INHERITED.holds_without("clean: one at a time");
}

#[test]
#[should_panic(expected = "a change is lost")]
fn what_a_dead_one_began_stays_if_it_is_not_undone() {
    INHERITED.holds_without("leave: what was begun is undone");
}

#[test]
#[should_panic(expected = "a change is lost")]
fn what_a_dead_one_began_is_undone_too_late_if_its_lane_is_free_before() {
    INHERITED.holds_without("leave: undone before the lane is free");
}

/// One waits for a lock that a dead one has, while a new process takes the lane of that one.
const GIVEN_AGAIN: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let heap = first.heap();
    let at = object(&heap).at();
    let dead = third.heap().me().unwrap();
    die_changing(&third.heap(), at);
    let other = {
        let heap = second.heap();
        thread::spawn(move || {
            heap.clean().unwrap();
            let lane = lane::take(heap.segment(), heap.slot()).ok();
            let generation =
                lane.map(|lane| lane::lane(heap.segment(), lane).unwrap().generation.load(Relaxed));
            assert_ne!(
                lane.zip(generation).map(|(lane, generation)| Holder::new(lane, generation)),
                Some(dead),
                "somebody has the name of a dead one"
            );
        })
    };
    add(&heap, at);
    other.join().unwrap();
    assert!(heap.is_gone(dead).unwrap());
    assert_eq!(both(&heap, at), [1, 1]);
});

#[test]
fn who_gets_the_lane_of_a_dead_one_is_somebody_else() {
    GIVEN_AGAIN.holds();
}

#[test]
#[should_panic(expected = "somebody has the name of a dead one")]
fn who_gets_the_lane_of_a_dead_one_has_its_name_without_a_new_generation() {
    GIVEN_AGAIN.holds_without("lane: a new generation");
}

/// Two take lanes, of which there is one that is free; one that ends gives another back.
const TAKEN: Model = Model::new(3, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let ending = lane::take(segment, 0).unwrap();
    let other = {
        let heap = second.heap();
        thread::spawn(move || lane::take(heap.segment(), 0).ok())
    };
    lane::give_back(lane::lane(segment, ending).unwrap());
    let mine = lane::take(segment, 0).ok();
    let others = other.join().unwrap();
    assert!(mine.is_some() || others.is_some(), "a free lane is not found");
    assert_ne!(mine, others, "two have the same lane");
    drop(first);
});

#[test]
fn a_lane_has_one_owner() {
    TAKEN.holds();
}

#[test]
#[should_panic(expected = "two have the same lane")]
fn a_lane_has_two_owners_if_it_is_taken_without_comparing() {
    TAKEN.holds_without("lane: it is still free");
}
