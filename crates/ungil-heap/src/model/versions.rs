//! Versions: readers without a lock, while others change the object, or die changing it.

use loom::thread;

use super::standstill::die_changing;
use super::*;

fn read(heap: &Heap, at: Offset) -> [u64; 2] {
    let seen = heap.read(at, || Ok(both(heap, at))).unwrap();
    assert_eq!(seen[0], seen[1], "half of a change is read");
    seen
}

/// One reads twice what another changes.
const READ: Model = Model::new(3, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let at = object(&heap).at();
    let other = {
        let heap = second.heap();
        thread::spawn(move || add(&heap, at))
    };
    let before = read(&heap, at);
    assert!(read(&heap, at) >= before, "a change is read and is no more");
    other.join().unwrap();
    assert_eq!(read(&heap, at), [1, 1]);
});

#[test]
fn who_reads_without_a_lock_sees_whole_changes() {
    READ.holds();
}

#[test]
#[should_panic(expected = "half of a change is read")]
fn who_reads_sees_half_of_a_change_without_a_second_look() {
    READ.holds_without("glance: a second look");
}

#[test]
#[should_panic(expected = "half of a change is read")]
fn who_reads_sees_half_of_a_change_if_the_version_stays_even() {
    READ.holds_without("op: odd while it changes");
}

#[test]
#[should_panic(expected = "half of a change is read")]
fn who_reads_sees_half_of_a_change_if_the_version_is_odd_too_late() {
    READ.holds_without("version: odd before the change");
}

#[test]
#[should_panic(expected = "half of a change is read")]
fn who_reads_sees_half_of_a_change_if_it_is_seen_later_than_the_version() {
    READ.holds_without("version: the change is seen");
}

/// One reads what another dies changing.
const DEAD: Model = Model::new(3, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let at = object(&heap).at();
    let other = {
        let heap = second.heap();
        thread::spawn(move || die_changing(&heap, at))
    };
    assert_eq!(read(&heap, at), [0, 0]);
    other.join().unwrap();
    assert_eq!(read(&heap, at), [0, 0]);
});

#[test]
fn who_reads_what_a_dead_one_began_sees_it_undone() {
    DEAD.holds();
}

#[test]
#[should_panic(expected = "half of a change is read")]
fn who_reads_what_a_dead_one_began_sees_half_of_it_if_it_is_not_undone() {
    DEAD.holds_without("leave: what was begun is undone");
}
