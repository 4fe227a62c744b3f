//! What the kernel counted, and the holds that it tells of.

use super::scenario::*;
use crate::report::Report;

/// For how long the kernel did not run the holders of the long holds, in ms, in their order.
fn not_run(report: &Report) -> Vec<Option<f64>> {
    let mut holds: Vec<_> = gil(report).long_holds.iter().collect();
    holds.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    holds.iter().map(|hold| hold.not_run_ms).collect()
}

#[test]
fn what_was_counted_in_a_hold_may_be_told_of_before_its_acquire() {
    let mut scenario = Scenario::new(1);
    scenario.kernel_counted(10 * MS, 0, 50 * MS);
    scenario.acquire(0, 0);
    scenario.kernel_counted(105 * MS, 0, 50 * MS);
    scenario.ran(0, 0, MS, true);
    scenario.release(100 * MS, 0);
    assert_eq!(not_run(&scenario.end(200 * MS)), [Some(0.0)]);
}

#[test]
fn what_was_counted_after_a_hold_was_counted_before_the_next_one() {
    let mut scenario = Scenario::new(1);
    scenario.acquire(0, 0);
    scenario.kernel_counted(105 * MS, 0, 50 * MS);
    scenario.ran(0, 0, MS, true);
    scenario.release(100 * MS, 0);
    scenario.acquire(200 * MS, 0);
    scenario.kernel_counted(305 * MS, 0, 52 * MS);
    scenario.ran(200 * MS, 0, MS, true);
    scenario.release(300 * MS, 0);
    // Of the first one it is not known when the 50 ms were.
    assert_eq!(not_run(&scenario.end(400 * MS)), [None, Some(0.0)]);
}

#[test]
fn what_was_counted_for_one_thread_says_nothing_of_another() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.kernel_counted(10 * MS, 1, 0);
    scenario.kernel_counted(105 * MS, 1, 0);
    scenario.ran(0, 0, MS, true);
    scenario.ran(0, 1, 99 * MS, false);
    scenario.release(100 * MS, 0);
    let report = scenario.end(200 * MS);
    assert_eq!(not_run(&report), [None]);
    assert_close(gil(&report).long_holds[0].cpu_ms.unwrap(), 1.0);
}

#[test]
fn short_holds_count_too_if_their_thread_told() {
    let mut scenario = Scenario::new(2);
    scenario.wait(0, 1);
    for at in [0, 10 * MS] {
        scenario.acquire(at, 0);
        scenario.ran(at, 0, MS, false);
        scenario.release(at + 4 * MS, 0);
    }
    let report = scenario.end(20 * MS);
    assert!(not_run(&report).is_empty());
    let descheduled = thread(&report, 0).descheduled;
    assert_close(descheduled.not_run_s, 0.006);
    assert_close(descheduled.max_ms, 3.0);
    assert_close(descheduled.waited_s, 0.006);
}

/// A hold of 100 ms, 20 of which its thread ran, of which the kernel has told for how long it was not
/// run in the 50 ms of the middle: 30. It may have slept, or have been stopped, which may be told
/// after its end.
fn told_of_its_middle(stood_ns: u64, is_late: bool) -> Report {
    let mut scenario = Scenario::new(1);
    scenario.acquire(0, 0);
    scenario.kernel_counted_of_one_that_runs(25 * MS, 0, 0);
    if stood_ns > 0 && !is_late {
        scenario.stopped(30 * MS, 0, stood_ns);
    }
    scenario.kernel_counted_of_one_that_runs(75 * MS, 0, 30 * MS);
    scenario.ran(0, 0, 20 * MS, true);
    scenario.release(100 * MS, 0);
    if stood_ns > 0 && is_late {
        scenario.stopped(30 * MS, 0, stood_ns);
    }
    scenario.end(200 * MS)
}

#[test]
fn a_thread_that_only_ungil_has_stopped_did_not_sleep() {
    assert_eq!(not_run(&told_of_its_middle(0, false)), [None], "the rest it may have slept");
    for is_late in [false, true] {
        let report = told_of_its_middle(2 * MS, is_late);
        let hold = &gil(&report).long_holds[0];
        let told = (hold.cpu_ms, hold.not_run_ms, hold.stopped_ms);
        assert_eq!(told, (Some(20.0), Some(78.0), 2.0), "late: {is_late}");
    }
}

#[test]
fn a_thread_that_was_stopped_and_seen_asleep_has_slept() {
    let mut scenario = Scenario::new(1);
    scenario.acquire(0, 0);
    scenario.kernel_counted(MS, 0, 0);
    scenario.stopped(30 * MS, 0, 2 * MS);
    scenario.kernel_counted(99 * MS, 0, 10 * MS);
    scenario.ran(0, 0, 20 * MS, true);
    scenario.release(100 * MS, 0);
    let report = scenario.end(200 * MS);
    let hold = &gil(&report).long_holds[0];
    assert_eq!((hold.cpu_ms, hold.not_run_ms, hold.stopped_ms), (Some(20.0), Some(10.0), 2.0));
}

#[test]
fn a_stop_takes_no_more_of_a_hold_than_is_left() {
    let mut scenario = Scenario::new(1);
    scenario.acquire(0, 0);
    scenario.stopped(30 * MS, 0, 90 * MS);
    scenario.ran(0, 0, 95 * MS, false);
    scenario.release(100 * MS, 0);
    let report = scenario.end(200 * MS);
    let hold = &gil(&report).long_holds[0];
    assert_eq!((hold.not_run_ms, hold.stopped_ms), (Some(5.0), 0.0));
}

#[test]
fn what_a_limit_did_is_told_of_its_process() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, MS, 0);
    scenario.throttled(3, 240 * MS);
    let throttled = scenario.end(10 * MS).processes[0].throttled.unwrap();
    assert_eq!(throttled.times, 3);
    assert_close(throttled.stopped_s, 0.24);
    assert!(Scenario::new(1).end(10 * MS).processes[0].throttled.is_none());
}
