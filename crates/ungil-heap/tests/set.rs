//! Sets against a naive model.

mod support;

use proptest::prelude::*;
use support::{Child, heap};
use ungil_heap::segment::Offset;
use ungil_heap::set;
use ungil_heap::table::Cursor;
use ungil_heap::value::Value;
use ungil_heap::{Heap, Result};

const SIZE: usize = 16 << 20;

type Members = Vec<Value<'static>>;

fn new(heap: &Heap) -> Offset {
    heap.change(set::create).expect("a set is made")
}

fn members(heap: &Heap, at: Offset) -> Members {
    set::batch(heap, at, &mut Cursor::default(), usize::MAX).expect("a set can be read")
}

#[derive(Clone, Debug)]
enum Step {
    Add(Value<'static>),
    Discard(Value<'static>),
    Pop,
    Update(Members),
    Intersection(Members),
    Difference(Members),
    SymmetricDifference(Members),
    Clear,
}

fn member() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        (0..30_i64).prop_map(Value::Int),
        (0..30_i8).prop_map(|number| Value::Float(f64::from(number) / 2.0)),
        (0..9).prop_map(|n| Value::from(format!("not in its cell: {n}").as_str()).into_owned()),
        (0..9_i64).prop_map(|number| Value::Tuple(vec![Value::Int(number), Value::None])),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let members = || prop::collection::vec(member(), 0..25);
    prop_oneof![
        6 => member().prop_map(Step::Add),
        3 => member().prop_map(Step::Discard),
        2 => Just(Step::Pop),
        2 => members().prop_map(Step::Update),
        1 => members().prop_map(Step::Intersection),
        1 => members().prop_map(Step::Difference),
        1 => members().prop_map(Step::SymmetricDifference),
        1 => Just(Step::Clear),
    ]
}

fn add(model: &mut Members, member: &Value<'static>) -> bool {
    let is_new = !model.contains(member);
    if is_new {
        model.push(member.clone());
    }
    is_new
}

/// Does a step with both, and compares what they answer.
fn apply(heap: &Heap, at: Offset, model: &mut Members, step: &Step) -> Result<()> {
    match step {
        Step::Add(member) => assert_eq!(set::add(heap, at, member)?, add(model, member)),
        Step::Discard(member) => {
            let before = model.len();
            model.retain(|other| other != member);
            assert_eq!(set::discard(heap, at, member)?, model.len() < before);
        }
        Step::Pop => assert_eq!(set::pop(heap, at)?, model.pop()),
        Step::Update(members) => {
            for member in members {
                add(model, member);
            }
            set::update(heap, at, members)?;
        }
        Step::Intersection(members) => {
            model.retain(|member| members.contains(member));
            set::intersection_update(heap, at, members)?;
        }
        Step::Difference(members) => {
            model.retain(|member| !members.contains(member));
            set::difference_update(heap, at, members)?;
        }
        Step::SymmetricDifference(members) => {
            let new: Members =
                members.iter().filter(|member| !model.contains(member)).cloned().collect();
            model.retain(|member| !members.contains(member));
            for member in &new {
                add(model, member);
            }
            set::symmetric_difference_update(heap, at, members)?;
        }
        Step::Clear => {
            model.clear();
            set::clear(heap, at)?;
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_set_does_what_a_list_without_repetitions_does(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let heap = heap(SIZE);
        let at = new(&heap);
        let mut model = Members::new();
        for step in &steps {
            apply(&heap, at, &mut model, step).unwrap();
            set::check(heap.segment(), at).unwrap();
            prop_assert_eq!(members(&heap, at), model.clone());
            prop_assert_eq!(set::len(&heap, at).unwrap(), model.len());
        }
        for member in &model {
            prop_assert!(set::contains(&heap, at, member).unwrap());
        }
    }
}

#[test]
fn what_two_processes_pop_from_one_set_is_all_of_it_once() {
    const COUNT: i64 = 20_000;
    let heap = heap(SIZE);
    let (all, theirs) = (new(&heap), new(&heap));
    let numbers: Members = (0..COUNT).map(Value::Int).collect();
    set::update(&heap, all, &numbers).unwrap();
    let child = Child::fork(&heap, || {
        while let Some(member) = set::pop(&heap, all).unwrap() {
            assert!(set::add(&heap, theirs, &member).unwrap());
        }
    });
    let mut ours = Members::new();
    while let Some(member) = set::pop(&heap, all).unwrap() {
        ours.push(member);
    }
    child.wait();
    ours.extend(members(&heap, theirs));
    let mut seen: Vec<i64> = ours
        .iter()
        .map(|member| match member {
            Value::Int(number) => *number,
            other => panic!("{other:?}"),
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..COUNT).collect::<Vec<_>>());
}

#[test]
fn a_member_that_comes_and_goes_leaves_the_others_alone() {
    let heap = heap(SIZE);
    let at = new(&heap);
    let many: Members = (0..10_000).map(Value::Int).collect();
    set::update(&heap, at, &many).unwrap();
    // So often that the table is rebuilt a few times.
    for _ in 0..50_000 {
        assert!(set::add(&heap, at, &Value::Int(-1)).unwrap());
        assert!(set::discard(&heap, at, &Value::Int(-1)).unwrap());
    }
    set::check(heap.segment(), at).unwrap();
    assert_eq!(members(&heap, at), many);
}
