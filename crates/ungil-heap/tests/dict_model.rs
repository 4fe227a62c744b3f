//! Dicts against a naive model, step by step.

mod support;

use proptest::prelude::*;
use support::heap;
use ungil_heap::Heap;
use ungil_heap::dict::{self, Pair};
use ungil_heap::segment::Offset;
use ungil_heap::table::Cursor;
use ungil_heap::value::{ALIAS, Value, encode};

const SIZE: usize = 64 << 20;

fn new(heap: &Heap) -> Offset {
    heap.change(dict::create).expect("a dict is made")
}

fn items(heap: &Heap, at: Offset) -> Vec<Pair<'static>> {
    dict::batch(heap, at, &mut Cursor::default(), usize::MAX).expect("a dict can be read")
}

/// Integers, floats and bools that are equal to each other, strings short and long, tuples,
/// frozensets and aliases of them.
fn value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::None),
        any::<bool>().prop_map(Value::Bool),
        (-3..4_i64).prop_map(Value::Int),
        any::<i64>().prop_map(Value::Int),
        (-3..4_i8).prop_map(|number| Value::Float(number.into())),
        (-3..4_i8).prop_map(|number| Value::Float(f64::from(number) / 2.0)),
        (60..70_i32).prop_map(|power| Value::Float(2_f64.powi(power))),
        (60..70_u32).prop_map(|power| {
            Value::integer(false, &(1_u128 << power).to_le_bytes()).into_owned()
        }),
        (-3..4_i8, 0..2_i8).prop_map(|(real, other)| Value::Complex(real.into(), other.into())),
        "[ab]{0,3}".prop_map(|text| Value::Str(text.into_bytes().into())),
        "[ab]{13,17}".prop_map(|text| Value::Str(text.into_bytes().into())),
        "[ab]{0,16}".prop_map(|text| Value::Bytes(text.into_bytes().into())),
        (0..3_u8, "[ab]{0,3}").prop_map(|(kind, key)| Value::Extension {
            kind,
            key: key.into_bytes().into(),
            payload: vec![1; 20].into(),
        }),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Tuple),
            prop::collection::vec(inner.clone(), 0..3).prop_map(frozen_set),
            inner.prop_map(|meant| Value::Extension {
                kind: ALIAS | 1,
                key: encode(&meant).expect("it is not nested deep").into(),
                payload: vec![2].into(),
            }),
        ]
    })
}

fn frozen_set(members: Vec<Value<'static>>) -> Value<'static> {
    let mut unequal: Vec<Value> = Vec::new();
    for member in members {
        if !unequal.contains(&member) {
            unequal.push(member);
        }
    }
    Value::FrozenSet(unequal)
}

#[derive(Clone, Debug)]
enum Step {
    Set(Value<'static>, Value<'static>),
    SetDefault(Value<'static>, Value<'static>),
    Delete(Value<'static>),
    Pop(Value<'static>),
    PopItem,
    Update(Vec<Pair<'static>>),
    Increment(Value<'static>, i64),
    CompareAndSet(Value<'static>, Option<Value<'static>>, Option<Value<'static>>),
    Clear,
    /// All of it and then an error: nothing has happened.
    Abandoned(Vec<Step>),
}

fn step() -> impl Strategy<Value = Step> {
    let step = prop_oneof![
        8 => (value(), value()).prop_map(|(key, value)| Step::Set(key, value)),
        2 => (value(), value()).prop_map(|(key, value)| Step::SetDefault(key, value)),
        4 => value().prop_map(Step::Delete),
        2 => value().prop_map(Step::Pop),
        2 => Just(Step::PopItem),
        2 => prop::collection::vec((value(), value()), 0..20).prop_map(Step::Update),
        2 => (value(), any::<i64>()).prop_map(|(key, by)| Step::Increment(key, by)),
        2 => (value(), prop::option::of(value()), prop::option::of(value()))
            .prop_map(|(key, old, new)| Step::CompareAndSet(key, old, new)),
        1 => Just(Step::Clear),
    ]
    .boxed();
    let steps = prop::collection::vec(step.clone(), 1..8).prop_map(Step::Abandoned);
    prop_oneof![9 => step, 1 => steps]
}

/// What a dict is: pairs in the order of insertion.
#[derive(Clone, Debug, Default)]
struct Model(Vec<Pair<'static>>);

impl Model {
    fn position(&self, key: &Value) -> Option<usize> {
        self.0.iter().position(|(found, _)| found == key)
    }

    fn get(&self, key: &Value) -> Option<Value<'static>> {
        self.position(key).map(|at| self.0[at].1.clone())
    }

    fn set(&mut self, key: &Value<'static>, value: &Value<'static>) {
        match self.position(key) {
            Some(at) => self.0[at].1 = value.clone(),
            None => self.0.push((key.clone(), value.clone())),
        }
    }

    fn pop(&mut self, key: &Value) -> Option<Value<'static>> {
        self.position(key).map(|at| self.0.remove(at).1)
    }
}

/// Does a step with both, and compares what they answer.
fn apply(heap: &Heap, at: Offset, model: &mut Model, step: &Step) {
    match step {
        Step::Set(key, value) => {
            model.set(key, value);
            dict::set(heap, at, key, value).unwrap();
        }
        Step::SetDefault(key, value) => {
            let before = model.get(key);
            if before.is_none() {
                model.set(key, value);
            }
            assert_eq!(dict::set_default(heap, at, key, value).unwrap(), before);
        }
        Step::Delete(key) => {
            let was_there = model.pop(key).is_some();
            assert_eq!(dict::delete(heap, at, key).unwrap(), was_there);
        }
        Step::Pop(key) => assert_eq!(dict::pop(heap, at, key).unwrap(), model.pop(key)),
        Step::PopItem => assert_eq!(dict::pop_item(heap, at).unwrap(), model.0.pop()),
        Step::Update(pairs) => {
            for (key, value) in pairs {
                model.set(key, value);
            }
            dict::update(heap, at, pairs).unwrap();
        }
        Step::Increment(key, by) => {
            let by = Value::Int(*by);
            match ungil_heap::value::plus(&model.get(key).unwrap_or(Value::Int(0)), &by) {
                Ok(sum) => {
                    model.set(key, &sum);
                    assert_eq!(dict::increment(heap, at, key, &by).unwrap(), sum);
                }
                Err(_) => assert!(dict::increment(heap, at, key, &by).is_err()),
            }
        }
        Step::CompareAndSet(key, old, new) => {
            let fits = model.get(key) == *old;
            if fits {
                match new {
                    Some(new) => model.set(key, new),
                    None => drop(model.pop(key)),
                }
            }
            let done = dict::compare_and_set(heap, at, key, old.as_ref(), new.as_ref()).unwrap();
            assert_eq!(done, fits);
        }
        Step::Clear => {
            model.0.clear();
            dict::clear(heap, at).unwrap();
        }
        Step::Abandoned(steps) => {
            let op = heap.op().unwrap();
            let mut other = model.clone();
            for step in steps {
                apply(heap, at, &mut other, step);
            }
            drop(op);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_dict_does_what_a_list_of_pairs_does(steps in prop::collection::vec(step(), 1..60)) {
        let heap = heap(SIZE);
        let at = new(&heap);
        let mut model = Model::default();
        for step in &steps {
            apply(&heap, at, &mut model, step);
            dict::check(heap.segment(), at).unwrap();
            prop_assert_eq!(items(&heap, at), model.0.clone());
            prop_assert_eq!(dict::len(&heap, at).unwrap(), model.0.len());
        }
        for (key, value) in &model.0 {
            let found = dict::get(&heap, at, key).unwrap();
            prop_assert_eq!(found.as_ref(), Some(value));
        }
    }

    #[test]
    fn equal_values_have_equal_hashes(one in value(), other in value(), key: [u64; 2]) {
        use ungil_heap::value::hash;
        if one == other {
            prop_assert_eq!(hash(key, &one), hash(key, &other));
        }
        prop_assert_eq!(&one, &one);
    }
}
