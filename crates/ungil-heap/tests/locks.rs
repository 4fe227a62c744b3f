//! Locks and monitors: among threads, among processes, and when their holders are killed.

mod support;
#[path = "support/waiting.rs"]
mod waiting;

use std::sync::atomic::Ordering::Relaxed;

use ungil_heap::lock::Acquired;
use ungil_heap::monitor::{self, Owner};
use ungil_heap::segment::Offset;
use ungil_heap::sync::lock;
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, list, object};

use support::{Child, End, heap};
use waiting::{kill, late, lingering, now, until};

const SIZE: usize = 4 << 20;

/// Whether somebody sleeps on the lock of an object.
fn is_waited_for(heap: &Heap, at: Offset) -> bool {
    object::head(heap.segment(), at).unwrap().monitor.load(Relaxed) >> 31 == 1
}

#[test]
fn a_lock_is_held_by_one_at_a_time() {
    let heap = heap(SIZE);
    let (at, counter) = heap.change(|op| Ok((lock::create(op)?, list::create(op)?))).unwrap();
    list::append(&heap, counter, &Value::Int(0)).unwrap();
    let count = || {
        for _ in 0..2_000 {
            assert!(monitor::acquire(&heap, at, late()).unwrap().is_some());
            let Some(Value::Int(seen)) = list::get(&heap, counter, 0).unwrap() else {
                panic!("it counts")
            };
            list::set(&heap, counter, 0, &Value::Int(seen + 1)).unwrap();
            monitor::release(&heap, at).unwrap();
        }
    };
    let children: Vec<_> = (0..2).map(|_| Child::fork(&heap, count)).collect();
    std::thread::scope(|scope| {
        scope.spawn(count);
        scope.spawn(count);
    });
    for child in children {
        assert_eq!(child.wait(), End::Done);
    }
    assert_eq!(list::get(&heap, counter, 0).unwrap(), Some(Value::Int(8_000)));
}

#[test]
fn a_monitor_is_entered_again_by_its_thread_only() {
    let heap = heap(SIZE);
    let at = heap.change(list::create).unwrap();
    for _ in 0..3 {
        assert_eq!(monitor::enter(&heap, at, now()).unwrap(), Some(Acquired::Free));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(monitor::enter(&heap, at, now()).unwrap(), None);
            assert!(matches!(monitor::leave(&heap, at), Err(Error::Misuse(_))));
            assert!(!monitor::is_mine(&heap, at).unwrap());
        });
    });
    for _ in 0..3 {
        assert!(monitor::is_mine(&heap, at).unwrap());
        monitor::leave(&heap, at).unwrap();
    }
    assert_eq!(monitor::holder(&heap, at).unwrap(), None);
    assert!(matches!(monitor::leave(&heap, at), Err(Error::Misuse(_))));
}

#[test]
fn a_lock_waits_for_its_own_thread_and_is_released_by_another() {
    let heap = heap(SIZE);
    let at = heap.change(lock::create).unwrap();
    assert!(matches!(monitor::release(&heap, at), Err(Error::Misuse(_))));
    assert_eq!(monitor::acquire(&heap, at, now()).unwrap(), Some(Acquired::Free));
    assert_eq!(monitor::acquire(&heap, at, now()).unwrap(), None);
    std::thread::scope(|scope| {
        scope.spawn(|| monitor::release(&heap, at).unwrap());
        assert_eq!(monitor::acquire(&heap, at, late()).unwrap(), Some(Acquired::Free));
    });
}

#[test]
fn the_lock_of_a_killed_process_goes_to_the_next_one_who_is_told() {
    let heap = heap(SIZE);
    let at = heap.change(lock::create).unwrap();
    let child = lingering(&heap, || assert!(monitor::enter(&heap, at, None).unwrap().is_some()));
    let pid = child.pid().cast_unsigned();
    let owner = monitor::holder(&heap, at).unwrap();
    assert!(matches!(owner, Some(Owner::Process { pid: its, .. }) if its == pid), "{owner:?}");
    assert_eq!(monitor::enter(&heap, at, now()).unwrap(), None);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let got = monitor::enter(&heap, at, late()).unwrap();
            let told = monitor::owner_died(&heap, at).unwrap();
            monitor::leave(&heap, at).unwrap();
            (got, told)
        });
        until(|| is_waited_for(&heap, at));
        kill(child);
        assert_eq!(waiter.join().unwrap(), (Some(Acquired::Abandoned), true));
    });
    assert_eq!(monitor::enter(&heap, at, now()).unwrap(), Some(Acquired::Free));
    assert!(!monitor::owner_died(&heap, at).unwrap());
}

#[test]
fn who_does_not_wait_gets_the_lock_of_a_dead_one_too() {
    let heap = heap(SIZE);
    let at = heap.change(lock::create).unwrap();
    kill(lingering(&heap, || assert!(monitor::enter(&heap, at, None).unwrap().is_some())));
    assert_eq!(monitor::enter(&heap, at, now()).unwrap(), Some(Acquired::Abandoned));
    assert_eq!(object::head(heap.segment(), at).unwrap().depth.load(Relaxed), 1);
}

#[test]
fn a_thread_that_ends_with_a_lock_has_died_with_it() {
    let heap = heap(SIZE);
    let at = heap.change(lock::create).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(monitor::acquire(&heap, at, None).unwrap().is_some()));
    });
    assert_eq!(monitor::acquire(&heap, at, late()).unwrap(), Some(Acquired::Abandoned));
}

#[test]
fn what_is_not_taken_at_once_is_left_as_it_is() {
    let heap = heap(SIZE);
    let at = heap.make(|op| lock::create_reentrant(op)).unwrap().at();
    // Who this thread is has to be known first.
    assert_eq!(monitor::enter(&heap, at, None).unwrap(), Some(Acquired::Free));
    assert!(!monitor::acquire_at_once(&heap, at), "it is held");
    assert_eq!(monitor::enter(&heap, at, None).unwrap(), Some(Acquired::Free));
    assert!(!monitor::release_at_once(&heap, at), "it was entered twice");
    monitor::leave(&heap, at).unwrap();
    let other = heap.clone();
    let by_another = move || monitor::release_at_once(&other, at);
    assert!(!std::thread::spawn(by_another).join().unwrap());
    assert!(monitor::release_at_once(&heap, at));
    assert!(!monitor::release_at_once(&heap, at), "it is free");
    let transaction = heap.begin().unwrap();
    assert!(!monitor::acquire_at_once(&heap, at), "in a transaction no lock is taken");
    transaction.commit().unwrap();
    assert!(monitor::acquire_at_once(&heap, at));
    assert_eq!(monitor::enter(&heap, at, None).unwrap(), Some(Acquired::Free));
    monitor::leave(&heap, at).unwrap();
    assert!(monitor::is_mine(&heap, at).unwrap());
    monitor::leave(&heap, at).unwrap();
    assert_eq!(monitor::holder(&heap, at).unwrap(), None);
}
