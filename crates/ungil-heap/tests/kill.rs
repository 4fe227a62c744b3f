//! A process is killed at every step of every operation of the core, and another one proceeds.

#![cfg(feature = "fault")]
#![allow(clippy::similar_names, reason = "heap and head are what they are called")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use support::{Child, End, every_step, settle};
use ungil_heap::lock::Sleep;
use ungil_heap::object::{self, BODY, Kind};
use ungil_heap::op::Op;
use ungil_heap::process_table::{self, TAKEN};
use ungil_heap::segment::Offset;
use ungil_heap::{Error, Heap, Result, fault};

const SIZE: usize = 4 << 20;
/// More than comes from a slab, and so much that it is given back to the system.
const LARGE: usize = 3 << 20;

/// An object, made by this process.
fn object(heap: &Heap) -> Offset {
    let mut op = heap.op().unwrap();
    let at = op.create(Kind::Struct, object::SIZE).unwrap();
    op.commit().unwrap();
    at
}

/// Memory, taken by this process and left full of sevens.
fn block(heap: &Heap, bytes: usize) -> Offset {
    let mut op = heap.op().unwrap();
    let at = op.take(bytes).unwrap();
    for word in heap.segment().words(at, bytes / 8).unwrap() {
        word.store(7, Relaxed);
    }
    op.commit().unwrap();
    at
}

/// The body of an object, read under its lock.
fn body(heap: &Heap, at: Offset) -> [u64; 4] {
    let mut op = heap.op().unwrap();
    op.lock(at).unwrap();
    let head = object::head(heap.segment(), at).unwrap();
    let seen = [0, 1, 2, 3].map(|index| head.body[index].load(Relaxed));
    op.commit().unwrap();
    assert_eq!(head.version.load(Relaxed) & 1, 0, "nobody changes it, but its version is odd");
    seen
}

fn words(heap: &Heap, at: Offset, count: usize) -> Vec<u64> {
    let words = heap.segment().words(at, count).unwrap();
    words.iter().map(|word| word.load(Relaxed)).collect()
}

#[test]
fn a_change_of_several_words_is_seen_whole_or_not_at_all() {
    let steps = every_step(
        SIZE,
        |heap| object(heap),
        |heap, &at| {
            let mut op = heap.op().unwrap();
            op.lock(at).unwrap();
            op.store(at + BODY, 1).unwrap();
            op.store_all(at + BODY + 8, &[2, 3]).unwrap();
            op.store(at + BODY, 4).unwrap();
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

#[test]
fn readers_without_a_lock_see_a_change_whole_or_not_at_all() {
    every_step(
        SIZE,
        |heap| object(heap),
        |heap, &at| {
            let change = |op: &mut Op<'_>| {
                op.lock(at)?;
                op.store(at + BODY, 1)?;
                op.store(at + BODY + 8, 1)
            };
            heap.change(change).unwrap();
        },
        |heap, &at| {
            let head = object::head(heap.segment(), at).unwrap();
            let look = || Ok([head.body[0].load(Relaxed), head.body[1].load(Relaxed)]);
            match heap.read(at, look).unwrap() {
                [0, 0] => false,
                [1, 1] => true,
                torn => panic!("half of it is seen: {torn:?}"),
            }
        },
    );
}

#[test]
fn a_change_with_a_log_of_many_blocks_is_seen_whole_or_not_at_all() {
    const WORDS: usize = 2_000;
    every_step(
        SIZE,
        |heap| (object(heap), block(heap, WORDS * 8)),
        |heap, &(at, block)| {
            let change = |op: &mut Op<'_>| {
                op.lock(at)?;
                // In the log's first place, in a block, in two.
                op.store_all(block, &[8; 120])?;
                op.store_all(block + 960, &[8; 480])?;
                op.store_all(block + 4800, &[8; WORDS - 600])
            };
            heap.change(change).unwrap();
        },
        |heap, &(at, block)| {
            body(heap, at);
            let words = words(heap, block, WORDS);
            assert!(words.iter().all(|word| *word == words[0]), "half of it is seen");
            words[0] == 8
        },
    );
}

#[test]
fn what_a_part_of_a_change_undid_stays_undone() {
    every_step(
        SIZE,
        |heap| (object(heap), object(heap)),
        |heap, &(first, second)| {
            let mut outer = heap.op().unwrap();
            outer.lock(first).unwrap();
            outer.store(first + BODY, 1).unwrap();
            let failing = |op: &mut Op<'_>| -> Result<()> {
                op.lock(second)?;
                let made = op.create(Kind::Struct, object::SIZE)?;
                op.retain(made)?;
                op.store(second + BODY, made as u64)?;
                op.store(first + BODY, 9)?;
                Err(Error::Stale)
            };
            assert!(matches!(heap.change(failing), Err(Error::Stale)));
            outer.store(first + BODY + 8, 1).unwrap();
            outer.commit().unwrap();
        },
        |heap, &(first, second)| {
            assert_eq!(body(heap, second), [0; 4]);
            match body(heap, first) {
                [0, 0, 0, 0] => false,
                [1, 1, 0, 0] => true,
                torn => panic!("half of it is seen: {torn:?}"),
            }
        },
    );
}

#[test]
fn a_change_that_fails_is_not_seen_whenever_its_process_dies() {
    every_step(
        SIZE,
        |heap| (object(heap), object(heap)),
        |heap, &(at, done)| {
            let failing = |op: &mut Op<'_>| -> Result<()> {
                op.lock(at)?;
                op.store(at + BODY, 1)?;
                let made = op.take(100)?;
                op.store(at + BODY + 8, made as u64)?;
                Err(Error::Stale)
            };
            assert!(heap.change(failing).is_err());
            heap.change(|op| op.store(done + BODY, 1)).unwrap();
        },
        |heap, &(at, done)| {
            assert_eq!(body(heap, at), [0; 4]);
            body(heap, done)[0] == 1
        },
    );
}

#[test]
fn memory_of_every_size_can_be_had_after_a_death_while_it_was_taken_or_freed() {
    for bytes in [16, 1 << 10, 32 << 10, 33 << 10, LARGE] {
        every_step(
            8 << 20,
            |heap| (object(heap), block(heap, bytes)),
            |heap, &(at, old)| {
                let change = |op: &mut Op<'_>| {
                    op.lock(at)?;
                    let new = op.take(bytes)?;
                    op.store(at + BODY, new as u64)?;
                    op.free(old, bytes);
                    Ok(())
                };
                heap.change(change).unwrap();
            },
            |heap, &(at, old)| {
                let new = body(heap, at)[0];
                if new == 0 {
                    assert!(words(heap, old, bytes / 8).iter().all(|word| *word == 7));
                }
                new != 0
            },
        );
    }
}

#[test]
fn a_heap_that_grows_while_its_process_dies_can_still_grow() {
    every_step(
        16 << 20,
        |heap| object(heap),
        |heap, &at| {
            let change = |op: &mut Op<'_>| {
                op.lock(at)?;
                let new = op.take(5 << 20)?;
                op.store(at + BODY, new as u64)
            };
            heap.change(change).unwrap();
        },
        |heap, &at| {
            let first = body(heap, at)[0];
            let second = block(heap, 5 << 20);
            assert_ne!(second as u64, first, "the same memory was had twice");
            first != 0
        },
    );
}

#[test]
fn the_last_reference_is_given_up_whole_or_not_at_all() {
    every_step(
        SIZE,
        |heap| {
            let (container, object) = (object(heap), object(heap));
            let change = |op: &mut Op<'_>| {
                op.retain(object)?;
                op.store(container + BODY, object as u64)
            };
            heap.change(change).unwrap();
            (container, object)
        },
        |heap, &(container, object)| {
            let change = |op: &mut Op<'_>| {
                op.lock(container)?;
                op.store(container + BODY, 0)?;
                op.forgo(object);
                Ok(())
            };
            heap.change(change).unwrap();
        },
        |heap, &(container, object)| {
            let referred = body(heap, container)[0] == object as u64;
            let references = object::head(heap.segment(), object).unwrap().references();
            assert!(!referred || references == 1, "an object that is referred to has none");
            !referred
        },
    );
}

/// Dies at its fault point number `fatal` while it changes an object, if it has so many.
fn die_changing(heap: &Heap, at: Offset, fatal: u64) -> End {
    let child = Child::fork(heap, || {
        fault::arm(fatal, |_| {});
        let change = |op: &mut Op<'_>| {
            op.lock(at)?;
            op.store(at + BODY, 1)?;
            op.store_all(at + BODY + 8, &[1, 1])?;
            op.store_all(at + BODY + 8, &[2, 2])?;
            op.store(at + BODY, 2)
        };
        heap.change(change).unwrap();
    });
    child.wait()
}

/// Whoever cleans up behind the dead may die too, at any step, whatever the first one died at.
#[test]
fn recovery_can_be_killed_at_every_step_and_begun_again() {
    let mut fatal = 0;
    let mut end = End::Killed;
    while end == End::Killed {
        every_step(
            SIZE,
            |heap| {
                let at = object(heap);
                die_changing(heap, at, fatal);
                at
            },
            |heap, &at| {
                heap.clean().unwrap();
                heap.change(|op| op.lock(at).and_then(|()| op.store(at + BODY + 24, 1))).unwrap();
            },
            |heap, &at| {
                let [first, second, third, fourth] = body(heap, at);
                assert!([[0; 3], [2; 3]].contains(&[first, second, third]), "half of it is seen");
                fourth == 1
            },
        );
        let heap = support::heap(SIZE);
        end = die_changing(&heap, object(&heap), fatal);
        fatal += 1;
    }
    assert!(fatal > 10, "the first one died at {fatal} steps only");
}

#[test]
fn attaching_and_leaving_can_be_killed_at_every_step() {
    every_step(
        SIZE,
        |heap| object(heap),
        |heap, &at| {
            let path = format!("/proc/self/fd/{}", heap.descriptor());
            let other = Heap::open(path.as_ref(), Box::new(Sleep)).unwrap();
            other.change(|op| op.lock(at).and_then(|()| op.store(at + BODY, 1))).unwrap();
            drop(other);
        },
        |heap, &at| {
            heap.clean().unwrap();
            let is_taken = |index: &usize| {
                process_table::slot(heap.segment(), *index).unwrap().state.load(Relaxed) == TAKEN
            };
            assert_eq!((0..10).filter(is_taken).collect::<Vec<_>>(), [heap.slot()]);
            body(heap, at)[0] == 1
        },
    );
}

#[test]
fn forking_can_be_killed_at_every_step() {
    every_step(
        SIZE,
        |heap| object(heap),
        |heap, &at| {
            let change = |op: &mut Op<'_>| op.lock(at).and_then(|()| op.store(at + BODY, 1));
            let child = Child::fork(heap, || heap.change(change).unwrap());
            // The grandchild counts its points from where the child had come to.
            child.wait();
            heap.change(change).unwrap();
        },
        |heap: &Heap, &at| {
            settle(heap);
            body(heap, at)[0] == 1
        },
    );
}

/// The harness itself: an operation that can be seen half done is found out.
#[test]
fn the_harness_notices_half_of_an_operation() {
    let found = std::panic::catch_unwind(|| {
        every_step(
            SIZE,
            |heap: &Arc<Heap>| object(heap),
            |heap, &at| {
                // Two operations where there should be one.
                heap.change(|op| op.store(at + BODY, 1)).unwrap();
                heap.change(|op| op.store(at + BODY + 8, 1)).unwrap();
            },
            |heap, &at| match body(heap, at) {
                [0, 0, ..] => false,
                [1, 1, ..] => true,
                torn => panic!("half of it is seen: {torn:?}"),
            },
        )
    });
    assert!(found.is_err());
}
