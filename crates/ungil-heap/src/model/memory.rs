//! Blocks and chunks: taken and freed as operations do, while others retire and take the chunks.

use std::sync::Mutex;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::thread;

use super::*;
use crate::chunk::{self, State};
use crate::{Error, allocator, memory};

/// Who has which memory, as the threads of a model say.
struct Ledger {
    taken: Mutex<Vec<(Offset, usize)>>,
    /// What is in each chunk: loom reports who writes there and has not seen what was written before.
    /// No two use the same slab in these models.
    contents: [UnsafeCell<u32>; 3],
    first: Offset,
}

impl Ledger {
    fn new(segment: &Segment) -> Self {
        let contents = std::array::from_fn(|_| UnsafeCell::new(0));
        Self { taken: Mutex::default(), contents, first: segment.layout().chunk(1) }
    }

    /// Writes to memory that the caller has.
    fn fill(&self, at: Offset, bytes: usize) {
        let from = (at - self.first) / CHUNK;
        for content in &self.contents[from..from + bytes.div_ceil(CHUNK)] {
            // SAFETY: the caller has the memory; loom reports it if that means nothing.
            content.with_mut(|content| unsafe { *content += 1 });
        }
    }

    /// Notes memory that was taken: nobody else has it.
    fn enter(&self, at: Offset, bytes: usize) {
        let mut all = self.taken.lock().unwrap();
        let end = at + memory::rounded(bytes);
        for (from, to) in &*all {
            assert!(end <= *from || *to <= at, "two have the same memory");
        }
        all.push((at, end));
        drop(all);
        self.fill(at, bytes);
    }

    /// Forgets memory that is about to be freed.
    fn leave(&self, at: Offset, bytes: usize) {
        self.fill(at, bytes);
        self.taken.lock().unwrap().retain(|(from, _)| *from != at);
    }
}

fn take(heap: &Heap, ledger: &Ledger, bytes: usize) -> Option<Offset> {
    match allocator::take(heap, heap.thread().unwrap().me, bytes) {
        Ok(at) => {
            ledger.enter(at, bytes);
            Some(at)
        }
        Err(Error::Full { .. }) => None,
        Err(error) => panic!("memory cannot be taken: {error}"),
    }
}

fn give(heap: &Heap, ledger: &Ledger, at: Offset, bytes: usize) {
    ledger.leave(at, bytes);
    memory::free(heap.segment(), &heap.hints, at, bytes).expect("who has memory can free it");
}

/// Takes memory and gives it back, if there is any.
fn use_some(heap: &Heap, ledger: &Ledger, bytes: usize) {
    if let Some(at) = take(heap, ledger, bytes) {
        give(heap, ledger, at, bytes);
    }
}

/// One has a block, frees it and takes one again, while another wants all chunks, which it gets only
/// if the slab of the block is retired.
const RETIRED: Model = Model::new(4, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let ledger = Arc::new(Ledger::new(segment));
    let heap = first.heap();
    let block = take(&heap, &ledger, 64).unwrap();
    let other = {
        let (heap, ledger) = (second.heap(), ledger.clone());
        thread::spawn(move || use_some(&heap, &ledger, 3 * CHUNK))
    };
    give(&heap, &ledger, block, 64);
    use_some(&heap, &ledger, 64);
    other.join().unwrap();
    assert!(take(&heap, &ledger, 3 * CHUNK).is_some(), "memory that is free is not found");
});

#[test]
fn memory_has_one_owner_while_its_chunk_is_retired() {
    RETIRED.holds();
}

#[test]
#[should_panic(expected = "who has memory can free it")]
fn memory_is_no_block_any_more_if_take_does_not_look_again() {
    RETIRED.holds_without("take: a second look");
}

#[test]
#[should_panic(expected = "who has memory can free it")]
fn memory_cannot_be_freed_if_a_retiring_slab_is_none() {
    RETIRED.holds_without("free: retiring is in use");
}

#[test]
#[should_panic(expected = "Causality violation")]
fn memory_has_two_owners_if_blocks_are_taken_while_a_slab_is_retired() {
    RETIRED.holds_without("retire: nobody takes");
}

#[test]
#[should_panic(expected = "Causality violation")]
fn memory_is_used_while_it_is_written_to_if_free_orders_nothing() {
    RETIRED.holds_without("free: what was written is seen");
}

/// One takes all chunks and frees them, while another takes blocks of a class for which there is no
/// slab yet: chunks go from slab to run and back.
const CHUNKS: Model = Model::new(3, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let ledger = Arc::new(Ledger::new(segment));
    let heap = first.heap();
    // So that the heap need not grow.
    use_some(&heap, &ledger, CHUNK);
    let other = {
        let (heap, ledger) = (second.heap(), ledger.clone());
        thread::spawn(move || {
            use_some(&heap, &ledger, 48);
            use_some(&heap, &ledger, CHUNK);
        })
    };
    use_some(&heap, &ledger, 2 * CHUNK);
    use_some(&heap, &ledger, 64);
    other.join().unwrap();
    assert!(take(&heap, &ledger, 3 * CHUNK).is_some(), "memory that is free is not found");
});

#[test]
fn a_chunk_is_one_thing_at_a_time() {
    CHUNKS.holds();
}

#[test]
#[should_panic(expected = "is not found")]
fn a_chunk_is_two_things_if_chunks_are_taken_without_their_lock() {
    CHUNKS.holds_without("chunks: a lock");
}

/// One died as it was retiring the slab in which another has a block.
const RETIRING: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let dead = Process::another(segment);
    let ledger = Arc::new(Ledger::new(segment));
    let heap = first.heap();
    let block = take(&heap, &ledger, 64).unwrap();
    let me = dead.heap().thread().unwrap().me;
    segment.header().chunk_lock.store(me.word(), Relaxed);
    chunk::state(segment, 1).unwrap().store(State::Retiring(3).word(), Relaxed);
    dead.heap().die();
    let other = {
        let (heap, ledger) = (second.heap(), ledger.clone());
        thread::spawn(move || use_some(&heap, &ledger, 3 * CHUNK))
    };
    give(&heap, &ledger, block, 64);
    use_some(&heap, &ledger, 64);
    other.join().unwrap();
    assert!(take(&heap, &ledger, 3 * CHUNK).is_some(), "memory that is free is not found");
});

#[test]
fn what_a_dead_one_was_retiring_is_freed_and_used_again() {
    RETIRING.holds();
}

#[test]
#[should_panic(expected = "who has memory can free it")]
fn what_a_dead_one_was_retiring_cannot_be_freed_if_it_is_no_slab() {
    RETIRING.holds_without("free: retiring is in use");
}

/// One makes objects and lets go of them, while another collects.
const COLLECTED: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let kept = object(&heap);
    let other = {
        let heap = second.heap();
        thread::spawn(move || _ = heap.collect(Duration::from_millis(100)).unwrap())
    };
    let made = object(&heap);
    heap.release(kept).unwrap();
    other.join().unwrap();
    assert!(heap.is_alive(&made).unwrap(), "what is held was collected");
    heap.release(made).unwrap();
    verify(&heap);
});

#[test]
fn what_is_made_and_released_while_another_collects_is_neither_lost_nor_freed() {
    COLLECTED.holds();
}

#[test]
#[should_panic(expected = "Corrupt")]
fn what_is_made_is_collected_if_nobody_looks_at_the_gate() {
    COLLECTED.holds_without("enter: a look at the gate");
}

#[test]
#[should_panic(expected = "Corrupt")]
fn what_is_made_is_collected_if_the_collector_waits_for_nobody() {
    COLLECTED.holds_without("world: lanes are waited for");
}
