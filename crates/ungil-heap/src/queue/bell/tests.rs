//! Who waits looks as long as its queue says, and sleeps then.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::lock::Pause;
use crate::queue::{self, Control, Got, LONGEST_SPIN, Options, Put};
use crate::roots::Root;
use crate::value::Value;
use crate::{Error, Heap, Result};

/// At the pause with a number it does something, before who waits looks or sleeps.
struct At {
    pause: usize,
    seen: AtomicUsize,
    does: Box<dyn Fn() + Send + Sync>,
}

impl Pause for At {
    fn pause(&self, wait: &mut dyn FnMut()) -> Result<()> {
        if self.seen.fetch_add(1, Relaxed) == self.pause {
            (self.does)();
        }
        wait();
        Ok(())
    }
}

/// A queue of a heap whose waiting threads do something with it at a pause.
fn queue_in(
    options: Options,
    pause: usize,
    does: impl Fn(&Heap, usize) + Send + Sync + 'static,
) -> (Arc<Heap>, Root) {
    let known: Arc<std::sync::OnceLock<(Weak<Heap>, usize)>> = Arc::default();
    let found = Arc::clone(&known);
    let does = Box::new(move || {
        let (heap, at) = found.get().expect("the queue is made before somebody waits");
        does(&heap.upgrade().expect("somebody waits in it"), *at);
    });
    let at = At { pause, seen: AtomicUsize::new(0), does };
    let heap = Heap::anonymous(1 << 22, Box::new(at)).unwrap();
    let root = heap.make(|op| queue::create(op, options)).unwrap();
    known.set((Arc::downgrade(&heap), root.at())).unwrap();
    (heap, root)
}

fn control(heap: &Heap, at: usize) -> &Control {
    heap.segment().part(at + queue::CONTROL).unwrap()
}

fn put_one(heap: &Heap, at: usize) {
    assert_eq!(queue::put(heap, at, &Value::Int(7), None).unwrap(), Put::Done);
}

fn get_one(heap: &Heap, at: usize) {
    let got = queue::get(heap, at, None, &mut |_| Ok(())).unwrap();
    assert!(matches!(got, Got::Cell(cell) if cell.int() == Some(7)), "{got:?}");
}

#[test]
fn who_looks_finds_a_value_and_has_not_asked_to_be_woken() {
    let options = Options { spin: LONGEST_SPIN, ..Options::default() };
    let (heap, root) = queue_in(options, 0, put_one);
    get_one(&heap, root.at());
    assert_eq!(control(&heap, root.at()).values.load(Relaxed), 0);
}

#[test]
fn who_looks_finds_room_and_has_not_asked_to_be_woken() {
    let options = Options { limit: Some(1), spin: LONGEST_SPIN, ..Options::default() };
    let (heap, root) = queue_in(options, 0, get_one);
    put_one(&heap, root.at());
    put_one(&heap, root.at());
    assert_eq!(control(&heap, root.at()).room.load(Relaxed), 0);
}

#[test]
fn who_does_not_look_asks_to_be_woken() {
    let (heap, root) = queue_in(Options::default(), 0, put_one);
    get_one(&heap, root.at());
    assert_ne!(control(&heap, root.at()).values.load(Relaxed), 0);
}

#[test]
fn who_has_looked_for_long_enough_asks_to_be_woken() {
    let options = Options { spin: Duration::from_nanos(1), ..Options::default() };
    let (heap, root) = queue_in(options, 1, put_one);
    get_one(&heap, root.at());
    assert_ne!(control(&heap, root.at()).values.load(Relaxed), 0);
}

#[test]
fn nobody_looks_for_longer_than_the_longest_time() {
    let (heap, root) = queue_in(Options::default(), 0, put_one);
    let longer = LONGEST_SPIN + Duration::from_nanos(1);
    let options = Options { spin: longer, ..Options::default() };
    let refused = heap.change(|op| queue::create(op, options));
    assert!(matches!(refused, Err(Error::Misuse(_))), "{refused:?}");
    // Another process may write anything.
    control(&heap, root.at()).spin_ns.store(u32::MAX, Relaxed);
    assert_eq!(queue::spin(&heap, root.at()).unwrap(), LONGEST_SPIN);
}
