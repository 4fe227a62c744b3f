//! Lists that refer to each other, and whether anything of a heap is lost.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::time::Duration;

use ungil_heap::collect::Collected;
use ungil_heap::roots::Root;
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;
use ungil_heap::verify::Verified;
use ungil_heap::{Heap, Result, list};

/// Longer than any process of a test is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn collect(heap: &Heap) -> Collected {
    heap.collect(PATIENCE).expect("the heap is whole").expect("nobody is busy for ever")
}

pub fn verify(heap: &Heap) -> Verified {
    heap.verify(PATIENCE).expect("the heap is whole").expect("nobody is busy for ever")
}

/// Collects, and asserts that nothing is lost then.
pub fn settled(heap: &Heap) -> Collected {
    let done = collect(heap);
    let found = verify(heap);
    assert!(found.is_exact(), "after a collection: {found:?}");
    assert_eq!(done.raised, 0, "an object had fewer references than there are to it");
    assert_eq!(done.objects, found.objects);
    done
}

/// A list that this process holds, with its number and some text in it.
pub fn node(heap: &Heap, number: i64) -> Root {
    heap.make(|op| {
        let at = list::create(op)?;
        list::append(heap, at, &Value::Int(number))?;
        list::append(heap, at, &text(number))?;
        Ok(at)
    })
    .unwrap()
}

pub fn text(number: i64) -> Value<'static> {
    Value::Str(format!("node number {number}, at some length").into_bytes().into())
}

/// Asserts that a list is whole, and the number in it.
pub fn number(heap: &Heap, at: Offset) -> i64 {
    let Some(Value::Int(number)) = list::get(heap, at, 0).unwrap() else {
        panic!("a list has lost its number")
    };
    assert_eq!(list::get(heap, at, 1).unwrap(), Some(text(number)));
    number
}

pub fn link(heap: &Heap, from: Offset, to: Offset) {
    list::append(heap, from, &Value::Object(to)).unwrap();
}

/// Where the first link of a node is.
pub const LINK: isize = 2;

/// Holds what a link of a node leads to.
pub fn linked(heap: &Heap, from: &Root, link: isize) -> Result<Root> {
    let found = heap.hold(Some(from.at()), || match list::get(heap, from.at(), link)? {
        Some(Value::Object(at)) => Ok(Some(at)),
        other => panic!("no link: {other:?}"),
    })?;
    Ok(found.expect("a link leads somewhere"))
}

pub fn pipe() -> (i32, i32) {
    let mut ends = [0; 2];
    // SAFETY: there is room for two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    (ends[0], ends[1])
}

pub fn say(end: i32) {
    // SAFETY: a byte is there.
    assert_eq!(unsafe { libc::write(end, [0_u8].as_ptr().cast(), 1) }, 1);
}

pub fn hear(end: i32) {
    let mut byte = [0_u8];
    // SAFETY: there is room for a byte.
    assert_eq!(unsafe { libc::read(end, byte.as_mut_ptr().cast(), 1) }, 1);
}
