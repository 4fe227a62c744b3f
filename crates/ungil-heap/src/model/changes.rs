//! Waiting until an object has changed.

use loom::thread;

use super::*;
use crate::changes;

/// One waits until an object has changed; another one changes it.
const CHANGED: Model = Model::with_calls(3, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let at = object(&heap).at();
    let seen = object::head(heap.segment(), at).unwrap().version.load(Relaxed) / 2;
    let other = {
        let heap = second.heap();
        thread::spawn(move || {
            let look = || Ok((changes::asked(&heap, at)? != seen).then_some(()));
            assert!(changes::until(&heap, None, look).unwrap().is_some());
        })
    };
    add(&heap, at);
    other.join().unwrap();
});

#[test]
fn who_waits_for_a_change_sees_it() {
    CHANGED.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_change_sleeps_on_without_a_call() {
    CHANGED.holds_without("watch: a call");
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_waits_for_a_change_sleeps_on_if_neither_sees_the_other() {
    CHANGED.holds_without("changes: one sees the other");
}
