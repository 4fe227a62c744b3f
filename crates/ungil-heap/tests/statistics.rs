//! Many processes at one heap, and what is told of them.

mod support;
#[path = "support/whole.rs"]
mod whole;

use std::path::PathBuf;
use std::sync::Arc;

use support::{Child, End, heap};
use ungil_heap::lock::Sleep;
use ungil_heap::object::Kind;
use ungil_heap::roots::Root;
use ungil_heap::statistics::Guarded;
use ungil_heap::value::Value;
use ungil_heap::{Heap, dict};
use whole::{PATIENCE, hear, link, node, pipe, say, settled, verify};

const SIZE: usize = 16 << 20;

/// Attaches once more, as a process does that is told of the heap.
fn attach(heap: &Heap) -> Arc<Heap> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", heap.descriptor()));
    Heap::open(&path, Box::new(Sleep)).unwrap()
}

fn add_one(heap: &Heap, root: &Root) {
    dict::increment(heap, root.at(), &Value::Int(0), &Value::Int(1)).unwrap();
}

#[test]
fn a_thousand_processes_attach_one_after_the_other_and_half_of_them_are_killed() {
    let heap = heap(SIZE);
    let root = heap.root().unwrap();
    dict::set(&heap, root.at(), &Value::Int(0), &Value::Int(0)).unwrap();
    for number in 0..1000 {
        let child = Child::fork(&heap, || {
            let mine = attach(&heap);
            let root = mine.root().unwrap();
            add_one(&mine, &root);
            let held = node(&mine, number);
            link(&mine, held.at(), held.at());
            if number % 2 == 0 {
                // SAFETY: the process kills itself.
                unsafe { libc::raise(libc::SIGKILL) };
            }
            mine.release(held).unwrap();
        });
        let expected = if number % 2 == 0 { End::Killed } else { End::Done };
        assert_eq!(child.wait(), expected);
    }
    let count = dict::get(&heap, root.at(), &Value::Int(0)).unwrap();
    assert_eq!(count, Some(Value::Int(1000)));
    assert_eq!(settled(&heap).objects, 1);
    assert_eq!(heap.processes().unwrap().len(), 1);
}

#[test]
fn a_hundred_processes_work_at_once_and_all_are_told_of() {
    let heap = heap(SIZE);
    let root = heap.root().unwrap();
    dict::set(&heap, root.at(), &Value::Int(0), &Value::Int(0)).unwrap();
    let (ready, tell_ready) = pipe();
    let (go, tell_go) = pipe();
    let children: Vec<Child> = (0..100)
        .map(|_| {
            Child::fork(&heap, || {
                let mine = attach(&heap);
                let root = mine.root().unwrap();
                for _ in 0..10 {
                    add_one(&mine, &root);
                }
                let _held = node(&mine, 1);
                say(tell_ready);
                hear(go);
                add_one(&mine, &root);
            })
        })
        .collect();
    for _ in 0..100 {
        hear(ready);
    }
    let attached = heap.processes().unwrap();
    assert_eq!(attached.len(), 201);
    assert!(attached.iter().all(|process| process.is_alive && process.since > 0));
    for child in &children {
        let pid = child.pid().cast_unsigned();
        assert_eq!(attached.iter().filter(|process| process.pid == pid).count(), 2);
    }
    assert_eq!(settled(&heap).objects, 101);
    for _ in 0..100 {
        say(tell_go);
    }
    for child in children {
        assert_eq!(child.wait(), End::Done);
    }
    let count = dict::get(&heap, root.at(), &Value::Int(0)).unwrap();
    assert_eq!(count, Some(Value::Int(1100)));
    assert!(heap.processes().unwrap()[1..].iter().all(|process| !process.is_alive));
    assert_eq!(settled(&heap).objects, 1);
    assert_eq!(heap.processes().unwrap().len(), 1);
}

#[test]
fn the_statistics_say_what_there_is_and_who_holds_which_lock() {
    let heap = heap(SIZE);
    let kept = node(&heap, 1);
    link(&heap, kept.at(), node(&heap, 2).at());
    let root = heap.root().unwrap();
    let (ready, tell_ready) = pipe();
    let child = Child::fork(&heap, || {
        ungil_heap::monitor::enter(&heap, kept.at(), None).unwrap();
        say(tell_ready);
        // SAFETY: waits for the signal that ends it.
        unsafe { libc::pause() };
    });
    hear(ready);
    let told = heap.statistics(PATIENCE).unwrap();
    let contents = told.contents.expect("nobody is busy for ever");
    let count = |wanted| {
        contents.kinds.iter().find(|(kind, ..)| *kind == wanted).map(|(_, objects, _)| *objects)
    };
    assert_eq!(
        (count(Kind::List), count(Kind::Dict), count(Kind::Set)),
        (Some(2), Some(1), Some(0))
    );
    assert!(heap.overview().unwrap().contents.is_none());
    assert_eq!(contents.lost_bytes, 0);
    assert_eq!(contents.taken_bytes, verify(&heap).taken_bytes);
    assert!(contents.taken_bytes < told.grown_bytes && told.grown_bytes <= told.max_bytes);
    assert!(told.created > 0 && told.locks.is_empty());
    let [held] = contents.locks[..] else { panic!("one lock is held: {:?}", contents.locks) };
    assert_eq!(held.guarded, Guarded::Object(Kind::List, kept.at()));
    let holder = told.processes.iter().find(|process| Some(process.slot) == held.slot).unwrap();
    assert_eq!(holder.pid, child.pid().cast_unsigned());
    assert_eq!(holder.threads, 1);
    child.kill();
    child.wait_for_zombie();
    let told = heap.statistics(PATIENCE).unwrap();
    assert_eq!(told.processes.iter().filter(|process| !process.is_alive).count(), 1);
    assert_eq!(heap.collect(PATIENCE).unwrap().unwrap().dead, 1);
    let told = heap.statistics(PATIENCE).unwrap();
    assert_eq!((told.processes.len(), told.deaths, told.collections), (1, 1, 1));
    assert_eq!(told.contents.unwrap().locks[0].slot, None);
    heap.release(root).unwrap();
}

#[test]
fn a_collection_is_due_when_somebody_died_or_the_heap_has_doubled() {
    let heap = heap(256 << 20);
    let kept = node(&heap, 1);
    assert!(!heap.is_collection_due().unwrap());
    let child = Child::fork(&heap, || {
        let _held = node(&heap, 2);
    });
    assert_eq!(child.wait(), End::Done);
    assert!(heap.is_collection_due().unwrap());
    settled(&heap);
    assert!(!heap.is_collection_due().unwrap());
    ungil_heap::list::append(&heap, kept.at(), &Value::Bytes(vec![0; 20 << 20].into())).unwrap();
    assert!(heap.is_collection_due().unwrap());
    settled(&heap);
    assert!(!heap.is_collection_due().unwrap());
}
