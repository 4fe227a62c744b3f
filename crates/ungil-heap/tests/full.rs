//! A heap in which there is no memory any more: what is in it can be used and taken out, also by
//! processes and threads that come new.

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use support::{Child, End};
use ungil_heap::deque;
use ungil_heap::header::MIN_SIZE;
use ungil_heap::roots::Root;
use ungil_heap::size_class::SIZES;
use ungil_heap::slice::Slice;
use ungil_heap::value::Value;
use ungil_heap::{Error, Heap, dict, list};

/// So many objects are in it, that a process holds one by one.
const OBJECTS: i64 = 1_000;

fn length() -> usize {
    usize::try_from(OBJECTS).unwrap()
}

struct Full {
    heap: Arc<Heap>,
    /// A list of lists.
    lists: Root,
    /// A list, a deque and a dict of many values.
    many: [Root; 3],
}

fn full() -> Full {
    let heap = support::heap(MIN_SIZE);
    let lists = heap.make(list::create).unwrap();
    for number in 0..OBJECTS {
        let inner = heap.make(list::create).unwrap();
        list::append(&heap, inner.at(), &Value::Int(number)).unwrap();
        whole::link(&heap, lists.at(), inner.at());
        heap.release(inner).unwrap();
    }
    let values: Vec<_> = (0..500).map(Value::Int).collect();
    let many = [
        heap.make(list::create).unwrap(),
        heap.make(|op| deque::create(op, None)).unwrap(),
        heap.make(dict::create).unwrap(),
    ];
    list::extend(&heap, many[0].at(), &values).unwrap();
    deque::extend(&heap, many[1].at(), deque::End::Right, &values).unwrap();
    for value in &values {
        dict::set(&heap, many[2].at(), value, value).unwrap();
    }
    for &bytes in SIZES.iter().rev() {
        while support::take(&heap, bytes).is_ok() {}
    }
    Full { heap, lists, many }
}

fn use_it(heap: &Heap, lists: usize, many: [usize; 3]) {
    let mut held = Vec::new();
    for (index, number) in (0..OBJECTS).enumerate() {
        let look = || match list::get(heap, lists, index.cast_signed())? {
            Some(Value::Object(at)) => Ok(Some(at)),
            other => panic!("{other:?}"),
        };
        let root = heap.hold(Some(lists), look).unwrap().unwrap();
        assert_eq!(list::get(heap, root.at(), 0).unwrap(), Some(Value::Int(number)));
        held.push(root);
    }
    let [list, deque, dict] = many;
    assert_eq!(list::pop(heap, list, 0).unwrap(), Some(Value::Int(0)));
    list::delete_slice(heap, list, Slice::new(10, 400)).unwrap();
    list::reverse(heap, list).unwrap();
    assert!(deque::delete(heap, deque, 100).unwrap());
    deque::rotate(heap, deque, 1).unwrap();
    while deque::pop(heap, deque, deque::End::Left).unwrap().is_some() {}
    for key in 0..250 {
        assert!(dict::pop(heap, dict, &Value::Int(key)).unwrap().is_some());
    }
    dict::clear(heap, dict).unwrap();
    list::clear(heap, list).unwrap();
    for root in held {
        heap.release(root).unwrap();
    }
}

#[test]
fn nothing_more_fits_into_a_full_heap() {
    let Full { heap, lists, .. } = full();
    let value = Value::Str(vec![b'x'; 40].into());
    let mut op = heap.op().unwrap();
    assert!(matches!(ungil_heap::value::store(&mut op, &value), Err(Error::Full { .. })));
    drop(op);
    assert_eq!(list::len(&heap, lists.at()).unwrap(), length());
}

#[test]
fn a_new_thread_and_a_new_process_use_a_full_heap() {
    let Full { heap, lists, many } = full();
    let (at, many) = (lists.at(), many.each_ref().map(Root::at));
    let other = heap.clone();
    thread::spawn(move || {
        let held = other.hold(None, || Ok(Some(at))).unwrap();
        assert_eq!(list::len(&other, at).unwrap(), length());
        other.release(held.unwrap()).unwrap();
    })
    .join()
    .unwrap();
    assert_eq!(Child::fork(&heap, || use_it(&heap, at, many)).wait(), End::Done);
    // There is room now, and the reserve is whole again.
    whole::settled(&heap);
    assert_eq!(Child::fork(&heap, || use_room(&heap, at)).wait(), End::Done);
    whole::settled(&heap);
}

fn use_room(heap: &Heap, lists: usize) {
    list::clear(heap, lists).unwrap();
    for _ in 0..100 {
        let inner = heap.make(list::create).unwrap();
        whole::link(heap, lists, inner.at());
        heap.release(inner).unwrap();
    }
}

/// Fills what is left of a heap with lists of strings, all in one list, and returns that.
fn fill(heap: &Heap) -> Root {
    let lists = heap.make(list::create).unwrap();
    for bytes in [4_000, 400, 40] {
        let value = Value::Str(vec![b'x'; bytes].into());
        while let Ok(inner) = heap.make(list::create) {
            let linked = list::append(heap, lists.at(), &Value::Object(inner.at()));
            let added = (0..100).all(|_| list::append(heap, inner.at(), &value).is_ok());
            heap.release(inner).unwrap();
            if linked.is_err() || !added {
                break;
            }
        }
    }
    lists
}

#[test]
fn a_deque_that_cannot_grow_refuses_a_value_and_keeps_those_that_it_has() {
    for length in [4, 16, 64, 512, 4096] {
        for end in [deque::End::Left, deque::End::Right] {
            let heap = support::heap(MIN_SIZE);
            let root = heap.make(|op| deque::create(op, None)).unwrap();
            let at = root.at();
            let mut kept: VecDeque<_> = (0..length).map(Value::Int).collect();
            deque::extend(&heap, at, deque::End::Right, kept.make_contiguous()).unwrap();
            let lists = fill(&heap);
            let refused = loop {
                match deque::push(&heap, at, end, &Value::Int(-1)) {
                    Ok(()) if end == deque::End::Left => kept.push_front(Value::Int(-1)),
                    Ok(()) => kept.push_back(Value::Int(-1)),
                    refused => break refused,
                }
            };
            assert!(matches!(refused, Err(Error::Full { .. })), "{length}: {refused:?}");
            assert_eq!(deque::all(&heap, at).unwrap(), kept.make_contiguous());
            // Where one goes, another one fits.
            let last = if end == deque::End::Left { kept.front() } else { kept.back() };
            assert_eq!(deque::pop(&heap, at, end).unwrap().as_ref(), last);
            deque::push(&heap, at, end, &Value::Int(-2)).unwrap();
            assert_eq!(deque::len(&heap, at).unwrap(), kept.len());
            while deque::pop(&heap, at, end).unwrap().is_some() {}
            heap.release(lists).unwrap();
            heap.release(root).unwrap();
            whole::settled(&heap);
        }
    }
}
