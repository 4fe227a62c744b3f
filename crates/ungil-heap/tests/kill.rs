//! A process is killed at every step of every operation of the core, and another one proceeds.

#![cfg(feature = "fault")]

mod support;

use std::sync::atomic::Ordering::Relaxed;

use support::every_step;
use ungil_heap::Heap;
use ungil_heap::object::{self, Kind};
use ungil_heap::segment::Offset;

const SIZE: usize = 4 << 20;

/// An object, made by this process.
fn object(heap: &Heap) -> Offset {
    let mut op = heap.op().unwrap();
    let at = op.create(Kind::Struct, object::SIZE).unwrap();
    op.commit().unwrap();
    at
}

/// The body of an object, read under its lock.
fn body(heap: &Heap, at: Offset) -> [u64; 4] {
    let mut op = heap.op().unwrap();
    op.lock(at).unwrap();
    let head = object::head(heap.segment(), at).unwrap();
    let body = [0, 1, 2, 3].map(|index| head.body[index].load(Relaxed));
    op.commit().unwrap();
    assert_eq!(head.version.load(Relaxed) & 1, 0, "nobody changes it, but its version is odd");
    body
}

#[test]
fn a_change_of_several_words_is_seen_whole_or_not_at_all() {
    let steps = every_step(
        SIZE,
        |heap| object(heap),
        |heap, &at| {
            let mut op = heap.op().unwrap();
            op.lock(at).unwrap();
            op.store(at + object::BODY, 1).unwrap();
            op.store_all(at + object::BODY + 8, &[2, 3]).unwrap();
            op.store(at + object::BODY, 4).unwrap();
            op.commit().unwrap();
        },
        |heap, &at| match body(heap, at) {
            [0, 0, 0, 0] => false,
            [4, 2, 3, 0] => true,
            torn => panic!("half of it is seen: {torn:?}"),
        },
    );
    assert!(steps.unseen > 3 && steps.unseen < steps.all, "{steps:?}");
}
