//! What a process holds, what it sends to others, and what a fork inherits.

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};

use support::{Child, End, heap};
use ungil_heap::lock::{Pause, Sleep};
use ungil_heap::pin::Pin;
use ungil_heap::roots::Root;
use ungil_heap::segment::Offset;
use ungil_heap::{Error, Heap, list};
use whole::{collect, hear, link, node, number, pipe, say, settled, text, verify};

const SIZE: usize = 8 << 20;

/// Holds the object a second time.
fn again(heap: &Heap, root: &Root) -> Root {
    heap.hold(None, || Ok(Some(root.at()))).unwrap().unwrap()
}

#[test]
fn an_object_is_freed_when_it_is_released_for_the_last_time() {
    let heap = heap(SIZE);
    let first = node(&heap, 1);
    let second = again(&heap, &first);
    heap.release(first).unwrap();
    assert_eq!(number(&heap, second.at()), 1);
    assert!(verify(&heap).lost_bytes() == 0 && verify(&heap).objects == 1);
    heap.release(second).unwrap();
    let found = verify(&heap);
    assert!(found.is_exact() && found.objects == 0, "{found:?}");
}

#[test]
fn ten_thousand_objects_can_be_held_and_released_in_any_order() {
    let heap = heap(64 << 20);
    let mut held: Vec<Root> = (0..10_000).map(|number| node(&heap, number)).collect();
    for (index, root) in held.iter().enumerate() {
        assert_eq!(number(&heap, root.at()), i64::try_from(index).unwrap());
    }
    let mut next = 0;
    while !held.is_empty() {
        next = (next * 31 + 7) % held.len();
        heap.release(held.swap_remove(next)).unwrap();
    }
    let found = verify(&heap);
    assert!(found.is_exact() && found.objects == 0, "{found:?}");
}

#[test]
fn a_chain_of_any_length_is_freed_without_a_stack() {
    let heap = heap(256 << 20);
    let mut last = empty(&heap);
    for _ in 0..100_000 {
        let next = empty(&heap);
        link(&heap, next.at(), last.at());
        heap.release(last).unwrap();
        last = next;
    }
    assert_eq!(verify(&heap).objects, 100_001);
    heap.release(last).unwrap();
    assert_eq!(verify(&heap).objects, 0);
}

fn empty(heap: &Heap) -> Root {
    heap.make(list::create).unwrap()
}

#[test]
fn what_was_made_in_a_transaction_that_failed_is_no_more_though_it_is_held() {
    let heap = heap(SIZE);
    let kept = node(&heap, 1);
    let transaction = heap.op().unwrap();
    let made = node(&heap, 2);
    link(&heap, made.at(), kept.at());
    link(&heap, kept.at(), made.at());
    let held = again(&heap, &kept);
    assert!(heap.is_alive(&made).unwrap());
    drop(transaction);
    assert!(!heap.is_alive(&made).unwrap());
    assert!(matches!(heap.pin(&made), Err(Error::Stale)));
    assert_eq!(list::len(&heap, kept.at()).unwrap(), 2);
    // Neither the check nor the collector trips over it.
    assert_eq!(verify(&heap).objects, 1);
    assert_eq!(settled(&heap).objects, 1);
    heap.release(made).unwrap();
    heap.release(kept).unwrap();
    assert_eq!(number(&heap, held.at()), 1);
    heap.release(held).unwrap();
    let found = verify(&heap);
    assert!(found.is_exact() && found.objects == 0, "{found:?}");
}

#[test]
fn what_is_released_in_a_transaction_that_failed_stays_released() {
    let heap = heap(SIZE);
    let (kept, other) = (node(&heap, 1), node(&heap, 2));
    link(&heap, kept.at(), other.at());
    let transaction = heap.op().unwrap();
    list::pop(&heap, kept.at(), -1).unwrap();
    heap.release(other).unwrap();
    drop(transaction);
    let found = verify(&heap);
    assert!(found.is_exact() && found.objects == 2, "{found:?}");
    list::pop(&heap, kept.at(), -1).unwrap();
    assert_eq!(verify(&heap).objects, 1);
}

#[test]
fn an_inner_operation_that_fails_leaves_nothing_whatever_the_outer_one_does() {
    for succeeds in [false, true] {
        let heap = heap(SIZE);
        let kept = node(&heap, 1);
        let outer = heap.op().unwrap();
        {
            let _inner = heap.op().unwrap();
            let made = node(&heap, 2);
            link(&heap, kept.at(), made.at());
            link(&heap, made.at(), kept.at());
            heap.release(made).unwrap();
        }
        if succeeds {
            outer.commit().unwrap();
        } else {
            drop(outer);
        }
        let found = verify(&heap);
        assert!(found.is_exact() && found.objects == 1, "{found:?}");
    }
}

#[test]
fn a_child_holds_what_its_parent_held_at_the_fork() {
    let heap = heap(SIZE);
    let (first, second) = (node(&heap, 1), node(&heap, 2));
    let (ready, tell_ready) = pipe();
    let (go, tell_go) = pipe();
    let child = Child::fork(&heap, || {
        say(tell_ready);
        hear(go);
        // The parent has released both and collected.
        assert_eq!(number(&heap, first.at()), 1);
        assert_eq!(number(&heap, second.at()), 2);
        // SAFETY: the root in the child's memory, which the child alone gives back.
        heap.release(unsafe { std::ptr::read(&raw const first) }).unwrap();
        let found = verify(&heap);
        assert!(found.is_exact() && found.objects == 1, "{found:?}");
    });
    hear(ready);
    heap.release(first).unwrap();
    heap.release(second).unwrap();
    assert_eq!(settled(&heap).objects, 2);
    say(tell_go);
    assert_eq!(child.wait(), End::Done);
    assert_eq!(settled(&heap).objects, 0);
}

#[test]
fn a_sent_handle_keeps_its_object_until_it_is_received() {
    let heap = heap(SIZE);
    let sent = node(&heap, 1);
    let pin = heap.pin(&sent).unwrap();
    heap.release(sent).unwrap();
    assert_eq!(settled(&heap).objects, 1);
    assert!(heap.has_pins().unwrap());
    let received = heap.adopt(&pin).unwrap();
    assert!(!heap.has_pins().unwrap());
    assert_eq!(number(&heap, received.at()), 1);
    // The same pickle, once more, while the object is alive.
    let twice = heap.adopt(&pin).unwrap();
    heap.release(received).unwrap();
    assert_eq!(number(&heap, twice.at()), 1);
    heap.release(twice).unwrap();
    assert_eq!(verify(&heap).objects, 0);
    assert!(matches!(heap.adopt(&pin), Err(Error::Stale)));
    // Another object in the same place is another object.
    let other = node(&heap, 2);
    assert_eq!(other.at(), pin.at, "the memory is used again");
    assert!(matches!(heap.adopt(&pin), Err(Error::Stale)));
    assert_eq!(settled(&heap).objects, 1);
}

#[test]
fn a_handle_goes_to_a_child_that_was_forked_before() {
    let heap = heap(SIZE);
    let (from, to) = pipe();
    let child = Child::fork(&heap, || {
        let pin = receive(from);
        let root = heap.adopt(&pin).unwrap();
        assert_eq!(number(&heap, root.at()), 7);
        heap.release(root).unwrap();
    });
    let sent = node(&heap, 7);
    let pin = heap.pin(&sent).unwrap();
    heap.release(sent).unwrap();
    send(to, pin);
    assert_eq!(child.wait(), End::Done);
    assert_eq!(verify(&heap).objects, 0);
    assert_eq!(settled(&heap).objects, 0);
}

#[test]
fn the_handles_of_a_sender_that_has_left_are_waited_for() {
    let heap = heap(SIZE);
    let (from, to) = pipe();
    let child = Child::fork(&heap, || {
        let path = format!("/proc/self/fd/{}", heap.descriptor());
        let own = Heap::open(path.as_ref(), Box::new(Sleep)).unwrap();
        let _held = node(&own, 1);
        for number in [2, 3] {
            let sent = node(&own, number);
            send(to, own.pin(&sent).unwrap());
            own.release(sent).unwrap();
        }
    });
    let pins = [receive(from), receive(from)];
    assert_eq!(child.wait(), End::Done);
    heap.clean().unwrap();
    assert_eq!(heap.processes().unwrap().len(), 1);
    // What it only held is garbage, what it sent is not.
    assert_eq!(verify(&heap).objects, 2);
    for (pin, expected) in pins.iter().zip([2, 3]) {
        let received = heap.adopt(pin).unwrap();
        assert_eq!(number(&heap, received.at()), expected);
        heap.release(received).unwrap();
    }
    assert_eq!(verify(&heap).objects, 0);
    assert_eq!(settled(&heap).objects, 0);
}

#[test]
fn a_handle_whose_sender_died_survives_collections_that_nobody_asked_for() {
    let heap = heap(SIZE);
    let (from, to) = pipe();
    let child = Child::fork(&heap, || send(to, heap.pin(&node(&heap, 1)).unwrap()));
    let pin = receive(from);
    assert_eq!(child.wait(), End::Done);
    let list = node(&heap, 2);
    let collections = || heap.segment().header().collections.load(Relaxed);
    while collections() == 0 {
        list::append(&heap, list.at(), &text(3)).unwrap();
    }
    let received = heap.adopt(&pin).unwrap();
    assert_eq!(number(&heap, received.at()), 1);
}

#[test]
fn a_handle_whose_sender_died_leads_nowhere_after_a_collection() {
    let heap = heap(SIZE);
    let (from, to) = pipe();
    let child = Child::fork(&heap, || send(to, heap.pin(&node(&heap, 1)).unwrap()));
    let pin = receive(from);
    assert_eq!(child.wait(), End::Done);
    collect(&heap);
    assert!(matches!(heap.adopt(&pin), Err(Error::Stale)));
    assert_eq!(settled(&heap).objects, 0);
}

#[test]
fn a_handle_that_was_made_up_is_refused_or_harmless() {
    let heap = heap(SIZE);
    let root = node(&heap, 1);
    let pin = heap.pin(&root).unwrap();
    let end = heap.segment().layout().end;
    for wrong in [
        Pin { at: 0, ..pin },
        Pin { at: pin.at + 1, ..pin },
        Pin { at: pin.at + 16, ..pin },
        Pin { at: end - 8, ..pin },
        Pin { at: usize::MAX, ..pin },
        Pin { serial: pin.serial + 1, ..pin },
    ] {
        assert!(heap.adopt(&wrong).is_err(), "{wrong:?}");
    }
    for wrong in [
        Pin { slot: u32::MAX, ..pin },
        Pin { index: u32::MAX, ..pin },
        Pin { index: pin.index + 1, ..pin },
        Pin { nonce: 0, ..pin },
    ] {
        // The object is alive, so it is found without its pin.
        heap.release(heap.adopt(&wrong).unwrap()).unwrap();
    }
    assert_eq!(settled(&heap).objects, 1);
}

#[test]
fn a_table_whose_entries_others_took_over_is_used_again() {
    let heap = heap(SIZE);
    let sent = node(&heap, 1);
    for _ in 0..10_000 {
        let pin = heap.pin(&sent).unwrap();
        heap.release(heap.adopt(&pin).unwrap()).unwrap();
    }
    assert!(verify(&heap).taken_bytes < 4096, "the table grew");
}

fn send(to: i32, pin: Pin) {
    let words = [
        pin.at as u64,
        u64::from(pin.serial),
        u64::from(pin.slot),
        u64::from(pin.index),
        pin.nonce,
    ];
    // SAFETY: the words are there.
    assert_eq!(unsafe { libc::write(to, words.as_ptr().cast(), size_of_val(&words)) }, 40);
}

fn receive(from: i32) -> Pin {
    let mut words = [0_u64; 5];
    // SAFETY: there is room for the words.
    assert_eq!(unsafe { libc::read(from, words.as_mut_ptr().cast(), size_of_val(&words)) }, 40);
    let [at, serial, slot, index, nonce] = words;
    let narrow = |word: u64| u32::try_from(word).unwrap();
    Pin {
        at: Offset::try_from(at).unwrap(),
        serial: narrow(serial),
        slot: narrow(slot),
        index: narrow(index),
        nonce,
    }
}

#[test]
fn a_handle_of_an_object_that_was_swept_does_not_take_other_memory_for_it() {
    let heap = heap(SIZE);
    let cycle = node(&heap, 1);
    link(&heap, cycle.at(), cycle.at());
    let pin = heap.pin(&cycle).unwrap();
    heap.release(heap.adopt(&pin).unwrap()).unwrap();
    heap.release(cycle).unwrap();
    assert_eq!(settled(&heap).objects, 0);
    // Somebody has the memory, and has written nothing yet.
    let mut op = heap.op().unwrap();
    while op.take(ungil_heap::object::SIZE).unwrap() != pin.at {}
    assert!(matches!(heap.adopt(&pin), Err(Error::Stale)));
    drop(op);
    assert_eq!(settled(&heap).objects, 0);
}

/// What a thread that wants to hold something comes to first.
#[derive(Debug, PartialEq, Eq)]
enum First {
    Waited,
    Held,
}

struct Tell(Sender<First>);

impl Pause for Tell {
    fn pause(&self, wait: &mut dyn FnMut()) -> ungil_heap::Result<()> {
        self.0.send(First::Waited).unwrap();
        wait();
        Ok(())
    }
}

#[test]
fn other_threads_hold_nothing_between_the_copy_of_the_table_and_the_fork() {
    let (tell, told) = channel();
    let heap = Heap::anonymous(SIZE, Box::new(Tell(tell.clone()))).unwrap();
    let root = node(&heap, 1);
    let one_at_a_time = support::no_forks();
    let reserved = heap.before_fork().unwrap();
    std::thread::scope(|scope| {
        let (heap, root) = (&heap, &root);
        scope.spawn(move || {
            let held = again(heap, root);
            tell.send(First::Held).unwrap();
            heap.release(held).unwrap();
        });
        assert_eq!(told.recv().unwrap(), First::Waited);
        drop(reserved);
        drop(one_at_a_time);
        while told.recv().unwrap() != First::Held {}
    });
    assert_eq!(settled(&heap).objects, 1);
}
