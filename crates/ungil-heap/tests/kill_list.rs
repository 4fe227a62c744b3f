//! A process is killed at every step of every operation on lists, deques, structs and what is
//! waited for.

#![cfg(feature = "fault")]

mod support;
#[path = "support/taken.rs"]
mod taken;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{Steps, every_step};
use taken::{owned, taken};
use ungil_heap::deque::{self, End};
use ungil_heap::header::MIN_SIZE;
use ungil_heap::lock::Acquired;
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;
use ungil_heap::size_class::SIZES;
use ungil_heap::slice::Slice;
use ungil_heap::sync::barrier::{self, Outcome};
use ungil_heap::sync::{bounded, condition, event, lock, semaphore};
use ungil_heap::value::Value;
use ungil_heap::{Heap, Result, list, monitor, structs};

const SIZE: usize = 4 << 20;

fn long(number: i64) -> Value<'static> {
    let text = format!("{number}: too long for a cell, so it has a block of its own");
    Value::Str(text.into_bytes().into())
}

/// Kills a process at each step of `change`, whose object must be found as `read` sees it before or
/// after.
fn whole_or_not_at_all(
    make: impl Fn(&mut Op<'_>) -> Result<Offset>,
    read: impl Fn(&Heap, Offset) -> Vec<Value<'static>>,
    change: impl Fn(&Heap, Offset),
) -> Steps {
    let heap = support::heap(SIZE);
    let at = heap.change(|op| make(op)).unwrap();
    let before = read(&heap, at);
    change(&heap, at);
    let after = read(&heap, at);
    assert_ne!(before, after, "nothing is changed");
    every_step(
        SIZE,
        |heap| heap.change(|op| make(op)).unwrap(),
        |heap, &at| change(heap, at),
        |heap, &at| {
            // The lock is what tells of the death.
            let mut op = heap.op().unwrap();
            op.lock(at).unwrap();
            op.commit().unwrap();
            let found = read(heap, at);
            let (taken, owned) = (taken(heap), owned(heap, &[at]));
            for (block, size) in owned {
                assert_eq!(taken.get(&block), Some(&size), "a block in use is free");
            }
            if found == before {
                return false;
            }
            assert_eq!(found, after, "half of it is seen");
            true
        },
    )
}

fn on_a_list(length: i64, change: impl Fn(&Heap, Offset)) {
    let values: Vec<_> = (0..length).map(long).collect();
    let steps = on_a_list_of(&values, change);
    assert!(steps.unseen > 3 && steps.unseen < steps.all, "{steps:?}");
}

fn on_a_list_of(values: &[Value<'_>], change: impl Fn(&Heap, Offset)) -> Steps {
    whole_or_not_at_all(
        |op| {
            let at = list::create(op)?;
            list::extend(op.heap(), at, values)?;
            Ok(at)
        },
        |heap, at| list::get_slice(heap, at, Slice::ALL).unwrap(),
        change,
    )
}

#[test]
fn appending() {
    on_a_list(3, |heap, at| list::append(heap, at, &long(9)).unwrap());
}

#[test]
fn appending_where_there_is_no_room() {
    on_a_list(4, |heap, at| list::append(heap, at, &long(9)).unwrap());
}

#[test]
fn setting() {
    on_a_list(3, |heap, at| assert!(list::set(heap, at, 1, &long(9)).unwrap()));
}

#[test]
fn popping_at_the_end() {
    on_a_list(3, |heap, at| assert_eq!(list::pop(heap, at, -1).unwrap(), Some(long(2))));
}

#[test]
fn inserting_and_deleting_near_the_end() {
    on_a_list(5, |heap, at| list::insert(heap, at, 1, &long(9)).unwrap());
    on_a_list(5, |heap, at| list::delete_slice(heap, at, Slice::new(1, 3)).unwrap());
}

#[test]
fn inserting_and_deleting_at_the_front_of_many() {
    on_a_list(100, |heap, at| list::insert(heap, at, 0, &long(9)).unwrap());
    on_a_list(100, |heap, at| list::delete_slice(heap, at, Slice::new(0, 90)).unwrap());
}

#[test]
fn replacing_slices() {
    let new: Vec<_> = (10..14).map(long).collect();
    on_a_list(8, |heap, at| list::set_slice(heap, at, Slice::new(2, 4), &new).unwrap().unwrap());
    let every_other = Slice { start: 0, stop: 8, step: 2 };
    on_a_list(8, |heap, at| list::set_slice(heap, at, every_other, &new).unwrap().unwrap());
    on_a_list(8, |heap, at| list::delete_slice(heap, at, every_other).unwrap());
}

#[test]
fn reversing_ordering_repeating_and_clearing() {
    on_a_list(5, |heap, at| list::reverse(heap, at).unwrap());
    on_a_list(5, |heap, at| {
        let (_, version) = list::snapshot(heap, at).unwrap();
        assert!(list::reorder(heap, at, version, &[1, 0, 2, 4, 3]).unwrap());
    });
    on_a_list(3, |heap, at| list::repeat(heap, at, 3).unwrap());
    on_a_list(5, |heap, at| list::clear(heap, at).unwrap());
}

#[test]
fn removing() {
    on_a_list(5, |heap, at| assert!(list::remove(heap, at, &long(1)).unwrap()));
    on_a_list(100, |heap, at| assert!(list::remove(heap, at, &long(1)).unwrap()));
}

#[test]
fn comparing_and_setting() {
    on_a_list(3, |heap, at| {
        let done = list::compare_and_set(heap, at, 1, &long(1), &long(9)).unwrap();
        assert_eq!(done, Some(true));
    });
}

#[test]
fn adding_to_a_number() {
    // The first sum stays in its cell, the second needs a block, and the third gives it back.
    let beyond = Value::integer(false, &[0, 0, 0, 0, 0, 0, 0, 0x80]);
    let numbers = [Value::Int(1), Value::Int(i64::MAX), beyond];
    for (index, by) in [(0, 1), (1, 1), (2, -1)] {
        let steps = on_a_list_of(&numbers, |heap, at| {
            assert!(list::increment(heap, at, index, &Value::Int(by)).unwrap().is_some());
        });
        assert!(steps.unseen > 2 && steps.unseen < steps.all, "{steps:?}");
    }
}

#[test]
fn several_changes_in_a_transaction() {
    on_a_list(5, |heap, at| {
        let op = heap.op().unwrap();
        list::pop(heap, at, -1).unwrap();
        list::append(heap, at, &long(9)).unwrap();
        list::set(heap, at, 0, &long(10)).unwrap();
        list::extend(heap, at, &[long(11), long(12), long(13)]).unwrap();
        list::pop(heap, at, 1).unwrap();
        op.commit().unwrap();
    });
}

fn on_a_deque(limit: Option<usize>, length: i64, change: impl Fn(&Heap, Offset)) {
    let steps = whole_or_not_at_all(
        |op| {
            let at = deque::create(op, limit)?;
            let values: Vec<_> = (0..length).map(long).collect();
            deque::extend(op.heap(), at, End::Right, &values)?;
            Ok(at)
        },
        |heap, at| deque::all(heap, at).unwrap(),
        change,
    );
    assert!(steps.unseen > 3 && steps.unseen < steps.all, "{steps:?}");
}

#[test]
fn changing_a_deque() {
    for end in [End::Left, End::Right] {
        on_a_deque(None, 3, |heap, at| deque::push(heap, at, end, &long(9)).unwrap());
        on_a_deque(None, 4, |heap, at| deque::push(heap, at, end, &long(9)).unwrap());
        on_a_deque(Some(4), 4, |heap, at| deque::push(heap, at, end, &long(9)).unwrap());
        on_a_deque(None, 4, |heap, at| assert!(deque::pop(heap, at, end).unwrap().is_some()));
    }
    on_a_deque(None, 5, |heap, at| assert!(deque::set(heap, at, 1, &long(9)).unwrap()));
    on_a_deque(None, 5, |heap, at| assert!(deque::remove(heap, at, &long(3)).unwrap()));
    on_a_deque(None, 5, |heap, at| deque::reverse(heap, at).unwrap());
    on_a_deque(None, 5, |heap, at| deque::rotate(heap, at, 2).unwrap());
    on_a_deque(None, 5, |heap, at| assert!(deque::insert(heap, at, 2, &long(9)).unwrap()));
    on_a_deque(None, 5, |heap, at| assert!(deque::delete(heap, at, 2).unwrap()));
    on_a_deque(None, 5, |heap, at| deque::clear(heap, at).unwrap());
}

#[test]
fn extending_and_repeating_a_deque() {
    let new: Vec<_> = (10..16).map(long).collect();
    for end in [End::Left, End::Right] {
        on_a_deque(None, 2, |heap, at| deque::extend(heap, at, end, &new[..2]).unwrap());
        on_a_deque(None, 3, |heap, at| deque::extend(heap, at, end, &new).unwrap());
        // More than there is room for, so that values come and go in one operation.
        on_a_deque(Some(4), 3, |heap, at| deque::extend(heap, at, end, &new).unwrap());
    }
    on_a_deque(None, 3, |heap, at| deque::repeat(heap, at, 3).unwrap());
    on_a_deque(Some(5), 3, |heap, at| deque::repeat(heap, at, 3).unwrap());
    on_a_deque(None, 3, |heap, at| deque::repeat(heap, at, 0).unwrap());
}

#[test]
fn changing_fields() {
    let on_a_struct = |change: &dyn Fn(&Heap, Offset)| {
        let steps = whole_or_not_at_all(
            |op| structs::create(op, 7, &[long(1), Value::Int(i64::MAX)]),
            |heap, at| structs::all(heap, at, 7).unwrap(),
            |heap, at| change(heap, at),
        );
        assert!(steps.unseen > 2 && steps.unseen < steps.all, "{steps:?}");
    };
    on_a_struct(&|heap, at| structs::set(heap, at, 7, 0, &long(2)).unwrap());
    on_a_struct(&|heap, at| {
        structs::increment(heap, at, 7, 1, &Value::Int(1)).unwrap();
    });
    on_a_struct(&|heap, at| {
        assert!(structs::compare_and_set(heap, at, 7, 0, &long(1), &Value::None).unwrap());
    });
}

/// A deadline that has passed.
#[expect(clippy::unnecessary_wraps, reason = "no deadline is none")]
fn now() -> Option<Instant> {
    Some(Instant::now())
}

/// Kills a process at each step of using something to wait for; `usable` must find it usable.
fn used<S: Copy + Debug>(
    make: impl Fn(&mut Op<'_>) -> Result<S>,
    operate: impl Fn(&Heap, S),
    usable: impl Fn(&Heap, S),
) {
    let steps = every_step(
        SIZE,
        |heap: &Arc<Heap>| heap.change(|op| Ok((make(op)?, event::create(op)?))).unwrap(),
        |heap, &(what, done)| {
            operate(heap, what);
            event::set(heap, done).unwrap();
        },
        |heap, &(what, done)| {
            usable(heap, what);
            event::is_set(heap, done).unwrap()
        },
    );
    assert!(steps.unseen > 0, "{steps:?}");
}

#[test]
fn holding_a_lock() {
    used(
        lock::create,
        |heap, at| {
            assert!(monitor::enter(heap, at, None).unwrap().is_some());
            // Gives the process a step to die at while it holds it.
            drop(heap.op().unwrap());
            monitor::leave(heap, at).unwrap();
        },
        |heap, at| {
            let got = monitor::enter(heap, at, now()).unwrap();
            assert!(got.is_some());
            let is_told = monitor::owner_died(heap, at).unwrap();
            assert_eq!(is_told, got == Some(Acquired::Abandoned));
            monitor::leave(heap, at).unwrap();
            assert_eq!(monitor::holder(heap, at).unwrap(), None);
        },
    );
}

#[test]
fn using_semaphores() {
    used(
        |op| semaphore::create(op, 0),
        |heap, at| semaphore::release(heap, at, 1).unwrap(),
        |heap, at| {
            let units = semaphore::value(heap, at).unwrap();
            assert_eq!(semaphore::acquire(heap, at, now()).unwrap(), units == 1);
        },
    );
    used(
        |op| bounded::create(op, 2),
        |heap, at| {
            for _ in 0..2 {
                assert!(bounded::acquire(heap, at, None).unwrap().is_some());
            }
            assert!(bounded::release(heap, at).unwrap());
        },
        |heap, at| {
            for _ in 0..2 {
                assert!(bounded::acquire(heap, at, now()).unwrap().is_some());
            }
            assert_eq!(bounded::acquire(heap, at, now()).unwrap(), None);
        },
    );
}

#[test]
fn waiting_for_a_condition() {
    used(
        |op| {
            let lock = lock::create(op)?;
            condition::create(op, Some(lock))
        },
        |heap, at| {
            assert!(condition::acquire(heap, at, None).unwrap().is_some());
            assert!(!condition::wait(heap, at, now()).unwrap());
            condition::release(heap, at).unwrap();
        },
        |heap, at| {
            assert!(condition::acquire(heap, at, now()).unwrap().is_some());
            assert_eq!(condition::notify(heap, at, 1).unwrap(), 0);
            assert_eq!(condition::waiting(heap, at).unwrap(), []);
            assert!(!condition::wait(heap, at, now()).unwrap());
            condition::release(heap, at).unwrap();
        },
    );
}

#[test]
fn notifying_of_a_condition() {
    // Somebody of this process waits each time, and is notified by the dead one or by this.
    used(
        |op| condition::create(op, None),
        |heap, at| {
            assert!(condition::acquire(heap, at, None).unwrap().is_some());
            condition::notify(heap, at, 1).unwrap();
            condition::release(heap, at).unwrap();
        },
        |heap, at| {
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    assert!(condition::acquire(heap, at, None).unwrap().is_some());
                    let notified = condition::wait(heap, at, None).unwrap();
                    condition::release(heap, at).unwrap();
                    notified
                });
                let mut notified = 0;
                while notified == 0 {
                    assert!(condition::acquire(heap, at, None).unwrap().is_some());
                    notified = condition::notify(heap, at, 1).unwrap();
                    condition::release(heap, at).unwrap();
                }
                assert!(waiter.join().unwrap());
            });
        },
    );
}

#[test]
fn waiting_at_a_barrier() {
    used(
        |op| barrier::create(op, 1),
        |heap, at| {
            assert_eq!(barrier::wait(heap, at, None, || Ok(())).unwrap(), Outcome::Passed(0));
        },
        |heap, at| {
            barrier::reset(heap, at).unwrap();
            assert_eq!(barrier::waiting(heap, at).unwrap(), 0);
            assert_eq!(barrier::wait(heap, at, now(), || Ok(())).unwrap(), Outcome::Passed(0));
        },
    );
}

/// As [`whole_or_not_at_all`] in a heap in which all other memory is taken, but for the reserve.
fn in_a_full_heap(
    make: impl Fn(&mut Op<'_>) -> Result<Offset>,
    read: impl Fn(&Heap, Offset) -> Vec<Value<'static>>,
    change: impl Fn(&Heap, Offset),
) {
    let full = |heap: &Heap| {
        let at = heap.change(|op| make(op)).unwrap();
        for &bytes in SIZES.iter().rev() {
            while support::take(heap, bytes).is_ok() {}
        }
        at
    };
    let heap = support::heap(MIN_SIZE);
    let at = full(&heap);
    let before = read(&heap, at);
    change(&heap, at);
    let after = read(&heap, at);
    assert_ne!(before, after, "nothing is changed");
    assert!(heap.overview().unwrap().collections == 0, "garbage was collected, so nothing is full");
    let steps = every_step(
        MIN_SIZE,
        |heap| full(heap),
        |heap, &at| change(heap, at),
        |heap, &at| {
            let mut op = heap.op().unwrap();
            op.lock(at).unwrap();
            op.commit().unwrap();
            let found = read(heap, at);
            let taken = taken(heap);
            for (block, size) in owned(heap, &[at]) {
                assert_eq!(taken.get(&block), Some(&size), "a block in use is free");
            }
            // The rest of the check needs memory; what was taken belongs to nobody.
            heap.collect(Duration::from_secs(60)).unwrap().unwrap();
            assert!(found == before || found == after, "half of it is seen");
            found == after
        },
    );
    assert!(steps.unseen > 3 && steps.unseen < steps.all, "{steps:?}");
}

#[test]
fn taking_out_of_a_list_in_a_full_heap() {
    let values: Vec<_> = (0..400).map(Value::Int).collect();
    let make = |op: &mut Op<'_>| {
        let at = list::create(op)?;
        list::extend(op.heap(), at, &values)?;
        Ok(at)
    };
    let read = |heap: &Heap, at| list::get_slice(heap, at, Slice::ALL).unwrap();
    let changes: [fn(&Heap, Offset); 4] = [
        |heap, at| _ = list::pop(heap, at, 0).unwrap(),
        |heap, at| list::delete_slice(heap, at, Slice::new(1, 390)).unwrap(),
        |heap, at| {
            let every_other = Slice { start: 0, stop: 400, step: 2 };
            list::delete_slice(heap, at, every_other).unwrap();
        },
        |heap, at| list::reverse(heap, at).unwrap(),
    ];
    for change in changes {
        in_a_full_heap(make, read, change);
    }
}

#[test]
fn taking_out_of_a_deque_in_a_full_heap() {
    let values: Vec<_> = (0..400).map(Value::Int).collect();
    let make = |op: &mut Op<'_>| {
        let at = deque::create(op, None)?;
        deque::extend(op.heap(), at, End::Right, &values)?;
        for number in 0..50 {
            deque::pop(op.heap(), at, End::Left)?;
            deque::push(op.heap(), at, End::Right, &Value::Int(number))?;
        }
        Ok(at)
    };
    let read = |heap: &Heap, at| deque::all(heap, at).unwrap();
    let changes: [fn(&Heap, Offset); 3] = [
        |heap, at| assert!(deque::delete(heap, at, 200).unwrap()),
        |heap, at| assert!(deque::remove(heap, at, &Value::Int(60)).unwrap()),
        |heap, at| deque::rotate(heap, at, 3).unwrap(),
    ];
    for change in changes {
        in_a_full_heap(make, read, change);
    }
}
