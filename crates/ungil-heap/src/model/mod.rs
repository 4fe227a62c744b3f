//! What must hold for every interleaving of threads, at the level of those who call: each thread of
//! a model is a process of its own, with a lane, and all have one segment.
//!
//! Each model has twins that leave out a step of the code ([`crate::mutation`]) and must fail.

#![expect(clippy::print_stderr, reason = "with --nocapture: how many orders there were")]

mod barriers;
mod growth;
mod holds;
mod lanes;
mod logs;
mod memory;
mod pins;
mod queues;
mod roots;
mod semaphores;
mod standstill;
mod transactions;
mod versions;
mod waiters;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;

use crate::atomic::{AtomicU64, Ordering::Relaxed};
use crate::futex::{self, Sleepers};
use crate::header::{CHUNK, Layout};
use crate::lock::Sleep;
use crate::object::{self, BODY};
use crate::op::Op;
use crate::roots::Root;
use crate::segment::{Offset, Room, Segment};
use crate::{Heap, mutation, sync};

/// Threads, and what they must never do.
struct Model {
    /// Chunks of the heap, beside the one of the reserve.
    chunks: usize,
    /// How often a thread is stopped where it could go on.
    preemptions: usize,
    /// How long threads sleep.
    sleepers: fn() -> Sleepers,
    rooms: fn(&Layout) -> Vec<Room>,
    run: fn(&Segment),
}

impl Model {
    /// A model in which nobody is woken from a sleep, which is short.
    const fn new(preemptions: usize, run: fn(&Segment)) -> Self {
        Self { chunks: 3, preemptions, sleepers: || Sleepers::Short, rooms, run }
    }

    /// A model in which all sleep until they are woken.
    const fn with_calls(preemptions: usize, run: fn(&Segment)) -> Self {
        Self { sleepers: || Sleepers::Long(Rc::default()), ..Self::new(preemptions, run) }
    }

    /// The same where the first object is a queue.
    const fn of_a_queue(self) -> Self {
        Self { chunks: 4, rooms: queues::rooms, ..self }
    }

    /// The same with a larger heap.
    const fn with_chunks(self, chunks: usize) -> Self {
        Self { chunks, ..self }
    }

    /// Tries all orders of the threads.
    fn holds(&self) {
        let Self { chunks, run, sleepers, rooms, .. } = *self;
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(self.preemptions);
        builder.max_branches = 20_000;
        let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = count.clone();
        let begun = std::time::Instant::now();
        let check = || {
            builder.check(move || {
                counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                futex::sleepers(sleepers());
                run(&Segment::modelled(chunks * (CHUNK + 16), rooms));
                // What is made of loom's atomics must not outlive this.
                futex::sleepers(Sleepers::Short);
            });
        };
        let checked = catch_unwind(AssertUnwindSafe(check));
        eprintln!("{count:?} in {:?}", begun.elapsed());
        if let Err(failure) = checked {
            crate::thread::forget_threads();
            std::mem::forget(futex::sleepers(Sleepers::Short));
            resume_unwind(failure);
        }
        assert!(count.load(std::sync::atomic::Ordering::Relaxed) > 1, "nothing was explored");
    }

    /// The same without a step: it must fail.
    fn holds_without(&self, step: &'static str) {
        mutation::make(step);
        self.holds();
    }
}

/// What a model has in its chunks: objects where the first block is taken for one, words elsewhere.
/// A process takes a chunk for an object and one for its table, as long as there are some.
fn rooms(layout: &Layout) -> Vec<Room> {
    let mut rooms = Vec::new();
    for chunk in 0..layout.chunks {
        let at = layout.chunk(chunk);
        let is_of_objects = chunk == 1 || layout.chunks > 5 && chunk % 2 == 1;
        if is_of_objects {
            for at in (at..at + 4 * object::SIZE).step_by(object::SIZE) {
                rooms.push(Room::Object(at));
                rooms.extend([BODY, BODY + 4, object::SIZE, object::SIZE + 4].map(|half| {
                    // What lies behind the head is the next object's, where there is one.
                    Room::Half(at + half)
                }));
            }
        } else {
            rooms.push(Room::Words(at, 48));
        }
    }
    rooms
}

/// A process that is attached to the heap of a model.
struct Process(Option<Arc<Heap>>);

impl Process {
    /// The one that makes the heap, as large as it can be.
    fn first(segment: &Segment) -> Self {
        let first = Self::first_of_small(segment);
        let layout = segment.layout();
        crate::chunk::grow(segment, layout.chunks - layout.reserve).unwrap();
        first
    }

    /// The one that makes the heap, which grows by a chunk at a time.
    fn first_of_small(segment: &Segment) -> Self {
        Self::known(Heap::create(segment.clone(), Box::new(Sleep)).unwrap())
    }

    /// One more.
    fn another(segment: &Segment) -> Self {
        Self::known(Heap::attach(segment.clone(), Box::new(Sleep)).unwrap())
    }

    /// Has its lane before the model begins.
    fn known(heap: Arc<Heap>) -> Self {
        heap.thread().unwrap();
        Self(Some(heap))
    }

    fn heap(&self) -> Arc<Heap> {
        self.0.clone().expect("it is attached")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A model that fails has no atomics any more.
        if std::thread::panicking() {
            std::mem::forget(self.0.take());
        }
    }
}

/// A new object, which nobody uses for what it is.
fn object(heap: &Heap) -> Root {
    heap.make(|op| sync::event::create(op)).unwrap()
}

/// A word of an object's body, which nothing else changes.
fn body(heap: &Heap, at: Offset, index: usize) -> &AtomicU64 {
    &object::head(heap.segment(), at).unwrap().body[index]
}

/// Adds one to two words of an object, in one operation.
fn add(heap: &Heap, at: Offset) {
    heap.change(|op| {
        op.lock(at)?;
        for index in [1, 2] {
            let sum = body(heap, at, index).load(Relaxed) + 1;
            op.store(at + BODY + index * 8, sum)?;
        }
        Ok(())
    })
    .unwrap();
}

/// Both words.
fn both(heap: &Heap, at: Offset) -> [u64; 2] {
    [1, 2].map(|index| body(heap, at, index).load(Relaxed))
}

/// Checks that nothing is lost in a heap at the end of a model.
fn verify(heap: &Heap) {
    let verified = heap.verify(std::time::Duration::ZERO).unwrap().expect("nobody is busy");
    assert!(verified.is_exact(), "something is lost: {verified:?}");
}
