//! A heap that grows while others use what it has grown by.

use loom::thread;

use super::*;
use crate::allocator;

/// Takes memory, which is there, and writes to it.
fn take(heap: &Heap, bytes: usize) -> Offset {
    let at = allocator::take(heap, heap.thread().unwrap().me, bytes).unwrap();
    assert!(heap.segment().has_memory(at, bytes), "there is no memory");
    heap.segment().word(at).unwrap().store(7, Relaxed);
    at
}

/// Two want memory where there is none yet. One lets others know of what it has got, which the other
/// one reads.
const GROWN: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first_of_small(segment), Process::another(segment));
    let heap = first.heap();
    let at = object(&heap).at();
    let other = {
        let heap = second.heap();
        thread::spawn(move || {
            let mine = take(&heap, 80);
            heap.change(|op| {
                op.lock(at)?;
                op.store(at + BODY + 8, mine as u64)
            })
            .unwrap();
            mine
        })
    };
    let read = || match body(&heap, at, 1).load(Relaxed) {
        0 => Ok(7),
        found => Ok(heap.segment().word(usize::try_from(found).unwrap())?.load(Relaxed)),
    };
    let seen = heap.read(at, read).expect("what is read is inside of the heap");
    assert_eq!(seen, 7, "what was written before is not there");
    let mine = take(&heap, 96);
    assert_ne!(other.join().unwrap(), mine, "two have the same memory");
})
.with_chunks(4);

#[test]
fn what_a_heap_has_grown_by_is_used_while_it_grows() {
    GROWN.holds();
}
