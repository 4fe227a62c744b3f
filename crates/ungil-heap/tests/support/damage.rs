//! Words of an object that are made wrong.

use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;
use ungil_heap::Heap;
use ungil_heap::object::{self, BODY, Owned};
use ungil_heap::segment::Offset;

/// A word that is wrong, or wrong in few bits only.
#[derive(Clone, Debug)]
enum Damage {
    Random(u64),
    Flipped(u32),
    /// What another word of the object is.
    Copied(prop::sample::Index),
    Small(i8),
}

/// Some words and what is done to them.
#[derive(Clone, Debug)]
pub struct Wounds(Vec<(prop::sample::Index, Damage)>);

pub fn wounds() -> impl Strategy<Value = Wounds> {
    let damage = prop_oneof![
        any::<u64>().prop_map(Damage::Random),
        (0..64_u32).prop_map(Damage::Flipped),
        any::<prop::sample::Index>().prop_map(Damage::Copied),
        any::<i8>().prop_map(Damage::Small),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), damage), 1..6).prop_map(Wounds)
}

/// Words that an object is made of: those of its body, and of the blocks that it owns.
fn words(heap: &Heap, at: Offset) -> Vec<Offset> {
    let mut words: Vec<Offset> = (0..4).map(|word| at + BODY + word * 8).collect();
    object::owned(heap.segment(), at, &mut |owned| {
        if let Owned::Block { at: block, bytes } = owned
            && block != at
        {
            words.extend((0..bytes / 8).map(|word| block + word * 8));
        }
        Ok(())
    })
    .unwrap();
    words
}

impl Wounds {
    /// Damages an object.
    pub fn inflict(&self, heap: &Heap, at: Offset) {
        let words = words(heap, at);
        let read = |at: Offset| heap.segment().word(at).unwrap().load(Relaxed);
        for (place, damage) in &self.0 {
            let place = *place.get(&words);
            let new = match damage {
                Damage::Random(new) => *new,
                Damage::Flipped(bit) => read(place) ^ 1 << bit,
                Damage::Copied(from) => read(*from.get(&words)),
                Damage::Small(new) => i64::from(*new).cast_unsigned(),
            };
            heap.segment().word(place).unwrap().store(new, Relaxed);
        }
    }
}
