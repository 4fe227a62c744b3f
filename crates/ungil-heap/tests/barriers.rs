//! Barriers: among threads, and when parties are killed.

mod support;
#[path = "support/waiting.rs"]
mod waiting;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ungil_heap::Error;
use ungil_heap::sync::barrier::{self, Outcome};

use support::{Child, heap};
use waiting::{kill, late, now, until};

const SIZE: usize = 4 << 20;

#[test]
fn a_barrier_lets_all_go_together_round_after_round() {
    let heap = heap(SIZE);
    let at = heap.change(|op| barrier::create(op, 3)).unwrap();
    let (arrived, actions) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..200 {
                    arrived.fetch_add(1, Relaxed);
                    let outcome = barrier::wait(&heap, at, late(), || {
                        assert_eq!(arrived.load(Relaxed), 3 * (round + 1));
                        actions.fetch_add(1, Relaxed);
                        Ok(())
                    });
                    assert!(matches!(outcome.unwrap(), Outcome::Passed(0..3)));
                    assert_eq!(actions.load(Relaxed), round + 1);
                    // Nobody begins the next round before all have looked at this one.
                    assert!(matches!(
                        barrier::wait(&heap, at, late(), || Ok(())).unwrap(),
                        Outcome::Passed(_)
                    ));
                }
            });
        }
    });
    assert_eq!(barrier::waiting(&heap, at).unwrap(), 0);
}

#[test]
fn a_barrier_breaks_at_a_deadline_by_abort_and_by_an_error() {
    let heap = heap(SIZE);
    let at = heap.change(|op| barrier::create(op, 2)).unwrap();
    let wait = |deadline| barrier::wait(&heap, at, deadline, || Ok(())).unwrap();
    let broken_by = |breaker: &dyn Fn()| {
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| wait(late()));
            until(|| barrier::waiting(&heap, at).unwrap() == 1);
            breaker();
            assert_eq!(waiter.join().unwrap(), Outcome::Broken);
        });
    };
    assert_eq!(wait(now()), Outcome::Broken);
    assert!(barrier::is_broken(&heap, at).unwrap());
    assert_eq!(wait(late()), Outcome::Broken);
    barrier::reset(&heap, at).unwrap();
    assert!(!barrier::is_broken(&heap, at).unwrap());
    broken_by(&|| barrier::abort(&heap, at).unwrap());
    assert!(barrier::is_broken(&heap, at).unwrap());
    barrier::reset(&heap, at).unwrap();
    broken_by(&|| barrier::reset(&heap, at).unwrap());
    assert!(!barrier::is_broken(&heap, at).unwrap());
    broken_by(&|| {
        let failed = barrier::wait(&heap, at, late(), || Err(Error::Unfit("the action failed")));
        assert!(matches!(failed, Err(Error::Unfit(_))));
    });
    assert!(barrier::is_broken(&heap, at).unwrap());
}

#[test]
fn a_party_that_is_killed_breaks_the_barrier_for_those_who_wait() {
    let heap = heap(SIZE);
    let at = heap.change(|op| barrier::create(op, 3)).unwrap();
    let child = Child::fork(&heap, || drop(barrier::wait(&heap, at, None, || Ok(()))));
    until(|| barrier::waiting(&heap, at).unwrap() == 1);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| barrier::wait(&heap, at, late(), || Ok(())).unwrap());
        until(|| barrier::waiting(&heap, at).unwrap() == 2);
        kill(child);
        assert_eq!(waiter.join().unwrap(), Outcome::Broken);
    });
}

#[test]
fn a_round_is_not_complete_with_a_dead_party() {
    let heap = heap(SIZE);
    let at = heap.change(|op| barrier::create(op, 2)).unwrap();
    let child = Child::fork(&heap, || drop(barrier::wait(&heap, at, None, || Ok(()))));
    until(|| barrier::waiting(&heap, at).unwrap() == 1);
    kill(child);
    let outcome = barrier::wait(&heap, at, late(), || panic!("it is not complete"));
    assert_eq!(outcome.unwrap(), Outcome::Broken);
    assert!(barrier::is_broken(&heap, at).unwrap());
}
