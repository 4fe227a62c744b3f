//! Queues: what is put in is taken out once, and nobody sleeps while there is something.

use loom::thread;

use super::*;
use crate::queue::{self, Got, Options, Put};
use crate::value::Value;

/// The first chunk after the reserve is for a queue.
pub(super) fn rooms(layout: &Layout) -> Vec<Room> {
    let mut rooms = vec![Room::Queue(layout.chunk(1))];
    for chunk in (0..layout.chunks).filter(|chunk| *chunk != 1) {
        rooms.push(Room::Words(layout.chunk(chunk), 48));
    }
    rooms
}

fn make(heap: &Heap, limit: Option<usize>) -> Offset {
    heap.make(|op| queue::create(op, Options { limit, ..Options::default() })).unwrap().at()
}

fn put(heap: &Heap, at: Offset, number: i64) {
    assert_eq!(queue::put(heap, at, &Value::Int(number), None).unwrap(), Put::Done);
}

fn get(heap: &Heap, at: Offset) -> i64 {
    match queue::get(heap, at, None, &mut |_| Ok(())).unwrap() {
        Got::Cell(cell) => cell.int().expect("a number"),
        other => panic!("{other:?}"),
    }
}

/// Two wait for a value each; the values come one after the other.
const VALUES: Model = Model::with_calls(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let heap = first.heap();
    let at = make(&heap, None);
    let others = [&second, &third].map(|process| {
        let heap = process.heap();
        thread::spawn(move || get(&heap, at))
    });
    put(&heap, at, 1);
    put(&heap, at, 2);
    let got = others.map(|other| other.join().unwrap());
    assert!(got == [1, 2] || got == [2, 1], "{got:?}");
})
.of_a_queue();

#[test]
fn who_waits_for_a_value_gets_one() {
    VALUES.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_value_sleeps_on_without_a_call() {
    VALUES.holds_without("queue: a call");
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_value_sleeps_on_if_a_call_ends_with_who_is_called() {
    VALUES.holds_without("queue: a call is handed on");
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_value_sleeps_on_if_neither_sees_the_other() {
    VALUES.holds_without("queue: one sees the other");
}

/// One puts a value in where there is no room; another one takes one out.
const ROOM: Model = Model::with_calls(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let at = make(&heap, Some(1));
    put(&heap, at, 1);
    let other = {
        let heap = second.heap();
        thread::spawn(move || assert_eq!(get(&heap, at), 1))
    };
    put(&heap, at, 2);
    other.join().unwrap();
    assert_eq!(get(&heap, at), 2);
})
.of_a_queue();

#[test]
fn who_waits_for_room_gets_some() {
    ROOM.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_room_sleeps_on_without_a_call() {
    ROOM.holds_without("queue: a call");
}

/// One puts more in than the ring has cells for, while another one takes it out.
const GROWTH: Model = Model::with_calls(1, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let at = make(&heap, None);
    put(&heap, at, 1);
    put(&heap, at, 2);
    let other = {
        let heap = second.heap();
        thread::spawn(move || [get(&heap, at), get(&heap, at)])
    };
    put(&heap, at, 3);
    assert_eq!(other.join().unwrap(), [1, 2]);
    assert_eq!(get(&heap, at), 3);
})
.of_a_queue()
.with_chunks(6);

#[test]
fn nothing_is_lost_or_seen_twice_while_the_ring_grows() {
    GROWTH.holds();
}

/// One watches; another one puts something in.
const WATCHED: Model = Model::with_calls(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let at = make(&heap, None);
    let other = {
        let heap = second.heap();
        thread::spawn(move || assert_eq!(queue::wait(&heap, &[at], None).unwrap(), [0]))
    };
    put(&heap, at, 1);
    other.join().unwrap();
})
.of_a_queue();

#[test]
fn who_watches_a_queue_sees_what_comes() {
    WATCHED.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_watches_a_queue_sleeps_on_without_a_call() {
    WATCHED.holds_without("watch: a call");
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_watches_a_queue_sleeps_on_if_neither_sees_the_other() {
    WATCHED.holds_without("watch: one sees the other");
}
