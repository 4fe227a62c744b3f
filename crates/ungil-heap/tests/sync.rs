//! Locks, conditions, semaphores, events and barriers: among threads, among processes, and when
//! processes are killed.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ungil_heap::lock::{Acquired, Pause};
use ungil_heap::monitor::{self, Owner};
use ungil_heap::segment::Offset;
use ungil_heap::sync::barrier::{self, Outcome};
use ungil_heap::sync::{bounded, condition, event, lock, semaphore};
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, Result, list, object};

use support::{Child, End, heap};

const SIZE: usize = 4 << 20;

/// A deadline that has passed.
#[expect(clippy::unnecessary_wraps, reason = "no deadline is none")]
fn now() -> Option<Instant> {
    Some(Instant::now())
}

/// A deadline that no test that works reaches.
#[expect(clippy::unnecessary_wraps, reason = "no deadline is none")]
fn late() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(60))
}

/// Waits until something is so.
fn until(mut is_so: impl FnMut() -> bool) {
    let late = late().unwrap();
    while !is_so() {
        assert!(Instant::now() < late, "it never became so");
        std::thread::yield_now();
    }
}

/// A forked child that does something, and then lives on until it is killed.
fn lingering(heap: &Heap, work: impl FnOnce()) -> Child {
    let ready = heap.change(|op| event::create(op)).unwrap();
    let child = Child::fork(heap, || {
        work();
        event::set(heap, ready).unwrap();
        loop {
            std::thread::park();
        }
    });
    assert!(event::wait(heap, ready, late()).unwrap());
    child
}

/// Kills a child and buries it.
fn kill(child: Child) {
    child.kill();
    assert_eq!(child.wait(), End::Killed);
}

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
fn a_wait_ends_when_the_pause_says_so() {
    #[derive(Debug)]
    struct Impatient(AtomicUsize);
    impl Pause for Impatient {
        fn pause(&self, wait: &mut dyn FnMut()) -> Result<()> {
            wait();
            if self.0.fetch_add(1, Relaxed) < 2 { Ok(()) } else { Err(Error::Interrupted) }
        }
    }
    let pause = Box::new(Impatient(AtomicUsize::new(0)));
    let heap = Heap::anonymous(SIZE, pause).unwrap();
    let (at, bell) = heap.change(|op| Ok((lock::create(op)?, event::create(op)?))).unwrap();
    let _ = monitor::acquire(&heap, at, None).unwrap();
    assert!(matches!(monitor::acquire(&heap, at, None), Err(Error::Interrupted)));
    assert!(matches!(event::wait(&heap, bell, None), Err(Error::Interrupted)));
    let units = heap.change(|op| semaphore::create(op, 0)).unwrap();
    assert!(matches!(semaphore::acquire(&heap, units, None), Err(Error::Interrupted)));
    let seats = heap.change(|op| bounded::create(op, 0)).unwrap();
    assert!(matches!(bounded::acquire(&heap, seats, None), Err(Error::Interrupted)));
    let condition = heap.change(|op| condition::create(op, None)).unwrap();
    let _ = condition::acquire(&heap, condition, None).unwrap();
    assert!(matches!(condition::wait(&heap, condition, None), Err(Error::Interrupted)));
    assert!(monitor::is_mine(&heap, condition).unwrap(), "the lock is back, whatever happened");
    assert_eq!(condition::waiting(&heap, condition).unwrap(), []);
    let barrier = heap.change(|op| barrier::create(op, 2)).unwrap();
    assert!(matches!(barrier::wait(&heap, barrier, None, || Ok(())), Err(Error::Interrupted)));
    assert!(barrier::is_broken(&heap, barrier).unwrap());
}

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
fn waiting_in_a_transaction_is_refused() {
    let heap = heap(SIZE);
    let (at, gate) =
        heap.change(|op| Ok((condition::create(op, None)?, barrier::create(op, 2)?))).unwrap();
    let _ = condition::acquire(&heap, at, None).unwrap();
    let op = heap.op().unwrap();
    assert!(matches!(condition::wait(&heap, at, now()), Err(Error::Misuse(_))));
    assert!(matches!(barrier::wait(&heap, gate, now(), || Ok(())), Err(Error::Misuse(_))));
    drop(op);
}

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

#[test]
fn damaged_words_are_errors_and_nothing_worse() {
    let heap = heap(SIZE);
    let made = heap
        .change(|op| {
            Ok([
                condition::create(op, None)?,
                barrier::create(op, 1)?,
                bounded::create(op, 4)?,
                semaphore::create(op, 1)?,
                event::create(op)?,
                list::create(op)?,
            ])
        })
        .unwrap();
    for at in made {
        for value in [0, 1, 0xff, 0x0306, 1 << 31, 1 << 32, 1 << 40 | 7, u64::MAX >> 1, u64::MAX] {
            for index in [0, 3, 4, 5, 6] {
                let word = heap.segment().word(at + index * 8).unwrap();
                let kept = word.swap(value, Relaxed);
                drop(semaphore::acquire(&heap, at, now()));
                drop(semaphore::release(&heap, at, 1));
                drop(bounded::acquire(&heap, at, now()));
                drop(bounded::release(&heap, at));
                drop(bounded::holders(&heap, at));
                drop(event::wait(&heap, at, now()));
                drop(event::set(&heap, at));
                drop(condition::acquire(&heap, at, now()));
                drop(condition::wait(&heap, at, now()));
                drop(condition::notify(&heap, at, 1));
                drop(condition::release(&heap, at));
                drop(barrier::wait(&heap, at, now(), || Ok(())));
                drop(barrier::reset(&heap, at));
                drop(monitor::holder(&heap, at));
                drop(ungil_heap::reclaim::owned(heap.segment(), at, &mut |_| Ok(())));
                word.store(kept, Relaxed);
            }
        }
    }
}

#[test]
fn processes_killed_at_any_moment_leave_everything_usable() {
    let heap = heap(8 << 20);
    let (at, seats, row) = heap
        .change(|op| {
            let lock = lock::create_reentrant(op)?;
            Ok((condition::create(op, Some(lock))?, bounded::create(op, 3)?, list::create(op)?))
        })
        .unwrap();
    // What is done under the lock, and how often: the two values change together.
    list::extend(&heap, row, &[Value::Int(0), Value::Int(0)]).unwrap();
    let work = || {
        assert!(bounded::acquire(&heap, seats, late()).unwrap().is_some());
        assert!(condition::acquire(&heap, at, late()).unwrap().is_some());
        condition::notify(&heap, at, 1).unwrap();
        assert!(condition::wait(&heap, at, Some(Instant::now())).is_ok());
        let op = heap.op().unwrap();
        list::increment(&heap, row, 0, &Value::Int(1)).unwrap();
        list::increment(&heap, row, 1, &Value::Int(1)).unwrap();
        op.commit().unwrap();
        condition::release(&heap, at).unwrap();
        assert!(bounded::release(&heap, seats).unwrap());
    };
    let done = || match list::get(&heap, row, 0).unwrap() {
        Some(Value::Int(done)) => done,
        other => panic!("it counts: {other:?}"),
    };
    for round in 0..150 {
        let children: Vec<_> = (0..2)
            .map(|_| {
                Child::fork(&heap, || {
                    loop {
                        work();
                    }
                })
            })
            .collect();
        let begun = done();
        until(|| done() >= begun + round % 7);
        for child in children {
            kill(child);
        }
        let values = list::get_slice(&heap, row, ungil_heap::slice::Slice::ALL).unwrap();
        assert_eq!(values[0], values[1]);
        work();
        for _ in 0..3 {
            assert!(bounded::acquire(&heap, seats, now()).unwrap().is_some());
        }
        assert_eq!(bounded::acquire(&heap, seats, now()).unwrap(), None);
        for _ in 0..3 {
            assert!(bounded::release(&heap, seats).unwrap());
        }
    }
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
