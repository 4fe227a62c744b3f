//! Transactions against copies of a naive model, step by step.

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::collections::VecDeque;

use proptest::prelude::*;
use support::heap;
use ungil_heap::deque::{self, End};
use ungil_heap::roots::Root;
use ungil_heap::table::Cursor;
use ungil_heap::value::Value;
use ungil_heap::{Heap, dict, list, set};
use whole::settled;

const SIZE: usize = 16 << 20;

/// What a model knows: a dict, a list, a deque and a set of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    dict: Vec<(i64, i64)>,
    list: Vec<i64>,
    deque: VecDeque<i64>,
    set: Vec<i64>,
}

#[derive(Clone, Debug)]
enum Step {
    Begin,
    Commit,
    RollBack,
    Set(i64, i64),
    Delete(i64),
    PopItem,
    Clear,
    Append(Vec<i64>),
    Insert(i64),
    Pop,
    Push(bool, i64),
    Pull(bool),
    Rotate(i8),
    Member(i64),
    NoMember(i64),
}

fn steps() -> impl Strategy<Value = Step> {
    let key = 0..12_i64;
    prop_oneof![
        3 => Just(Step::Begin),
        2 => Just(Step::Commit),
        2 => Just(Step::RollBack),
        4 => (key.clone(), any::<i64>()).prop_map(|(key, value)| Step::Set(key, value)),
        2 => key.clone().prop_map(Step::Delete),
        2 => Just(Step::PopItem),
        1 => Just(Step::Clear),
        3 => prop::collection::vec(any::<i64>(), 0..40).prop_map(Step::Append),
        1 => any::<i64>().prop_map(Step::Insert),
        3 => Just(Step::Pop),
        4 => any::<(bool, i64)>().prop_map(|(end, value)| Step::Push(end, value)),
        3 => any::<bool>().prop_map(Step::Pull),
        1 => any::<i8>().prop_map(Step::Rotate),
        3 => key.clone().prop_map(Step::Member),
        2 => key.prop_map(Step::NoMember),
    ]
}

/// The four objects of a [`Model`].
struct Four([Root; 4]);

impl Four {
    fn new(heap: &Heap) -> Self {
        Self([
            heap.make(|op| dict::create(op)).unwrap(),
            heap.make(|op| list::create(op)).unwrap(),
            heap.make(|op| deque::create(op, None)).unwrap(),
            heap.make(|op| set::create(op)).unwrap(),
        ])
    }

    fn seen(&self, heap: &Heap) -> Model {
        let number = |value: Value<'_>| match value {
            Value::Int(number) => number,
            other => panic!("no number: {other:?}"),
        };
        let [dict, list, deque, set] = self.0.each_ref().map(Root::at);
        let pairs = dict::batch(heap, dict, &mut Cursor::default(), usize::MAX).unwrap();
        let members = set::batch(heap, set, &mut Cursor::default(), usize::MAX).unwrap();
        let items = list::snapshot(heap, list).unwrap().0;
        Model {
            dict: pairs.into_iter().map(|(key, value)| (number(key), number(value))).collect(),
            list: items.into_iter().map(number).collect(),
            deque: deque::all(heap, deque).unwrap().into_iter().map(number).collect(),
            set: members.into_iter().map(number).collect(),
        }
    }

    fn take(&self, heap: &Heap, model: &mut Model, step: Step) {
        let [dict, list, deque, set] = self.0.each_ref().map(Root::at);
        let side = |right| if right { End::Right } else { End::Left };
        match step {
            Step::Begin | Step::Commit | Step::RollBack => {}
            Step::Set(key, value) => {
                dict::set(heap, dict, &key.into(), &value.into()).unwrap();
                match model.dict.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, old)) => *old = value,
                    None => model.dict.push((key, value)),
                }
            }
            Step::Delete(key) => {
                dict::delete(heap, dict, &key.into()).unwrap();
                model.dict.retain(|(known, _)| *known != key);
            }
            Step::PopItem => {
                dict::pop_item(heap, dict).unwrap();
                model.dict.pop();
            }
            Step::Clear => {
                dict::clear(heap, dict).unwrap();
                list::clear(heap, list).unwrap();
                (model.dict, model.list) = Default::default();
            }
            Step::Append(values) => {
                let stored: Vec<Value<'_>> = values.iter().map(|value| (*value).into()).collect();
                list::extend(heap, list, &stored).unwrap();
                model.list.extend(values);
            }
            Step::Insert(value) => {
                list::insert(heap, list, 0, &value.into()).unwrap();
                model.list.insert(0, value);
            }
            Step::Pop => {
                list::pop(heap, list, -1).unwrap();
                model.list.pop();
            }
            Step::Push(right, value) => {
                deque::push(heap, deque, side(right), &value.into()).unwrap();
                if right { model.deque.push_back(value) } else { model.deque.push_front(value) }
            }
            Step::Pull(right) => {
                deque::pop(heap, deque, side(right)).unwrap();
                _ = if right { model.deque.pop_back() } else { model.deque.pop_front() };
            }
            Step::Rotate(by) => {
                deque::rotate(heap, deque, by.into()).unwrap();
                let length = isize::try_from(model.deque.len()).unwrap();
                if length > 0 {
                    let by = isize::from(by).rem_euclid(length).unsigned_abs();
                    model.deque.rotate_right(by);
                }
            }
            Step::Member(member) => {
                set::add(heap, set, &member.into()).unwrap();
                if !model.set.contains(&member) {
                    model.set.push(member);
                }
            }
            Step::NoMember(member) => {
                set::discard(heap, set, &member.into()).unwrap();
                model.set.retain(|known| *known != member);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn transactions_do_what_copies_of_a_model_do(steps in prop::collection::vec(steps(), 1..120)) {
        let heap = heap(SIZE);
        let four = Four::new(&heap);
        let mut model = Model::default();
        let mut under_way = Vec::new();
        for step in steps {
            match step {
                Step::Begin => under_way.push((heap.begin().unwrap(), model.clone())),
                Step::Commit => {
                    if let Some((transaction, _)) = under_way.pop() {
                        transaction.commit().unwrap();
                    }
                }
                Step::RollBack => {
                    if let Some((transaction, before)) = under_way.pop() {
                        transaction.roll_back().unwrap();
                        model = before;
                    }
                }
                step => four.take(&heap, &mut model, step),
            }
            prop_assert_eq!(&four.seen(&heap), &model);
        }
        while let Some((transaction, before)) = under_way.pop() {
            drop(transaction);
            model = before;
        }
        prop_assert_eq!(&four.seen(&heap), &model);
        let left = settled(&heap);
        prop_assert_eq!((left.freed, left.lowered), (0, 0), "nothing was lost");
    }
}
