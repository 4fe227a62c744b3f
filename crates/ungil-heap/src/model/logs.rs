//! Logs that go on in blocks of the heap.

use loom::thread;

use super::*;
use crate::{allocator, lane, memory};

/// So many changes find no room in the beginning of a log.
const MANY: u64 = 20;

/// Changes both words of an object again and again, in one operation.
fn change(op: &mut Op<'_>, at: Offset) {
    op.lock(at).unwrap();
    for value in 1..=MANY {
        op.store(at + BODY + 8 + (value % 2) as usize * 8, value + 1).unwrap();
    }
}

/// Two find a lock that a dead one has, whose log has gone on in a block.
const DEAD: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let heap = first.heap();
    let at = object(&heap).at();
    let dying = third.heap();
    let mut op = dying.op().unwrap();
    change(&mut op, at);
    dying.die();
    let other = {
        let heap = second.heap();
        thread::spawn(move || add(&heap, at))
    };
    add(&heap, at);
    other.join().unwrap();
    assert_eq!(both(&heap, at), [2, 2], "a change is lost, or was not undone");
});

#[test]
fn what_a_dead_one_began_is_undone_in_all_blocks_of_its_log() {
    DEAD.holds();
}

#[test]
#[should_panic(expected = "a change is lost")]
fn what_a_dead_one_began_is_undone_in_part_if_only_the_last_block_is_looked_at() {
    DEAD.holds_without("roll back: all blocks");
}

/// One has a block of the log's size and frees it, while another one's log goes on in such a block
/// and its change fails.
const FAILED: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let root = object(&heap);
    let at = root.at();
    let other = {
        let heap = second.heap();
        thread::spawn(move || {
            let bytes = 2 * lane::LEAST_MORE;
            let block = allocator::take(&heap, heap.thread().unwrap().me, bytes).unwrap();
            let word = heap.segment().word(block).unwrap();
            word.store(7, Relaxed);
            thread::yield_now();
            assert_eq!(word.load(Relaxed), 7, "two have the same memory");
            memory::free(heap.segment(), &heap.hints, block, bytes).unwrap();
        })
    };
    let mut op = heap.op().unwrap();
    change(&mut op, at);
    drop(op);
    assert_eq!(both(&heap, at), [0, 0], "a change was not undone");
    other.join().unwrap();
    heap.release(root).unwrap();
    verify(&heap);
});

#[test]
fn a_block_of_a_log_has_one_owner_and_is_freed() {
    FAILED.holds();
}

#[test]
#[should_panic(expected = "a change was not undone")]
fn what_failed_is_undone_in_part_if_only_the_last_block_is_looked_at() {
    FAILED.holds_without("roll back: all blocks");
}
