//! A process is killed at every step of holding what it finds in an object that is guarded meanwhile.

#![cfg(feature = "fault")]

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::cell::Cell;

use support::Child;
use ungil_heap::list;
use ungil_heap::value::Value;
use whole::{LINK, hear, link, linked, node, number, pipe, say, settled, verify};

const SIZE: usize = 16 << 20;

#[test]
fn nothing_is_lost_when_a_reader_dies_while_it_takes_a_reference() {
    let steps = support::every_step(
        SIZE,
        |heap| {
            let (nodes, linked) = ([node(heap, 0), node(heap, 2)], node(heap, 1));
            link(heap, nodes[0].at(), linked.at());
            heap.release(linked).unwrap();
            let (is_guarded, guarded) = pipe();
            let guard = Child::fork(heap, || {
                let _transaction = heap.begin().unwrap();
                list::get(heap, nodes[0].at(), LINK).unwrap();
                say(guarded);
                // SAFETY: waits to be killed.
                unsafe { libc::pause() };
            });
            hear(is_guarded);
            for end in [is_guarded, guarded] {
                // SAFETY: nobody else uses it.
                unsafe { libc::close(end) };
            }
            (nodes, Cell::new(Some(guard)))
        },
        |heap, (nodes, _)| {
            let found = linked(heap, &nodes[0], LINK).unwrap();
            // What the harness looks for: that it is over.
            list::append(heap, nodes[1].at(), &Value::Int(0)).unwrap();
            heap.release(found).unwrap();
        },
        |heap, (nodes, guard)| {
            let happened = list::len(heap, nodes[1].at()).unwrap() == 3;
            if let Some(guard) = guard.take() {
                guard.kill();
                guard.wait();
            }
            settled(heap);
            let found = linked(heap, &nodes[0], LINK).unwrap();
            assert_eq!(number(heap, found.at()), 1);
            heap.release(found).unwrap();
            list::pop(heap, nodes[0].at(), LINK).unwrap();
            assert!(verify(heap).is_exact(), "nobody is thought to look at it still");
            happened
        },
    );
    assert!(steps.unseen > 5, "{steps:?}");
}

#[test]
fn nothing_is_lost_when_a_reader_dies_while_it_holds_what_it_saw_or_lets_go() {
    let steps = support::every_step(
        SIZE,
        |heap| {
            let (nodes, linked) = ([node(heap, 0), node(heap, 2)], node(heap, 1));
            link(heap, nodes[0].at(), linked.at());
            heap.release(linked).unwrap();
            nodes
        },
        |heap, nodes| {
            // A lane for the child's thread, too.
            list::append(heap, nodes[0].at(), &Value::Int(0)).unwrap();
            for _ in 0..2 {
                let seen = list::glance(heap, nodes[0].at(), LINK).unwrap();
                let found = heap.hold_seen(nodes[0].at(), seen).unwrap().unwrap();
                heap.release(found).unwrap();
            }
            list::append(heap, nodes[1].at(), &Value::Int(0)).unwrap();
        },
        |heap, nodes| {
            let happened = list::len(heap, nodes[1].at()).unwrap() == 3;
            settled(heap);
            let found = linked(heap, &nodes[0], LINK).unwrap();
            assert_eq!(number(heap, found.at()), 1);
            heap.release(found).unwrap();
            list::pop(heap, nodes[0].at(), LINK).unwrap();
            assert!(verify(heap).is_exact(), "nobody is thought to look at it still");
            happened
        },
    );
    assert!(steps.unseen > 2 * 6, "{steps:?}");
}
