//! Lists against `Vec`.

mod support;
#[path = "support/taken.rs"]
mod taken;

use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;
use ungil_heap::deque::{self, End};
use ungil_heap::object;
use ungil_heap::segment::Offset;
use ungil_heap::slice::{self, Slice};
use ungil_heap::value::{OPINION, Value};
use ungil_heap::{Error, Heap, buffer, list};

use support::heap;
use taken::{nothing_is_lost, values};

const SIZE: usize = 8 << 20;

fn new(heap: &Heap) -> Offset {
    heap.change(list::create).unwrap()
}

fn all(heap: &Heap, at: Offset) -> Vec<Value<'static>> {
    list::get_slice(heap, at, Slice::ALL).unwrap()
}

#[derive(Clone, Debug)]
enum Action {
    Get(isize),
    Set(isize, Value<'static>),
    Append(Value<'static>),
    Extend(Vec<Value<'static>>),
    Insert(isize, Value<'static>),
    Pop(isize),
    Remove(Value<'static>),
    GetSlice(Slice),
    SetSlice(Slice, Vec<Value<'static>>),
    DeleteSlice(Slice),
    Reverse,
    Rotate,
    Repeat(usize),
    Clear,
    Find(Value<'static>, isize, isize),
    Increment(isize, i64),
    CompareAndSet(isize, Value<'static>, Value<'static>),
    /// All of these in a transaction, which fails.
    Fail(Vec<Action>),
    /// All of these in a transaction.
    Succeed(Vec<Action>),
}

fn slices() -> impl Strategy<Value = Slice> {
    let step = prop_oneof![4 => Just(1), 1 => 1..4_isize, 1 => -4..0_isize];
    (-30..30_isize, -30..30_isize, step).prop_map(|(start, stop, step)| Slice { start, stop, step })
}

fn actions() -> impl Strategy<Value = Action> {
    let index = || -30..30_isize;
    let some = || prop::collection::vec(values(), 0..12);
    let action = prop_oneof![
        2 => index().prop_map(Action::Get),
        2 => (index(), values()).prop_map(|(index, value)| Action::Set(index, value)),
        6 => values().prop_map(Action::Append),
        4 => prop::collection::vec(values(), 0..40).prop_map(Action::Extend),
        3 => (index(), values()).prop_map(|(index, value)| Action::Insert(index, value)),
        4 => prop_oneof![index(), Just(-1)].prop_map(Action::Pop),
        2 => values().prop_map(Action::Remove),
        2 => slices().prop_map(Action::GetSlice),
        3 => (slices(), some()).prop_map(|(slice, values)| Action::SetSlice(slice, values)),
        2 => slices().prop_map(Action::DeleteSlice),
        1 => Just(Action::Reverse),
        1 => Just(Action::Rotate),
        1 => (0..3_usize).prop_map(Action::Repeat),
        1 => Just(Action::Clear),
        2 => (values(), index(), index()).prop_map(|(value, a, b)| Action::Find(value, a, b)),
        2 => (index(), -3..3_i64).prop_map(|(index, by)| Action::Increment(index, by)),
        2 => (index(), values(), values()).prop_map(|(i, a, b)| Action::CompareAndSet(i, a, b)),
    ];
    action.prop_recursive(1, 8, 8, |inner| {
        let several = prop::collection::vec(inner, 0..8);
        prop_oneof![several.clone().prop_map(Action::Fail), several.prop_map(Action::Succeed)]
    })
}

/// The indices of a slice, one by one, as the language reference defines them.
fn indices(slice: Slice, length: usize) -> Vec<usize> {
    let length = isize::try_from(length).unwrap();
    let bound = |index: isize| if index < 0 { index + length } else { index };
    let (low, high) = if slice.step < 0 { (-1, length - 1) } else { (0, length) };
    let start = bound(slice.start).clamp(low, high.max(low));
    let stop = bound(slice.stop).clamp(low, high.max(low));
    let mut indices = Vec::new();
    let mut at = start;
    while if slice.step < 0 { at > stop } else { at < stop } {
        indices.push(usize::try_from(at).unwrap());
        at += slice.step;
    }
    indices
}

#[expect(clippy::too_many_lines, reason = "a list of what can be done")]
fn run(heap: &Heap, at: Offset, model: &mut Vec<Value<'static>>, action: Action) {
    let length = model.len();
    match action {
        Action::Get(index) => {
            let wanted = slice::index(index, length).map(|index| model[index].clone());
            assert_eq!(list::get(heap, at, index).unwrap(), wanted);
        }
        Action::Set(index, value) => {
            let wanted = slice::index(index, length);
            assert_eq!(list::set(heap, at, index, &value).unwrap(), wanted.is_some());
            if let Some(index) = wanted {
                model[index] = value;
            }
        }
        Action::Append(value) => {
            list::append(heap, at, &value).unwrap();
            model.push(value);
        }
        Action::Extend(values) => {
            list::extend(heap, at, &values).unwrap();
            model.extend(values);
        }
        Action::Insert(index, value) => {
            list::insert(heap, at, index, &value).unwrap();
            model.insert(slice::clamp(index, length), value);
        }
        Action::Pop(index) => {
            let wanted = slice::index(index, length).map(|index| model.remove(index));
            assert_eq!(list::pop(heap, at, index).unwrap(), wanted);
        }
        Action::Remove(value) => {
            let wanted = model.iter().position(|other| *other == value);
            assert_eq!(list::remove(heap, at, &value).unwrap(), wanted.is_some());
            wanted.map(|index| model.remove(index));
        }
        Action::GetSlice(slice) => {
            let wanted: Vec<_> =
                indices(slice, length).into_iter().map(|index| model[index].clone()).collect();
            assert_eq!(list::get_slice(heap, at, slice).unwrap(), wanted);
        }
        Action::SetSlice(slice, values) => {
            let places = indices(slice, length);
            let done = list::set_slice(heap, at, slice, &values).unwrap();
            if slice.step == 1 {
                let start = slice::clamp(slice.start, length);
                model.splice(start..start + places.len(), values);
                assert_eq!(done, Ok(()));
            } else if places.len() == values.len() {
                places.into_iter().zip(values).for_each(|(place, value)| model[place] = value);
                assert_eq!(done, Ok(()));
            } else {
                assert_eq!(done, Err(places.len()));
            }
        }
        Action::DeleteSlice(slice) => {
            list::delete_slice(heap, at, slice).unwrap();
            let mut places = indices(slice, length);
            places.sort_unstable();
            places.into_iter().rev().for_each(|place| drop(model.remove(place)));
        }
        Action::Reverse => {
            list::reverse(heap, at).unwrap();
            model.reverse();
        }
        Action::Rotate => {
            let (values, version) = list::snapshot(heap, at).unwrap();
            assert_eq!(values, *model);
            let mut order: Vec<usize> = (0..length).collect();
            order.rotate_left(length.min(1));
            assert!(list::reorder(heap, at, version, &order).unwrap());
            model.rotate_left(length.min(1));
        }
        Action::Repeat(times) => {
            // Now and then is enough, or they would grow without end.
            if length < 100 {
                list::repeat(heap, at, times).unwrap();
                *model = vec![model.clone(); times].concat();
            }
        }
        Action::Clear => {
            list::clear(heap, at).unwrap();
            model.clear();
        }
        Action::Find(value, start, stop) => {
            let (first, last) = (slice::clamp(start, length), slice::clamp(stop, length));
            let wanted = (first..last).find(|index| model[*index] == value);
            assert_eq!(list::index(heap, at, &value, start, stop).unwrap(), wanted);
            let count = model.iter().filter(|other| **other == value).count();
            assert_eq!(list::count(heap, at, &value).unwrap(), count);
        }
        Action::Increment(index, by) => {
            let place = slice::index(index, length);
            let sum = place.map(|place| ungil_heap::value::plus(&model[place], &Value::Int(by)));
            match (list::increment(heap, at, index, &Value::Int(by)), sum) {
                (Ok(None), None) | (Err(Error::Unfit(_)), Some(Err(_))) => {}
                (Ok(Some(is)), Some(Ok(sum))) => {
                    assert_eq!(is, sum);
                    model[place.unwrap()] = sum;
                }
                (is, wanted) => panic!("{is:?}, not {wanted:?}"),
            }
        }
        Action::CompareAndSet(index, old, new) => {
            let place = slice::index(index, length);
            let wanted = place.map(|place| model[place] == old);
            assert_eq!(list::compare_and_set(heap, at, index, &old, &new).unwrap(), wanted);
            if wanted == Some(true) {
                model[place.unwrap()] = new;
            }
        }
        Action::Fail(actions) => {
            let mut inner = model.clone();
            let op = heap.op().unwrap();
            for action in actions {
                run(heap, at, &mut inner, action);
            }
            drop(op);
        }
        Action::Succeed(actions) => {
            let op = heap.op().unwrap();
            for action in actions {
                run(heap, at, model, action);
            }
            op.commit().unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_list_does_what_a_vec_does(actions in prop::collection::vec(actions(), 1..60)) {
        let heap = heap(SIZE);
        let at = new(&heap);
        let mut model = Vec::new();
        for action in actions {
            run(&heap, at, &mut model, action);
            assert_eq!(all(&heap, at), model);
            assert_eq!(list::len(&heap, at).unwrap(), model.len());
            nothing_is_lost(&heap, &[at]);
        }
    }

    #[test]
    fn a_damaged_list_is_an_error_or_another_list(
        damage in prop::collection::vec((0..40_usize, prop_oneof![any::<u64>(), 0..64_u64]), 1..6),
        actions in prop::collection::vec(actions(), 1..12),
    ) {
        let heap = heap(SIZE);
        let at = new(&heap);
        let long = Value::from("a string that is too long for a cell");
        list::extend(&heap, at, &[Value::Int(1), long, Value::None]).unwrap();
        damage_words(&heap, at, &damage);
        for action in actions {
            try_to(&heap, at, action);
        }
    }
}

/// Overwrites words of an object and of the row it has, but not its lock: who waits for a lock of a
/// thread that lives waits for it.
fn damage_words(heap: &Heap, at: Offset, damage: &[(usize, u64)]) {
    let list = object::head(heap.segment(), at).unwrap();
    let row = usize::try_from(list.body[0].load(Relaxed)).unwrap();
    for &(word, value) in damage {
        let place = match word {
            0..8 => at + word.max(3) * 8,
            _ => row + (word - 8) % 6 * 8,
        };
        heap.segment().word(place).unwrap().store(value, Relaxed);
    }
}

/// Does something to a list that may be anything.
fn try_to(heap: &Heap, at: Offset, action: Action) {
    match action {
        Action::Get(index) => drop(list::get(heap, at, index)),
        Action::Set(index, value) => drop(list::set(heap, at, index, &value)),
        Action::Append(value) => drop(list::append(heap, at, &value)),
        Action::Extend(values) => drop(list::extend(heap, at, &values)),
        Action::Insert(index, value) => drop(list::insert(heap, at, index, &value)),
        Action::Pop(index) => drop(list::pop(heap, at, index)),
        Action::Remove(value) => drop(list::remove(heap, at, &value)),
        Action::GetSlice(slice) => drop(list::get_slice(heap, at, slice)),
        Action::SetSlice(slice, values) => drop(list::set_slice(heap, at, slice, &values)),
        Action::DeleteSlice(slice) => drop(list::delete_slice(heap, at, slice)),
        Action::Reverse => drop(list::reverse(heap, at)),
        Action::Rotate => drop(list::snapshot(heap, at)),
        Action::Repeat(times) => drop(list::repeat(heap, at, times)),
        Action::Clear => drop(list::clear(heap, at)),
        Action::Find(value, start, stop) => {
            drop(list::index(heap, at, &value, start, stop));
            drop(list::count(heap, at, &value));
        }
        Action::Increment(index, by) => drop(list::increment(heap, at, index, &Value::Int(by))),
        Action::CompareAndSet(index, old, new) => {
            drop(list::compare_and_set(heap, at, index, &old, &new));
        }
        Action::Fail(actions) | Action::Succeed(actions) => {
            for action in actions {
                try_to(heap, at, action);
            }
        }
    }
}

#[test]
fn a_list_grows_to_a_million_and_shrinks_to_nothing() {
    let heap = heap(128 << 20);
    let at = new(&heap);
    // Somebody refers to it, or it would be garbage when the heap grows.
    heap.change(|op| op.retain(at)).unwrap();
    heap.segment().header().root.store(at as u64, Relaxed);
    for number in 0..1_000_000 {
        list::append(&heap, at, &Value::Int(number)).unwrap();
    }
    assert_eq!(list::len(&heap, at).unwrap(), 1_000_000);
    assert_eq!(list::get(&heap, at, -1).unwrap(), Some(Value::Int(999_999)));
    for number in (0..1_000_000).rev() {
        assert_eq!(list::pop(&heap, at, -1).unwrap(), Some(Value::Int(number)));
    }
    nothing_is_lost(&heap, &[at]);
    let kept: usize = taken::owned(&heap, &[at]).values().sum();
    assert!(kept < 4096, "an empty list keeps {kept} bytes");
}

#[test]
fn a_full_heap_refuses_and_keeps_the_list_as_it_is() {
    let heap = heap(2 << 20);
    let at = new(&heap);
    // Somebody refers to it, or it would be garbage that makes room.
    heap.change(|op| op.retain(at)).unwrap();
    heap.segment().header().root.store(at as u64, Relaxed);
    let mut length = 0;
    let refused = loop {
        match list::append(&heap, at, &Value::Int(length)) {
            Ok(()) => length += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
    let wanted: Vec<_> = (0..length).map(Value::Int).collect();
    assert_eq!(all(&heap, at), wanted);
    nothing_is_lost(&heap, &[at]);
    assert!(list::repeat(&heap, at, usize::MAX).is_err());
    assert_eq!(
        list::pop(&heap, at, 0).unwrap_or(None).or(Some(Value::Int(0))),
        Some(Value::Int(0))
    );
}

#[test]
fn what_only_the_caller_can_compare_hides_no_equal_value_before_it() {
    let heap = heap(SIZE);
    let (at, ring) = (new(&heap), heap.change(|op| deque::create(op, None)).unwrap());
    let opinion =
        Value::Extension { kind: OPINION | 4, key: b"key"[..].into(), payload: b""[..].into() };
    let buffer = heap.change(|op| buffer::create(op, 8, true, &mut |_| Ok(()))).unwrap();
    for odd in [opinion.clone(), Value::Object(buffer), Value::Tuple(vec![Value::None, opinion])] {
        let items = [Value::Int(1), Value::Object(at), odd.clone(), Value::Int(2)];
        list::set_slice(&heap, at, Slice::ALL, &items).unwrap().unwrap();
        deque::clear(&heap, ring).unwrap();
        deque::extend(&heap, ring, End::Right, &items).unwrap();
        let find = |value| {
            let ends = (0, isize::MAX);
            let found = list::index(&heap, at, &Value::Int(value), ends.0, ends.1);
            let there = deque::index(&heap, ring, &Value::Int(value), ends.0, ends.1);
            assert_eq!(format!("{found:?}"), format!("{there:?}"));
            found
        };
        assert!(matches!(find(1), Ok(Some(0))));
        assert!(matches!(find(2), Err(Error::Untold)));
        assert!(matches!(list::count(&heap, at, &Value::Int(1)), Err(Error::Untold)));
        assert!(matches!(deque::count(&heap, ring, &Value::Int(1)), Err(Error::Untold)));
        assert!(matches!(list::remove(&heap, at, &Value::Int(2)), Err(Error::Untold)));
        assert!(matches!(deque::remove(&heap, ring, &Value::Int(2)), Err(Error::Untold)));
        assert!(deque::remove_told(&heap, ring, &Value::Int(2)).unwrap());
        assert_eq!(list::index(&heap, at, &odd, 2, 3).unwrap(), Some(2));
        assert_eq!(list::len(&heap, at).unwrap(), deque::len(&heap, ring).unwrap() + 1);
    }
}

#[test]
fn an_order_for_another_version_is_refused() {
    let heap = heap(SIZE);
    let at = new(&heap);
    list::extend(&heap, at, &[Value::Int(2), Value::Int(1)]).unwrap();
    let (_, version) = list::snapshot(&heap, at).unwrap();
    list::set(&heap, at, 0, &Value::Int(3)).unwrap();
    assert!(!list::reorder(&heap, at, version, &[1, 0]).unwrap());
    let (_, version) = list::snapshot(&heap, at).unwrap();
    assert!(matches!(list::reorder(&heap, at, version, &[1, 1]), Err(Error::Misuse(_))));
    let (_, version) = list::snapshot(&heap, at).unwrap();
    assert!(list::reorder(&heap, at, version, &[1, 0]).unwrap());
    assert_eq!(all(&heap, at), [Value::Int(1), Value::Int(3)]);
    nothing_is_lost(&heap, &[at]);
}

#[test]
fn a_nested_list_lives_as_long_as_it_is_in_one() {
    let heap = heap(SIZE);
    let (outer, inner) = heap
        .change(|op| {
            let (outer, inner) = (list::create(op)?, list::create(op)?);
            list::append(op.heap(), outer, &Value::Object(inner))?;
            list::append(op.heap(), outer, &Value::Tuple(vec![Value::Object(inner)]))?;
            Ok((outer, inner))
        })
        .unwrap();
    list::append(&heap, inner, &Value::from("a string that is too long for a cell")).unwrap();
    nothing_is_lost(&heap, &[outer]);
    list::pop(&heap, outer, 0).unwrap();
    assert_eq!(list::len(&heap, inner).unwrap(), 1);
    nothing_is_lost(&heap, &[outer]);
    list::clear(&heap, outer).unwrap();
    nothing_is_lost(&heap, &[outer]);
    assert_eq!(taken::owned(&heap, &[outer]).len(), 2, "the outer list and its row");
}

#[test]
fn readers_see_rows_of_one_moment_while_others_change_them() {
    let heap = heap(SIZE);
    let at = new(&heap);
    list::extend(&heap, at, &vec![Value::Int(0); 20]).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2_i64 {
            let heap = &heap;
            scope.spawn(move || {
                for round in 0..2_000_i64 {
                    let value = Value::Int(round * 2 + writer);
                    let row = vec![value; usize::try_from(round % 40).unwrap() + 1];
                    list::set_slice(heap, at, Slice::ALL, &row).unwrap().unwrap();
                }
            });
        }
        for _ in 0..2_000 {
            let row = all(&heap, at);
            assert!(!row.is_empty() && row.iter().all(|value| *value == row[0]), "{row:?}");
        }
    });
    nothing_is_lost(&heap, &[at]);
}

#[test]
fn increments_of_several_processes_are_all_counted() {
    let heap = heap(SIZE);
    let at = new(&heap);
    list::append(&heap, at, &Value::Int(0)).unwrap();
    let count = || {
        for _ in 0..5_000 {
            list::increment(&heap, at, 0, &Value::Int(1)).unwrap();
        }
    };
    let children: Vec<_> = (0..3).map(|_| support::Child::fork(&heap, count)).collect();
    count();
    for child in children {
        assert_eq!(child.wait(), support::End::Done);
    }
    assert_eq!(list::get(&heap, at, 0).unwrap(), Some(Value::Int(20_000)));
}
