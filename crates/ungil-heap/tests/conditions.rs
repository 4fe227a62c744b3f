//! Conditions: among threads, among processes, and when who waits is killed.

mod support;
#[path = "support/waiting.rs"]
mod waiting;

use std::time::Instant;

use ungil_heap::monitor;
use ungil_heap::segment::Offset;
use ungil_heap::sync::{condition, lock};
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, list};

use support::{Child, End, heap};
use waiting::{kill, late, now, until};

const SIZE: usize = 4 << 20;

/// Enters a condition and waits.
fn wait_once(heap: &Heap, at: Offset, deadline: Option<Instant>) -> bool {
    assert!(condition::acquire(heap, at, late()).unwrap().is_some());
    let notified = condition::wait(heap, at, deadline).unwrap();
    condition::release(heap, at).unwrap();
    notified
}

fn notify(heap: &Heap, at: Offset, count: usize) -> usize {
    assert!(condition::acquire(heap, at, late()).unwrap().is_some());
    let notified = condition::notify(heap, at, count).unwrap();
    condition::release(heap, at).unwrap();
    notified
}

#[test]
fn a_condition_notifies_as_many_as_asked_in_their_order() {
    let heap = heap(SIZE);
    for lock in [None, Some(lock::create as fn(&mut _) -> _), Some(lock::create_reentrant)] {
        let at = heap
            .change(|op| {
                let lock = lock.map(|create| create(op)).transpose()?;
                condition::create(op, lock)
            })
            .unwrap();
        assert!(matches!(condition::notify(&heap, at, 1), Err(Error::Misuse(_))));
        assert!(matches!(condition::wait(&heap, at, now()), Err(Error::Misuse(_))));
        assert!(!wait_once(&heap, at, now()));
        let order = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for number in 0..5_usize {
                let (heap, order) = (&heap, &order);
                scope.spawn(move || {
                    assert!(wait_once(heap, at, late()));
                    order.lock().unwrap().push(number);
                });
                until(|| condition::waiting(heap, at).unwrap().len() == number + 1);
            }
            assert_eq!(notify(&heap, at, 1), 1);
            until(|| *order.lock().unwrap() == [0]);
            assert_eq!(notify(&heap, at, 2), 2);
            until(|| order.lock().unwrap().len() == 3);
            assert!(order.lock().unwrap()[1..].iter().all(|number| (1..3).contains(number)));
            assert_eq!(condition::waiting(&heap, at).unwrap().len(), 2);
            assert_eq!(notify(&heap, at, usize::MAX), 2);
        });
        assert_eq!(notify(&heap, at, 1), 0);
    }
}

#[test]
fn a_condition_gives_a_monitor_back_as_deep_as_it_was() {
    let heap = heap(SIZE);
    let at = heap.change(|op| condition::create(op, None)).unwrap();
    for _ in 0..3 {
        let _ = condition::acquire(&heap, at, None).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until(|| condition::waiting(&heap, at).unwrap().len() == 1);
            assert_eq!(notify(&heap, at, 1), 1);
        });
        assert!(condition::wait(&heap, at, late()).unwrap());
    });
    for _ in 0..3 {
        condition::release(&heap, at).unwrap();
    }
    assert_eq!(monitor::holder(&heap, at).unwrap(), None);
}

#[test]
fn a_dead_waiter_is_passed_over() {
    let heap = heap(SIZE);
    let at = heap.change(|op| condition::create(op, None)).unwrap();
    let child = Child::fork(&heap, || assert!(wait_once(&heap, at, None)));
    until(|| condition::waiting(&heap, at).unwrap().len() == 1);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| wait_once(&heap, at, late()));
        until(|| condition::waiting(&heap, at).unwrap().len() == 2);
        kill(child);
        assert_eq!(notify(&heap, at, 1), 1);
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_notification_of_one_who_died_before_it_had_the_lock_goes_to_the_next() {
    let heap = heap(SIZE);
    let at = heap.change(|op| condition::create(op, None)).unwrap();
    let child = Child::fork(&heap, || assert!(wait_once(&heap, at, None)));
    until(|| condition::waiting(&heap, at).unwrap().len() == 1);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| wait_once(&heap, at, late()));
        until(|| condition::waiting(&heap, at).unwrap().len() == 2);
        let _ = condition::acquire(&heap, at, late()).unwrap();
        assert_eq!(condition::notify(&heap, at, 1).unwrap(), 1);
        // It is notified and cannot go on, because the lock is held here.
        kill(child);
        condition::release(&heap, at).unwrap();
        assert!(waiter.join().unwrap());
    });
    assert_eq!(condition::waiting(&heap, at).unwrap(), []);
}

#[test]
fn processes_hand_a_token_around_by_a_condition() {
    let heap = heap(SIZE);
    let (at, token) =
        heap.change(|op| Ok((condition::create(op, None)?, list::create(op)?))).unwrap();
    list::append(&heap, token, &Value::Int(0)).unwrap();
    let run = |mine: i64| {
        for _ in 0..200 {
            assert!(condition::acquire(&heap, at, late()).unwrap().is_some());
            let turn = || match list::get(&heap, token, 0).unwrap() {
                Some(Value::Int(turn)) => turn,
                other => panic!("no token: {other:?}"),
            };
            while turn() % 3 != mine {
                assert!(condition::wait(&heap, at, late()).unwrap());
            }
            list::increment(&heap, token, 0, &Value::Int(1)).unwrap();
            condition::notify(&heap, at, usize::MAX).unwrap();
            condition::release(&heap, at).unwrap();
        }
    };
    let children: Vec<_> = (0..2).map(|mine| Child::fork(&heap, move || run(mine))).collect();
    run(2);
    for child in children {
        assert_eq!(child.wait(), End::Done);
    }
    assert_eq!(list::get(&heap, token, 0).unwrap(), Some(Value::Int(600)));
}
