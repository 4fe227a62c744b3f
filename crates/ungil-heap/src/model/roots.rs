//! Threads of one process that hold and release at a time, in its table.

use loom::thread;

use super::*;
use crate::lane;
use crate::lock::Holder;
use crate::root_table::Entry;
use crate::roots::Roots;

/// One more thread of the process that has `heap`. Threads of a model cannot find that out by
/// themselves, as each is taken for a process.
fn one_more(heap: &Heap) -> Holder {
    let index = lane::take(heap.segment(), heap.slot()).unwrap();
    Holder::new(index, lane::lane(heap.segment(), index).unwrap().generation.load(Relaxed))
}

/// Holds something and releases it: as [`Heap::hold_seen`] and [`Heap::release`] do if the table is
/// free, else as they do in an operation.
fn hold_and_release(heap: &Heap, me: Holder, at: Offset) {
    let table = || {
        let free = Roots::lock_free(heap, me).unwrap();
        free.unwrap_or_else(|| Roots::lock_by(heap, me, heap.slot()).unwrap())
    };
    let mine = Entry { at, serial: 1, nonce: 0 };
    let index = table().enter(mine).unwrap();
    let table = table();
    assert_eq!(table.get(index).unwrap(), Some(mine), "what is held is somebody else's");
    table.remove(index).unwrap();
}

const TABLE: Model = Model::new(3, |segment| {
    let process = Process::first(segment);
    let heap = process.heap();
    heap.release(object(&heap)).unwrap();
    let threads = [1, 2].map(|number| {
        let (heap, me) = (process.heap(), one_more(&heap));
        thread::spawn(move || hold_and_release(&heap, me, number * object::SIZE))
    });
    for thread in threads {
        thread.join().unwrap();
    }
    verify(&heap);
});

#[test]
fn threads_that_hold_at_a_time_have_entries_of_their_own() {
    TABLE.holds();
}

#[test]
#[should_panic(expected = "what is held is somebody else's")]
fn threads_that_hold_at_a_time_share_an_entry_without_a_lock() {
    TABLE.holds_without("roots: a lock");
}

#[test]
#[should_panic(expected = "what is held is somebody else's")]
fn threads_that_hold_at_a_time_share_an_entry_if_a_taken_lock_counts_as_free() {
    TABLE.holds_without("roots: a free lock");
}
