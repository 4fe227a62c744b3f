//! Numbers that take the place of numbers, which is done without an operation.

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::heap;
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;
use ungil_heap::{Heap, Result, dict, list, structs};

const SIZE: usize = 4 << 20;
const SCHEMA: u64 = 9;

/// A list, a dict and a struct with the number 7 at 0, and where they are.
fn sevens(heap: &Arc<Heap>) -> [Offset; 3] {
    let seven = Value::Int(7);
    let list = heap.change(|op| list::create(op)).unwrap();
    list::append(heap, list, &seven).unwrap();
    let dict = heap.change(|op| dict::create(op)).unwrap();
    dict::set(heap, dict, &Value::Int(0), &seven).unwrap();
    let fields = std::slice::from_ref(&seven);
    let fields = heap.change(|op| structs::create(op, SCHEMA, fields)).unwrap();
    [list, dict, fields]
}

fn read(heap: &Heap, at: &[Offset; 3]) -> [Value<'static>; 3] {
    [
        list::get(heap, at[0], 0).unwrap().unwrap(),
        dict::get(heap, at[1], &Value::Int(0)).unwrap().unwrap(),
        structs::get(heap, at[2], SCHEMA, 0).unwrap(),
    ]
}

fn set(heap: &Heap, at: &[Offset; 3], value: &Value<'_>) -> Result<()> {
    list::set(heap, at[0], 0, value)?;
    dict::set(heap, at[1], &Value::Int(0), value)?;
    structs::set(heap, at[2], SCHEMA, 0, value)
}

#[test]
fn a_value_of_any_type_takes_the_place_of_one_of_any_type() {
    let heap = heap(SIZE);
    let at = sevens(&heap);
    let long = Value::Bytes(vec![b'x'; 100].into());
    let values = [
        Value::Int(-1),
        Value::Int(i64::MIN),
        Value::Bool(true),
        Value::Bool(false),
        Value::Float(0.5),
        Value::Float(-0.5),
        Value::None,
        Value::Str(b"short".to_vec().into()),
        long.clone(),
        Value::Int(3),
        long,
        Value::Float(1.5),
    ];
    for value in &values {
        set(&heap, &at, value).unwrap();
        assert_eq!(read(&heap, &at), [value.clone(), value.clone(), value.clone()]);
    }
    heap.verify(Duration::from_secs(10)).unwrap().unwrap();
}

#[test]
fn a_sum_beyond_64_bits_is_no_small_integer_any_more() {
    let heap = heap(SIZE);
    let at = sevens(&heap);
    let one = Value::Int(1);
    set(&heap, &at, &Value::Int(i64::MAX - 1)).unwrap();
    for wanted in ["9223372036854775807", "9223372036854775808", "9223372036854775809"] {
        let wanted: i128 = wanted.parse().unwrap();
        let sums = [
            list::increment(&heap, at[0], 0, &one).unwrap().unwrap(),
            dict::increment(&heap, at[1], &Value::Int(0), &one).unwrap(),
        ];
        for sum in sums {
            let found = match sum {
                Value::Int(number) => i128::from(number),
                Value::BigInt { negative: false, magnitude } => {
                    magnitude.iter().rev().fold(0, |sum, byte| sum << 8 | i128::from(*byte))
                }
                other => panic!("{other:?} is no such sum"),
            };
            assert_eq!(found, wanted);
        }
    }
}

#[test]
fn no_increment_is_lost_beside_others_and_beside_collections() {
    const TIMES: i64 = 50_000;
    const PATIENCE: Duration = Duration::from_secs(60);
    let heap = heap(SIZE);
    let at = sevens(&heap);
    // Or they would be garbage.
    let _held = at.map(|at| heap.hold(None, || Ok(Some(at))).unwrap().unwrap());
    let [list, dict, _] = at;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    list::increment(&heap, list, 0, &Value::Int(1)).unwrap();
                    dict::increment(&heap, dict, &Value::Int(0), &Value::Int(1)).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..200 {
                heap.collect(PATIENCE).unwrap().unwrap();
            }
        });
    });
    let wanted = Value::Int(7 + 3 * TIMES);
    assert_eq!(list::get(&heap, list, 0).unwrap(), Some(wanted.clone()));
    assert_eq!(dict::get(&heap, dict, &Value::Int(0)).unwrap(), Some(wanted));
}

/// All that is in a list, seen at once, was there at one moment.
#[test]
fn a_snapshot_shows_no_number_without_those_that_were_set_before_it() {
    const TIMES: i64 = 100_000;
    let heap = heap(SIZE);
    let list = heap.change(|op| list::create(op)).unwrap();
    list::extend(&heap, list, &[Value::Int(0), Value::Int(0)]).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..=TIMES {
                list::set(&heap, list, 0, &Value::Int(number)).unwrap();
                list::set(&heap, list, 1, &Value::Int(number)).unwrap();
            }
        });
        while !writer.is_finished() {
            let (values, _) = list::snapshot(&heap, list).unwrap();
            let [Value::Int(first), Value::Int(second)] = values[..] else {
                panic!("{values:?} were never there");
            };
            assert!(first == second || first == second + 1, "{first} and {second} at one moment");
        }
    });
}

#[cfg(feature = "fault")]
#[test]
fn a_kill_at_any_step_leaves_the_old_number_or_the_new_one_and_nobody_locked_out() {
    type Change = fn(&Heap, &[Offset; 3]);
    let changes: [(usize, Change); 5] = [
        (0, |heap, at| _ = list::set(heap, at[0], 0, &Value::Int(8)).unwrap()),
        (0, |heap, at| _ = list::increment(heap, at[0], 0, &Value::Int(1)).unwrap()),
        (1, |heap, at| dict::set(heap, at[1], &Value::Int(0), &Value::Int(8)).unwrap()),
        (1, |heap, at| _ = dict::increment(heap, at[1], &Value::Int(0), &Value::Int(1)).unwrap()),
        (2, |heap, at| structs::set(heap, at[2], SCHEMA, 0, &Value::Int(8)).unwrap()),
    ];
    for (which, change) in changes {
        let steps = support::every_step(
            SIZE,
            sevens,
            |heap, at| {
                // A thread that has had no operation yet has no name to lock with.
                heap.op().unwrap().commit().unwrap();
                change(heap, at);
            },
            |heap, at| {
                let found = read(heap, at)[which].clone();
                assert!([Value::Int(7), Value::Int(8)].contains(&found), "{found:?}");
                set(heap, at, &Value::Int(9)).unwrap();
                assert_eq!(read(heap, at)[which], Value::Int(9));
                found == Value::Int(8)
            },
        );
        assert!(steps.all > 4, "there are more steps than {steps:?}");
    }
}
