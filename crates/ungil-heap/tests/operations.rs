//! Operations in one process: what they leave behind when they fail, nest and log much.

#![allow(clippy::similar_names, reason = "heap and head are what they are called")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proptest::prelude::*;
use support::{heap, taken};
use ungil_heap::header::LANES;
use ungil_heap::lane::{self, LONGEST};
use ungil_heap::object::{self, BODY, Kind};
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;
use ungil_heap::{Error, Heap, Result};

const SIZE: usize = 8 << 20;

/// An object with one reference.
fn object(heap: &Heap) -> Offset {
    let make = |op: &mut Op<'_>| {
        let at = op.create(Kind::Struct, object::SIZE)?;
        op.retain(at)?;
        Ok(at)
    };
    heap.change(make).unwrap()
}

fn word(heap: &Heap, at: Offset) -> u64 {
    heap.segment().word(at).unwrap().load(Relaxed)
}

fn lanes_in_use(heap: &Heap) -> usize {
    let is_used =
        |index: &usize| lane::lane(heap.segment(), *index).unwrap().owner.load(Relaxed) != 0;
    (0..LANES).filter(is_used).count()
}

#[test]
fn an_operation_that_is_dropped_leaves_nothing() {
    let heap = heap(SIZE);
    let at = object(&heap);
    let before = taken(&heap);
    let mut op = heap.op().unwrap();
    op.lock(at).unwrap();
    op.store(at + BODY, 1).unwrap();
    let other = op.create(Kind::Struct, object::SIZE).unwrap();
    op.retain(other).unwrap();
    op.retain(at).unwrap();
    op.take(100).unwrap();
    op.take(100 << 10).unwrap();
    op.free(at, object::SIZE);
    op.forgo(at);
    drop(op);
    assert_eq!(word(&heap, at + BODY), 0);
    assert_eq!(taken(&heap), before);
    let head = object::head(heap.segment(), at).unwrap();
    assert_eq!((head.references(), head.lock.load(Relaxed)), (1, 0));
    assert_eq!(head.version.load(Relaxed) & 1, 0);
}

#[test]
fn a_log_that_went_on_in_blocks_is_no_loss_however_the_operation_ends() {
    for succeeds in [true, false] {
        let heap = heap(SIZE);
        let block = heap.change(|op| op.take(LONGEST * 8 * 3)).unwrap();
        let before = taken(&heap);
        let mut op = heap.op().unwrap();
        op.store_all(block, &vec![1; LONGEST * 3]).unwrap();
        for _ in 0..3 {
            for at in 0..500 {
                op.store(block + at * 8, 2).unwrap();
            }
        }
        if succeeds {
            op.commit().unwrap();
        } else {
            drop(op);
        }
        let expected = if succeeds { [2, 1] } else { [0, 0] };
        assert_eq!([word(&heap, block), word(&heap, block + LONGEST * 8)], expected);
        assert_eq!(taken(&heap), before, "succeeds: {succeeds}");
    }
}

#[test]
fn a_part_that_fails_is_undone_and_the_whole_may_still_succeed_or_fail() {
    for succeeds in [true, false] {
        let heap = heap(SIZE);
        let (first, second) = (object(&heap), object(&heap));
        let before = taken(&heap);
        let mut op = heap.op().unwrap();
        op.lock(first).unwrap();
        op.store(first + BODY, 1).unwrap();
        let made = op.create(Kind::Struct, object::SIZE).unwrap();
        let failing = |op: &mut Op<'_>| -> Result<()> {
            op.lock(second)?;
            op.store(second + BODY, 1)?;
            op.store(first + BODY, 2)?;
            // Made outside, retained inside: it is still the outer one's.
            op.retain(made)?;
            let inner = op.create(Kind::Struct, object::SIZE)?;
            op.retain(inner)?;
            op.retain(second)?;
            op.take(1000)?;
            Err(Error::Stale)
        };
        assert!(matches!(heap.change(failing), Err(Error::Stale)));
        assert_eq!([word(&heap, first + BODY), word(&heap, second + BODY)], [1, 0]);
        op.retain(made).unwrap();
        op.store(first + BODY + 8, made as u64).unwrap();
        if succeeds {
            op.commit().unwrap();
        } else {
            drop(op);
        }
        let expected = if succeeds { (1, before + 64) } else { (0, before) };
        assert_eq!((word(&heap, first + BODY), taken(&heap)), expected);
        for at in [first, second] {
            let head = object::head(heap.segment(), at).unwrap();
            assert_eq!((head.lock.load(Relaxed), head.references()), (0, 1));
        }
        if succeeds {
            assert_eq!(object::head(heap.segment(), made).unwrap().references(), 1);
        }
    }
}

#[test]
fn who_changes_an_object_reads_its_own_changes() {
    let heap = heap(SIZE);
    let at = object(&heap);
    let mut op = heap.op().unwrap();
    op.lock(at).unwrap();
    op.store(at + BODY, 5).unwrap();
    let look = || Ok(word(&heap, at + BODY));
    assert_eq!(heap.read(at, look).unwrap(), 5);
    drop(op);
    assert_eq!(heap.read(at, look).unwrap(), 0);
}

#[test]
fn readers_never_see_half_of_what_threads_change() {
    let heap = heap(SIZE);
    let at = object(&heap);
    let reads = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while reads.load(Relaxed) < 5_000 {
                    let change = |op: &mut Op<'_>| {
                        op.lock(at)?;
                        let next = word(&heap, at + BODY) + 1;
                        op.store_all(at + BODY, &[next, next, next, next])
                    };
                    heap.change(change).unwrap();
                }
            });
        }
        while reads.fetch_add(1, Relaxed) < 5_000 {
            let look = || Ok([0, 8, 16, 24].map(|more| word(&heap, at + BODY + more)));
            let seen = heap.read(at, look).unwrap();
            assert_eq!(seen, [seen[0]; 4]);
        }
    });
}

#[test]
fn a_thread_gives_its_lane_back_when_it_ends() {
    let heap = heap(SIZE);
    object(&heap);
    for _ in 0..3 {
        let inside = heap.clone();
        let thread = std::thread::spawn(move || {
            object(&inside);
            assert_eq!(lanes_in_use(&inside), 2);
        });
        thread.join().unwrap();
        assert_eq!(lanes_in_use(&heap), 1);
    }
}

/// Variables of a thread are dropped one after the other when it ends, and one of them may be what
/// uses the heap.
#[test]
fn a_thread_that_is_ending_can_still_change_the_heap() {
    struct Last(std::sync::Arc<Heap>, Offset);
    impl Drop for Last {
        fn drop(&mut self) {
            let change = |op: &mut Op<'_>| {
                op.lock(self.1)?;
                op.store(self.1 + BODY, word(&self.0, self.1 + BODY) + 1)
            };
            self.0.change(change).unwrap();
        }
    }
    thread_local! {
        static BEFORE: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) };
        static AFTER: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) };
    }
    let heap = heap(SIZE);
    let at = object(&heap);
    let inside = heap.clone();
    let thread = std::thread::spawn(move || {
        BEFORE.set(Some(Last(inside.clone(), at)));
        // The thread's lane is made between the two, so that one of them is dropped after it.
        object(&inside);
        AFTER.set(Some(Last(inside, at)));
    });
    thread.join().unwrap();
    assert_eq!(word(&heap, at + BODY), 2);
    assert_eq!(lanes_in_use(&heap), 1);
}

#[test]
fn a_heap_that_is_dropped_leaves_its_place_and_lanes_to_others() {
    let heap = heap(SIZE);
    let path = format!("/proc/self/fd/{}", heap.descriptor());
    for _ in 0..3 {
        let other = Heap::open(path.as_ref(), Box::new(ungil_heap::lock::Sleep)).unwrap();
        object(&other);
        assert_eq!(other.slot(), 1);
        drop(other);
        assert_eq!(lanes_in_use(&heap), 0);
    }
    assert_eq!(heap.clean().unwrap(), 0, "who left is not dead");
}

/// One thing that a change does.
#[derive(Clone, Debug)]
enum Step {
    Store(usize, u64),
    StoreAll(usize, Vec<u64>),
    /// A part that succeeds or fails.
    Part(bool, Vec<Step>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..900_usize, any::<u64>()).prop_map(|(at, value)| Step::Store(at, value)),
        (0..400_usize, prop::collection::vec(any::<u64>(), 0..500))
            .prop_map(|(at, values)| Step::StoreAll(at, values)),
    ];
    let steps = step.prop_recursive(4, 60, 8, |step| {
        (any::<bool>(), prop::collection::vec(step, 0..8))
            .prop_map(|(succeeds, steps)| Step::Part(succeeds, steps))
    });
    prop::collection::vec(steps, 0..12)
}

/// Does the steps in the heap and to a copy of what they should make of it.
fn perform(heap: &Heap, block: Offset, op: &mut Op<'_>, model: &mut Vec<u64>, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Store(at, value) => {
                op.store(block + at * 8, *value).unwrap();
                model[*at] = *value;
            }
            Step::StoreAll(at, values) => {
                op.store_all(block + at * 8, values).unwrap();
                model[*at..*at + values.len()].copy_from_slice(values);
            }
            Step::Part(succeeds, steps) => {
                let before = model.clone();
                let mut part = heap.op().unwrap();
                perform(heap, block, &mut part, model, steps);
                if *succeeds {
                    part.commit().unwrap();
                } else {
                    *model = before;
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_that_fail_leave_what_was_there_before_them(steps in steps(), succeeds: bool) {
        let heap = heap(SIZE);
        let block = heap.change(|op| op.take(8000)).unwrap();
        let before = taken(&heap);
        let mut model = vec![0; 1000];
        let mut op = heap.op().unwrap();
        perform(&heap, block, &mut op, &mut model, &steps);
        if succeeds {
            op.commit().unwrap();
        } else {
            drop(op);
            model = vec![0; 1000];
        }
        let words = heap.segment().words(block, 1000).unwrap();
        prop_assert!(words.iter().map(|word| word.load(Relaxed)).eq(model));
        prop_assert_eq!(taken(&heap), before);
    }
}
