//! Deadlines, and children that are killed while others wait.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::time::{Duration, Instant};

use ungil_heap::Heap;
use ungil_heap::sync::event;

use crate::support::{Child, End};

/// A deadline that has passed.
#[expect(clippy::unnecessary_wraps, reason = "no deadline is none")]
pub fn now() -> Option<Instant> {
    Some(Instant::now())
}

/// A deadline that no test that works reaches.
#[expect(clippy::unnecessary_wraps, reason = "no deadline is none")]
pub fn late() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(60))
}

/// Waits until something is so.
pub fn until(mut is_so: impl FnMut() -> bool) {
    let late = late().unwrap();
    while !is_so() {
        assert!(Instant::now() < late, "it never became so");
        std::thread::yield_now();
    }
}

/// A forked child that does something, and then lives on until it is killed.
pub fn lingering(heap: &Heap, work: impl FnOnce()) -> Child {
    let ready = heap.change(|op| event::create(op)).unwrap();
    let child = Child::fork(heap, || {
        work();
        event::set(heap, ready).unwrap();
        loop {
            std::thread::park();
        }
    });
    assert!(event::wait(heap, ready, late()).unwrap());
    child
}

/// Kills a child and buries it.
pub fn kill(child: Child) {
    child.kill();
    assert_eq!(child.wait(), End::Killed);
}
