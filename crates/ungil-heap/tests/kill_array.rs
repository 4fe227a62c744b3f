//! A process is killed at every step of every operation on arrays and buffers: what others find is
//! what was before or after, views that live keep their memory, and nothing is lost.

#![cfg(feature = "fault")]

mod support;
#[path = "support/taken.rs"]
mod taken;
#[path = "support/whole.rs"]
mod whole;

use std::ptr::NonNull;

use support::{Steps, every_step};
use ungil_heap::array::{self, Item, Layout, Number, Place};
use ungil_heap::roots::Root;
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;
use ungil_heap::{Heap, Result, buffer, list};

const SIZE: usize = 8 << 20;

fn bytes() -> Layout {
    Layout { format: b"B".to_vec(), item_bytes: 1, others: vec![] }
}

fn write(count: usize, value: u8) -> impl FnMut(NonNull<u8>) -> Result<()> {
    move |to| {
        // SAFETY: the array asked for as many bytes.
        unsafe { to.write_bytes(value, count) };
        Ok(())
    }
}

/// What is in a buffer that the caller holds.
fn contents(heap: &Heap, at: Offset, count: usize) -> Vec<u8> {
    let memory = buffer::lasting(heap, at).unwrap();
    let place = heap.segment().pointer(memory.at, count).unwrap();
    // SAFETY: inside of the segment, and nobody changes it meanwhile.
    unsafe { std::slice::from_raw_parts(place.as_ptr(), count) }.to_vec()
}

fn all(heap: &Heap, at: Offset) -> Vec<u8> {
    let seen = array::look(heap, at).unwrap();
    contents(heap, seen.buffer, seen.rows)
}

/// An array of `length` ones with room for `room`, and a view of it.
fn viewed(heap: &Heap, length: usize, room: usize) -> (Root, Root) {
    let make = |op: &mut _| array::create(op, &bytes(), length, room, &mut write(length, 1));
    let array = heap.make(make).unwrap();
    let at = array.at();
    let look = || Ok(Some(array::look(heap, at)?.buffer));
    let view = heap.hold(Some(at), look).unwrap().unwrap();
    (array, view)
}

/// Kills a process at each step of `change` of an array that this process has a view of.
fn whole_or_not_at_all(length: usize, room: usize, change: impl Fn(&Heap, Offset)) -> Steps {
    let heap = support::heap(SIZE);
    let (array, _view) = viewed(&heap, length, room);
    let before = all(&heap, array.at());
    change(&heap, array.at());
    let after = all(&heap, array.at());
    assert_ne!(before, after, "nothing is changed");
    every_step(
        SIZE,
        |heap| viewed(heap, length, room),
        |heap, (array, _)| change(heap, array.at()),
        |heap, (array, view)| {
            let at = array.at();
            // The lock is what tells of the death.
            let mut op = heap.op().unwrap();
            op.lock(at).unwrap();
            op.commit().unwrap();
            let found = all(heap, at);
            whole::settled(heap);
            assert_eq!(all(heap, at), found, "a collection has changed it");
            let moved = array::look(heap, at).unwrap().buffer != view.at();
            if moved {
                assert_eq!(contents(heap, view.at(), length), before, "a view lost what it saw");
            }
            if found == before {
                return false;
            }
            assert_eq!(found, after, "half of it is seen");
            true
        },
    )
}

fn seen_at_some(steps: Steps) {
    assert!(steps.unseen > 1 && steps.unseen < steps.all, "{steps:?}");
}

#[test]
fn extending_where_there_is_room() {
    seen_at_some(whole_or_not_at_all(10, 100, |heap, at| {
        array::extend(heap, at, &bytes(), 20, &mut write(20, 2)).unwrap();
    }));
}

#[test]
fn extending_beyond_the_room_moves_it() {
    seen_at_some(whole_or_not_at_all(100, 128, |heap, at| {
        array::extend(heap, at, &bytes(), 200, &mut write(200, 2)).unwrap();
    }));
}

#[test]
fn moving_what_is_larger_than_a_slab_has() {
    seen_at_some(whole_or_not_at_all(90_000, 90_000, |heap, at| {
        array::extend(heap, at, &bytes(), 60_000, &mut write(60_000, 2)).unwrap();
    }));
}

#[test]
fn resizing() {
    seen_at_some(whole_or_not_at_all(10, 100, |heap, at| {
        array::resize(heap, at, &bytes(), 5).unwrap();
    }));
    seen_at_some(whole_or_not_at_all(10, 100, |heap, at| {
        array::resize(heap, at, &bytes(), 1000).unwrap();
    }));
}

#[test]
fn changing_an_item() {
    let place = Place { row: 3, row_bytes: 1, inside: 0, number: Number::Unsigned(1) };
    let add = |heap: &Heap, at| {
        let more = |old| Number::Unsigned(1).sum(old, Item::Unsigned(1));
        assert_eq!(array::update(heap, at, place, more).unwrap(), Some(Item::Unsigned(1)));
    };
    let steps = whole_or_not_at_all(10, 10, add);
    assert!(steps.unseen > 0 && steps.unseen < steps.all, "{steps:?}");
}

#[test]
fn changing_items_in_a_transaction_that_makes_it_shorter_and_longer() {
    seen_at_some(whole_or_not_at_all(10, 100, |heap, at| {
        let transaction = heap.begin().unwrap();
        let place = Place { row: -1, row_bytes: 1, inside: 0, number: Number::Unsigned(1) };
        array::update(heap, at, place, |_| Some(Item::Unsigned(9))).unwrap();
        array::resize(heap, at, &bytes(), 2).unwrap();
        array::extend(heap, at, &bytes(), 30, &mut write(30, 3)).unwrap();
        transaction.commit().unwrap();
    }));
}

/// Kills a process at each step of making something that goes into a list.
fn made_whole(make: impl Fn(&Heap, Offset), look: impl Fn(&Heap, Offset)) {
    let steps = every_step(
        SIZE,
        |heap| heap.make(|op| list::create(op)).unwrap(),
        |heap, root| make(heap, root.at()),
        |heap, root| {
            let mut op = heap.op().unwrap();
            op.lock(root.at()).unwrap();
            op.commit().unwrap();
            whole::settled(heap);
            let Some(Value::Object(at)) = list::get(heap, root.at(), 0).unwrap() else {
                return false;
            };
            look(heap, at);
            true
        },
    );
    assert!(steps.unseen > 5 && steps.unseen < steps.all, "{steps:?}");
}

#[test]
fn making_an_array() {
    for length in [100, 70_000, 2 << 20] {
        made_whole(
            |heap, list| {
                let made = heap.change(|op| {
                    let at = array::create(op, &bytes(), length, 0, &mut write(length, 5))?;
                    list::append(op.heap(), list, &Value::Object(at))
                });
                made.unwrap();
            },
            |heap, at| assert_eq!(all(heap, at), vec![5; length]),
        );
    }
}

#[test]
fn making_a_buffer() {
    made_whole(
        |heap, list| {
            let made = heap.change(|op| {
                let at = buffer::create(op, 3000, false, &mut write(3000, 6))?;
                list::append(op.heap(), list, &Value::Object(at))
            });
            made.unwrap();
        },
        |heap, at| assert_eq!(contents(heap, at, 3000), vec![6; 3000]),
    );
}

#[test]
fn letting_go_of_the_last_view() {
    let steps = every_step(
        SIZE,
        |heap| {
            let (array, view) = viewed(heap, 2 << 20, 2 << 20);
            heap.release(view).unwrap();
            array
        },
        |heap, array| {
            let at = array.at();
            let look = || Ok(Some(array::look(heap, at)?.buffer));
            let view = heap.hold(Some(at), look).unwrap().unwrap();
            // The array moves, so that the view is all that keeps the old memory.
            array::resize(heap, at, &bytes(), 3 << 20).unwrap();
            assert_eq!(contents(heap, view.at(), 2 << 20), vec![1; 2 << 20]);
            heap.release(view).unwrap();
        },
        |heap, array| {
            let mut op = heap.op().unwrap();
            op.lock(array.at()).unwrap();
            op.commit().unwrap();
            whole::settled(heap);
            let length = array::look(heap, array.at()).unwrap().rows;
            let taken = whole::verify(heap).taken_bytes;
            assert!(taken < length + (1 << 18), "{taken} bytes for {length}");
            length == 3 << 20
        },
    );
    seen_at_some(steps);
}

#[test]
fn the_views_of_a_killed_process_are_taken_back() {
    let heap = support::heap(SIZE);
    let (array, view) = viewed(&heap, 2 << 20, 2 << 20);
    let child = support::Child::fork(&heap, || {
        loop {
            // SAFETY: takes no arguments.
            unsafe { libc::pause() };
        }
    });
    let taken = whole::verify(&heap).taken_bytes;
    heap.release(view).unwrap();
    heap.release(array).unwrap();
    assert_eq!(whole::verify(&heap).taken_bytes, taken, "the child has both");
    child.kill();
    child.wait();
    assert!(whole::settled(&heap).freed_bytes >= 2 << 20);
    assert!(whole::verify(&heap).taken_bytes < 1 << 16);
}
