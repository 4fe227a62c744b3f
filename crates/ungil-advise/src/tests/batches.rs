//! Pools whose results the main thread collects.

use super::native_holds::scheduled;
use super::pools::WORKER;
use super::story::{MS, Story, Told, texts};
use crate::{Cause, Kind, Measure, Unit};

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

/// How a trace shows that the main thread collects results.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// By looks at the threads.
    Looks,
    /// It also tells who ended the waits of the main thread.
    LooksAndLocks,
    /// It tells only that; all threads have the names of a pool.
    Locks,
}

/// Two threads of a pool take turns to compute, the second one up to its end 50 ms later, while the main
/// thread waits for each.
fn pool_in_turns(shown: Shown) -> Told {
    let are_named = shown == Shown::Locks;
    let names = if are_named {
        ["ThreadPoolExecutor-0_0", "ThreadPoolExecutor-0_1"]
    } else {
        ["pool_0", "pool_1"]
    };
    let mut story = Story::of(&["MainThread", names[0], names[1]]);
    story.may_use(2, None);
    let stack = ["work app.py", "run ~concurrent/futures/thread.py", WORKER];
    story.acquire(0, 0);
    story.release(MS, 0);
    story.acquire(2 * MS, 2);
    story.wait(3 * MS, 1);
    for turn in 1..=200u64 {
        let (at_ns, [before, next]) = (turn * 10 * MS, if turn % 2 == 1 { [2, 1] } else { [1, 2] });
        story.held(at_ns - 2 * MS, before, &stack);
        story.ask(at_ns - MS, next);
        story.forced(at_ns, before);
        story.wait(at_ns + 5_000, before);
        story.acquire(at_ns + 10_000, next);
    }
    let (first_ns, last_ns) = (2_010 * MS, 2_060 * MS);
    if !are_named {
        story.off(first_ns / 2, 0, ("futex", ""), &RESULT);
    }
    story.release(first_ns, 2);
    story.acquire(first_ns + 10_000, 1);
    if shown != Shown::Looks {
        // Results come, one after the other.
        for result in 1..=9 {
            story.slept_for_signal(((result * 200 - 198) * MS, result * 200 * MS), 0, 2);
        }
        story.slept_for_lock((1_802 * MS, first_ns + 5_000), 0, 2);
        story.slept_for_lock((first_ns + 70_000, last_ns + 5_000), 0, 1);
    }
    story.wait(first_ns + 20_000, 0);
    story.ask(first_ns + 5 * MS, 0);
    story.forced(first_ns + 5 * MS + 10_000, 1);
    story.acquire(first_ns + 5 * MS + 20_000, 0);
    story.release(first_ns + 5 * MS + 60_000, 0);
    story.acquire(first_ns + 5 * MS + 70_000, 1);
    story.release(last_ns, 1);
    story.acquire(last_ns + 50_000, 0);
    story.release(last_ns + 90_000, 0);
    for idle in [1, 2] {
        let since_ns = if idle == 1 { last_ns } else { first_ns };
        if !are_named {
            story.off(since_ns + MS, idle, ("futex", ""), &[WORKER]);
        }
        story.acquire(last_ns + u64::from(idle) * MS, idle);
        story.release(last_ns + u64::from(idle) * MS + 10_000, idle);
    }
    story.end(last_ns + 4 * MS)
}

#[test]
fn of_a_batch_it_is_told_when_all_of_it_is_done() {
    for shown in [Shown::LooksAndLocks, Shown::Locks] {
        is_told_when_it_is_done(&pool_in_turns(shown));
    }
}

fn is_told_when_it_is_done(told: &Told) {
    let advice = told.of(Kind::ToAProcess).expect("a process for what computes");
    let gain = advice.gain.as_ref().expect("a prediction");
    assert_eq!((gain.measure, gain.unit), (Measure::Duration, Unit::Seconds));
    assert!((gain.before - 2.062).abs() < 0.01, "{gain:?}");
    // There are two processors.
    assert!((0.9..1.2).contains(&gain.after), "{gain:?}");
    assert!(
        advice.text.contains(": all the recorded work is predicted to take "),
        "{}",
        advice.text
    );
    assert!(advice.text.ends_with(" instead of 2.06 s"), "{}", advice.text);
    let code = advice.action.code.as_deref().unwrap();
    let pool =
        "pool = ProcessPoolExecutor()  # in the place of the ThreadPoolExecutor that runs work";
    assert!(code.contains(pool), "{code}");
    let free = told.of(Kind::FreeThreaded).and_then(|it| it.gain.as_ref()).unwrap();
    assert!((0.9..1.2).contains(&free.after), "{free:?}");
    assert!(told.of(Kind::FewerThreads).is_none(), "{:?}", texts(told));
}

#[test]
fn where_nobody_knows_what_the_main_thread_of_a_batch_waits_for_it_is_told_what_threads_wait() {
    let told = pool_in_turns(Shown::Looks);
    let gain = told.of(Kind::ToAProcess).and_then(|it| it.gain.as_ref()).unwrap();
    assert_eq!(gain.measure, Measure::WaitedPerSecond);
}
