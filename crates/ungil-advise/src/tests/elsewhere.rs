//! What it is where threads do not wait for the GIL.

use super::story::{MS, Story, Told};
use crate::{Advice, Cause, Kind, Sure};

const BASE: &str = "_run_once ~asyncio/base_events.py";

/// The only advice, which has to say that it is not the GIL.
fn first(told: &Told) -> &Advice {
    let first = &told.advised.advice[0];
    assert_eq!(first.kind, Kind::NotTheGil, "{:?}", told.report.findings);
    first
}

/// A thread is off the GIL ten times for so long, in this call and stack.
fn off(story: &mut Story, thread: u32, length_ns: u64, call: (&str, &str), stack: &[&str]) {
    for round in 0..10 {
        let at_ns = round * (length_ns + MS);
        story.acquire(at_ns, thread);
        story.release(at_ns + MS / 2, thread);
        story.off(at_ns + length_ns / 2, thread, call, stack);
    }
    story.acquire(10 * (length_ns + MS), thread);
    story.release(10 * (length_ns + MS) + 10, thread);
}

#[test]
fn a_blocking_call_on_an_event_loop_is_the_cause_and_its_line_is_named() {
    let mut story = Story::of(&["MainThread"]);
    let stack = ["fetch app.py", "handle app.py", BASE];
    off(&mut story, 0, 150 * MS, ("recvfrom", "socket"), &stack);
    let told = story.end(1_600 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::BlockedEventLoop));
    assert_eq!(advice.subject.function.as_deref(), Some("fetch (app.py:7)"));
    assert!(
        advice.text.contains("waited for the network (recvfrom) for 1.5 s in 10 looks"),
        "{}",
        advice.text
    );
    assert!(advice.action.code.as_deref().unwrap().contains("to_thread"));
    assert_eq!(advice.confidence.level, Sure::High);
}

#[test]
fn a_loop_that_waits_for_something_to_do_is_no_cause() {
    let mut story = Story::of(&["MainThread"]);
    let stack = ["select ~selectors.py", BASE, "main app.py"];
    off(&mut story, 0, 150 * MS, ("epoll_wait", ""), &stack);
    let told = story.end(1_600 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::Unknown));
    assert!(advice.text.starts_with("nothing to gain here: nothing wrong"), "{}", advice.text);
    assert_eq!(advice.confidence.level, Sure::High);
}

const WORKER: &str = "_worker ~concurrent/futures/thread.py";

#[test]
fn a_pool_is_exhausted_if_none_of_its_threads_waits_for_work() {
    let mut story = Story::of(&["MainThread", "pool_0", "pool_1"]);
    for thread in 1..3 {
        let stack = ["query app.py", "run ~concurrent/futures/thread.py", WORKER];
        off(&mut story, thread, 150 * MS, ("recvfrom", "socket"), &stack);
    }
    let told = story.end(1_510 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::ExhaustedPool));
    assert_eq!(advice.subject.thread_group.as_deref(), Some("pool_*"));
    assert_eq!(advice.subject.function.as_deref(), Some("query (app.py:7)"));
    assert!(advice.text.contains("20 looks"), "{}", advice.text);
    assert_eq!(told.advised.advice.len(), 1, "the line is told once");
}

#[test]
fn a_pool_with_a_thread_that_waits_for_work_is_not_exhausted() {
    let mut story = Story::of(&["MainThread", "pool_0", "pool_1"]);
    let stack = ["query app.py", "run ~concurrent/futures/thread.py", WORKER];
    off(&mut story, 1, 150 * MS, ("recvfrom", "socket"), &stack);
    off(&mut story, 2, 150 * MS, ("futex", ""), &[WORKER]);
    let told = story.end(1_510 * MS);
    let causes: Vec<_> = told.advised.advice.iter().map(|it| it.cause).collect();
    assert_eq!(causes, [Some(Cause::Network)]);
}

#[test]
fn each_thing_that_threads_wait_for_is_a_cause_of_its_own() {
    for (call, cause) in [
        (("futex", ""), Cause::Lock),
        (("fsync", "file"), Cause::Disk),
        (("recvfrom", "socket"), Cause::Network),
        (("clock_nanosleep", ""), Cause::Sleep),
        (("wait4", ""), Cause::Process),
        (("read", "pipe"), Cause::Descriptor),
        (("computing", ""), Cause::Computing),
    ] {
        let mut story = Story::of(&["MainThread", "other"]);
        off(&mut story, 1, 150 * MS, call, &["work app.py"]);
        let told = story.end(1_510 * MS);
        let advice = first(&told);
        assert_eq!(advice.cause, Some(cause));
        assert!(advice.text.contains("work (app.py:7)"), "{}", advice.text);
    }
}

#[test]
fn where_most_was_not_seen_that_is_said() {
    let mut story = Story::of(&["MainThread"]);
    for round in 0..200 {
        story.acquire(round * 10 * MS, 0);
        story.release(round * 10 * MS + MS, 0);
    }
    let told = story.end(2_000 * MS);
    let confidence = &first(&told).confidence;
    assert_eq!(confidence.level, Sure::Medium);
    assert!(confidence.because.contains("90 % of their time"), "{}", confidence.because);
}

#[test]
fn a_moment_is_no_cause() {
    let mut story = Story::of(&["MainThread"]);
    off(&mut story, 0, 15 * MS, ("fsync", "file"), &["work app.py"]);
    let told = story.end(1_510 * MS);
    assert_eq!(first(&told).cause, Some(Cause::Unknown));
}

#[test]
fn a_cpu_limit_is_told_although_nobody_waited_for_the_gil() {
    let mut story = Story::of(&["MainThread"]);
    off(&mut story, 0, 150 * MS, ("computing", ""), &["work app.py"]);
    story.throttled(900 * MS);
    let told = story.end(1_510 * MS);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::CpuLimit));
    assert!(advice.text.contains("9 times, for 900 ms"), "{}", advice.text);
}

#[test]
fn where_nothing_was_recorded_there_is_no_advice_and_no_certainty() {
    let told = Story::of(&[]).end(100 * MS);
    let advice = first(&told);
    assert!(advice.text.starts_with("no advice: "), "{}", advice.text);
    assert_eq!(advice.confidence.level, Sure::Low);
}

/// Two threads of a free-threaded Python. The hook sees a GIL for moments there, and looks find the
/// threads off it.
fn without_a_gil(slept_ns: u64) -> Told {
    let mut story = Story::of(&["MainThread", "worker"]);
    off(&mut story, 0, 150 * MS, ("", ""), &["work app.py"]);
    story.parked((100 * MS, 100 * MS + slept_ns), 1, 0);
    story.end(1_600 * MS)
}

#[test]
fn a_thread_that_runs_without_a_gil_is_not_told_to_be_off_it() {
    let told = without_a_gil(MS);
    let [advice] = &told.advised.advice[..] else { panic!("{:?}", told.advised.advice) };
    assert_eq!(
        advice.text,
        "nothing to gain here: nothing wrong: this Python is free-threaded, and its GIL was off; \
         no thread slept for others for more than 1 ms in all"
    );
    assert_eq!(advice.confidence.level, Sure::Medium);
    assert!(
        advice.confidence.because.starts_with("every sleep for a lock or a pause was recorded")
    );
}

#[test]
fn a_lock_that_took_the_place_of_the_gil_is_told_with_what_helps() {
    let told = without_a_gil(800 * MS);
    let [advice] = &told.advised.advice[..] else { panic!("{:?}", told.advised.advice) };
    assert_eq!((advice.kind, advice.cause), (Kind::NotTheGil, Some(Cause::Lock)));
    let begins = "it is not the GIL, which was off then: thread worker waited 800 ms of 1.6 s for the lock of \
                  one dict";
    assert!(advice.text.starts_with(begins), "{}", advice.text);
    assert!(advice.text.contains("; give each thread an object of its own"), "{}", advice.text);
    assert_eq!(advice.evidence[0].value.to_bits(), told.report.findings[0].cost_s.to_bits());
}
