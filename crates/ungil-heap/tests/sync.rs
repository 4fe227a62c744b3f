//! What holds for all that one can wait for: it can be interrupted, it refuses to wait in a
//! transaction, and neither damage nor death harm the others.

mod support;
#[path = "support/waiting.rs"]
mod waiting;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use ungil_heap::lock::Pause;
use ungil_heap::monitor;
use ungil_heap::sync::{barrier, bounded, condition, event, lock, semaphore};
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, Result, list};

use support::{Child, heap};
use waiting::{kill, late, now, until};

const SIZE: usize = 4 << 20;

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
                drop(ungil_heap::object::owned(heap.segment(), at, &mut |_| Ok(())));
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
    for round in 0..50 {
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
