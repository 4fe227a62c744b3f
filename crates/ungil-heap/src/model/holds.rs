//! Objects that are found in another one, held or taken out, while somebody else is at them.

use loom::thread;

use super::*;
use crate::atomic::Ordering::SeqCst;
use crate::value::Cell;
use crate::{chunk, slab};

/// Whether somebody could take the memory of an object.
fn is_free(heap: &Heap, at: Offset) -> bool {
    let segment = heap.segment();
    let chunk = chunk::number(segment, at).unwrap();
    let block = (at - segment.layout().chunk(chunk)) / object::SIZE;
    slab::bitmap(segment, chunk).unwrap()[block / 64].load(SeqCst) >> (block % 64) & 1 == 0
}

/// One looks into an object and holds what it finds there; another one takes it out, which frees it,
/// and somebody uses the memory for something else.
fn race(segment: &Segment, hold: impl Fn(&Heap, Offset, Offset) -> Option<Root>) {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let container = object(&heap).at();
    let held = object(&heap);
    let (at, serial) = (held.at(), object::head(segment, held.at()).unwrap().serial());
    let put = move |op: &mut Op<'_>, object: Offset| {
        op.lock(container)?;
        op.store(container + BODY + 8, object as u64)
    };
    heap.change(|op| {
        op.retain(at)?;
        put(op, at)
    })
    .unwrap();
    heap.release(held).unwrap();
    let other = {
        let heap = second.heap();
        thread::spawn(move || {
            heap.change(|op| {
                op.guard(container)?;
                put(op, 0)?;
                op.forgo(at);
                Ok(())
            })
            .unwrap();
            if is_free(&heap, at) {
                // Who takes it makes something else of it.
                object::head(heap.segment(), at).unwrap().life.store(1, Relaxed);
            }
        })
    };
    if let Some(root) = hold(&heap, container, at) {
        let held = object::head(segment, at).unwrap().serial();
        assert_eq!(held, serial, "another object is held");
        heap.release(root).unwrap();
    }
    other.join().unwrap();
}

const HOLD: Model = Model::new(3, |segment| {
    race(segment, |heap, container, at| {
        let look = || {
            let found = body(heap, container, 1).load(Relaxed);
            Ok((found != 0).then_some(at))
        };
        heap.hold(Some(container), look).unwrap()
    });
});

/// The same with what a glance sees.
const SEEN: Model = Model::new(3, |segment| {
    race(segment, |heap, container, at| {
        let seen = heap.glance_cell(container, || {
            let found = body(heap, container, 1).load(Relaxed);
            Ok(if found == 0 { Cell::NOTHING } else { Cell::to(at) })
        })?;
        heap.hold_seen(container, seen).unwrap()
    });
});

#[test]
fn what_is_held_is_what_was_found_though_another_takes_it_out() {
    HOLD.holds();
}

#[test]
#[should_panic(expected = "another object is held")]
fn another_object_is_held_if_who_frees_looks_for_no_announcements() {
    HOLD.holds_without("hazard: a look at the announcements");
}

#[test]
#[should_panic(expected = "another object is held")]
fn another_object_is_held_if_the_container_is_not_looked_at_again() {
    HOLD.holds_without("hazard: a second look");
}

#[test]
fn what_is_seen_and_held_is_what_was_found_though_another_takes_it_out() {
    SEEN.holds();
}

#[test]
#[should_panic(expected = "another object is held")]
fn another_object_is_seen_and_held_if_who_frees_looks_for_no_announcements() {
    SEEN.holds_without("hazard: a look at the announcements");
}

#[test]
#[should_panic(expected = "another object is held")]
fn another_object_is_seen_and_held_if_the_container_is_not_looked_at_again() {
    SEEN.holds_without("hazard: a second look");
}

/// One makes an object after it has locked the one that will refer to it; another one takes the new
/// object out as soon as it finds it, which frees it, and somebody uses the memory for something else.
const MADE: Model = Model::new(3, |segment| {
    const OTHER: u32 = 77;
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let container = object(&heap).at();
    let other = {
        let heap = second.heap();
        thread::spawn(move || {
            let taken_out = heap
                .change(|op| {
                    op.lock(container)?;
                    let found = usize::try_from(body(op.heap(), container, 1).load(Relaxed));
                    let Some(at) = found.ok().filter(|at| *at != 0) else { return Ok(None) };
                    op.store(container + BODY + 8, 0)?;
                    op.forgo(at);
                    Ok(Some(at))
                })
                .unwrap();
            let free = taken_out.filter(|at| is_free(&heap, *at))?;
            object::head(heap.segment(), free).unwrap().version.store(OTHER, Relaxed);
            Some(free)
        })
    };
    heap.change(|op| {
        op.lock(container)?;
        let new = sync::event::create(op)?;
        op.lock(new)?;
        op.retain(new)?;
        op.store(container + BODY + 8, new as u64)
    })
    .unwrap();
    if let Some(at) = other.join().unwrap() {
        let version = object::head(segment, at).unwrap().version.load(Relaxed);
        assert_eq!(version, OTHER, "the memory is somebody else's");
    }
});

#[test]
fn what_was_made_is_left_alone_once_others_can_find_it() {
    MADE.holds();
}

#[test]
#[should_panic(expected = "the memory is somebody else's")]
fn what_others_have_freed_is_unlocked_if_what_was_made_is_not_unlocked_first() {
    MADE.holds_without("op: what was made is unlocked first");
}
