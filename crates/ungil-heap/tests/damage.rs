//! Dicts, deques and queues in which somebody wrote what no ungil process writes: an error, or a wrong
//! answer, but never a panic, and never without end.

#[path = "support/damage.rs"]
mod damage;
mod support;

use std::sync::atomic::Ordering::Relaxed;

use damage::wounds;
use proptest::prelude::*;
use support::heap;
use ungil_heap::deque::{self, End};
use ungil_heap::queue::Options;
use ungil_heap::segment::Offset;
use ungil_heap::table::Cursor;
use ungil_heap::value::{self, Cell, Text, Value};
use ungil_heap::{Heap, dict, object, queue, set};

fn keys() -> Vec<Value<'static>> {
    let mut keys = Vec::new();
    for number in 0..12 {
        keys.push(Value::Int(number));
        let text = format!("a string that is not in its cell: {number}");
        keys.push(Value::Str(text.clone().into_bytes().into()));
        keys.push(Value::Tuple(vec![Value::Int(number), Value::Bytes(text.into_bytes().into())]));
    }
    keys
}

/// Changes a deque, with a value if it takes one.
type Change = fn(&Heap, Offset, &Value<'_>);

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_operation_panics_over_a_damaged_dict(
        wounds in wounds(),
    ) {
        let heap = heap(4 << 20);
        let at = heap.change(dict::create).unwrap();
        let keys = keys();
        for key in &keys {
            dict::set(&heap, at, key, key).unwrap();
        }
        wounds.inflict(&heap, at);
        let long = Value::from("a value of more than fourteen bytes");
        drop(dict::check(heap.segment(), at));
        drop(dict::owned(heap.segment(), at, &mut |_| Ok(())));
        drop(dict::len(&heap, at));
        let mut cursor = Cursor::default();
        for _ in 0..100 {
            match dict::batch(&heap, at, &mut cursor, 8) {
                Ok(batch) if !batch.is_empty() => {}
                _ => break,
            }
        }
        drop(dict::batch_back(&heap, at, &mut Cursor::default(), 1000));
        for key in &keys {
            drop(dict::get(&heap, at, key));
            drop(dict::contains(&heap, at, key));
            drop(dict::set(&heap, at, key, &long));
            drop(dict::increment(&heap, at, key, &Value::Int(1)));
        }
        for key in keys.iter().step_by(2) {
            drop(dict::pop(&heap, at, key));
        }
        for number in 0..50 {
            drop(dict::set(&heap, at, &Value::Int(100 + number), &long));
            drop(dict::pop_item(&heap, at));
        }
        let pairs: Vec<_> = keys.iter().map(|key| (key.clone(), Value::None)).collect();
        drop(dict::update(&heap, at, &pairs));
        drop(dict::clear(&heap, at));
        // Who takes it for something else is told so.
        prop_assert!(set::len(&heap, at).is_err());
    }

    #[test]
    fn no_operation_panics_over_a_damaged_deque(
        wounds in wounds(),
        limit in prop::option::of(30..50_usize),
    ) {
        let heap = heap(4 << 20);
        let values = keys();
        let long = Value::from("a value of more than fourteen bytes");
        let changes: [Change; 12] = [
            |heap, at, value| drop(deque::push(heap, at, End::Left, value)),
            |heap, at, value| drop(deque::push(heap, at, End::Right, value)),
            |heap, at, value| drop(deque::extend(heap, at, End::Left, &vec![value.clone(); 9])),
            |heap, at, value| drop(deque::set(heap, at, 3, value)),
            |heap, at, value| drop(deque::insert(heap, at, 3, value)),
            |heap, at, value| drop(deque::remove(heap, at, value)),
            |heap, at, _| drop(deque::pop(heap, at, End::Left)),
            |heap, at, _| drop(deque::pop(heap, at, End::Right)),
            |heap, at, _| drop(deque::delete(heap, at, 3)),
            |heap, at, _| drop(deque::rotate(heap, at, 3)),
            |heap, at, _| drop(deque::repeat(heap, at, 3)),
            |heap, at, _| drop(deque::reverse(heap, at)),
        ];
        let at = heap.change(|op| deque::create(op, limit)).unwrap();
        deque::extend(&heap, at, End::Right, &values).unwrap();
        // The ring is not at the beginning of its cells.
        deque::pop(&heap, at, End::Left).unwrap();
        wounds.inflict(&heap, at);
        drop(object::owned(heap.segment(), at, &mut |_| Ok(())));
        for value in values.iter().take(3).chain([&long]) {
            drop(deque::all(&heap, at));
            drop((-40..40).map(|index| deque::get(&heap, at, index)).collect::<Vec<_>>());
            drop((deque::len(&heap, at), deque::limit(&heap, at)));
            drop(deque::index(&heap, at, value, 2, -2));
            drop(deque::count(&heap, at, value));
            for change in changes {
                change(&heap, at, value);
            }
        }
        drop(deque::clear(&heap, at));
        prop_assert!(set::len(&heap, at).is_err());
    }

    #[test]
    fn no_operation_panics_over_a_damaged_queue(
        wounds in wounds(),
        positions in prop::collection::vec((0..6_usize, prop_oneof![any::<u64>(), 0..99_u64]), 0..3),
        is_ordered: bool,
    ) {
        let heap = heap(4 << 20);
        let now = || Some(std::time::Instant::now());
        let keep = &mut |_: &Value<'static>| Ok(());
        let at = heap.change(|op| {
            queue::create(op, Options { limit: Some(100), is_ordered, ..Options::default() })
        }).unwrap();
        for value in keys() {
            queue::put(&heap, at, &value, now()).unwrap();
        }
        let leased = queue::lease(&heap, at, now(), keep).unwrap().1.unwrap();
        wounds.inflict(&heap, at);
        for (position, word) in positions {
            // The words beside the locks and the bells.
            let place = at + [72, 80, 136, 144, 152, 160][position];
            heap.segment().word(place).unwrap().store(word, Relaxed);
        }
        drop(object::owned(heap.segment(), at, &mut |_| Ok(())));
        drop((queue::len(&heap, at), queue::limit(&heap, at), queue::leased(&heap, at)));
        for value in keys().iter().take(4) {
            drop(queue::put(&heap, at, value, now()));
            drop(queue::get(&heap, at, now(), keep));
            drop(queue::put_many(&heap, at, &vec![value.clone(); 9], now()));
            drop(queue::get_many(&heap, at, 9, now(), keep));
            drop(queue::put_back(&heap, at, value));
            drop(queue::wait(&heap, &[at], now()));
            if let Ok((_, Some(lease))) = queue::lease(&heap, at, now(), keep) {
                drop(queue::give_back(&heap, at, &lease));
            }
        }
        drop(queue::acknowledge(&heap, at, &leased));
        drop((queue::recover(&heap, at), queue::task_done(&heap, at)));
        drop((queue::join(&heap, at, now()), queue::close(&heap, at, true)));
    }

    #[test]
    fn a_cell_of_any_bytes_is_a_value_or_an_error(first: u64, second: u64, tag in 0..16_u8) {
        let heap = heap(4 << 20);
        for first in [first, first & !0xff | u64::from(tag), u64::from(tag) | 3 << 40] {
            let cell = Cell(first, second % (8 << 20));
            drop(value::load(heap.segment(), cell));
            drop(value::equal(heap.segment(), cell, &Value::Str(Text::from(&[7_u8; 40][..]))));
            drop(value::owned(heap.segment(), cell, &mut |_| Ok(())));
        }
    }

    #[test]
    fn bytes_that_no_value_has_are_an_error(code in prop::collection::vec(0..16_u8, 0..60)) {
        if let Ok(value) = value::decode(&code) {
            prop_assert_eq!(value::encode(&value).unwrap(), code);
        }
    }
}

#[test]
fn tuples_can_be_nested_deep_but_not_without_end() {
    let heap = heap(4 << 20);
    let at = heap.change(dict::create).unwrap();
    let nested = |depth| (0..depth).fold(Value::Int(1), |inner, _| Value::Tuple(vec![inner]));
    let deepest = nested(value::DEPTH);
    dict::set(&heap, at, &deepest, &deepest).unwrap();
    assert_eq!(dict::get(&heap, at, &deepest).unwrap(), Some(deepest));
    assert!(dict::set(&heap, at, &nested(value::DEPTH + 1), &Value::None).is_err());
    let code = [10_u8, 1, 0, 0, 0, 0, 0, 0, 0].repeat(100_000);
    assert!(value::decode(&code).is_err());
}
