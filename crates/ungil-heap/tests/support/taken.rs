//! What is taken of a heap's memory, and what the objects own that are known.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;
use ungil_heap::chunk::{self, State};
use ungil_heap::header::CHUNK;
use ungil_heap::object::{self, Owned};
use ungil_heap::segment::Offset;
use ungil_heap::value::{Text, Value};
use ungil_heap::{Heap, memory, size_class, slab};

/// Every block that is taken, and its size.
pub fn taken(heap: &Heap) -> BTreeMap<Offset, usize> {
    let segment = heap.segment();
    let mut taken = BTreeMap::new();
    let mut index = 0;
    while index < chunk::count(segment) {
        let start = segment.layout().chunk(index);
        match State::from_word(chunk::state(segment, index).unwrap().load(Relaxed)).unwrap() {
            State::Run(chunks) => {
                taken.insert(start, chunks * CHUNK);
                index += chunks;
                continue;
            }
            State::Slab(class) | State::Retiring(class) => {
                let size = size_class::SIZES[usize::from(class)];
                for (number, word) in slab::bitmap(segment, index).unwrap().iter().enumerate() {
                    for bit in (0..64).filter(|bit| word.load(Relaxed) >> bit & 1 == 1) {
                        taken.insert(start + (number * 64 + bit) * size, size);
                    }
                }
            }
            _ => {}
        }
        index += 1;
    }
    taken
}

/// Every block that these objects and those below them own, and its size.
pub fn owned(heap: &Heap, roots: &[Offset]) -> BTreeMap<Offset, usize> {
    let mut owned = BTreeMap::new();
    let mut left = roots.to_vec();
    while let Some(object) = left.pop() {
        if owned.contains_key(&object) {
            continue;
        }
        object::owned(heap.segment(), object, &mut |found| {
            match found {
                Owned::Block { at, bytes } => {
                    let twice = owned.insert(at, memory::rounded(bytes));
                    assert_eq!(twice, None, "two own the block at {at}");
                }
                Owned::Object(at) => left.push(at),
            }
            Ok(())
        })
        .unwrap();
    }
    owned
}

/// Asserts that nothing is taken but what these objects own.
pub fn nothing_is_lost(heap: &Heap, roots: &[Offset]) {
    assert_eq!(taken(heap), owned(heap, roots), "what is taken, and what is owned");
}

/// Values of all sorts, many of them equal.
pub fn values() -> impl Strategy<Value = Value<'static>> {
    let text = |text: String| Value::Str(Text::from(text.into_bytes()));
    let simple = prop_oneof![
        Just(Value::None),
        any::<bool>().prop_map(Value::Bool),
        (0..4_i64).prop_map(Value::Int),
        any::<i64>().prop_map(Value::Int),
        (0..4_i8).prop_map(|number| Value::Float(number.into())),
        "[ab]{0,2}".prop_map(text),
        "[ab]{13,16}".prop_map(text),
        "[a-z]{100}".prop_map(text),
    ];
    prop_oneof![
        5 => simple.clone(),
        1 => prop::collection::vec(simple, 0..4).prop_map(Value::Tuple),
    ]
}
