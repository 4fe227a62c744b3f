//! Holding what is found in objects that others have locked: for whom a reader waits, and for whom
//! not.

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use support::{Child, heap, no_forks};
use ungil_heap::lock::Pause;
use ungil_heap::object;
use ungil_heap::roots::Root;
use ungil_heap::segment::Offset;
use ungil_heap::slice::Slice;
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, Result, list};
use whole::{LINK, link, linked, node, number, settled, verify};

const SIZE: usize = 16 << 20;

/// Fails instead of waiting.
struct Never;

impl Pause for Never {
    fn pause(&self, _: &mut dyn FnMut()) -> Result<()> {
        Err(Error::Interrupted)
    }
}

/// A heap whose threads never wait, and a node with links to two others.
fn three() -> (Arc<Heap>, [Root; 3]) {
    let heap = {
        let _no_forks = no_forks();
        Heap::anonymous(SIZE, Box::new(Never)).unwrap()
    };
    let nodes = [0, 1, 2].map(|number| node(&heap, number));
    for linked in &nodes[1..] {
        link(&heap, nodes[0].at(), linked.at());
    }
    (heap, nodes)
}

/// A process that does `work` in a transaction, and is stopped in it.
fn stopped(heap: &Heap, work: impl FnOnce()) -> Child {
    let child = Child::fork(heap, || {
        let _transaction = heap.begin().unwrap();
        work();
        // SAFETY: stops this process.
        unsafe { libc::raise(libc::SIGSTOP) };
    });
    let mut status = 0;
    // SAFETY: the integer lives during the call.
    let pid = unsafe { libc::waitpid(child.pid(), &raw mut status, libc::WUNTRACED) };
    assert_eq!(pid, child.pid());
    assert!(libc::WIFSTOPPED(status), "the child ended: {status:x}");
    child
}

#[test]
fn a_reader_waits_neither_for_who_only_reads_nor_for_what_is_written_elsewhere() {
    let (heap, nodes) = three();
    let _stopped = stopped(&heap, || {
        let found = linked(&heap, &nodes[0], LINK).unwrap();
        list::set(&heap, found.at(), 0, &Value::Int(7)).unwrap();
    });
    let refused = list::append(&heap, nodes[0].at(), &Value::Int(0));
    assert!(matches!(refused, Err(Error::Interrupted)), "it is guarded: {refused:?}");
    for (link, expected) in [(LINK, &nodes[1]), (LINK + 1, &nodes[2])] {
        let found = linked(&heap, &nodes[0], link).unwrap();
        assert_eq!(found.at(), expected.at());
        heap.release(found).unwrap();
    }
    let (values, held) = heap
        .hold_all(nodes[0].at(), |found| {
            let values = list::get_slice(&heap, nodes[0].at(), Slice::ALL)?;
            found.extend(values.iter().filter_map(|value| match value {
                Value::Object(at) => Some(*at),
                _ => None,
            }));
            Ok(values)
        })
        .unwrap();
    assert_eq!((values.len(), held.len()), (4, 2));
    assert_eq!(number(&heap, nodes[2].at()), 2);
    let refused = list::get(&heap, nodes[1].at(), 0);
    assert!(matches!(refused, Err(Error::Interrupted)), "it is being changed: {refused:?}");
    for root in held {
        heap.release(root).unwrap();
    }
}

#[test]
fn a_reader_waits_for_who_changes_the_same_object() {
    let (heap, nodes) = three();
    let stopped = stopped(&heap, || {
        list::append(&heap, nodes[0].at(), &Value::Int(7)).unwrap();
    });
    assert!(matches!(linked(&heap, &nodes[0], LINK), Err(Error::Interrupted)));
    stopped.kill();
    stopped.wait();
    heap.clean().unwrap();
    // What the dead one had begun is undone; nobody has to wait for its locks.
    let held = linked(&heap, &nodes[0], LINK);
    assert_eq!(held.unwrap().at(), nodes[1].at());
}

#[test]
fn what_is_found_is_whole_while_others_replace_it_in_transactions() {
    let heap = heap(SIZE);
    let hub = node(&heap, 0);
    let first = node(&heap, 1);
    link(&heap, hub.at(), first.at());
    heap.release(first).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    let found = linked(&heap, &hub, LINK).unwrap();
                    assert!(number(&heap, found.at()) > 0);
                    heap.release(found).unwrap();
                }
            });
        }
        for number in 2..2000 {
            // The hub is guarded first, so that readers find it locked, and changed then.
            let transaction = heap.begin().unwrap();
            list::get(&heap, hub.at(), LINK).unwrap();
            let made = node(&heap, number);
            list::set(&heap, hub.at(), LINK, &Value::Object(made.at())).unwrap();
            transaction.commit().unwrap();
            heap.release(made).unwrap();
        }
        is_over.store(true, SeqCst);
    });
    assert_eq!(settled(&heap).objects, 2);
}

/// Holds the node to which the link at this index leads, by a glance.
fn glanced(heap: &Heap, from: &Root, index: isize) -> Option<Root> {
    let seen = list::glance(heap, from.at(), index)?;
    heap.hold_seen(from.at(), seen).unwrap()
}

fn references(heap: &Heap, at: Offset) -> u32 {
    object::head(heap.segment(), at).unwrap().references()
}

#[test]
fn what_a_glance_sees_can_be_held_once_more_and_released() {
    let (heap, nodes) = three();
    let before = references(&heap, nodes[1].at());
    // More than the first table has room for: then all of an operation is needed.
    let mut held = Vec::new();
    for _ in 0..40 {
        let found = glanced(&heap, &nodes[0], LINK);
        held.push(found.unwrap_or_else(|| linked(&heap, &nodes[0], LINK).unwrap()));
    }
    assert!(held.iter().all(|found| found.at() == nodes[1].at()));
    assert_eq!(references(&heap, nodes[1].at()), before + 40);
    for found in held {
        heap.release(found).unwrap();
    }
    assert_eq!(references(&heap, nodes[1].at()), before);
    settled(&heap);
}

#[test]
fn what_a_glance_saw_is_not_held_after_the_container_has_changed() {
    let (heap, nodes) = three();
    let seen = list::glance(&heap, nodes[0].at(), LINK).unwrap();
    list::pop(&heap, nodes[0].at(), LINK).unwrap();
    assert_eq!(heap.hold_seen(nodes[0].at(), seen).unwrap(), None);
    assert_eq!(references(&heap, nodes[1].at()), 1, "this process holds it");
    settled(&heap);
}

#[test]
fn what_a_glance_saw_is_not_held_without_more_ado_in_a_transaction() {
    let (heap, nodes) = three();
    let seen = list::glance(&heap, nodes[0].at(), LINK).unwrap();
    let transaction = heap.begin().unwrap();
    assert_eq!(heap.hold_seen(nodes[0].at(), seen).unwrap(), None);
    transaction.commit().unwrap();
    settled(&heap);
}

#[test]
fn an_object_that_only_its_holder_has_is_freed_when_it_is_released() {
    let (heap, nodes) = three();
    let [container, inner, last] = nodes;
    heap.release(inner).unwrap();
    let before = verify(&heap).objects;
    let found = glanced(&heap, &container, LINK).unwrap();
    list::pop(&heap, container.at(), LINK).unwrap();
    assert_eq!(number(&heap, found.at()), 1, "it is held");
    heap.release(found).unwrap();
    let after = verify(&heap);
    assert!(after.is_exact(), "{after:?}");
    assert_eq!(after.objects, before - 1);
    heap.release(last).unwrap();
}
