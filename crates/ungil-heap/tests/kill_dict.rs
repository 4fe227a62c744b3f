//! A process is killed at every step of every operation on a dict or a set; another one finds it
//! done or not begun.

#![cfg(feature = "fault")]

mod support;

use std::sync::Arc;

use support::{Steps, every_step};
use ungil_heap::dict::{self, Pair};
use ungil_heap::segment::Offset;
use ungil_heap::table::Cursor;
use ungil_heap::value::Value;
use ungil_heap::{Heap, Result, set};

const SIZE: usize = 4 << 20;
const LONG: &str = "a value that does not fit in its cell";

fn key(number: i64) -> Value<'static> {
    let text = format!("a key that does not fit in its cell: {number}");
    Value::Str(text.into_bytes().into())
}

/// What is in a dict, with what is in the dicts that it refers to in their place: where those are,
/// differs from run to run.
fn items(heap: &Heap, at: Offset) -> Vec<Pair<'static>> {
    // First under the lock, which a dead process may hold.
    heap.change(|op| dict::get_in(op, at, &Value::None)).unwrap();
    dict::check(heap.segment(), at).unwrap();
    let items = dict::batch(heap, at, &mut Cursor::default(), usize::MAX).unwrap();
    items.into_iter().map(|(key, value)| (key, unfolded(heap, value))).collect()
}

fn unfolded(heap: &Heap, value: Value<'static>) -> Value<'static> {
    match value {
        Value::Object(at) => Value::Tuple(
            items(heap, at)
                .into_iter()
                .map(|(key, value)| Value::Tuple(vec![key, value]))
                .collect(),
        ),
        Value::Tuple(items) => {
            Value::Tuple(items.into_iter().map(|item| unfolded(heap, item)).collect())
        }
        other => other,
    }
}

/// Kills a process at every step of `change` of a dict with `count` keys.
fn kill(count: i64, change: impl Fn(&Heap, Offset) -> Result<()>) -> Steps {
    kill_after(count, |_, _| Ok(()), change)
}

/// As [`kill`], when something has been done to the dict before.
fn kill_after(
    count: i64,
    prepare: impl Fn(&Heap, Offset) -> Result<()>,
    change: impl Fn(&Heap, Offset) -> Result<()>,
) -> Steps {
    let setup = |heap: &Heap| {
        let at = heap.change(dict::create).unwrap();
        for number in 0..count {
            dict::set(heap, at, &key(number), &Value::from(LONG)).unwrap();
        }
        prepare(heap, at).unwrap();
        at
    };
    let quiet = support::heap(SIZE);
    let at = setup(&quiet);
    let before = items(&quiet, at);
    change(&quiet, at).unwrap();
    let after = items(&quiet, at);
    assert_ne!(before, after, "a change that changes nothing shows nothing");
    every_step(
        SIZE,
        |heap: &Arc<Heap>| setup(heap),
        |heap, &at| change(heap, at).unwrap(),
        |heap, &at| {
            let found = items(heap, at);
            assert!(found == before || found == after, "half of it is seen: {found:?}");
            // What comes next finds it as if nobody had died.
            dict::set(heap, at, &Value::Int(7), &Value::from(LONG)).unwrap();
            dict::delete(heap, at, &Value::Int(7)).unwrap();
            dict::set(heap, at, &key(1), &Value::from("short")).unwrap();
            dict::check(heap.segment(), at).unwrap();
            found == after
        },
    )
}

#[test]
fn setting_a_new_key() {
    kill(2, |heap, at| dict::set(heap, at, &key(9), &Value::from(LONG)));
}

#[test]
fn setting_the_first_key() {
    kill(0, |heap, at| dict::set(heap, at, &key(9), &Value::from(LONG)));
}

#[test]
fn setting_a_key_for_which_the_table_must_grow() {
    kill(5, |heap, at| dict::set(heap, at, &key(9), &Value::from(LONG)));
}

#[test]
fn replacing_a_value() {
    kill(3, |heap, at| dict::set(heap, at, &key(1), &Value::from("another one, no less long")));
}

/// Puts a new dict under a key, and a tuple with it under another.
fn nest(heap: &Heap, at: Offset) -> Result<()> {
    heap.change(|op| {
        let inner = dict::create(op)?;
        dict::set_in(op, inner, &key(0), &Value::from(LONG))?;
        dict::set_in(op, at, &key(1), &Value::Object(inner))?;
        dict::set_in(op, at, &key(2), &Value::Tuple(vec![Value::Object(inner)]))
    })
}

#[test]
fn putting_a_dict_into_a_dict() {
    kill(3, nest);
}

#[test]
fn overwriting_the_last_references_to_a_dict() {
    kill_after(3, nest, |heap, at| {
        dict::update(heap, at, &[(key(1), Value::None), (key(2), Value::None)])
    });
}

#[test]
fn incrementing() {
    kill(0, |heap, at| dict::increment(heap, at, &key(0), &Value::Int(1)).map(drop));
}

#[test]
fn deleting() {
    kill(3, |heap, at| dict::delete(heap, at, &key(1)).map(drop));
}

#[test]
fn popping_the_last_item() {
    kill(3, |heap, at| dict::pop_item(heap, at).map(drop));
}

#[test]
fn popping_the_last_item_from_behind_deleted_ones() {
    let delete_two = |heap: &Heap, at| {
        dict::delete(heap, at, &key(3))?;
        dict::delete(heap, at, &key(4)).map(drop)
    };
    kill_after(5, delete_two, |heap, at| dict::pop_item(heap, at).map(drop));
    kill_after(5, delete_two, |heap, at| dict::set(heap, at, &key(9), &Value::from(LONG)));
}

#[test]
fn comparing_and_setting() {
    kill(3, |heap, at| {
        let (old, new) = (Value::from(LONG), Value::from("another one, no less long"));
        dict::compare_and_set(heap, at, &key(1), Some(&old), Some(&new)).map(drop)
    });
}

#[test]
fn clearing() {
    kill(7, dict::clear);
}

#[test]
fn updating_with_few() {
    let pairs: Vec<Pair> = (1..5).map(|number| (key(number), Value::Int(number))).collect();
    kill(3, |heap, at| dict::update(heap, at, &pairs));
}

#[test]
fn updating_with_many() {
    let pairs: Vec<Pair> = (1..40).map(|number| (key(number), Value::Int(number))).collect();
    kill(3, |heap, at| dict::update(heap, at, &pairs));
}

#[test]
fn a_bulk_change_of_a_set() {
    let members: Vec<Value> = (2..14).map(key).collect();
    let setup = |heap: &Heap| {
        let at = heap.change(set::create).unwrap();
        set::update(heap, at, &(0..4).map(key).collect::<Vec<_>>()).unwrap();
        at
    };
    every_step(
        SIZE,
        |heap: &Arc<Heap>| setup(heap),
        |heap, &at| set::symmetric_difference_update(heap, at, &members).unwrap(),
        |heap, &at| {
            heap.change(|op| set::discard_in(op, at, &Value::None)).unwrap();
            set::check(heap.segment(), at).unwrap();
            let found = set::batch(heap, at, &mut Cursor::default(), usize::MAX).unwrap();
            let before: Vec<Value> = (0..4).map(key).collect();
            let after: Vec<Value> = [0, 1].into_iter().chain(4..14).map(key).collect();
            assert!(found == before || found == after, "half of it is seen: {found:?}");
            found == after
        },
    );
}
