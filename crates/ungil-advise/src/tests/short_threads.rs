//! Threads that are started for next to no work.

use super::story::{MS, Story, Told, first, texts};
use crate::Cause;

/// So many threads, one each `apart_ns`, which work for so long, and then wait.
fn started(threads: usize, apart_ns: u64, work_ns: u64, waits_ns: u64) -> Told {
    let mut story = Story::of(&["MainThread"]);
    let (mut at_ns, mut ends) = (0, Vec::new());
    for (_, thread) in (0..threads).zip(1..) {
        story.starts(at_ns, "worker");
        story.acquire(at_ns, thread);
        story.release(at_ns + work_ns, thread);
        ends.push((at_ns + work_ns + waits_ns, thread));
        at_ns += apart_ns;
    }
    for (at_ns, thread) in ends {
        story.ends(at_ns, thread);
    }
    story.end(at_ns + waits_ns)
}

#[test]
fn threads_that_are_started_for_next_to_no_work_are_told_to_be_too_many() {
    let told = started(600, 2 * MS, 40_000, 1_000);
    let advice = first(&told);
    assert_eq!(advice.cause, Some(Cause::ShortThreads), "{:?}", texts(&told));
    let says = "600 threads were started, 500 a second, and each worked for 40 µs on average";
    assert!(advice.text.contains(says), "{}", advice.text);
    assert!(advice.action.code.as_deref().unwrap().contains("ThreadPoolExecutor"));
}

#[test]
fn threads_that_have_work_to_do_or_are_seldom_started_are_not_too_many() {
    for told in [
        started(600, 2 * MS, MS, 1_000),
        started(600, 20 * MS, 40_000, 1_000),
        started(60, 2 * MS, 40_000, 1_000),
        // They are there to wait.
        started(600, 2 * MS, 40_000, 30 * MS),
    ] {
        let causes: Vec<_> = told.advised.advice.iter().filter_map(|it| it.cause).collect();
        assert!(!causes.contains(&Cause::ShortThreads), "{:?}", texts(&told));
    }
}
