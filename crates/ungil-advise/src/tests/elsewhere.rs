//! What it is where threads do not wait for the GIL.

use super::pools::WORKER;
use super::story::{ASYNCIO, MS, Story, Told, first, off, texts};
use crate::{Advice, Cause, Sure, advise};
use ungil_trace::report::Report;

#[test]
fn what_a_package_sleeps_for_may_be_no_lock() {
    let mut story = Story::of(&["MainThread"]);
    let stack = ["collect /x/site-packages/polars/frame.py", "load app.py"];
    off(&mut story, 0, 150 * MS, ("futex", ""), &stack);
    let told = story.end(1_600 * MS);
    let text = texts(&told)[0];
    assert!(text.contains("waited for a lock or for native code of other threads (futex) at load"));
}

#[test]
fn a_thread_that_rests_all_the_time_is_told_after_one_that_works() {
    let mut story = Story::of(&["MainThread", "saver"]);
    off(&mut story, 1, 100 * MS, ("computing", ""), &["save app.py"]);
    story.acquire(10 * MS, 0);
    story.release(20 * MS, 0);
    story.off(700 * MS, 0, ("clock_nanosleep", ""), &["<module> app.py"]);
    story.acquire(1_490 * MS, 0);
    story.release(1_495 * MS, 0);
    let told = story.end(1_500 * MS);
    let causes: Vec<_> = told.advised.advice.iter().map(|it| it.cause).collect();
    assert_eq!(causes, [Some(Cause::Computing), Some(Cause::Sleep)], "{:?}", texts(&told));
    assert!(texts(&told)[1].contains("slept (clock_nanosleep) at <module>"), "{:?}", texts(&told));
}

#[test]
fn a_thread_that_naps_for_moments_and_hardly_runs_does_not_compute() {
    let causes = |ran_ns| {
        let mut story = Story::of(&["MainThread"]);
        for round in 0..10 {
            let at_ns = round * 151 * MS;
            story.acquire(at_ns, 0);
            story.release(at_ns + MS / 2, 0);
            // Of a nap that is as short as a look, no line is known.
            let stack: &[&str] = if round < 4 { &[] } else { &["main app.py"] };
            let call = if round < 4 { "clock_nanosleep" } else { "computing" };
            story.off(at_ns + 75 * MS, 0, (call, ""), stack);
        }
        story.acquire(1_510 * MS, 0);
        story.ran(0, ran_ns);
        let told = story.end(1_520 * MS);
        told.advised.advice.iter().map(|it| it.cause).collect::<Vec<_>>()
    };
    assert_eq!(causes(100 * MS), [Some(Cause::Unknown)]);
    assert_eq!(causes(600 * MS), [Some(Cause::Computing)]);
}

#[test]
fn a_thread_that_slept_as_often_as_it_let_go_of_the_gil_does_not_want_a_processor() {
    let causes = |slept| {
        let mut story = Story::of(&["MainThread", "progress"]);
        off(&mut story, 1, 150 * MS, ("computing", ""), &["beat app.py"]);
        story.ran(1, 26 * MS);
        story.switched(1, slept, 2);
        let told = story.end(1_510 * MS);
        told.advised.advice.iter().map(|it| it.cause.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(causes(11), [Cause::Unknown]);
    assert_eq!(causes(3), [Cause::Computing]);
}

/// A thread of a package that sleeps, beside one that does this.
fn beside_a_housekeeper(call: (&str, &str), stack: &[&str]) -> Told {
    let mut story = Story::of(&["MainThread", "reaper"]);
    off(&mut story, 0, 100 * MS, call, stack);
    let own = ["Reaper.run /x/site-packages/reaper/thread.py", "_bootstrap ~threading.py"];
    off(&mut story, 1, 150 * MS, ("clock_nanosleep", ""), &own);
    story.end(1_600 * MS)
}

#[test]
fn a_thread_of_a_package_that_only_sleeps_is_told_of_only_where_there_is_nothing_else_to_say() {
    let told = beside_a_housekeeper(("fsync", "file"), &["save app.py"]);
    assert_eq!(first(&told).cause, Some(Cause::Disk));
    assert_eq!(told.advised.advice.len(), 1, "{:?}", texts(&told));
    let select = ["select ~selectors.py", ASYNCIO, "main app.py"];
    let told = beside_a_housekeeper(("epoll_wait", ""), &select);
    assert!(first(&told).text.contains("thread reaper slept"), "{:?}", texts(&told));
}

#[test]
fn a_line_at_which_threads_wanted_to_run_tells_for_how_long_they_got_a_processor() {
    let says = |ran_ns| {
        let mut story = Story::of(&["MainThread", "saver"]);
        off(&mut story, 1, 150 * MS, ("computing", ""), &["save app.py"]);
        story.ran(1, ran_ns);
        first(&story.end(1_510 * MS)).text.clone()
    };
    let lacked = "thread saver wanted to run without the GIL at save (app.py:7) for 1.5 s in all in \
                  10 looks, the longest 150 ms, and got a processor for 26 ms at most";
    assert!(says(26 * MS).contains(lacked), "{}", says(26 * MS));
    let ran =
        "thread saver ran without the GIL, in native code or in the kernel at save (app.py:7)";
    assert!(says(1_500 * MS).contains(ran), "{}", says(1_500 * MS));
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
fn a_thread_that_is_found_on_its_way_to_sleep_does_not_compute() {
    let causes = |sleeps: u64| {
        let mut story = Story::of(&["MainThread", "napper"]);
        for round in 0..10 {
            let at_ns = round * 151 * MS;
            story.acquire(at_ns, 1);
            story.release(at_ns + MS / 2, 1);
            let call = if round < sleeps { "clock_nanosleep" } else { "computing" };
            story.off(at_ns + 75 * MS, 1, (call, ""), &["nap app.py"]);
        }
        story.acquire(1_510 * MS, 1);
        let told = story.end(1_520 * MS);
        told.advised.advice.iter().map(|it| it.cause).collect::<Vec<_>>()
    };
    assert_eq!(causes(7), [Some(Cause::Sleep)]);
    assert_eq!(causes(3), [Some(Cause::Computing), Some(Cause::Sleep)]);
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
fn a_thread_that_uses_several_gils_has_one_life() {
    let mut story = Story::of(&["MainThread", "napper"]);
    for thread in 0..2 {
        off(&mut story, thread, 15 * MS, ("futex", ""), &["wait ~threading.py", "work app.py"]);
    }
    let mut report = story.end(190 * MS).report;
    let because = |report: &Report| advise(report, &[]).advice[0].confidence.because.clone();
    let seen = because(&report);
    assert!(seen.contains("found no line that took long"), "{seen}");
    // In a sub-interpreter nobody looked at it.
    let mut sub = report.processes[0].gils[0].clone();
    sub.gil = 1;
    for thread in &mut sub.threads {
        thread.off_gil.clear();
    }
    report.processes[0].gils.push(sub);
    assert_eq!(because(&report), seen);
}

#[test]
fn a_moment_is_no_cause() {
    let mut story = Story::of(&["MainThread"]);
    off(&mut story, 0, 15 * MS, ("fsync", "file"), &["work app.py"]);
    let told = story.end(1_510 * MS);
    assert_eq!(first(&told).cause, Some(Cause::Unknown));
}

#[test]
fn where_nothing_was_recorded_there_is_no_advice_and_no_certainty() {
    let told = Story::of(&[]).end(100 * MS);
    let advice = first(&told);
    assert!(advice.text.starts_with("no advice: "), "{}", advice.text);
    assert_eq!(advice.confidence.level, Sure::Low);
}

/// A thread that is known all the time, and so many of whose events were lost.
fn with_lost(events: u64) -> Advice {
    let mut story = Story::of(&["MainThread"]);
    off(&mut story, 0, 150 * MS, ("futex", ""), &[WORKER]);
    story.lost(0, events);
    story.end(1_600 * MS).advised.advice.remove(0)
}

#[test]
fn advice_about_a_trace_with_lost_events_is_not_sure_and_says_so() {
    let said = |events| {
        let confidence = with_lost(events).confidence;
        (confidence.level, confidence.because)
    };
    let all =
        "very wait was recorded, and looks at threads off the GIL found no line that took long";
    assert_eq!(said(0), (Sure::High, format!("e{all}")));
    assert_eq!(said(1), (Sure::Medium, format!("not e{all}; 1 event was lost")));
    let lost = format!("not e{all}; 12,000,000 events were lost");
    assert_eq!(said(12_000_000), (Sure::Low, lost));
}
