//! Deques against `VecDeque`.

mod support;
#[path = "support/taken.rs"]
mod taken;

use std::collections::VecDeque;

use proptest::prelude::*;
use ungil_heap::Heap;
use ungil_heap::deque::{self, End};
use ungil_heap::segment::Offset;
use ungil_heap::slice;
use ungil_heap::value::Value;

use support::heap;
use taken::{nothing_is_lost, values};

const SIZE: usize = 8 << 20;

#[derive(Clone, Debug)]
enum Action {
    Get(isize),
    Set(isize, Value<'static>),
    Push(End, Value<'static>),
    Extend(End, Vec<Value<'static>>),
    Pop(End),
    Insert(isize, Value<'static>),
    Delete(isize),
    Remove(Value<'static>),
    Rotate(isize),
    Reverse,
    Repeat(usize),
    Clear,
    Find(Value<'static>, isize, isize),
    /// All of these in a transaction, which fails.
    Fail(Vec<Action>),
    /// All of these in a transaction.
    Succeed(Vec<Action>),
}

fn actions() -> impl Strategy<Value = Action> {
    let index = || -30..30_isize;
    let end = || prop_oneof![Just(End::Left), Just(End::Right)];
    let action = prop_oneof![
        2 => index().prop_map(Action::Get),
        2 => (index(), values()).prop_map(|(index, value)| Action::Set(index, value)),
        8 => (end(), values()).prop_map(|(end, value)| Action::Push(end, value)),
        3 => (end(), prop::collection::vec(values(), 0..40))
            .prop_map(|(end, values)| Action::Extend(end, values)),
        8 => end().prop_map(Action::Pop),
        2 => (index(), values()).prop_map(|(index, value)| Action::Insert(index, value)),
        2 => index().prop_map(Action::Delete),
        1 => values().prop_map(Action::Remove),
        2 => (-50..50_isize).prop_map(Action::Rotate),
        1 => Just(Action::Reverse),
        1 => (0..3_usize).prop_map(Action::Repeat),
        1 => Just(Action::Clear),
        2 => (values(), index(), index()).prop_map(|(value, a, b)| Action::Find(value, a, b)),
    ];
    action.prop_recursive(1, 8, 8, |inner| {
        let several = prop::collection::vec(inner, 0..8);
        prop_oneof![several.clone().prop_map(Action::Fail), several.prop_map(Action::Succeed)]
    })
}

fn push(model: &mut VecDeque<Value<'static>>, limit: usize, end: End, value: Value<'static>) {
    match end {
        End::Left => model.push_front(value),
        End::Right => model.push_back(value),
    }
    if model.len() > limit {
        match end {
            End::Left => model.pop_back(),
            End::Right => model.pop_front(),
        };
    }
}

fn run(
    heap: &Heap,
    at: Offset,
    limit: usize,
    model: &mut VecDeque<Value<'static>>,
    action: Action,
) {
    let length = model.len();
    match action {
        Action::Get(index) => {
            let wanted = slice::index(index, length).map(|index| model[index].clone());
            assert_eq!(deque::get(heap, at, index).unwrap(), wanted);
        }
        Action::Set(index, value) => {
            let wanted = slice::index(index, length);
            assert_eq!(deque::set(heap, at, index, &value).unwrap(), wanted.is_some());
            if let Some(index) = wanted {
                model[index] = value;
            }
        }
        Action::Push(end, value) => {
            deque::push(heap, at, end, &value).unwrap();
            push(model, limit, end, value);
        }
        Action::Extend(end, values) => {
            deque::extend(heap, at, end, &values).unwrap();
            for value in values {
                push(model, limit, end, value);
            }
        }
        Action::Pop(end) => {
            let wanted = match end {
                End::Left => model.pop_front(),
                End::Right => model.pop_back(),
            };
            assert_eq!(deque::pop(heap, at, end).unwrap(), wanted);
        }
        Action::Insert(index, value) => {
            let fits = length < limit;
            assert_eq!(deque::insert(heap, at, index, &value).unwrap(), fits);
            if fits {
                model.insert(slice::clamp(index, length), value);
            }
        }
        Action::Delete(index) => {
            let wanted = slice::index(index, length).and_then(|index| model.remove(index));
            assert_eq!(deque::delete(heap, at, index).unwrap(), wanted.is_some());
        }
        Action::Remove(value) => {
            let wanted = model.iter().position(|other| *other == value);
            assert_eq!(deque::remove(heap, at, &value).unwrap(), wanted.is_some());
            wanted.and_then(|index| model.remove(index));
        }
        Action::Rotate(steps) => {
            deque::rotate(heap, at, steps).unwrap();
            if length > 0 {
                let length = isize::try_from(length).unwrap();
                model.rotate_right(usize::try_from(steps.rem_euclid(length)).unwrap());
            }
        }
        Action::Reverse => {
            deque::reverse(heap, at).unwrap();
            model.make_contiguous().reverse();
        }
        Action::Repeat(times) => {
            deque::repeat(heap, at, times).unwrap();
            let values = model.clone();
            if times == 0 {
                model.clear();
            }
            for _ in 1..times {
                for value in &values {
                    push(model, limit, End::Right, value.clone());
                }
            }
        }
        Action::Clear => {
            deque::clear(heap, at).unwrap();
            model.clear();
        }
        Action::Find(value, start, stop) => {
            let (first, last) = (slice::clamp(start, length), slice::clamp(stop, length));
            let wanted = (first..last).find(|index| model[*index] == value);
            assert_eq!(deque::index(heap, at, &value, start, stop).unwrap(), wanted);
            let count = model.iter().filter(|other| **other == value).count();
            assert_eq!(deque::count(heap, at, &value).unwrap(), count);
        }
        Action::Fail(actions) => {
            let mut inner = model.clone();
            let op = heap.op().unwrap();
            for action in actions {
                run(heap, at, limit, &mut inner, action);
            }
            drop(op);
        }
        Action::Succeed(actions) => {
            let op = heap.op().unwrap();
            for action in actions {
                run(heap, at, limit, model, action);
            }
            op.commit().unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_deque_does_what_a_vecdeque_does(
        limit in prop::option::of(0..20_usize),
        actions in prop::collection::vec(actions(), 1..60),
    ) {
        let heap = heap(SIZE);
        let at = heap.change(|op| deque::create(op, limit)).unwrap();
        assert_eq!(deque::limit(&heap, at).unwrap(), limit);
        let mut model = VecDeque::new();
        for action in actions {
            run(&heap, at, limit.unwrap_or(usize::MAX), &mut model, action);
            assert_eq!(deque::all(&heap, at).unwrap(), model.iter().cloned().collect::<Vec<_>>());
            assert_eq!(deque::len(&heap, at).unwrap(), model.len());
            nothing_is_lost(&heap, &[at]);
        }
    }
}

#[test]
fn values_that_two_processes_pass_through_a_deque_arrive_once_and_in_order() {
    let heap = heap(SIZE);
    let at = heap.change(|op| deque::create(op, None)).unwrap();
    let child = support::Child::fork(&heap, || {
        for number in 0..20_000 {
            deque::push(&heap, at, End::Right, &Value::Int(number)).unwrap();
        }
    });
    for number in 0..20_000 {
        let value = loop {
            match deque::pop(&heap, at, End::Left).unwrap() {
                Some(value) => break value,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(value, Value::Int(number));
    }
    assert_eq!(child.wait(), support::End::Done);
    nothing_is_lost(&heap, &[at]);
}
