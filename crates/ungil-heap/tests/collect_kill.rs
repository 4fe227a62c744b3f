//! A process is killed at every step of collecting, holding, releasing, sending and forking; then
//! another one proceeds, and after a collection not one byte is lost.

#![cfg(feature = "fault")]

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use support::{Child, End, every_step};
use ungil_heap::lock::Sleep;
use ungil_heap::pin::Pin;
use ungil_heap::roots::Root;
use ungil_heap::value::Value;
use ungil_heap::{Heap, list};
use whole::{collect, link, node, number, settled};

const SIZE: usize = 4 << 20;

/// A list that is longer when an operation has ended, because nobody sees whether a process that has
/// died held something.
struct Marked {
    end: Root,
    node: Root,
}

impl Marked {
    fn new(heap: &Heap) -> Self {
        let end = node(heap, 0);
        let node = node(heap, 1);
        link(heap, node.at(), node.at());
        Self { end, node }
    }

    fn end(&self, heap: &Heap) {
        list::append(heap, self.end.at(), &Value::None).unwrap();
    }

    /// Whether the operation has ended. Asserts that what this process holds is there, that `others`
    /// objects are there beside it, and that nothing is lost.
    fn has_ended(&self, heap: &Heap, others: usize) -> bool {
        let has_ended = list::len(heap, self.end.at()).unwrap() > 2;
        let done = settled(heap);
        assert_eq!(done.objects, 2 + others);
        assert_eq!(number(heap, self.node.at()), 1);
        has_ended
    }
}

#[test]
fn a_collector_can_die_at_any_step_and_another_one_finishes() {
    let garbage = |heap: &Arc<Heap>| {
        let kept = node(heap, 1);
        let lost = node(heap, 2);
        link(heap, lost.at(), lost.at());
        link(heap, lost.at(), kept.at());
        for bytes in [40 << 10, 2 << 20] {
            list::append(heap, lost.at(), &Value::Bytes(vec![1; bytes].into())).unwrap();
        }
        heap.release(lost).unwrap();
        // Somebody died as well.
        let child = Child::fork(heap, || {
            let mut op = heap.op().unwrap();
            op.take(100).unwrap();
            op.lock(kept.at()).unwrap();
            // SAFETY: the process kills itself.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        });
        assert_eq!(child.wait(), End::Killed);
        kept
    };
    let steps = every_step(
        16 << 20,
        garbage,
        |heap, _| assert!(collect(heap).freed_bytes > 2 << 20),
        |heap, kept| {
            let has_ended = heap.segment().header().collections.load(Relaxed) > 0;
            // What is left half done must not get into the way of anybody.
            link(heap, kept.at(), kept.at());
            assert_eq!(number(heap, kept.at()), 1);
            assert_eq!(settled(heap).objects, 1);
            has_ended
        },
    );
    assert!(steps.unseen > 20, "{steps:?}");
}

#[test]
fn whoever_dies_while_it_begins_to_hold_something_leaves_nothing() {
    let steps = every_step(
        SIZE,
        |heap| Marked::new(heap),
        |heap, state| {
            let find = || Ok(Some(state.node.at()));
            // More than the first table has room for.
            for _ in 0..40 {
                let _held = heap.hold(Some(state.node.at()), find).unwrap().unwrap();
            }
            state.end(heap);
        },
        |heap, state| state.has_ended(heap, 0),
    );
    assert!(steps.unseen > 40 * 5, "{steps:?}");
}

#[test]
fn whoever_dies_while_it_releases_leaves_nothing() {
    let steps = every_step(
        SIZE,
        |heap| Marked::new(heap),
        |heap, state| {
            let mine = node(heap, 2);
            link(heap, mine.at(), state.node.at());
            heap.release(mine).unwrap();
            state.end(heap);
        },
        |heap, state| state.has_ended(heap, 0),
    );
    assert!(steps.unseen > 20, "{steps:?}");
}

#[test]
fn a_parent_can_die_while_it_duplicates_its_roots_for_a_child() {
    let steps = every_step(
        SIZE,
        |heap| Marked::new(heap),
        |heap, state| {
            let reserved = heap.before_fork().unwrap();
            // SAFETY: the grandchild uses its own memory and the heap, and leaves by `_exit`.
            let grandchild = unsafe { libc::fork() };
            if grandchild == 0 {
                // It lives on, also if its parent dies.
                ungil_heap::fault::arm(u64::MAX, |_| ());
                heap.forked(reserved).unwrap();
                let is_whole = number(heap, state.node.at()) == 1;
                // SAFETY: ends the grandchild without running what belongs to its parents.
                unsafe { libc::_exit(i32::from(!is_whole)) };
            }
            drop(reserved);
            let mut status = -1;
            // SAFETY: the integer lives during the call.
            unsafe { libc::waitpid(grandchild, &raw mut status, 0) };
            assert_eq!(status, 0, "the grandchild found its roots");
            state.end(heap);
        },
        |heap, state| state.has_ended(heap, 0),
    );
    assert!(steps.unseen > 10, "{steps:?}");
}

#[test]
fn whoever_dies_while_it_sends_a_handle_leaves_nothing() {
    let steps = every_step(
        SIZE,
        |heap| Marked::new(heap),
        |heap, state| {
            heap.pin(&state.node).unwrap();
            state.end(heap);
        },
        |heap, state| state.has_ended(heap, 0),
    );
    assert!(steps.unseen > 5, "{steps:?}");
}

/// Sends an object that nobody else has, and leaves the heap.
fn send_and_leave(heap: &Heap) -> Pin {
    let path = format!("/proc/self/fd/{}", heap.descriptor());
    let own = Heap::open(path.as_ref(), Box::new(Sleep)).unwrap();
    let (sent, _held) = (node(&own, 2), node(&own, 3));
    let pin = own.pin(&sent).unwrap();
    own.release(sent).unwrap();
    pin
}

#[test]
fn whoever_dies_while_it_leaves_with_handles_on_their_way_leaves_nothing() {
    let steps = every_step(
        SIZE,
        |heap| Marked::new(heap),
        |heap, state| {
            send_and_leave(heap);
            state.end(heap);
        },
        |heap, state| state.has_ended(heap, 0),
    );
    assert!(steps.unseen > 20, "{steps:?}");
}

#[test]
fn whoever_dies_while_it_gives_handles_up_leaves_nothing() {
    let steps = every_step(
        SIZE,
        |heap: &Arc<Heap>| {
            let state = Marked::new(heap);
            assert_eq!(number(heap, heap.adopt(&send_and_leave(heap)).unwrap().at()), 2);
            send_and_leave(heap);
            state
        },
        |heap, state| {
            collect(heap);
            state.end(heap);
        },
        // The one that was received is still held.
        |heap, state| state.has_ended(heap, 1),
    );
    assert!(steps.unseen > 5, "{steps:?}");
}

#[test]
fn whoever_dies_while_it_receives_a_handle_leaves_nothing() {
    let sent = |heap: &Arc<Heap>| -> (Marked, Pin) {
        let state = Marked::new(heap);
        let pin = heap.pin(&state.node).unwrap();
        (state, pin)
    };
    let steps = every_step(
        SIZE,
        sent,
        |heap, (state, pin)| {
            let _held = heap.adopt(pin).unwrap();
            state.end(heap);
        },
        |heap, (state, _)| state.has_ended(heap, 0),
    );
    assert!(steps.unseen > 5, "{steps:?}");
}

#[test]
fn the_root_is_made_by_whoever_comes_when_its_maker_died() {
    let steps = every_step(
        SIZE,
        |heap| Marked::new(heap),
        |heap, state| {
            let _root = heap.root().unwrap();
            state.end(heap);
        },
        |heap, state| {
            let root = heap.root().unwrap();
            let has_ended = state.has_ended(heap, 1);
            heap.release(root).unwrap();
            has_ended
        },
    );
    assert!(steps.unseen > 5, "{steps:?}");
}
