//! Dicts: keys that are equal, walks, a full heap, and use from several threads and processes.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use support::{Child, heap};
use ungil_heap::dict;
use ungil_heap::object::BODY;
use ungil_heap::segment::Offset;
use ungil_heap::table::Cursor;
use ungil_heap::value::{ALIAS, Text, Value, encode};
use ungil_heap::{Heap, Result};

const SIZE: usize = 64 << 20;

fn new(heap: &Heap) -> Offset {
    heap.change(dict::create).expect("a dict is made")
}

#[test]
fn numbers_are_one_key_whatever_their_type() {
    let heap = heap(SIZE);
    let at = new(&heap);
    let big = (1_u128 << 70).to_le_bytes();
    let alias = Value::Extension {
        kind: ALIAS,
        key: encode(&Value::Int(1)).unwrap().into(),
        payload: vec![9; 30].into(),
    };
    let ones = [
        Value::Int(1),
        Value::Bool(true),
        Value::Float(1.0),
        Value::Complex(1.0, -0.0),
        Value::BigInt { negative: false, magnitude: vec![1, 0, 0].into() },
        alias,
    ];
    let zeros = [Value::Int(0), Value::Bool(false), Value::Float(-0.0), Value::Float(0.0)];
    let bigs = [
        Value::integer(false, &big),
        Value::Float(2_f64.powi(70)),
        Value::Complex(2_f64.powi(70), 0.0),
    ];
    for group in [&ones[..], &zeros, &bigs] {
        dict::clear(&heap, at).unwrap();
        for key in group {
            dict::set(&heap, at, &Value::Tuple(vec![key.clone()]), &Value::None).unwrap();
            dict::set(&heap, at, key, &Value::None).unwrap();
            for other in group {
                assert!(dict::contains(&heap, at, other).unwrap(), "{key:?} is {other:?}");
            }
        }
        assert_eq!(dict::len(&heap, at).unwrap(), 2, "{group:?}");
    }
    dict::set(&heap, at, &Value::Float(f64::NAN), &Value::None).unwrap();
    assert!(!dict::contains(&heap, at, &Value::Float(f64::NAN)).unwrap());
    // The nearest float of an integer that no float is equal to.
    let odd = Value::Int((1 << 53) + 1);
    assert_ne!(odd, Value::Float(9_007_199_254_740_992.0));
    assert_ne!(Value::from("a"), Value::Bytes(Text::from(&b"a"[..])));
}

#[test]
fn each_nan_is_another_key() {
    let heap = heap(SIZE);
    let at = new(&heap);
    let nan = Value::Float(f64::NAN);
    for number in 0..1000 {
        dict::set(&heap, at, &nan, &Value::Int(number)).unwrap();
    }
    assert_eq!(dict::len(&heap, at).unwrap(), 1000);
    assert_eq!(dict::get(&heap, at, &nan).unwrap(), None);
    dict::check(heap.segment(), at).unwrap();
    assert_eq!(dict::pop_item(&heap, at).unwrap().unwrap().1, Value::Int(999));
}

#[test]
fn a_frozenset_is_found_in_any_order_of_its_members() {
    let heap = heap(SIZE);
    let at = new(&heap);
    let set = |numbers: &[i64]| Value::FrozenSet(numbers.iter().map(|n| Value::Int(*n)).collect());
    dict::set(&heap, at, &set(&[1, 2, 3]), &Value::Int(5)).unwrap();
    assert_eq!(dict::get(&heap, at, &set(&[3, 1, 2])).unwrap(), Some(Value::Int(5)));
    assert_eq!(dict::get(&heap, at, &set(&[3, 1, 4])).unwrap(), None);
}

#[test]
fn integers_of_any_size_are_added_exactly() {
    let heap = heap(SIZE);
    let at = new(&heap);
    let key = Value::from("sum");
    let mut sum = 0_i128;
    for by in [i64::MAX, i64::MAX, 5, i64::MIN, i64::MIN, i64::MIN, i64::MIN, 1, i64::MAX] {
        sum += i128::from(by);
        let found = dict::increment(&heap, at, &key, &Value::Int(by)).unwrap();
        let magnitude = sum.unsigned_abs().to_le_bytes();
        assert_eq!(found, Value::integer(sum < 0, &magnitude));
        assert_eq!(dict::get(&heap, at, &key).unwrap().unwrap(), found);
    }
    assert!(dict::increment(&heap, at, &key, &Value::None).is_err());
}

#[test]
fn a_walk_sees_what_stays_exactly_once_while_everything_moves() {
    let heap = heap(SIZE);
    let at = new(&heap);
    for number in 0..1000 {
        dict::set(&heap, at, &Value::Int(number), &Value::None).unwrap();
    }
    for backwards in [false, true] {
        let mut cursor = Cursor::default();
        let mut seen = Vec::new();
        let mut moved = 0;
        loop {
            let step = if backwards { dict::batch_back } else { dict::batch };
            let batch = step(&heap, at, &mut cursor, 7).unwrap();
            if batch.is_empty() {
                break;
            }
            seen.extend(batch.into_iter().map(|(key, _)| key));
            // All that is not a multiple of 3 comes and goes; the table is rebuilt again and again.
            for _ in 0..50 {
                let number = moved * 3 % 1000 / 3 * 3 + 1;
                let key = Value::Int(number);
                if !dict::delete(&heap, at, &key).unwrap() {
                    dict::set(&heap, at, &key, &Value::None).unwrap();
                }
                dict::set(&heap, at, &Value::Int(5000 + moved), &Value::None).unwrap();
                dict::delete(&heap, at, &Value::Int(5000 + moved - 30)).unwrap();
                moved += 1;
            }
        }
        let mut stayed: Vec<i64> = seen
            .iter()
            .filter_map(|key| match key {
                Value::Int(number) if *number < 1000 && number % 3 == 0 => Some(*number),
                _ => None,
            })
            .collect();
        if backwards {
            stayed.reverse();
        }
        let expected: Vec<i64> = (0..1000).filter(|number| number % 3 == 0).collect();
        assert_eq!(stayed, expected);
        assert!(
            !seen.iter().any(|key| matches!(key, Value::Int(5001..))),
            "what came later is not seen"
        );
        for number in 5000..5000 + moved {
            dict::delete(&heap, at, &Value::Int(number)).unwrap();
        }
    }
}

#[test]
fn stamps_begin_anew_before_they_are_used_up() {
    let heap = heap(SIZE);
    let at = new(&heap);
    for number in 0..20 {
        dict::set(&heap, at, &Value::Int(number), &Value::None).unwrap();
    }
    dict::delete(&heap, at, &Value::Int(3)).unwrap();
    // As if there had been four billion insertions.
    let stamps = heap.segment().word(at + BODY + 16).unwrap();
    stamps.store(u64::from(u32::MAX) - 5, Relaxed);
    let mut cursor = Cursor::default();
    assert_eq!(dict::batch(&heap, at, &mut cursor, 10).unwrap().len(), 10);
    for number in 20..60 {
        dict::set(&heap, at, &Value::Int(number), &Value::None).unwrap();
        dict::check(heap.segment(), at).unwrap();
    }
    let expected: Vec<Value> = (0..60).filter(|number| *number != 3).map(Value::Int).collect();
    // The walk begins again, and this is what a new one sees.
    for mut cursor in [cursor, Cursor::default()] {
        let rest = dict::batch(&heap, at, &mut cursor, usize::MAX).unwrap();
        let keys: Vec<Value> = rest.into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, expected);
        assert!(dict::batch(&heap, at, &mut cursor, usize::MAX).unwrap().is_empty());
    }
}

#[test]
fn popping_everything_takes_one_look_at_each() {
    let heap = heap(SIZE);
    let at = new(&heap);
    for number in 0..50_000 {
        dict::set(&heap, at, &Value::Int(number), &Value::Int(-number)).unwrap();
    }
    for number in (0..50_000).filter(|number| number % 10 != 0) {
        assert!(dict::delete(&heap, at, &Value::Int(number)).unwrap());
    }
    for number in (0..50_000).rev().filter(|number| number % 10 == 0) {
        let expected = (Value::Int(number), Value::Int(-number));
        assert_eq!(dict::pop_item(&heap, at).unwrap(), Some(expected));
    }
    assert_eq!(dict::pop_item(&heap, at).unwrap(), None);
    dict::check(heap.segment(), at).unwrap();
}

#[test]
fn sums_are_those_of_python() {
    use ungil_heap::value::plus;
    let big = |power: u32, more: u128| {
        Value::integer(false, &((1_u128 << power) + more).to_le_bytes()).into_owned()
    };
    // float(2**53 + 1) is even, and 2**100 + 2**47 + 1 lies just beyond the middle of two floats.
    let cases = [
        (Value::Int((1 << 53) + 1), Value::Float(0.0), Value::Float(9_007_199_254_740_992.0)),
        (big(100, 1 << 47), Value::Float(0.0), Value::Float(2_f64.powi(100))),
        (
            big(100, (1 << 47) + 1),
            Value::Float(0.0),
            Value::Float(2_f64.powi(100) + 2_f64.powi(48)),
        ),
        (Value::Bool(true), Value::Bool(true), Value::Int(2)),
        (Value::Int(1), Value::Complex(0.5, -1.0), Value::Complex(1.5, -1.0)),
        (big(64, 0), Value::Int(-1), big(63, (1 << 63) - 1)),
    ];
    for (one, other, sum) in cases {
        assert_eq!(plus(&one, &other).unwrap(), sum, "{one:?} + {other:?}");
        assert_eq!(plus(&other, &one).unwrap(), sum, "{other:?} + {one:?}");
    }
    let huge = Value::integer(true, &[1; 200]).into_owned();
    assert!(plus(&huge, &Value::Float(1.0)).is_err(), "Python raises OverflowError");
    assert!(plus(&Value::from("1"), &Value::Int(1)).is_err());
}

#[test]
fn a_full_heap_is_collected_before_a_change_fails() {
    let heap = heap(4 << 20);
    let root = heap.root().unwrap();
    let text = "x".repeat(100_000);
    let fill = |heap: &Heap, at: Offset| -> i64 {
        let mut count = 0;
        while dict::set(heap, at, &Value::Int(count), &Value::from(text.as_str())).is_ok() {
            count += 1;
        }
        count
    };
    // A dict that contains itself, and all the room: nobody can reach it, and nobody frees it.
    let cycle = heap
        .change(|op| {
            let at = dict::create(op)?;
            dict::set_in(op, at, &Value::from("me"), &Value::Object(at)).map(|()| at)
        })
        .unwrap();
    let held = heap.hold(None, || Ok(Some(cycle))).unwrap().unwrap();
    let count = fill(&heap, cycle);
    assert!(count > 10, "the heap is that large");
    heap.release(held).unwrap();
    assert!(fill(&heap, root.at()) >= count - 1, "the garbage is used again");
    // Full and nothing to collect: an error, and everything is as it was.
    let before = dict::len(&heap, root.at()).unwrap();
    let more = dict::set(&heap, root.at(), &Value::from("more"), &Value::from(text.as_str()));
    assert!(matches!(more, Err(ungil_heap::Error::Full { .. })), "{more:?}");
    assert_eq!(dict::len(&heap, root.at()).unwrap(), before);
    dict::check(heap.segment(), root.at()).unwrap();
    assert!(dict::delete(&heap, root.at(), &Value::Int(0)).unwrap());
    dict::set(&heap, root.at(), &Value::from("more"), &Value::from(text.as_str())).unwrap();
    heap.release(root).unwrap();
}

/// What a thread or process does to a dict that others use.
fn hammer(heap: &Heap, at: Offset, me: i64, turns: i64) -> Result<()> {
    let counter = Value::from("counter");
    for turn in 0..turns {
        dict::increment(heap, at, &counter, &Value::Int(1))?;
        let mine = format!("{me}: a key that does not fit in its cell, number {}", turn % 40);
        let key = Value::from(mine.as_str());
        let text = format!("{mine} has had so many turns: {turn}");
        dict::set(heap, at, &key, &Value::from(text.as_str()))?;
        let found = dict::get(heap, at, &key)?;
        assert_eq!(found, Some(Value::from(text.as_str())), "nobody else writes this key");
        if turn % 3 == 0 {
            assert_eq!(dict::pop(heap, at, &key)?, Some(Value::from(text.as_str())));
        }
        // Others' values are whole, whatever happens to them.
        let other = format!("{}: a key that does not fit in its cell, number 1", 1 - me);
        if let Some(value) = dict::get(heap, at, &Value::from(other.as_str()))? {
            let Value::Str(text) = value else { panic!("{value:?}") };
            assert!(text.starts_with(other.as_bytes()), "{text:?}");
        }
        let hot = Value::from("hot");
        loop {
            let old = dict::get(heap, at, &hot)?;
            let Some(Value::Int(number)) = old else { panic!("{old:?}") };
            let new = Value::Int(number + 1);
            if dict::compare_and_set(heap, at, &hot, Some(&Value::Int(number)), Some(&new))? {
                break;
            }
        }
    }
    Ok(())
}

fn check_hammered(heap: &Heap, at: Offset, all: i64) {
    assert_eq!(dict::get(heap, at, &Value::from("counter")).unwrap(), Some(Value::Int(all)));
    assert_eq!(dict::get(heap, at, &Value::from("hot")).unwrap(), Some(Value::Int(all)));
    dict::check(heap.segment(), at).unwrap();
}

const TURNS: i64 = 10_000;

#[test]
fn two_threads_lose_nothing_in_one_dict() {
    let heap = heap(SIZE);
    let at = new(&heap);
    dict::set(&heap, at, &Value::from("hot"), &Value::Int(0)).unwrap();
    let threads: Vec<_> = (0..2)
        .map(|me| {
            let heap = Arc::clone(&heap);
            std::thread::spawn(move || hammer(&heap, at, me, TURNS))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
    check_hammered(&heap, at, 2 * TURNS);
}

#[test]
fn two_processes_lose_nothing_in_one_dict() {
    let heap = heap(SIZE);
    let at = new(&heap);
    dict::set(&heap, at, &Value::from("hot"), &Value::Int(0)).unwrap();
    let child = Child::fork(&heap, || hammer(&heap, at, 1, TURNS).unwrap());
    hammer(&heap, at, 0, TURNS).unwrap();
    child.wait();
    check_hammered(&heap, at, 2 * TURNS);
}

#[test]
fn a_walk_is_whole_while_another_process_changes_the_dict() {
    let heap = heap(SIZE);
    let at = new(&heap);
    for number in 0..200 {
        dict::set(&heap, at, &Value::Int(number), &Value::Int(number)).unwrap();
    }
    let child = Child::fork(&heap, || {
        for turn in 0.. {
            let key = Value::Int(1000 + turn % 500);
            if !dict::delete(&heap, at, &key).unwrap() {
                dict::set(&heap, at, &key, &Value::from("a value that is not in its cell"))
                    .unwrap();
            }
        }
    });
    for _ in 0..300 {
        let mut cursor = Cursor::default();
        let mut next = 0;
        loop {
            let batch = dict::batch(&heap, at, &mut cursor, 16).unwrap();
            if batch.is_empty() {
                break;
            }
            for (key, value) in batch {
                let Value::Int(number) = key else { panic!("{key:?}") };
                if number < 1000 {
                    assert_eq!((number, value), (next, Value::Int(number)));
                    next += 1;
                } else {
                    assert_eq!(value, Value::from("a value that is not in its cell"));
                }
            }
        }
        assert_eq!(next, 200);
    }
    drop(child);
}
