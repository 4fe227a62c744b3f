//! Objects with fields.

mod support;
#[path = "support/taken.rs"]
mod taken;

use proptest::prelude::*;
use ungil_heap::value::Value;
use ungil_heap::{Error, structs};

use support::heap;
use taken::{nothing_is_lost, values};

const SIZE: usize = 4 << 20;
const SCHEMA: u64 = 0x5eed;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn fields_keep_what_they_were_given(
        mut model in prop::collection::vec(values(), 1..20),
        changes in prop::collection::vec((any::<prop::sample::Index>(), values(), any::<bool>()), 0..30),
    ) {
        let heap = heap(SIZE);
        let at = heap.change(|op| structs::create(op, SCHEMA, &model)).unwrap();
        for (field, value, succeeds) in changes {
            let field = field.index(model.len());
            let op = heap.op().unwrap();
            structs::set(&heap, at, SCHEMA, field, &value).unwrap();
            assert_eq!(structs::get(&heap, at, SCHEMA, field).unwrap(), value);
            if succeeds {
                op.commit().unwrap();
                model[field] = value;
            } else {
                drop(op);
            }
            assert_eq!(structs::all(&heap, at, SCHEMA).unwrap(), model);
            nothing_is_lost(&heap, &[at]);
        }
    }
}

#[test]
fn who_knows_the_class_otherwise_is_refused() {
    let heap = heap(SIZE);
    let at = heap.change(|op| structs::create(op, SCHEMA, &[Value::Int(1)])).unwrap();
    assert_eq!(structs::schema(&heap, at).unwrap(), (SCHEMA, 1));
    assert!(matches!(structs::get(&heap, at, SCHEMA + 1, 0), Err(Error::Unfit(_))));
    assert!(matches!(structs::get(&heap, at, SCHEMA, 1), Err(Error::Unfit(_))));
    let set = structs::set(&heap, at, SCHEMA + 1, 0, &Value::None);
    assert!(matches!(set, Err(Error::Unfit(_))));
    assert!(matches!(structs::set(&heap, at, SCHEMA, 1, &Value::None), Err(Error::Unfit(_))));
    assert_eq!(structs::get(&heap, at, SCHEMA, 0).unwrap(), Value::Int(1));
}

#[test]
fn fields_count_and_are_compared() {
    let heap = heap(SIZE);
    let at = heap
        .change(|op| structs::create(op, SCHEMA, &[Value::Int(i64::MAX), Value::None]))
        .unwrap();
    let sum = structs::increment(&heap, at, SCHEMA, 0, &Value::Int(1)).unwrap();
    assert_eq!(sum, Value::Float(9_223_372_036_854_775_808.0), "exact, beyond 64 bits");
    let refused = structs::increment(&heap, at, SCHEMA, 1, &Value::Int(1));
    assert!(matches!(refused, Err(Error::Unfit(_))), "{refused:?}");
    let cas = |old: &Value, new: &Value| {
        structs::compare_and_set(&heap, at, SCHEMA, 1, old, new).unwrap()
    };
    assert!(!cas(&Value::Int(0), &Value::Int(1)));
    assert!(cas(&Value::None, &Value::from("a string that is too long for a cell")));
    assert!(cas(&Value::from("a string that is too long for a cell"), &Value::Bool(true)));
    assert_eq!(structs::get(&heap, at, SCHEMA, 1).unwrap(), Value::Int(1));
    nothing_is_lost(&heap, &[at]);
}

#[test]
fn an_object_with_damaged_words_is_an_error_or_another_one() {
    let heap = heap(SIZE);
    let at = heap.change(|op| structs::create(op, SCHEMA, &[Value::None, Value::None])).unwrap();
    let word = |index: usize| heap.segment().word(at + index * 8).unwrap();
    for value in [0, 1, 5, 0x1_0005, 0xffff_ff05, u64::MAX, 0x08, 0x0100_0008, 1 << 63 | 9] {
        for index in [0, 3, 8, 9, 10, 11] {
            let kept = word(index).swap(value, std::sync::atomic::Ordering::Relaxed);
            drop(structs::get(&heap, at, SCHEMA, 1));
            drop(structs::all(&heap, at, SCHEMA));
            drop(ungil_heap::object::owned(heap.segment(), at, &mut |_| Ok(())));
            word(index).store(kept, std::sync::atomic::Ordering::Relaxed);
        }
    }
    assert_eq!(structs::all(&heap, at, SCHEMA).unwrap(), [Value::None, Value::None]);
}
