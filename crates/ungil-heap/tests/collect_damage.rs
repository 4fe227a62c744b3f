//! A heap with arbitrary bytes in it is refused with an error, or works: nobody crashes or hangs.

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use proptest::prelude::*;
use support::heap;
use ungil_heap::header::{CHUNK, LANE_SIZE, PAGE, PROCESS_SIZE};
use ungil_heap::pin::Pin;
use ungil_heap::roots::Root;
use ungil_heap::value::Value;
use ungil_heap::{Heap, dict, list};
use whole::{link, node};

/// Shorter than a test may take: a damaged lane can say that it is busy for ever.
const PATIENCE: Duration = Duration::from_millis(100);

/// Where a word is damaged.
#[derive(Clone, Copy, Debug)]
enum Place {
    Header(usize),
    Slot(usize),
    Lane(usize),
    State(usize),
    Bitmap(usize),
    /// A word of the objects, of what they own, or of this process's table.
    Memory(usize),
}

#[derive(Clone, Copy, Debug)]
enum Word {
    Any(u64),
    /// The offset of an object, and a little more.
    Object(usize, u64),
    /// What is there with one bit changed.
    Flip(u32),
}

fn damage() -> impl Strategy<Value = Vec<(Place, Word)>> {
    let place = prop_oneof![
        1 => any::<usize>().prop_map(Place::Header),
        1 => any::<usize>().prop_map(Place::Slot),
        1 => any::<usize>().prop_map(Place::Lane),
        2 => any::<usize>().prop_map(Place::State),
        2 => any::<usize>().prop_map(Place::Bitmap),
        12 => any::<usize>().prop_map(Place::Memory),
    ];
    let word = prop_oneof![
        any::<u64>().prop_map(Word::Any),
        (0..300_u64).prop_map(Word::Any),
        (any::<usize>(), 0..100_u64).prop_map(|(which, more)| Word::Object(which, more)),
        (any::<usize>()).prop_map(|which| Word::Object(which, 0)),
        (0..64_u32).prop_map(Word::Flip),
    ];
    prop::collection::vec((place, word), 1..12)
}

/// Some objects of several kinds that refer to each other.
fn some(heap: &Heap) -> Vec<Root> {
    let roots: Vec<Root> = (0..20).map(|number| node(heap, number)).collect();
    for (from, to) in roots.iter().zip(&roots[3..]) {
        link(heap, from.at(), to.at());
        link(heap, to.at(), from.at());
    }
    let root = heap.root().unwrap();
    for (key, to) in (0..).zip(&roots) {
        dict::set(heap, root.at(), &Value::Int(key), &Value::Object(to.at())).unwrap();
    }
    let large = Value::Bytes(vec![1; 3 * CHUNK].into());
    list::append(heap, roots[0].at(), &large).unwrap();
    roots
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_ends_in_an_error_or_in_nothing(damage in damage()) {
        let heap = heap(4 << 20);
        let mut roots = some(&heap);
        let offsets: Vec<usize> = roots.iter().map(Root::at).collect();
        let pin = heap.pin(&roots[0]).unwrap();
        for (place, word) in damage {
            spoil(&heap, place, word, &offsets);
        }
        // Each of these may fail, and the others are still to end.
        drop(heap.verify(PATIENCE));
        drop(heap.statistics(PATIENCE));
        drop(heap.collect(PATIENCE));
        drop(heap.adopt(&pin));
        drop(heap.adopt(&Pin { index: 1, ..pin }));
        drop(heap.before_fork());
        for root in roots.drain(10..) {
            drop(heap.release(root));
        }
        drop(heap.collect(PATIENCE));
        drop(heap.root());
        drop(heap.is_collection_due());
        drop(heap.clean());
    }
}

fn spoil(heap: &Heap, place: Place, word: Word, objects: &[usize]) {
    let layout = heap.segment().layout();
    let within = |start: usize, words: usize, which: usize| start + which % words * 8;
    let at = match place {
        Place::Header(which) => within(0, PAGE / 8 / 16, which),
        Place::Slot(which) => within(layout.processes, PROCESS_SIZE / 8 * 4, which),
        Place::Lane(which) => within(layout.lanes, LANE_SIZE / 8 * 8, which),
        Place::State(which) => within(layout.states, layout.chunks, which),
        Place::Bitmap(which) => within(layout.bitmaps, 64 * 12, which),
        Place::Memory(which) => {
            let object = objects[which % objects.len()];
            // Slabs begin where chunks begin, and their first blocks are in use.
            within(object & !0xfff, 512, which / objects.len())
        }
    };
    let old = heap.segment().word(at).unwrap();
    let new = match word {
        Word::Any(word) => word,
        Word::Object(which, more) => objects[which % objects.len()] as u64 + more,
        Word::Flip(bit) => old.load(Relaxed) ^ 1 << bit,
    };
    old.store(new, Relaxed);
}

#[test]
fn a_gate_that_is_closed_by_nobody_keeps_nobody_out() {
    let heap = heap(4 << 20);
    let dict = heap.make(|op| dict::create(op)).unwrap();
    // Only the bit that says, in the words of locks, that somebody waits.
    heap.segment().header().gate.store(1 << 31, Relaxed);
    dict::set(&heap, dict.at(), &Value::Int(1), &Value::None).unwrap();
    assert_eq!(dict::len(&heap, dict.at()).unwrap(), 1);
}

#[test]
fn a_table_in_a_run_that_is_longer_than_memory_has_no_pins() {
    let heap = heap(4 << 20);
    let root = node(&heap, 1);
    let _ = heap.pin(&root).unwrap();
    let layout = *heap.segment().layout();
    for chunk in 0..layout.chunks {
        heap.segment()
            .word(layout.states + chunk * 8)
            .unwrap()
            .store(216_454_257_090_494_464, Relaxed);
    }
    assert!(!heap.has_pins().unwrap());
}
