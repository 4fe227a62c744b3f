//! Memory against a naive model: what is had is nobody else's, and all of it comes back.

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;
use support::{heap, take, taken};
use ungil_heap::header::CHUNK;
use ungil_heap::memory::rounded;
use ungil_heap::segment::Offset;
use ungil_heap::{Error, Heap};

#[derive(Clone, Debug)]
enum Step {
    Take(usize),
    /// Frees one of those that are taken.
    Free(prop::sample::Index),
    /// Takes, and lets the operation fail.
    TakeInVain(usize),
    FreeAll,
}

fn bytes() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 1..200_usize,
        4 => 200..5_000_usize,
        2 => 5_000..40_000_usize,
        1 => 40_000..2_500_000_usize,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => bytes().prop_map(Step::Take),
        8 => any::<prop::sample::Index>().prop_map(Step::Free),
        2 => bytes().prop_map(Step::TakeInVain),
        1 => Just(Step::FreeAll),
    ];
    prop::collection::vec(step, 1..200)
}

/// What is taken, by where it begins: its bytes, and what it was filled with.
type Model = BTreeMap<Offset, (usize, u64)>;

fn free(heap: &Heap, model: &mut Model, at: Offset) {
    let (bytes, mark) = model.remove(&at).unwrap();
    let words = heap.segment().words(at, bytes / 8).unwrap();
    assert!(words.iter().all(|word| word.load(Relaxed) == mark), "somebody else wrote there");
    support::free(heap, at, bytes).unwrap();
}

fn run(heap: &Heap, steps: &[Step]) {
    let mut model = Model::new();
    for (mark, step) in (1..).zip(steps) {
        match step {
            Step::Take(bytes) => {
                let at = match take(heap, *bytes) {
                    Err(Error::Full { .. }) => continue,
                    other => other.unwrap(),
                };
                assert!(at.is_multiple_of(16), "{at} is not aligned");
                let end = at + rounded(*bytes);
                let neighbours = (model.range(..end).next_back(), model.range(at..).next());
                assert!(neighbours.0.is_none_or(|(other, (bytes, _))| other + bytes <= at));
                assert!(neighbours.1.is_none_or(|(other, _)| *other >= end));
                for word in heap.segment().words(at, bytes / 8).unwrap() {
                    word.store(mark, Relaxed);
                }
                model.insert(at, (*bytes, mark));
            }
            Step::Free(index) => {
                if !model.is_empty() {
                    let at = *model.keys().nth(index.index(model.len())).unwrap();
                    free(heap, &mut model, at);
                }
            }
            Step::TakeInVain(bytes) => match heap.op().unwrap().take(*bytes) {
                Ok(_) | Err(Error::Full { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            Step::FreeAll => {
                while let Some(at) = model.keys().next().copied() {
                    free(heap, &mut model, at);
                }
            }
        }
        let expected: usize = model.values().map(|(bytes, _)| rounded(*bytes)).sum();
        assert_eq!(taken(heap), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn memory_is_had_once_and_comes_back(steps in steps()) {
        run(&heap(4 << 20), &steps);
    }
}

#[test]
fn a_heap_that_is_full_stays_usable() {
    for bytes in [16, 100, 3000, 32 << 10, 100 << 10] {
        let heap = heap(2 << 20);
        let mut had = Vec::new();
        let error = loop {
            match take(&heap, bytes) {
                Ok(at) => had.push(at),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Full { .. }), "{error}");
        let chunks = 2 << 20 >> 16;
        assert!(had.len() * rounded(bytes) > (chunks - 4) * CHUNK, "{} of {bytes}", had.len());
        // What is there can be changed, something of another size cannot be had, and what is given
        // back can be had again, in this size and in others.
        heap.change(|op| op.store(had[0], 1)).unwrap();
        assert!(matches!(take(&heap, 200 << 10), Err(Error::Full { .. })));
        let again = had.pop().unwrap();
        support::free(&heap, again, bytes).unwrap();
        assert_eq!(take(&heap, bytes).unwrap(), again);
        had.push(again);
        for at in had {
            support::free(&heap, at, bytes).unwrap();
        }
        assert_eq!(taken(&heap), 0);
        take(&heap, 1 << 20).unwrap();
    }
}

#[test]
fn a_run_can_use_the_free_end_of_a_heap_that_cannot_grow_enough() {
    let heap = heap(4 << 20);
    // The heap grows by 2 MiB, most of which stay free.
    take(&heap, 16).unwrap();
    take(&heap, 3 << 20).unwrap();
}

#[test]
fn what_cannot_be_had_at_all_is_full_and_no_overflow() {
    let heap = heap(4 << 20);
    for bytes in [5 << 20, 1 << 40, usize::MAX - 1, usize::MAX] {
        assert!(matches!(take(&heap, bytes), Err(Error::Full { .. })));
    }
    assert_eq!(taken(&heap), 0);
}

#[test]
fn large_memory_that_is_freed_goes_back_to_the_system() {
    let heap = heap(64 << 20);
    let blocks = || {
        let file = heap.segment().reopened().unwrap();
        std::os::unix::fs::MetadataExt::blocks(&std::fs::File::from(file).metadata().unwrap())
    };
    let at = take(&heap, 32 << 20).unwrap();
    let before = blocks();
    support::free(&heap, at, 32 << 20).unwrap();
    assert!(before - blocks() >= (32 << 20) / 512, "of {before} blocks {} are left", blocks());
    // It is had again, in another size, with memory behind it.
    let at = take(&heap, 8 << 20).unwrap();
    for word in heap.segment().words(at, 1 << 20).unwrap() {
        word.store(1, Relaxed);
    }
}

#[test]
fn threads_that_take_and_free_never_have_the_same() {
    let heap = heap(16 << 20);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let heap = &heap;
            scope.spawn(move || {
                let mut had: Vec<(Offset, usize, u64)> = Vec::new();
                for round in 0..4_000_u64 {
                    let bytes = [16, 24, 64, 200, 3000, 20_000, 70_000][(round % 7) as usize];
                    let mark = thread << 32 | round;
                    let at = take(heap, bytes).unwrap();
                    for word in heap.segment().words(at, bytes / 8).unwrap() {
                        word.store(mark, Relaxed);
                    }
                    had.push((at, bytes, mark));
                    if had.len() > 20 {
                        let (at, bytes, mark) = had.swap_remove((round * 7 % 20) as usize);
                        let words = heap.segment().words(at, bytes / 8).unwrap();
                        assert!(words.iter().all(|word| word.load(Relaxed) == mark));
                        support::free(heap, at, bytes).unwrap();
                    }
                }
                for (at, bytes, _) in had {
                    support::free(heap, at, bytes).unwrap();
                }
            });
        }
    });
    assert_eq!(taken(&heap), 0);
}

#[test]
fn what_is_freed_twice_or_was_never_taken_is_an_error() {
    let heap = heap(4 << 20);
    for bytes in [64, 100 << 10] {
        let at = take(&heap, bytes).unwrap();
        support::free(&heap, at, bytes).unwrap();
        for wrong in [at, at + 16, 0, 8, usize::MAX - 7] {
            let result = support::free(&heap, wrong, bytes);
            assert!(matches!(result, Err(Error::Corrupt(_))), "{bytes} at {wrong}");
        }
    }
    assert_eq!(taken(&heap), 0);
    take(&heap, 64).unwrap();
}
