//! Barriers: parties that go on together, or are sent away together.

use loom::thread;

use super::*;
use crate::clock;
use crate::sync::barrier::{self, Outcome};

fn barrier(heap: &Heap, parties: u32) -> Offset {
    heap.make(|op| barrier::create(op, parties)).unwrap().at()
}

/// Passes; what was done once for all is done then. Returns as which one.
fn pass(heap: &Heap, at: Offset, done: Offset) -> usize {
    let passed = barrier::wait(heap, at, None, || {
        body(heap, done, 1).store(1, Relaxed);
        Ok(())
    });
    let Outcome::Passed(index) = passed.unwrap() else { panic!("the barrier is broken") };
    assert_eq!(body(heap, done, 1).load(Relaxed), 1, "one goes on before all can");
    index
}

/// Two pass.
const TOGETHER: Model = Model::with_calls(1, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let heap = first.heap();
    let (at, done) = (barrier(&heap, 2), object(&heap).at());
    let other = {
        let heap = second.heap();
        thread::spawn(move || pass(&heap, at, done))
    };
    let mine = pass(&heap, at, done);
    assert_eq!(mine + other.join().unwrap(), 1, "two came as the same one");
    assert_eq!(barrier::waiting(&heap, at).unwrap(), 0);
});

#[test]
fn parties_go_on_together() {
    TOGETHER.holds();
}

#[test]
#[should_panic(expected = "deadlock")]
fn parties_sleep_on_without_a_call() {
    TOGETHER.holds_without("waiters: a call");
}

#[test]
#[should_panic(expected = "before all can")]
fn parties_go_on_before_all_can_if_a_complete_round_is_open() {
    TOGETHER.holds_without("barrier: complete is not yet open");
}

/// One comes and does not wait.
const IN_TIME: Model = Model::new(1, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let at = barrier(&first.heap(), 2);
    let other = {
        let heap = second.heap();
        thread::spawn(move || barrier::wait(&heap, at, None, || Ok(())).unwrap())
    };
    let mine = barrier::wait(&first.heap(), at, Some(clock::now()), || Ok(())).unwrap();
    let others = other.join().unwrap();
    let both_broken = (mine, others) == (Outcome::Broken, Outcome::Broken);
    assert_eq!(mine == Outcome::Broken, both_broken, "one goes on without the other");
    assert_eq!(others == Outcome::Broken, both_broken, "one goes on without the other");
    let is_broken = barrier::is_broken(&first.heap(), at).unwrap();
    assert_eq!(is_broken, both_broken, "all went on and it is broken");
});

#[test]
fn who_gives_up_sends_all_away_or_goes_on_with_all() {
    IN_TIME.holds();
}

#[test]
#[should_panic(expected = "all went on and it is broken")]
fn who_gives_up_breaks_what_is_over_without_a_last_look() {
    IN_TIME.holds_without("barrier: an answer that came late");
}

#[test]
#[should_panic(expected = "goes on without the other")]
fn who_gives_up_sends_one_away_with_whom_another_has_gone_on() {
    IN_TIME.holds_without("barrier: who has passed has passed");
}

/// Comes to a barrier, and dies.
fn die_waiting(heap: &Heap, at: Offset) {
    let mut op = heap.op().unwrap();
    op.lock(at).unwrap();
    sync::waiters::join(&mut op, at, heap.me().unwrap()).unwrap();
    op.commit().unwrap();
    heap.die();
}

/// One of three dies after it came. Another one waits, while somebody looks who lives.
const DYING: Model = Model::new(1, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let at = barrier(&first.heap(), 3);
    die_waiting(&third.heap(), at);
    let other = {
        let heap = second.heap();
        thread::spawn(move || barrier::wait(&heap, at, None, || Ok(())).unwrap())
    };
    first.heap().clean().unwrap();
    assert_eq!(other.join().unwrap(), Outcome::Broken);
});

#[test]
fn who_waits_with_a_dead_one_is_sent_away() {
    DYING.holds();
}

#[test]
#[should_panic(expected = "branches")]
fn who_waits_with_a_dead_one_waits_for_ever_without_a_look_who_lives() {
    DYING.holds_without("barrier: a look who lives");
}

/// One of two is dead when the last one comes, and somebody counts them.
const DEAD: Model = Model::new(1, |segment| {
    let (first, second) = (Process::first(segment), Process::another(segment));
    let third = Process::another(segment);
    let at = barrier(&first.heap(), 2);
    die_waiting(&third.heap(), at);
    let other = {
        let heap = second.heap();
        thread::spawn(move || assert!(barrier::waiting(&heap, at).unwrap() <= 1))
    };
    let mine = barrier::wait(&first.heap(), at, None, || Ok(())).unwrap();
    assert_eq!(mine, Outcome::Broken, "one goes on with a dead one");
    other.join().unwrap();
});

#[test]
fn nobody_goes_on_with_a_dead_one() {
    DEAD.holds();
}

#[test]
#[should_panic(expected = "goes on with a dead one")]
fn who_comes_last_goes_on_with_a_dead_one_if_it_does_not_look() {
    DEAD.holds_without("barrier: none is dead");
}
