//! Pools whose results the main thread collects.

use super::native_holds::scheduled;
use super::pools::WORKER;
use super::story::{MS, Story, Told, texts};
use crate::{Cause, Kind};

const RESULT: [&str; 3] =
    ["wait ~threading.py", "Future.result ~concurrent/futures/_base.py", "main app.py"];
const REQUEST: [&str; 2] = ["select ~selectors.py", "serve app.py"];

/// One thread of a pool of two is so often late behind the other one. Then both compute so often for
/// 150 ms without the GIL. The main thread is meanwhile in this call and stack.
fn pool_of_two(late: u64, native: u64, call: (&str, &str), main: &[&str]) -> Told {
    let mut story = Story::of(&["MainThread", "pool_0", "pool_1"]);
    let stack = ["work app.py", "run ~concurrent/futures/thread.py", WORKER];
    story.acquire(0, 0);
    story.release(MS, 0);
    story.acquire(2 * MS, 2);
    for round in 1..=late {
        let at_ns = round * 10 * MS;
        story.wait(at_ns, 1);
        story.held(at_ns + 4 * MS, 2, &stack);
        story.ask(at_ns + 5 * MS, 1);
        story.forced(at_ns + 5 * MS + 10_000, 2);
        story.acquire(at_ns + 5 * MS + 20_000, 1);
        story.release(at_ns + 5 * MS + 200_000, 1);
        story.acquire(at_ns + 5 * MS + 220_000, 2);
    }
    let late_ns = (late + 1) * 10 * MS;
    story.release(late_ns, 2);
    let gap = |round: u64, thread: u32| late_ns + (151 * round + u64::from(thread)) * MS;
    for (round, thread) in (0..native).flat_map(|round| [(round, 1), (round, 2)]) {
        let at_ns = gap(round, thread);
        story.acquire(at_ns, thread);
        story.release(at_ns + MS / 2, thread);
        story.off(at_ns + 75 * MS, thread, ("computing", ""), &stack);
    }
    for thread in 1..3 {
        story.acquire(gap(native, thread), thread);
        story.release(gap(native, thread) + 10, thread);
    }
    story.off(late_ns / 2, 0, call, main);
    story.acquire(gap(native, 4), 0);
    story.release(gap(native, 5), 0);
    story.end(gap(native, 6))
}

#[test]
fn a_batch_that_computes_without_the_gil_comes_before_cures_of_a_gil_seldom_contended() {
    let told = pool_of_two(60, 20, ("futex", ""), &RESULT);
    assert_eq!(told.advised.advice[0].cause, Some(Cause::Computing), "{:?}", texts(&told));
    assert!(told.kinds().contains(&Kind::Policy));
    let told = pool_of_two(60, 20, ("epoll_wait", "epoll"), &REQUEST);
    assert_eq!(told.kinds()[0], Kind::Policy, "somebody waits for each answer: {:?}", texts(&told));
}

#[test]
fn no_schedule_brings_the_last_result_of_a_batch_sooner_that_fills_the_gil() {
    let told = pool_of_two(200, 1, ("futex", ""), &RESULT);
    assert_eq!((scheduled(&told), told.kinds()[0]), (0, Kind::ToAProcess), "{:?}", texts(&told));
    assert!(scheduled(&pool_of_two(200, 1, ("epoll_wait", "epoll"), &REQUEST)) > 0);
}
