//! Several processes, some of which die.

#![allow(clippy::similar_names, reason = "heap and head are what they are called")]

mod support;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use support::{Child, End, heap, no_forks, settle, taken};
use ungil_heap::header::{LANES, PROCESSES};
use ungil_heap::lane;
use ungil_heap::lock::{Acquired, Holder, Sleep, acquire};
use ungil_heap::object::{self, BODY, Kind};
use ungil_heap::op::Op;
use ungil_heap::process_table::{self, FREE, LEFT, TAKEN};
use ungil_heap::segment::Offset;
use ungil_heap::{Error, Heap};

const SIZE: usize = 4 << 20;

fn object(heap: &Heap) -> Offset {
    let make = |op: &mut Op<'_>| {
        let at = op.create(Kind::Struct, object::SIZE)?;
        op.retain(at)?;
        Ok(at)
    };
    heap.change(make).unwrap()
}

fn word(heap: &Heap, at: Offset) -> u64 {
    heap.segment().word(at).unwrap().load(Relaxed)
}

/// Says from one process to another that something has come about.
struct Signal(UnixStream, UnixStream);

impl Signal {
    fn new() -> Self {
        let (one, other) = UnixStream::pair().unwrap();
        Self(one, other)
    }

    fn give(&self) {
        (&self.0).write_all(b"!").unwrap();
    }

    fn wait(&self) {
        (&self.1).read_exact(&mut [0]).unwrap();
    }
}

fn sleep_for_ever() {
    loop {
        // SAFETY: no arguments; ends with a signal.
        unsafe { libc::pause() };
    }
}

/// The slots that are taken.
fn slots(heap: &Heap) -> Vec<usize> {
    let state = |index| process_table::slot(heap.segment(), index).unwrap().state.load(Relaxed);
    (0..PROCESSES).filter(|index| state(*index) == TAKEN).collect()
}

#[test]
fn a_waiter_proceeds_after_the_death_of_the_holder_whose_change_is_undone() {
    let heap = heap(SIZE);
    let at = object(&heap);
    let (locked, asked) = (Signal::new(), Signal::new());
    let holder = Child::fork(&heap, || {
        let mut op = heap.op().unwrap();
        op.lock(at).unwrap();
        op.store(at + BODY, 1).unwrap();
        locked.give();
        sleep_for_ever();
    });
    locked.wait();
    let waiter = Child::fork(&heap, || {
        asked.give();
        let change = |op: &mut Op<'_>| {
            op.lock(at)?;
            assert_eq!(word(&heap, at + BODY), 0, "half of the dead one's change is there");
            op.store(at + BODY + 8, 2)
        };
        heap.change(change).unwrap();
    });
    asked.wait();
    holder.kill();
    // The holder is a zombie all the time: nobody waits for it before the waiter has ended.
    assert_eq!(waiter.wait(), End::Done);
    assert_eq!(holder.wait(), End::Killed);
    assert_eq!((word(&heap, at + BODY), word(&heap, at + BODY + 8)), (0, 2));
}

#[test]
fn a_zombie_counts_as_dead_and_a_stopped_process_does_not() {
    let heap = heap(SIZE);
    let ready = Signal::new();
    let child = Child::fork(&heap, || {
        ready.give();
        sleep_for_ever();
    });
    ready.wait();
    // SAFETY: takes integers.
    unsafe { libc::kill(child.pid(), libc::SIGSTOP) };
    assert_eq!(heap.clean().unwrap(), 0);
    child.kill();
    child.wait_for_zombie();
    assert_eq!(heap.clean().unwrap(), 1);
    assert_eq!(heap.segment().header().deaths.load(Relaxed), 1);
    assert_eq!(slots(&heap), [heap.slot()]);
    child.wait();
}

#[test]
fn a_lock_is_taken_over_once_and_by_one() {
    let heap = heap(SIZE);
    let at = object(&heap);
    let child = Child::fork(&heap, || {
        let mut op = heap.op().unwrap();
        op.lock(at).unwrap();
        std::mem::forget(op);
    });
    // It ended without having said so, which is as good as killed.
    child.wait();
    let word = &object::head(heap.segment(), at).unwrap().lock;
    let takeovers: usize = std::thread::scope(|scope| {
        let threads = [0, 1, 2].map(|index| {
            let heap = &heap;
            scope.spawn(move || {
                // Lanes that nobody has: the lock does not ask.
                let me = Holder::new(4000 + index, 0);
                let got = acquire(word, me, &**heap, &Sleep, None).unwrap();
                let is_takeover = got == Some(Acquired::Abandoned);
                ungil_heap::lock::release(word);
                usize::from(is_takeover)
            })
        });
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert_eq!((takeovers, word.load(Relaxed)), (1, 0));
}

#[test]
fn a_child_has_a_place_and_lanes_of_its_own() {
    let heap = heap(SIZE);
    let at = object(&heap);
    let child = Child::fork(&heap, || {
        heap.change(|op| op.lock(at).and_then(|()| op.store(at + BODY, 1))).unwrap();
        let pid = process_table::slot(heap.segment(), heap.slot()).unwrap().pid.load(Relaxed);
        assert_eq!(pid, std::process::id());
        let lanes = |owner: usize| {
            let owner_of = |index| lane::lane(heap.segment(), index).unwrap().owner.load(Relaxed);
            (0..LANES).filter(|index| owner_of(*index) as usize == owner + 1).count()
        };
        assert_eq!((lanes(0), lanes(heap.slot())), (1, 1));
        std::thread::scope(|scope| {
            scope.spawn(|| object(&heap));
        });
    });
    let slot = heap.slot();
    assert_eq!(child.wait(), End::Done);
    assert_eq!((heap.slot(), word(&heap, at + BODY)), (slot, 1));
    settle(&heap);
    assert_eq!(slots(&heap), [slot]);
}

#[test]
fn what_was_under_way_at_a_fork_is_the_parents_to_finish() {
    let heap = heap(SIZE);
    let at = object(&heap);
    let mut op = heap.op().unwrap();
    op.lock(at).unwrap();
    op.store(at + BODY, 1).unwrap();
    // Moved into the child's memory as well, as a fork does.
    let mut op = Some(op);
    let child = Child::fork(&heap, || {
        let mut op = op.take().unwrap();
        assert!(matches!(op.store(at + BODY, 9), Err(Error::Refused(_))));
        assert!(matches!(op.take(16), Err(Error::Refused(_))));
        assert!(matches!(op.lock(at), Err(Error::Refused(_))));
        assert!(matches!(op.commit(), Err(Error::Refused(_))));
        object(&heap);
    });
    assert_eq!(child.wait(), End::Done);
    let head = object::head(heap.segment(), at).unwrap();
    assert!(Holder::of(head.lock.load(Relaxed)).is_some(), "the child let go of the lock");
    let mut op = op.take().unwrap();
    op.store(at + BODY + 8, 2).unwrap();
    op.commit().unwrap();
    assert_eq!((word(&heap, at + BODY), word(&heap, at + BODY + 8)), (1, 2));
}

#[test]
fn a_place_for_a_child_that_was_never_forked_becomes_free_and_is_no_death() {
    let heap = heap(SIZE);
    let _no_forks = no_forks();
    let place = heap.before_fork().unwrap();
    let [own, slot] = slots(&heap)[..] else { panic!("there is no place") };
    assert_eq!(own, heap.slot());
    assert_eq!(heap.clean().unwrap(), 0, "it is waited for");
    drop(place);
    assert_eq!(heap.clean().unwrap(), 1);
    assert_eq!(heap.segment().header().deaths.load(Relaxed), 0);
    let state = &process_table::slot(heap.segment(), slot).unwrap().state;
    assert_eq!(state.load(SeqCst), FREE);
}

#[test]
fn a_table_full_of_dead_processes_has_room_for_a_child() {
    let heap = heap(SIZE);
    for index in 1..PROCESSES {
        let slot = process_table::slot(heap.segment(), index).unwrap();
        slot.state.store(if index % 2 == 0 { TAKEN } else { LEFT }, SeqCst);
    }
    let child = Child::fork(&heap, || {
        object(&heap);
    });
    assert_eq!(child.wait(), End::Done);
}

#[test]
fn a_child_without_a_place_takes_one() {
    let heap = heap(SIZE);
    let ready = Signal::new();
    let one_at_a_time = no_forks();
    // SAFETY: the child uses its own memory and the heap, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    drop(one_at_a_time);
    if pid == 0 {
        let work = std::panic::AssertUnwindSafe(|| {
            heap.forked(None).unwrap();
            assert_eq!(heap.slot(), 1);
            object(&heap);
        });
        let code = i32::from(std::panic::catch_unwind(work).is_err());
        ready.give();
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(code) };
    }
    ready.wait();
    let mut status = 0;
    // SAFETY: the integer lives during the call.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child panicked");
}

/// A fork inherits everything that is open. The parent's life must not be a part of it.
#[test]
fn a_parents_death_is_seen_while_its_children_live() {
    let heap = heap(SIZE);
    let at = object(&heap);
    let (ready, over) = (Signal::new(), Signal::new());
    let parent = Child::fork(&heap, || {
        let child = Child::fork(&heap, || {
            ready.give();
            over.wait();
        });
        let mut op = heap.op().unwrap();
        op.lock(at).unwrap();
        op.store(at + BODY, 1).unwrap();
        ready.give();
        std::mem::forget(child);
        sleep_for_ever();
    });
    ready.wait();
    ready.wait();
    parent.kill();
    parent.wait();
    heap.change(|op| op.lock(at)).unwrap();
    assert_eq!(word(&heap, at + BODY), 0);
    assert_eq!(slots(&heap).len(), 2, "the grandchild is one of them");
    over.give();
}

/// Some programs close all descriptors that they do not know, for instance to become a daemon.
#[test]
fn a_process_that_closed_all_descriptors_lives_and_is_told_what_it_cannot_do() {
    let heap = heap(SIZE);
    let at = object(&heap);
    let (closed, over) = (Signal::new(), Signal::new());
    let child = Child::fork(&heap, || {
        // A thread that is new to the heap needs the file.
        object(&heap);
        let keep = [&closed.0, &over.1].map(AsRawFd::as_raw_fd);
        for descriptor in (3..1024).filter(|descriptor| !keep.contains(descriptor)) {
            // SAFETY: takes an integer. What is closed is not used again, which this is about.
            unsafe { libc::close(descriptor) };
        }
        // A file of the program's own gets the heap's number.
        let file = std::fs::File::open("/dev/null").unwrap();
        heap.change(|op| op.lock(at).and_then(|()| op.store(at + BODY, 1))).unwrap();
        assert!(matches!(heap.change(|op| op.take(3 << 20)), Err(Error::Refused(_))));
        closed.give();
        over.wait();
        std::mem::forget(file);
        // SAFETY: ends the child; dropping what was closed above would be an error.
        unsafe { libc::_exit(0) };
    });
    closed.wait();
    assert_eq!(heap.clean().unwrap(), 0, "it was taken for dead");
    over.give();
    assert_eq!(child.wait(), End::Done);
    assert_eq!(word(&heap, at + BODY), 1);
}

#[test]
fn what_a_dead_process_had_taken_is_lost_until_it_is_collected_and_nothing_else() {
    let heap = heap(SIZE);
    object(&heap);
    let before = taken(&heap);
    let child = Child::fork(&heap, || {
        let mut op = heap.op().unwrap();
        op.take(64).unwrap();
        std::mem::forget(op);
    });
    child.wait();
    settle(&heap);
    assert_eq!(taken(&heap), before + 64);
}

#[test]
fn a_thousand_processes_attach_a_hundred_at_a_time() {
    let heap = heap(16 << 20);
    let at = object(&heap);
    let path = format!("/proc/{}/fd/{}", std::process::id(), heap.descriptor());
    for _ in 0..10 {
        let children: Vec<Child> = (0..100)
            .map(|index| {
                Child::fork(&heap, || {
                    let other = Heap::open(path.as_ref(), Box::new(Sleep)).unwrap();
                    let change = |op: &mut Op<'_>| {
                        op.lock(at)?;
                        op.store(at + BODY, word(&other, at + BODY) + 1)
                    };
                    other.change(change).unwrap();
                    if index % 3 > 0 {
                        drop(other);
                    }
                })
            })
            .collect();
        for child in children {
            assert_eq!(child.wait(), End::Done);
        }
    }
    assert_eq!(word(&heap, at + BODY), 1000);
    settle(&heap);
    assert_eq!(slots(&heap), [heap.slot()]);
}

#[test]
fn as_many_processes_as_there_are_places_and_not_one_more() {
    let heap = heap(SIZE);
    // Places that are taken by this process for children that never come.
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives during the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let child = Child::fork(&heap, || {
        limit.rlim_cur = limit.rlim_max.min(PROCESSES as u64 + 100);
        // SAFETY: the structure lives during the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
        let mut places = Vec::new();
        let error = loop {
            match heap.before_fork() {
                Ok(place) => places.push(place),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Crowded { limit: PROCESSES, .. }), "{error}");
        assert_eq!(places.len(), PROCESSES - 2);
        // One of them becomes free when it is looked after, which attaching does.
        places.pop();
        let path = format!("/proc/self/fd/{}", heap.descriptor());
        Heap::open(path.as_ref(), Box::new(Sleep)).unwrap();
    });
    assert_eq!(child.wait(), End::Done);
}
