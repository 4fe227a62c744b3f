//! The gate: operations, and one who wants the world to stand still.

use std::time::Duration;

use loom::thread;

use super::*;
use crate::atomic::Ordering::{Release, SeqCst};
use crate::lane::{BUSY, IDLE};
use crate::process_table::{FREE, TAKEN};
use crate::world::Stillness;
use crate::{gate, lane, process_table};

/// Looks twice while the world stands still: nothing is half done, and nothing changes.
fn look(heap: &Heap, at: Offset) {
    // `None`: somebody was busy all the time.
    let Some(still) = Stillness::begin(heap, Duration::from_millis(60)).unwrap() else { return };
    let seen = both(heap, at);
    thread::yield_now();
    let again = both(heap, at);
    assert_eq!(seen[0], seen[1], "half of an operation is seen");
    assert_eq!(seen, again, "something changes while the world stands still");
    drop(still);
}

/// One changes an object, while another stops the world.
const STOPPED: Model = Model::new(3, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let root = object(&heap);
    let at = root.at();
    let other = {
        let heap = second.heap();
        thread::spawn(move || look(&heap, at))
    };
    add(&heap, at);
    other.join().unwrap();
    assert_eq!(both(&heap, at), [1, 1]);
    assert_eq!(segment.header().gate.load(Relaxed), 0);
});

#[test]
fn nothing_is_half_done_while_the_world_stands_still() {
    STOPPED.holds();
}

#[test]
#[should_panic(expected = "while the world stands still")]
fn something_is_half_done_if_nobody_looks_at_the_gate() {
    STOPPED.holds_without("enter: a look at the gate");
}

#[test]
#[should_panic(expected = "while the world stands still")]
fn something_is_half_done_if_the_gate_is_looked_at_first() {
    STOPPED.holds_without("enter: busy first");
}

#[test]
#[should_panic(expected = "while the world stands still")]
fn something_is_half_done_if_nobody_is_waited_for() {
    STOPPED.holds_without("world: lanes are waited for");
}

/// One dies in the midst of a change, while another stops the world and a third one changes the
/// same.
const DEAD: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let root = object(&first.heap());
    let at = root.at();
    let dying = {
        let heap = third.heap();
        thread::spawn(move || die_changing(&heap, at))
    };
    let other = {
        let heap = second.heap();
        thread::spawn(move || look(&heap, at))
    };
    dying.join().unwrap();
    other.join().unwrap();
    look(&first.heap(), at);
    assert_eq!(both(&first.heap(), at), [0, 0], "what a dead one began has happened");
});

/// Changes half of an object, and dies.
pub(super) fn die_changing(heap: &Heap, at: Offset) {
    let mut op = heap.op().unwrap();
    op.lock(at).unwrap();
    op.store(at + BODY + 8, 7).unwrap();
    heap.die();
}

#[test]
fn what_a_dead_one_began_is_undone_before_the_world_stands_still() {
    DEAD.holds();
}

#[test]
#[should_panic(expected = "half of an operation is seen")]
fn what_a_dead_one_began_is_seen_if_it_is_not_undone() {
    DEAD.holds_without("leave: what was begun is undone");
}

/// A process ends, and another one takes its place and its lane and knocks at the gate, while who has
/// closed that looks whose the lane is.
const FOLLOWED: Model = Model::new(3, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let (slot, lane) = (second.heap().slot(), second.heap().me().unwrap().lane());
    let heap = first.heap();
    let still = Stillness::begin(&heap, Duration::ZERO).unwrap().expect("nobody is busy");
    let busy = lane::lane(segment, lane).unwrap();
    busy.state.store(BUSY, SeqCst);
    let other = {
        let segment = segment.clone();
        thread::spawn(move || {
            let (busy, slot_of) = (lane::lane(&segment, lane), process_table::slot(&segment, slot));
            let (busy, slot_of) = (busy.unwrap(), slot_of.unwrap());
            busy.state.store(IDLE, SeqCst);
            lane::give_back(busy);
            slot_of.state.store(FREE, Release);
            slot_of.state.store(TAKEN, Release);
            assert_eq!(lane::take(&segment, slot).unwrap(), lane);
            assert!(!gate::enter(&busy.state, &segment.header().gate));
        })
    };
    still.look_after(busy).expect("nothing is damaged");
    other.join().unwrap();
    drop(still);
});

#[test]
fn who_takes_the_place_of_one_that_ends_is_no_damage() {
    FOLLOWED.holds();
}

#[test]
#[should_panic(expected = "nothing is damaged")]
fn who_takes_the_place_of_one_that_ends_is_damage_if_only_its_place_is_looked_at() {
    FOLLOWED.holds_without("world: the same lane");
}
