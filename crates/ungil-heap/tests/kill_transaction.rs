//! A process is killed at every step of a transaction; another one finds all of it or nothing.

#![cfg(feature = "fault")]

mod support;
#[path = "support/whole.rs"]
mod whole;

use support::every_step;
use ungil_heap::deque::{self, End};
use ungil_heap::roots::Root;
use ungil_heap::value::Value;
use ungil_heap::{Heap, dict, list};
use whole::settled;

const SIZE: usize = 4 << 20;
const KEY: Value<'static> = Value::Int(0);

/// A dict, a list and a deque, with something in each.
fn three(heap: &Heap) -> [Root; 3] {
    let three = [
        heap.make(|op| dict::create(op)).unwrap(),
        heap.make(|op| list::create(op)).unwrap(),
        heap.make(|op| deque::create(op, None)).unwrap(),
    ];
    let [dict, list, deque] = three.each_ref().map(Root::at);
    dict::set(heap, dict, &KEY, &Value::Int(1)).unwrap();
    list::append(heap, list, &whole::text(1)).unwrap();
    deque::push(heap, deque, End::Right, &Value::Int(1)).unwrap();
    three
}

/// What is in the three: 1 in each, or 2 in each, with the list in the dict.
fn happened(heap: &Heap, three: &[Root; 3]) -> bool {
    let [dict, list, deque] = three.each_ref().map(Root::at);
    // As a transaction, which waits for nothing that is half done.
    let transaction = heap.begin().unwrap();
    let found = (
        dict::get(heap, dict, &KEY).unwrap(),
        list::get(heap, list, 0).unwrap(),
        deque::get(heap, deque, 0).unwrap(),
    );
    transaction.commit().unwrap();
    let happened = found.2 == Some(Value::Int(2));
    if happened {
        let Some(Value::Object(made)) = found.0 else { panic!("half of it is seen: {found:?}") };
        assert_eq!(list::get(heap, made, 0).unwrap(), Some(Value::Int(2)));
        assert_eq!(found.1, Some(whole::text(2)));
    } else {
        let one = Some(Value::Int(1));
        assert_eq!(found, (one.clone(), Some(whole::text(1)), one), "half of it is seen");
    }
    settled(heap);
    happened
}

fn change(heap: &Heap, three: &[Root; 3]) {
    let [dict, list, deque] = three.each_ref().map(Root::at);
    assert_eq!(deque::pop(heap, deque, End::Right).unwrap(), Some(Value::Int(1)));
    let made = heap.make(|op| list::create(op)).unwrap();
    list::append(heap, made.at(), &Value::Int(2)).unwrap();
    dict::set(heap, dict, &KEY, &Value::Object(made.at())).unwrap();
    heap.release(made).unwrap();
    list::set(heap, list, 0, &whole::text(2)).unwrap();
    deque::push(heap, deque, End::Right, &Value::Int(2)).unwrap();
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let steps = every_step(
        SIZE,
        |heap| three(heap),
        |heap, three| {
            let transaction = heap.begin().unwrap();
            change(heap, three);
            transaction.commit().unwrap();
        },
        happened,
    );
    assert!(steps.unseen > 30, "{steps:?}");
}

#[test]
fn a_transaction_that_is_undone_is_not_seen_whenever_its_process_dies() {
    every_step(
        SIZE,
        |heap| three(heap),
        |heap, three| {
            let transaction = heap.begin().unwrap();
            change(heap, three);
            transaction.roll_back().unwrap();
            // What the harness looks for: that it is over.
            let transaction = heap.begin().unwrap();
            let part = heap.begin().unwrap();
            change(heap, three);
            part.roll_back().unwrap();
            change(heap, three);
            transaction.commit().unwrap();
        },
        happened,
    );
}
