//! Transactions in one process: what they undo, what others see meanwhile, what they refuse.

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use support::{Child, End, heap};
use ungil_heap::object::{self, Kind};
use ungil_heap::roots::Root;
use ungil_heap::sync::{event, lock, semaphore};
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, dict, list, monitor};
use whole::settled;

const SIZE: usize = 16 << 20;
const KEY: Value<'static> = Value::Int(0);

/// A dict with these values under the keys from 0 on.
fn counts(heap: &Heap, values: &[i64]) -> Root {
    heap.make(|op| {
        let at = dict::create(op)?;
        for (key, value) in (0..).zip(values) {
            dict::set_in(op, at, &Value::Int(key), &Value::Int(*value))?;
        }
        Ok(at)
    })
    .unwrap()
}

fn count(heap: &Heap, root: &Root) -> i64 {
    match dict::get(heap, root.at(), &KEY).unwrap() {
        Some(Value::Int(count)) => count,
        other => panic!("no number: {other:?}"),
    }
}

fn add(heap: &Heap, root: &Root, by: i64) {
    dict::increment(heap, root.at(), &KEY, &Value::Int(by)).unwrap();
}

#[test]
fn what_happens_in_a_transaction_happens_or_does_not() {
    let heap = heap(SIZE);
    let (one, other) = (counts(&heap, &[1]), counts(&heap, &[10]));
    for (happens, expected) in [(false, (1, 10)), (true, (2, 9))] {
        let transaction = heap.begin().unwrap();
        add(&heap, &one, 1);
        add(&heap, &other, -1);
        assert_eq!((count(&heap, &one), count(&heap, &other)), (2, 9), "it sees its own changes");
        if happens {
            transaction.commit().unwrap();
        } else {
            transaction.roll_back().unwrap();
        }
        assert_eq!((count(&heap, &one), count(&heap, &other)), expected);
    }
    settled(&heap);
}

#[test]
fn a_part_that_fails_is_undone_and_the_whole_goes_on() {
    let heap = heap(SIZE);
    let one = counts(&heap, &[0]);
    let outer = heap.begin().unwrap();
    add(&heap, &one, 1);
    let inner = heap.begin().unwrap();
    add(&heap, &one, 10);
    inner.roll_back().unwrap();
    let inner = heap.begin().unwrap();
    add(&heap, &one, 100);
    inner.commit().unwrap();
    assert_eq!(count(&heap, &one), 101);
    outer.commit().unwrap();
    assert_eq!(count(&heap, &one), 101);
    let outer = heap.begin().unwrap();
    let inner = heap.begin().unwrap();
    add(&heap, &one, 1000);
    inner.commit().unwrap();
    drop(outer);
    assert_eq!(count(&heap, &one), 101, "what is part of one that fails fails with it");
}

#[test]
fn a_transaction_that_ends_before_its_part_undoes_both() {
    let heap = heap(SIZE);
    let one = counts(&heap, &[0]);
    let outer = heap.begin().unwrap();
    let inner = heap.begin().unwrap();
    add(&heap, &one, 1);
    assert!(matches!(outer.commit(), Err(Error::Misuse(_))));
    drop(inner);
    assert_eq!(count(&heap, &one), 0);
    let op = heap.op().unwrap();
    assert!(matches!(heap.begin(), Err(Error::Misuse(_))), "a single change has no such part");
    drop(op);
    add(&heap, &one, 1);
    settled(&heap);
}

#[test]
fn what_was_made_in_a_transaction_that_failed_is_gone_for_all_that_hold_it() {
    let heap = heap(SIZE);
    let container = counts(&heap, &[0]);
    let transaction = heap.begin().unwrap();
    let made = heap.make(|op| list::create(op)).unwrap();
    list::append(&heap, made.at(), &KEY).unwrap();
    dict::set(&heap, container.at(), &KEY, &Value::Object(made.at())).unwrap();
    drop(transaction);
    assert_eq!(count(&heap, &container), 0);
    assert!(matches!(list::len(&heap, made.at()), Err(Error::Stale)));
    assert!(matches!(list::append(&heap, made.at(), &KEY), Err(Error::Stale)));
    // Nothing else comes to be in its place, as long as it is held.
    let others: Vec<_> = (0..100).map(|_| heap.make(|op| list::create(op)).unwrap()).collect();
    assert!(others.iter().all(|other| other.at() != made.at()));
    settled(&heap);
    assert_eq!(object::head(heap.segment(), made.at()).unwrap().kind().unwrap(), Kind::Gone);
    heap.release(made).unwrap();
    for other in others {
        heap.release(other).unwrap();
    }
    let left = settled(&heap);
    assert_eq!((left.freed, left.objects), (0, 1), "its memory was freed at once");
}

#[test]
fn what_was_made_and_not_kept_is_freed_when_the_transaction_ends() {
    let heap = heap(SIZE);
    let keeper = counts(&heap, &[0]);
    let transaction = heap.begin().unwrap();
    let dropped = heap.make(|op| list::create(op)).unwrap();
    heap.release(dropped).unwrap();
    let kept = heap.make(|op| list::create(op)).unwrap();
    dict::set(&heap, keeper.at(), &KEY, &Value::Object(kept.at())).unwrap();
    heap.release(kept).unwrap();
    transaction.commit().unwrap();
    let left = settled(&heap);
    assert_eq!((left.freed, left.objects, left.lowered), (0, 2, 0));
}

/// What this transaction has read is not changed by others, who can read it all the same.
#[test]
fn what_is_read_in_a_transaction_stays_as_it_is_until_that_ends() {
    let heap = heap(SIZE);
    let one = counts(&heap, &[1]);
    let transaction = heap.begin().unwrap();
    assert_eq!(count(&heap, &one), 1);
    let changed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(count(&heap, &one), 1, "a reader does not wait");
            add(&heap, &one, 10);
            changed.store(true, SeqCst);
        });
        // It waits for the lock, which says so.
        let word = &object::head(heap.segment(), one.at()).unwrap().lock;
        while word.load(SeqCst) >> 31 == 0 {
            std::thread::yield_now();
        }
        assert!(!changed.load(SeqCst));
        add(&heap, &one, 1);
        assert_eq!(count(&heap, &one), 2);
        transaction.commit().unwrap();
    });
    assert_eq!(count(&heap, &one), 12);
}

/// Money goes from account to account, of two dicts, by threads and processes, some of which die.
#[test]
fn nobody_sees_half_of_a_transaction_and_transactions_follow_each_other() {
    const TOTAL: i64 = 1000;
    let heap = heap(SIZE);
    let (one, other) = (counts(&heap, &[TOTAL]), counts(&heap, &[0]));
    let transfer = |number: i64| {
        let transaction = heap.begin().unwrap();
        let by = number * 7 % 13 - 6;
        let (mine, theirs) = (count(&heap, &one), count(&heap, &other));
        assert_eq!(mine + theirs, TOTAL);
        dict::set(&heap, one.at(), &KEY, &Value::Int(mine - by)).unwrap();
        dict::set(&heap, other.at(), &KEY, &Value::Int(theirs + by)).unwrap();
        if number % 5 == 0 {
            transaction.roll_back().unwrap();
        } else {
            transaction.commit().unwrap();
        }
    };
    let children: Vec<_> = (0..3)
        .map(|first| {
            Child::fork(&heap, || {
                let mut number = first;
                loop {
                    transfer(number);
                    number += 1;
                }
            })
        })
        .collect();
    let mut seen = 0;
    let begun = Instant::now();
    while seen < 50 || begun.elapsed() < Duration::from_millis(50) {
        let transaction = heap.begin().unwrap();
        assert_eq!(count(&heap, &one) + count(&heap, &other), TOTAL);
        transaction.commit().unwrap();
        seen += 1;
    }
    for child in children {
        child.kill();
        assert_eq!(child.wait(), End::Killed);
        transfer(1);
    }
    assert_eq!(count(&heap, &one) + count(&heap, &other), TOTAL);
    settled(&heap);
}

/// Who reads without a transaction, and has seen what one did to the first object, sees what it did
/// to the second.
#[test]
fn what_a_transaction_did_is_seen_in_any_order_once_it_is_seen() {
    let heap = heap(SIZE);
    let (one, other) = (counts(&heap, &[0]), counts(&heap, &[0]));
    let child = Child::fork(&heap, || {
        loop {
            let transaction = heap.begin().unwrap();
            add(&heap, &other, 1);
            add(&heap, &one, 1);
            transaction.commit().unwrap();
        }
    });
    let mut last = 0;
    while last < 2000 {
        let first = count(&heap, &one);
        let second = count(&heap, &other);
        assert!(second >= first, "{first} of one and {second} of the other are seen");
        let third = count(&heap, &one);
        assert!(third >= second, "{second} of the other and {third} of one are seen");
        last = third;
    }
    drop(child);
}

#[test]
fn a_heap_that_is_full_fails_the_change_and_the_transaction_can_be_undone() {
    let heap = heap(1 << 20);
    let one = counts(&heap, &[0]);
    let transaction = heap.begin().unwrap();
    let long = Value::Bytes(vec![1; 10_000].into());
    let error = (1..).find_map(|key| dict::set(&heap, one.at(), &Value::Int(key), &long).err());
    assert!(matches!(error, Some(Error::Full { .. })));
    assert!(
        dict::len(&heap, one.at()).unwrap() > 10,
        "what came before the failure is still there"
    );
    transaction.roll_back().unwrap();
    assert_eq!(dict::len(&heap, one.at()).unwrap(), 1);
    dict::set(&heap, one.at(), &KEY, &long).unwrap();
    settled(&heap);
}

/// A transaction cannot collect, but the next one finds what could have been.
#[test]
fn garbage_that_would_have_made_room_is_collected_when_the_transaction_has_ended() {
    let heap = heap(1 << 20);
    let keeper = counts(&heap, &[0]);
    let ring = |heap: &Heap| {
        let made = heap.make(|op| list::create(op)).unwrap();
        list::append(heap, made.at(), &Value::Bytes(vec![1; 300_000].into()))?;
        list::append(heap, made.at(), &Value::Object(made.at()))?;
        heap.release(made)
    };
    ring(&heap).unwrap();
    let large = Value::Bytes(vec![1; 600_000].into());
    let attempt = |heap: &Arc<Heap>| {
        let transaction = heap.begin().unwrap();
        dict::set(heap, keeper.at(), &KEY, &large)?;
        transaction.commit()
    };
    assert!(matches!(attempt(&heap), Err(Error::Full { .. })));
    attempt(&heap).unwrap();
}

#[test]
fn changes_without_end_go_on_in_the_heap() {
    let heap = heap(SIZE);
    let one = heap.make(|op| list::create(op)).unwrap();
    let many: Vec<_> = (0..2000).map(|number| counts(&heap, &[number])).collect();
    let transaction = heap.begin().unwrap();
    for number in 0..30_000 {
        list::append(&heap, one.at(), &Value::Int(number)).unwrap();
    }
    for dict in &many {
        add(&heap, dict, 1);
    }
    drop(transaction);
    assert_eq!(list::len(&heap, one.at()).unwrap(), 0);
    assert!((0..).zip(&many).all(|(number, dict)| count(&heap, dict) == number));
    settled(&heap);
}

#[test]
fn what_could_wait_for_ever_is_refused_in_a_transaction() {
    let heap = heap(SIZE);
    let of = |make: &dyn Fn(&mut ungil_heap::op::Op<'_>) -> ungil_heap::Result<usize>| {
        heap.make(|op| make(op)).unwrap()
    };
    let (lock, units) = (of(&|op| lock::create(op)), of(&|op| semaphore::create(op, 1)));
    let event = of(&|op| event::create(op));
    let entered = counts(&heap, &[0]);
    let _ = monitor::enter(&heap, entered.at(), None).unwrap();
    let transaction = heap.begin().unwrap();
    let refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Misuse(_))));
    refused(monitor::acquire(&heap, lock.at(), None).map(|_| ()));
    refused(monitor::enter(&heap, lock.at(), None).map(|_| ()));
    refused(semaphore::acquire(&heap, units.at(), None).map(|_| ()));
    refused(event::wait(&heap, event.at(), None).map(|_| ()));
    // Neither what this thread has nor what is got at once can wait.
    assert!(monitor::enter(&heap, entered.at(), None).unwrap().is_some());
    assert!(monitor::acquire(&heap, lock.at(), Some(Instant::now())).unwrap().is_some());
    assert!(semaphore::acquire(&heap, units.at(), Some(Instant::now())).unwrap());
    event::set(&heap, event.at()).unwrap();
    assert!(event::wait(&heap, event.at(), None).unwrap());
    assert!(matches!(heap.collect(Duration::ZERO), Err(Error::Refused(_))));
    drop(transaction);
    assert!(monitor::is_mine(&heap, lock.at()).unwrap(), "locks are not given back");
}

#[test]
fn a_child_that_is_forked_in_a_transaction_is_refused_and_the_transaction_is_the_parents() {
    let heap = heap(SIZE);
    let one = counts(&heap, &[0]);
    let transaction = heap.begin().unwrap();
    add(&heap, &one, 1);
    let reserved = heap.before_fork().unwrap();
    // SAFETY: the child uses its own memory and the heap, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = matches!(heap.forked(reserved), Err(Error::Refused(_)));
        let ended = matches!(transaction.commit(), Err(Error::Refused(_)));
        let changed = dict::set(&heap, one.at(), &KEY, &KEY).is_ok();
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(i32::from(!refused || !ended || changed)) };
    }
    drop(reserved);
    let mut status = 0;
    // SAFETY: the integer lives during the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    transaction.commit().unwrap();
    assert_eq!(count(&heap, &one), 1);
}

#[test]
fn a_thread_is_in_transactions_of_one_heap_at_a_time() {
    let (one, other) = (heap(1 << 20), heap(1 << 20));
    let outer = one.begin().unwrap();
    assert!(matches!(other.begin(), Err(Error::Misuse(_))));
    one.begin().unwrap().commit().unwrap();
    let elsewhere = other.clone();
    std::thread::spawn(move || elsewhere.begin().unwrap().commit().unwrap()).join().unwrap();
    outer.commit().unwrap();
    other.begin().unwrap().commit().unwrap();
}
