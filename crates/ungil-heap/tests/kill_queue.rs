//! A process is killed at every step of everything that is done with queues.

#![cfg(feature = "fault")]

mod support;
#[path = "support/taken.rs"]
mod taken;
#[path = "support/whole.rs"]
mod whole;

use std::time::Instant;

use support::{Child, Steps, every_step};
use taken::{owned, taken};
use ungil_heap::queue::{self, Got, Options, Put};
use ungil_heap::roots::Root;
use ungil_heap::segment::Offset;
use ungil_heap::sync::event;
use ungil_heap::value::{Cell, Value};
use ungil_heap::{Heap, Result, list};

const SIZE: usize = 4 << 20;

fn long(number: i64) -> Value<'static> {
    let text = format!("{number}: too long for a cell, so it has a block of its own");
    Value::Str(text.into_bytes().into())
}

fn int(number: i64) -> Value<'static> {
    Value::Int(number)
}

#[expect(clippy::unnecessary_wraps, reason = "no deadline is none")]
fn now() -> Option<Instant> {
    Some(Instant::now())
}

fn keep_nothing(_: &Value<'static>) -> Result<()> {
    Ok(())
}

fn put(heap: &Heap, at: Offset, value: &Value<'_>) {
    assert_eq!(queue::put(heap, at, value, now()).unwrap(), Put::Done);
}

fn get(heap: &Heap, at: Offset) -> Got {
    queue::get(heap, at, now(), &mut keep_nothing).unwrap()
}

/// All that is in a queue, which is empty then.
fn drained(heap: &Heap, at: Offset) -> Vec<Value<'static>> {
    let mut values = Vec::new();
    loop {
        match get(heap, at) {
            Got::Empty | Got::Closed => return values,
            Got::Cell(cell) => values.push(cell.whole().unwrap()),
            Got::Value(value) => values.push(value),
        }
    }
}

/// A queue of these values, held.
fn queue_of(heap: &Heap, is_ordered: bool, values: &[Value<'_>]) -> Root {
    let root =
        heap.make(|op| queue::create(op, Options { is_ordered, ..Options::default() })).unwrap();
    for value in values {
        put(heap, root.at(), value);
    }
    root
}

/// Asserts that every block of the queue is taken, that it can be used, and that nothing is lost
/// after a collection; what was in it.
fn looked_at(heap: &Heap, at: Offset) -> Vec<Value<'static>> {
    // The lock is what tells of the death.
    queue::unfinished(heap, at).unwrap();
    queue::recover(heap, at).unwrap();
    let taken = taken(heap);
    for (block, size) in owned(heap, &[at]) {
        assert_eq!(taken.get(&block), Some(&size), "a block in use is free");
    }
    let found = drained(heap, at);
    if !queue::is_closed(heap, at).unwrap() {
        for value in [int(1), long(2)] {
            put(heap, at, &value);
        }
        assert_eq!(drained(heap, at), [int(1), long(2)], "it cannot be used any more");
    }
    whole::settled(heap);
    found
}

/// Kills a process at each step of `change` of a queue, in which must be `before` or `after` then.
fn whole_or_not_at_all(
    is_ordered: bool,
    before: &[Value<'static>],
    after: &[Value<'static>],
    change: impl Fn(&Heap, Offset),
) -> Steps {
    let steps = every_step(
        SIZE,
        |heap| queue_of(heap, is_ordered, before),
        |heap, root| change(heap, root.at()),
        |heap, root| {
            let found = looked_at(heap, root.at());
            if found == before {
                return false;
            }
            assert_eq!(found, after, "half of it is seen");
            true
        },
    );
    assert!(steps.unseen > 0 && steps.unseen < steps.all, "{steps:?}");
    steps
}

#[test]
fn putting_in() {
    for new in [int(9), long(9)] {
        let change = |heap: &Heap, at| put(heap, at, &new);
        whole_or_not_at_all(false, &[], &[new.clone()], change);
        whole_or_not_at_all(false, &[int(1), long(2)], &[int(1), long(2), new.clone()], change);
    }
}

#[test]
fn putting_in_where_there_is_no_cell() {
    let mixed = |number| if number % 2 == 0 { int(number) } else { long(number) };
    let before: Vec<_> = (0..64).map(mixed).collect();
    for new in [int(64), long(64)] {
        let mut after = before.clone();
        after.push(new.clone());
        whole_or_not_at_all(false, &before, &after, |heap, at| put(heap, at, &new));
    }
}

#[test]
fn putting_in_and_taking_out_by_priority() {
    let before = [int(1), int(4), int(6), long(5), long(8)];
    let all = [int(1), int(3), int(4), int(6), long(5), long(8)];
    whole_or_not_at_all(true, &before, &all, |heap, at| put(heap, at, &int(3)));
    let all = [int(1), int(4), int(6), long(4), long(5), long(8)];
    whole_or_not_at_all(true, &before, &all, |heap, at| put(heap, at, &long(4)));
    whole_or_not_at_all(true, &before, &before[1..], |heap, at| {
        assert_eq!(get(heap, at), Got::Cell(Cell::from(1)));
    });
}

#[test]
fn taking_out() {
    whole_or_not_at_all(false, &[int(1), long(2)], &[long(2)], |heap, at| {
        assert_eq!(get(heap, at), Got::Cell(Cell::from(1)));
    });
    whole_or_not_at_all(false, &[long(1), int(2)], &[int(2)], |heap, at| {
        assert_eq!(get(heap, at), Got::Value(long(1)));
    });
}

#[test]
fn several_at_a_time() {
    for new in [[int(7), int(8), int(9)], [long(7), long(8), long(9)]] {
        let mut after = vec![int(1)];
        after.extend(new.clone());
        whole_or_not_at_all(false, &[int(1)], &after, |heap, at| {
            assert_eq!(queue::put_many(heap, at, &new, now()).unwrap(), (3, Put::Done));
        });
        whole_or_not_at_all(false, &new, &new[2..], |heap, at| {
            let got = queue::get_many(heap, at, 2, now(), &mut keep_nothing).unwrap();
            assert_eq!(got.len(), 2);
        });
    }
}

#[test]
fn objects_in_a_queue() {
    // The object is the child's, or the queue's.
    let steps = every_step(
        SIZE,
        |heap| (queue_of(heap, false, &[]), whole::node(heap, 7)),
        |heap, (root, node)| put(heap, root.at(), &Value::Object(node.at())),
        |heap, (root, node)| {
            let found = looked_at(heap, root.at());
            assert_eq!(whole::number(heap, node.at()), 7);
            if found.is_empty() {
                return false;
            }
            assert_eq!(found, [Value::Object(node.at())]);
            true
        },
    );
    assert!(steps.unseen > 0 && steps.unseen < steps.all, "{steps:?}");
    let steps = every_step(
        SIZE,
        |heap| {
            let root = queue_of(heap, false, &[]);
            let node = heap
                .make(|op| {
                    let at = list::create(op)?;
                    list::append(op.heap(), at, &long(3))?;
                    Ok(at)
                })
                .unwrap();
            put(heap, root.at(), &Value::Object(node.at()));
            heap.release(node).unwrap();
            root
        },
        |heap, root| {
            let mut roots = Vec::new();
            let mut keep = |value: &Value<'static>| -> Result<()> {
                let Value::Object(at) = value else { panic!("{value:?} is no object") };
                roots.extend(heap.hold(None, || Ok(Some(*at)))?);
                Ok(())
            };
            let Got::Value(_) = queue::get(heap, root.at(), now(), &mut keep).unwrap() else {
                panic!("nothing is there")
            };
            for root in roots {
                assert_eq!(list::get(heap, root.at(), 0).unwrap(), Some(long(3)));
                heap.release(root).unwrap();
            }
        },
        |heap, root| looked_at(heap, root.at()).is_empty(),
    );
    assert!(steps.unseen > 0 && steps.unseen < steps.all, "{steps:?}");
}

/// Takes a value out on a lease.
fn lease(heap: &Heap, at: Offset) -> queue::Lease {
    queue::lease(heap, at, now(), &mut keep_nothing).unwrap().1.expect("there is something")
}

#[test]
fn acknowledging() {
    for first in [int(1), long(1)] {
        for is_ordered in [false, true] {
            let before = [first.clone(), long(2)];
            whole_or_not_at_all(is_ordered, &before, &before[1..], |heap, at| {
                let lease = lease(heap, at);
                assert!(queue::acknowledge(heap, at, &lease).unwrap());
            });
        }
    }
}

/// Kills a process at each step of something that leaves a queue as it was.
fn in_vain(prepare: impl Fn(&Heap, Offset), operate: impl Fn(&Heap, Offset)) {
    let before = [long(1), int(2), long(3)];
    for is_ordered in [false, true] {
        let mut ordered = before.to_vec();
        if is_ordered {
            ordered.swap(0, 1);
        }
        let steps = every_step(
            SIZE,
            |heap| {
                let root = queue_of(heap, is_ordered, &before);
                prepare(heap, root.at());
                (root, heap.make(|op| event::create(op)).unwrap())
            },
            |heap, (root, done)| {
                operate(heap, root.at());
                event::set(heap, done.at()).unwrap();
            },
            |heap, (root, done)| {
                assert_eq!(looked_at(heap, root.at()), ordered);
                assert_eq!(queue::leased(heap, root.at()).unwrap(), 0);
                event::is_set(heap, done.at()).unwrap()
            },
        );
        assert!(steps.unseen > 0, "{steps:?}");
    }
}

#[test]
fn leasing() {
    in_vain(
        |_, _| {},
        |heap, at| {
            for _ in 0..3 {
                lease(heap, at);
            }
        },
    );
}

#[test]
fn putting_back_what_was_leased() {
    in_vain(
        |_, _| {},
        |heap, at| {
            let leases = [lease(heap, at), lease(heap, at)];
            for lease in leases.iter().rev() {
                assert!(queue::give_back(heap, at, lease).unwrap());
            }
        },
    );
}

#[test]
fn putting_back_what_a_dead_process_had_leased() {
    in_vain(
        |heap, at| {
            Child::fork(heap, || {
                lease(heap, at);
                lease(heap, at);
            })
            .wait();
        },
        |heap, at| assert_eq!(queue::recover(heap, at).unwrap(), 2),
    );
}

#[test]
fn putting_back_into_a_ring_that_is_full() {
    let before: Vec<_> = (0..64).map(int).collect();
    let steps = every_step(
        SIZE,
        |heap| {
            let root = queue_of(heap, false, &before);
            Child::fork(heap, || _ = lease(heap, root.at())).wait();
            put(heap, root.at(), &int(64));
            (root, heap.make(|op| event::create(op)).unwrap())
        },
        |heap, (root, done)| {
            assert_eq!(queue::recover(heap, root.at()).unwrap(), 1);
            event::set(heap, done.at()).unwrap();
        },
        |heap, (root, done)| {
            assert_eq!(looked_at(heap, root.at()), (0..65).map(int).collect::<Vec<_>>());
            event::is_set(heap, done.at()).unwrap()
        },
    );
    assert!(steps.unseen > 0, "{steps:?}");
}

#[test]
fn closing() {
    let before = [int(1), long(2)];
    for is_emptied in [false, true] {
        let steps = every_step(
            SIZE,
            |heap| queue_of(heap, false, &before),
            |heap, root| queue::close(heap, root.at(), is_emptied).unwrap(),
            |heap, root| {
                // The lock is what tells of the death.
                let left = queue::unfinished(heap, root.at()).unwrap();
                let is_closed = queue::is_closed(heap, root.at()).unwrap();
                let found = looked_at(heap, root.at());
                let is_empty = is_closed && is_emptied;
                assert_eq!(found, if is_empty { &[] } else { &before[..] });
                assert_eq!(left, if is_empty { 0 } else { 2 });
                is_closed
            },
        );
        assert!(steps.unseen > 0, "{steps:?}");
    }
}

#[test]
fn saying_that_a_value_is_done() {
    let steps = every_step(
        SIZE,
        |heap| {
            let root = queue_of(heap, false, &[int(1)]);
            get(heap, root.at());
            root
        },
        |heap, root| assert!(queue::task_done(heap, root.at()).unwrap()),
        |heap, root| queue::join(heap, root.at(), now()).unwrap(),
    );
    assert!(steps.unseen > 0, "{steps:?}");
}

/// Somebody waits here for what a child does, who may die doing it; then this process does it.
#[test]
fn whoever_waits_beside_a_dying_process_gets_what_comes_later() {
    let steps = every_step(
        SIZE,
        |heap| (queue_of(heap, false, &[]), heap.make(|op| event::create(op)).unwrap()),
        |heap, (root, done)| {
            // So that whoever puts something in has somebody to wake.
            assert_eq!(get(heap, root.at()), Got::Empty);
            let soon = Instant::now() + std::time::Duration::from_millis(1);
            let got = queue::get(heap, root.at(), Some(soon), &mut keep_nothing).unwrap();
            assert_eq!(got, Got::Empty);
            put(heap, root.at(), &int(1));
            event::set(heap, done.at()).unwrap();
        },
        |heap, (root, done)| {
            let wanted = 2;
            let length = queue::len(heap, root.at()).unwrap();
            std::thread::scope(|scope| {
                let getters: Vec<_> = (0..wanted)
                    .map(|_| {
                        scope
                            .spawn(|| queue::get(heap, root.at(), None, &mut keep_nothing).unwrap())
                    })
                    .collect();
                for _ in length..wanted {
                    put(heap, root.at(), &int(1));
                }
                for getter in getters {
                    assert_eq!(getter.join().unwrap(), Got::Cell(Cell::from(1)));
                }
            });
            assert_eq!(drained(heap, root.at()), []);
            event::is_set(heap, done.at()).unwrap()
        },
    );
    assert!(steps.unseen > 0, "{steps:?}");
}
