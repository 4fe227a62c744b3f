//! What cannot be reached is freed, all of it and nothing else.

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use proptest::prelude::*;
use support::{Child, heap};
use ungil_heap::roots::Root;
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, dict, list};
use whole::{PATIENCE, collect, hear, link, node, number, pipe, say, settled, verify};

const SIZE: usize = 8 << 20;

#[derive(Clone, Debug)]
enum Step {
    Make,
    Link(usize, usize),
    Unlink(usize),
    Release(usize),
    HoldLinked(usize),
    Collect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Make),
        6 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => any::<usize>().prop_map(Step::Unlink),
        4 => any::<usize>().prop_map(Step::Release),
        1 => any::<usize>().prop_map(Step::HoldLinked),
        1 => Just(Step::Collect),
    ];
    prop::collection::vec(step, 1..120)
}

/// What there should be: objects by number, with the numbers they refer to.
#[derive(Default)]
struct Model {
    links: BTreeMap<i64, Vec<i64>>,
    held: Vec<(i64, Root)>,
}

impl Model {
    fn reachable(&self) -> BTreeSet<i64> {
        let mut found = BTreeSet::new();
        let mut left: Vec<i64> = self.held.iter().map(|(number, _)| *number).collect();
        while let Some(number) = left.pop() {
            if found.insert(number) {
                left.extend(&self.links[&number]);
            }
        }
        found
    }

    /// Compares the lists that are held, as far as they lead, with the model.
    fn compare(&self, heap: &Heap) {
        for (expected, root) in &self.held {
            assert_eq!(number(heap, root.at()), *expected);
            let links = &self.links[expected];
            assert_eq!(list::len(heap, root.at()).unwrap(), 2 + links.len());
            for (index, expected) in (2..).zip(links) {
                let Some(Value::Object(to)) = list::get(heap, root.at(), index).unwrap() else {
                    panic!("a link is lost")
                };
                assert_eq!(number(heap, to), *expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn exactly_what_a_model_reaches_is_left_of_any_graph(steps in steps()) {
        let heap = heap(SIZE);
        let mut model = Model::default();
        let mut made = 0;
        for step in steps {
            let held = model.held.len();
            match step {
                Step::Make => {
                    model.links.insert(made, Vec::new());
                    model.held.push((made, node(&heap, made)));
                    made += 1;
                }
                Step::Link(from, to) if held > 0 => {
                    let (from, to) = (&model.held[from % held], &model.held[to % held]);
                    link(&heap, from.1.at(), to.1.at());
                    model.links.get_mut(&from.0).unwrap().push(to.0);
                }
                Step::Unlink(from) if held > 0 => {
                    let (number, root) = &model.held[from % held];
                    if model.links.get_mut(number).unwrap().pop().is_some() {
                        list::pop(&heap, root.at(), -1).unwrap();
                    }
                }
                Step::Release(which) if held > 0 => {
                    let (_, root) = model.held.swap_remove(which % held);
                    heap.release(root).unwrap();
                }
                Step::HoldLinked(from) if held > 0 => {
                    let (number, root) = &model.held[from % held];
                    let linked = model.links[number].first().copied();
                    let found = heap.hold(Some(root.at()), || {
                        Ok(match list::get(&heap, root.at(), 2)? {
                            Some(Value::Object(at)) => Some(at),
                            _ => None,
                        })
                    }).unwrap();
                    prop_assert_eq!(found.is_some(), linked.is_some());
                    model.held.extend(linked.zip(found));
                }
                Step::Collect => {
                    let done = settled(&heap);
                    prop_assert_eq!(done.objects, model.reachable().len());
                }
                _ => {}
            }
            prop_assert_eq!(verify(&heap).objects, model.reachable().len());
        }
        model.compare(&heap);
        settled(&heap);
        model.compare(&heap);
        for (_, root) in model.held.drain(..) {
            heap.release(root).unwrap();
        }
        prop_assert_eq!(settled(&heap).objects, 0);
    }
}

#[test]
fn a_cycle_is_kept_while_it_is_held_and_freed_by_the_next_collection() {
    let heap = heap(SIZE);
    let (first, second) = (node(&heap, 1), node(&heap, 2));
    link(&heap, first.at(), second.at());
    link(&heap, second.at(), first.at());
    heap.release(second).unwrap();
    assert_eq!(settled(&heap).objects, 2);
    heap.release(first).unwrap();
    let lost = verify(&heap);
    assert!(lost.objects == 0 && lost.lost_bytes() > 0, "{lost:?}");
    let done = settled(&heap);
    assert_eq!((done.objects, done.freed_bytes), (0, lost.lost_bytes()));
}

#[test]
fn what_a_dead_process_held_is_freed() {
    let heap = heap(SIZE);
    let kept = node(&heap, 1);
    let child = Child::fork(&heap, || {
        let (mine, cycle) = (node(&heap, 2), node(&heap, 3));
        link(&heap, cycle.at(), cycle.at());
        link(&heap, mine.at(), kept.at());
        // SAFETY: the process kills itself.
        unsafe { libc::raise(libc::SIGKILL) };
    });
    assert_eq!(child.wait(), support::End::Killed);
    let done = settled(&heap);
    assert_eq!((done.objects, done.dead, done.lowered), (1, 1, 1));
    assert_eq!(number(&heap, kept.at()), 1);
}

#[test]
fn the_root_is_the_same_dict_for_everybody_and_is_never_freed() {
    let heap = heap(SIZE);
    let root = heap.root().unwrap();
    let at = root.at();
    dict::set(&heap, at, &Value::Int(1), &Value::Int(2)).unwrap();
    heap.release(root).unwrap();
    settled(&heap);
    let child = Child::fork(&heap, || {
        let root = heap.root().unwrap();
        assert_eq!(root.at(), at);
        assert_eq!(dict::get(&heap, at, &Value::Int(1)).unwrap(), Some(Value::Int(2)));
        heap.release(root).unwrap();
    });
    assert_eq!(child.wait(), support::End::Done);
    assert_eq!(settled(&heap).objects, 1);
}

#[test]
fn large_memory_goes_back_to_the_system_and_can_be_had_again() {
    let heap = heap(256 << 20);
    for _ in 0..3 {
        let large = node(&heap, 1);
        link(&heap, large.at(), large.at());
        for number in 0..8 {
            let bytes = vec![number; 10 << 20];
            list::append(&heap, large.at(), &Value::Bytes(bytes.into())).unwrap();
        }
        let before = stored(&heap);
        heap.release(large).unwrap();
        let done = settled(&heap);
        assert!(done.freed_bytes >= 80 << 20 && done.returned_bytes >= 75 << 20, "{done:?}");
        assert!(before - stored(&heap) >= 75 << 20, "the file did not get smaller");
    }
}

/// Bytes of memory behind the heap's file.
fn stored(heap: &Heap) -> i64 {
    // SAFETY: all zeros are a valid structure, filled by the call.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives during the call.
    assert_eq!(unsafe { libc::fstat(heap.descriptor(), &raw mut stat) }, 0);
    stat.st_blocks * 512
}

#[test]
fn a_collection_inside_of_a_transaction_is_refused() {
    let heap = heap(SIZE);
    let op = heap.op().unwrap();
    assert!(matches!(heap.collect(PATIENCE), Err(Error::Refused(_))));
    op.commit().unwrap();
    settled(&heap);
}

#[test]
fn a_collection_gives_up_while_another_process_is_in_a_transaction() {
    let heap = heap(SIZE);
    let (told, tell) = pipe();
    let child = Child::fork(&heap, || {
        let _op = heap.op().unwrap();
        say(tell);
        // SAFETY: waits for the signal that ends it.
        unsafe { libc::pause() };
    });
    hear(told);
    assert_eq!(heap.collect(Duration::ZERO).unwrap(), None);
    // The gate is open again.
    heap.release(node(&heap, 1)).unwrap();
    child.kill();
    assert_eq!(child.wait(), support::End::Killed);
    assert_eq!(settled(&heap).objects, 0);
}

#[test]
fn threads_and_processes_change_a_heap_while_it_is_collected_again_and_again() {
    let heap = heap(64 << 20);
    let shared = node(&heap, 0);
    let work = |first: i64| {
        for number in first..first + 300 {
            let mine = node(&heap, number);
            link(&heap, mine.at(), mine.at());
            link(&heap, shared.at(), mine.at());
            heap.release(mine).unwrap();
            if number % 7 == 0 {
                collect(&heap);
            }
        }
    };
    let children: Vec<Child> =
        (1..4).map(|child| Child::fork(&heap, || work(child * 1000))).collect();
    std::thread::scope(|scope| {
        for thread in 4..7 {
            scope.spawn(move || work(thread * 1000));
        }
    });
    for child in children {
        assert_eq!(child.wait(), support::End::Done);
    }
    assert_eq!(settled(&heap).objects, 1 + 6 * 300);
    for index in 2..2 + 6 * 300 {
        let Some(Value::Object(at)) = list::get(&heap, shared.at(), index).unwrap() else {
            panic!("a link is lost")
        };
        assert!(number(&heap, at) >= 1000);
    }
}

/// Makes cycles of so many bytes each that nobody holds.
fn litter(heap: &Heap, bytes: usize) {
    let lost = node(heap, 1);
    list::append(heap, lost.at(), &Value::Bytes(vec![1; bytes].into())).unwrap();
    link(heap, lost.at(), lost.at());
    heap.release(lost).unwrap();
}

#[test]
fn a_heap_that_makes_garbage_for_ever_never_fills_and_hardly_grows() {
    let heap = heap(1 << 30);
    let kept = node(&heap, 0);
    for _ in 0..3000 {
        litter(&heap, 100 << 10);
    }
    let collections = heap.segment().header().collections.load(Relaxed);
    assert!(collections > 3, "{collections} collections");
    assert!(stored(&heap) < 64 << 20, "{} bytes", stored(&heap));
    assert_eq!(number(&heap, kept.at()), 0);
    assert_eq!(settled(&heap).objects, 1);
}

#[test]
fn a_heap_that_is_full_of_garbage_is_collected_and_one_full_of_objects_says_so() {
    // Too small for a collection before it grows.
    let heap = heap(4 << 20);
    for _ in 0..200 {
        litter(&heap, 40 << 10);
    }
    let kept = node(&heap, 1);
    let filled = std::iter::repeat_with(|| {
        list::append(&heap, kept.at(), &Value::Bytes(vec![1; 40 << 10].into()))
    })
    .take(1000)
    .find_map(std::result::Result::err);
    assert!(matches!(filled, Some(Error::Full { .. })), "{filled:?}");
    assert_eq!(number(&heap, kept.at()), 1);
    settled(&heap);
    heap.release(kept).unwrap();
    let kept = node(&heap, 2);
    assert_eq!(settled(&heap).objects, 1);
    heap.release(kept).unwrap();
}

#[test]
fn a_change_takes_the_room_that_another_process_has_made_since_it_found_none() {
    let heap = heap(4 << 20);
    let kept = node(&heap, 1);
    // The other process has left no garbage to this one.
    settled(&heap);
    let mut attempts = 0;
    heap.change(|op| {
        attempts += 1;
        match attempts {
            1 => Err(Error::Full { wanted: 1, limit: "there was none" }),
            _ => list::create(op).map(drop),
        }
    })
    .unwrap();
    assert_eq!(attempts, 2);
    settled(&heap);
    heap.release(kept).unwrap();
}

#[test]
fn a_transaction_grows_the_heap_where_a_change_of_its_own_would_collect() {
    let heap = heap(1 << 30);
    for _ in 0..3 {
        let transaction = heap.op().unwrap();
        for _ in 0..300 {
            litter(&heap, 100 << 10);
        }
        transaction.commit().unwrap();
    }
    let header = heap.segment().header();
    assert_eq!(header.collections.load(Relaxed), 0);
    assert!(stored(&heap) > 90 << 20);
    let done = settled(&heap);
    assert!(done.freed_bytes > 90 << 20 && done.objects == 0, "{done:?}");
}

#[test]
fn a_change_made_of_changes_is_begun_again_as_a_whole_after_a_collection() {
    let heap = heap(1 << 30);
    let kept = node(&heap, 0);
    let large = Value::Bytes(vec![1; 100 << 10].into());
    for _ in 0..1000 {
        heap.change(|op| {
            list::append(&heap, kept.at(), &Value::None)?;
            let lost = list::create(op)?;
            list::append(&heap, lost, &large)?;
            list::append(&heap, lost, &Value::Object(lost))
        })
        .unwrap();
    }
    assert!(heap.segment().header().collections.load(Relaxed) > 1);
    assert_eq!(list::len(&heap, kept.at()).unwrap(), 2 + 1000);
    assert_eq!(settled(&heap).objects, 1);
}
