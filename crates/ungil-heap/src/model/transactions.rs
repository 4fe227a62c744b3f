//! Transactions: two that read and write crossing objects, beside who changes one of them at once
//! and who reads without a lock.

use loom::thread;

use super::*;

/// Both words of an object, as a caller reads them.
fn read(heap: &Heap, at: Offset) -> u64 {
    let [left, right] = heap.read(at, || Ok(both(heap, at))).unwrap();
    assert_eq!(left, right, "half of a transaction is read");
    left
}

/// Changes both words of an object.
fn write(heap: &Heap, at: Offset, value: u64) {
    heap.change(|op| {
        op.lock(at)?;
        op.store(at + BODY + 8, value)?;
        op.store(at + BODY + 16, value)
    })
    .unwrap();
}

/// Writes one more than what it reads elsewhere.
fn carry(heap: &Heap, from: Offset, to: Offset) {
    let transaction = heap.begin().unwrap();
    let seen = read(heap, from);
    write(heap, to, seen + 1);
    transaction.commit().unwrap();
}

/// Two that read what the other one writes.
const CROSSING: Model = Model::with_calls(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let [left, right] = [object(&heap).at(), object(&heap).at()];
    let other = {
        let heap = second.heap();
        thread::spawn(move || carry(&heap, right, left))
    };
    carry(&heap, left, right);
    other.join().unwrap();
    let seen = [read(&heap, left), read(&heap, right)];
    assert!(seen == [1, 2] || seen == [2, 1], "they were not one after the other: {seen:?}");
});

#[test]
fn transactions_that_cross_are_one_after_the_other() {
    CROSSING.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn transactions_that_cross_wait_for_each_other_if_there_are_two_at_a_time() {
    CROSSING.holds_without("transaction: one at a time");
}

/// One that reads twice what somebody else changes at once.
const CHANGED: Model = Model::with_calls(3, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let [left, right] = [object(&heap).at(), object(&heap).at()];
    let other = {
        let heap = second.heap();
        thread::spawn(move || add(&heap, left))
    };
    let transaction = heap.begin().unwrap();
    let seen = read(&heap, left);
    write(&heap, right, seen);
    assert_eq!(read(&heap, left), seen, "what a transaction has read was changed");
    write(&heap, left, seen + 1);
    transaction.commit().unwrap();
    other.join().unwrap();
    assert_eq!(read(&heap, left), 2, "a change is lost");
});

#[test]
fn what_a_transaction_reads_is_changed_before_or_after_it() {
    CHANGED.holds();
}

#[test]
#[should_panic(expected = "a change is lost")]
fn a_change_is_lost_if_what_a_transaction_reads_is_not_guarded() {
    CHANGED.holds_without("transaction: what is read stays");
}

/// One that changes two objects, while somebody reads them.
const READ: Model = Model::new(1, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let [left, right] = [object(&heap).at(), object(&heap).at()];
    let other = {
        let heap = second.heap();
        thread::spawn(move || {
            let transaction = heap.begin().unwrap();
            write(&heap, left, 1);
            write(&heap, right, 1);
            transaction.commit().unwrap();
        })
    };
    let seen = [read(&heap, right), read(&heap, left)];
    assert!(seen[0] <= seen[1], "half of a transaction is read: {seen:?}");
    other.join().unwrap();
});

#[test]
fn who_reads_beside_a_transaction_sees_all_of_it_or_nothing() {
    READ.holds();
}

#[test]
#[should_panic(expected = "half of a transaction is read")]
fn who_reads_beside_a_transaction_sees_half_of_it_if_versions_stay_even() {
    READ.holds_without("op: odd while it changes");
}

/// One that fails, while somebody reads.
const FAILED: Model = Model::new(2, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let at = object(&heap).at();
    let other = {
        let heap = second.heap();
        thread::spawn(move || {
            let transaction = heap.begin().unwrap();
            write(&heap, at, 7);
            transaction.roll_back().unwrap();
        })
    };
    assert_eq!(read(&heap, at), 0, "what failed has happened");
    other.join().unwrap();
    assert_eq!(read(&heap, at), 0, "what failed has happened");
});

#[test]
fn who_reads_beside_a_transaction_that_fails_sees_nothing_of_it() {
    FAILED.holds();
}

#[test]
#[should_panic(expected = "what failed has happened")]
fn who_reads_beside_a_transaction_that_fails_sees_it_if_it_is_not_undone() {
    FAILED.holds_without("op: what failed is undone");
}
