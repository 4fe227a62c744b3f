//! Events and semaphores: among threads, among processes, and when processes are killed.

mod support;
#[path = "support/waiting.rs"]
mod waiting;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ungil_heap::lock::Acquired;
use ungil_heap::monitor::Owner;
use ungil_heap::sync::{bounded, event, semaphore};
use ungil_heap::{Error, object};

use support::{Child, heap};
use waiting::{kill, late, lingering, now, until};

const SIZE: usize = 4 << 20;

#[test]
fn an_event_wakes_all_even_if_it_is_cleared_at_once() {
    let heap = heap(SIZE);
    let at = heap.change(event::create).unwrap();
    assert!(!event::wait(&heap, at, now()).unwrap());
    let word = heap.segment().word32(at + object::BODY).unwrap();
    std::thread::scope(|scope| {
        let waiters: Vec<_> =
            (0..3).map(|_| scope.spawn(|| event::wait(&heap, at, late()).unwrap())).collect();
        until(|| word.load(Relaxed) >> 31 == 1);
        event::set(&heap, at).unwrap();
        assert!(event::is_set(&heap, at).unwrap());
        // Who began to wait after this line would not be woken, so there is another one.
        event::clear(&heap, at).unwrap();
        event::set(&heap, at).unwrap();
        for waiter in waiters {
            assert!(waiter.join().unwrap());
        }
    });
}

#[test]
fn a_semaphore_never_gives_more_than_it_has() {
    let heap = heap(SIZE);
    let at = heap.change(|op| semaphore::create(op, 3)).unwrap();
    let inside = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..500 {
                    assert!(semaphore::acquire(&heap, at, late()).unwrap());
                    assert!(inside.fetch_add(1, Relaxed) < 3);
                    inside.fetch_sub(1, Relaxed);
                    semaphore::release(&heap, at, 1).unwrap();
                }
            });
        }
    });
    assert_eq!(semaphore::value(&heap, at).unwrap(), 3);
    assert!(matches!(semaphore::release(&heap, at, semaphore::MOST), Err(Error::Misuse(_))));
}

#[test]
fn a_killed_waiter_keeps_no_unit_from_the_others() {
    let heap = heap(SIZE);
    let at = heap.change(|op| semaphore::create(op, 0)).unwrap();
    let word = heap.segment().word32(at + object::BODY).unwrap();
    let child = Child::fork(&heap, || drop(semaphore::acquire(&heap, at, None)));
    until(|| word.load(Relaxed) >> 31 == 1);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| semaphore::acquire(&heap, at, late()).unwrap());
        kill(child);
        semaphore::release(&heap, at, 1).unwrap();
        assert!(waiter.join().unwrap());
    });
    assert_eq!(semaphore::value(&heap, at).unwrap(), 0);
}

#[test]
fn the_units_of_a_killed_process_are_there_again_if_they_are_bounded() {
    let heap = heap(SIZE);
    let at = heap.change(|op| bounded::create(op, 2)).unwrap();
    let child = lingering(&heap, || {
        for _ in 0..2 {
            assert_eq!(bounded::acquire(&heap, at, None).unwrap(), Some(Acquired::Free));
        }
    });
    let pid = child.pid().cast_unsigned();
    for owner in bounded::holders(&heap, at).unwrap() {
        assert!(matches!(owner, Owner::Process { pid: its, .. } if its == pid), "{owner:?}");
    }
    assert_eq!(bounded::acquire(&heap, at, now()).unwrap(), None);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let got = bounded::acquire(&heap, at, late()).unwrap();
            assert!(bounded::release(&heap, at).unwrap());
            got
        });
        kill(child);
        assert_eq!(waiter.join().unwrap(), Some(Acquired::Abandoned));
    });
    assert_eq!(bounded::acquire(&heap, at, now()).unwrap(), Some(Acquired::Free));
    assert_eq!(bounded::acquire(&heap, at, now()).unwrap(), Some(Acquired::Abandoned));
    assert!(bounded::release(&heap, at).unwrap() && bounded::release(&heap, at).unwrap());
    assert!(!bounded::release(&heap, at).unwrap(), "one too often");
    assert_eq!(bounded::value(&heap, at).unwrap(), 2);
}

#[test]
fn bounded_units_are_passed_on_among_threads() {
    let heap = heap(SIZE);
    let at = heap.change(|op| bounded::create(op, 2)).unwrap();
    let inside = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let got = bounded::acquire(&heap, at, late()).unwrap();
                    assert_eq!(got, Some(Acquired::Free));
                    assert!(inside.fetch_add(1, Relaxed) < 2);
                    inside.fetch_sub(1, Relaxed);
                    assert!(bounded::release(&heap, at).unwrap());
                }
            });
        }
    });
    assert_eq!(bounded::value(&heap, at).unwrap(), 2);
}
