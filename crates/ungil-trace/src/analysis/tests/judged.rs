//! What is said of single holds and waits.

use super::scenario::*;
use crate::analysis::{Analysis, Least};
use crate::record::ThreadTotals;
use crate::report::JudgedReport;
use proptest::prelude::*;
use ungil_core::Kind;

/// Two threads, all of whose holds and waits are judged.
fn scenario() -> Scenario {
    judging(0, 0)
}

fn judging(hold_ns: u64, wait_ns: u64) -> Scenario {
    let analysis = Analysis::new(BLAME_AFTER).judging(Some(Least { hold_ns, wait_ns }));
    let mut scenario = Scenario { analysis };
    scenario.analysis.push(&process(0));
    (0..3).for_each(|thread| scenario.start(thread, 0));
    scenario
}

fn judged(mut scenario: Scenario) -> JudgedReport {
    scenario.analysis.take_judged()
}

/// Own time of the holds, in ms, the longest first.
fn own(judged: &JudgedReport) -> Vec<f64> {
    judged.holds.iter().map(|hold| hold.own_ms).collect()
}

/// A hold of 100 ms for which a thread waits after 5 ms, and asks after 10.
fn asked(scenario: &mut Scenario) {
    scenario.acquire(0, 0);
    scenario.wait(5 * MS, 1);
    scenario.ask(10 * MS, 1);
}

#[test]
fn a_hold_counts_from_when_somebody_asked_and_only_while_its_thread_ran() {
    let mut scenario = scenario();
    asked(&mut scenario);
    scenario.stack(50 * MS, 0, "computes");
    // Of the 40 ms that it was not run all may have been after the request.
    scenario.ran(0, 0, 60 * MS, false);
    scenario.forced(100 * MS, 0);
    scenario.acquire(101 * MS, 1);
    let judged = judged(scenario);
    assert_eq!(own(&judged), [50.0]);
    let [hold] = &judged.holds[..] else { panic!() };
    assert_eq!((hold.tid, hold.name.as_str(), hold.cpu_ms), (PID, "t0", Some(60.0)));
    assert_eq!((hold.start_ns, hold.end_ns), (START, START + 100 * MS));
    assert_eq!(hold.stack, ["computes (app.py:7)"]);
    let [wait] = &judged.waits[..] else { panic!() };
    // 95 of 100 ms of a hold of 60 ms.
    assert_close(wait.own_ms, 57.0);
    assert_eq!((wait.tid, wait.culprit_tid), (PID + 1, Some(PID)));
    let [thread] = &judged.threads[..] else { panic!() };
    assert_close(thread.waited_ms, 96.0);
    assert_close(thread.own_ms, 57.0);
}

#[test]
fn a_holder_that_was_not_run_has_done_nothing() {
    let mut scenario = scenario();
    asked(&mut scenario);
    scenario.ran(0, 0, MS, false);
    scenario.forced(100 * MS, 0);
    scenario.acquire(100 * MS, 1);
    let judged = judged(scenario);
    assert_eq!(own(&judged), [0.0]);
    assert!(judged.waits[0].own_ms <= 1.0);
}

#[test]
fn a_holder_that_computes_while_nobody_asks_has_done_nothing_wrong() {
    let mut scenario = scenario();
    scenario.acquire(0, 0);
    scenario.ran(0, 0, 100 * MS, false);
    scenario.release(100 * MS, 0);
    assert!(judged(scenario).holds.is_empty());
}

#[test]
fn a_sleep_counts_from_when_somebody_waits() {
    let mut scenario = scenario();
    scenario.kernel_counted(0, 0, 7 * MS);
    scenario.acquire(MS, 0);
    scenario.wait(5 * MS, 1);
    scenario.kernel_counted(10 * MS, 0, 7 * MS);
    scenario.kernel_counted(99 * MS, 0, 7 * MS);
    scenario.kernel_counted(102 * MS, 0, 9 * MS);
    scenario.ran(MS, 0, MS, true);
    scenario.release(100 * MS, 0);
    scenario.acquire(100 * MS, 1);
    // From the first to the last time in the hold that it was seen asleep.
    assert_eq!(own(&judged(scenario)), [89.0]);
}

#[test]
fn a_thread_that_nobody_saw_asleep_waited_for_another_that_was_not_run() {
    let mut scenario = scenario();
    scenario.kernel_counted(0, 0, 7 * MS);
    asked(&mut scenario);
    scenario.ran(0, 0, MS, true);
    scenario.release(100 * MS, 0);
    assert_eq!(own(&judged(scenario)), [0.0]);
}

#[test]
fn a_sleep_of_which_nothing_is_known_is_no_accusation() {
    let mut scenario = scenario();
    asked(&mut scenario);
    scenario.ran(0, 0, MS, true);
    scenario.release(100 * MS, 0);
    assert_eq!(own(&judged(scenario)), [0.0]);
}

#[test]
fn a_long_hold_of_which_nothing_was_told_is_no_accusation_and_a_short_one_counts() {
    let mut scenario = scenario();
    asked(&mut scenario);
    scenario.release(100 * MS, 0);
    scenario.acquire(100 * MS, 1);
    scenario.wait(200 * MS, 0);
    scenario.release(201 * MS, 1);
    scenario.acquire(202 * MS, 2);
    scenario.release(203 * MS, 2);
    scenario.acquire(203 * MS, 0);
    let judged = judged(scenario);
    assert_eq!(own(&judged), [0.0]);
    let charged: Vec<f64> = judged.waits.iter().map(|wait| wait.own_ms).collect();
    assert_eq!(charged, [1.0, 0.0]);
}

#[test]
fn a_hold_whose_release_was_lost_is_not_judged() {
    let mut scenario = scenario();
    asked(&mut scenario);
    scenario.ran(0, 0, 100 * MS, false);
    scenario.acquire(100 * MS, 1);
    assert!(own(&judged(scenario)).is_empty());
}

#[test]
fn only_what_has_ended_since_the_last_time_is_told_and_from_some_length_on() {
    let mut scenario = judging(30 * MS, 1000 * MS);
    for (start, length) in [(0, 100), (200, 35), (300, 30)] {
        scenario.acquire(start * MS, 0);
        scenario.wait((start + 1) * MS, 1);
        scenario.ask((start + 6) * MS, 1);
        scenario.ran(start * MS, 0, length * MS, false);
        scenario.forced((start + length) * MS, 0);
        scenario.hold((start + length) * MS, (start + length + 1) * MS, 1);
    }
    let first = scenario.analysis.take_judged();
    assert_eq!((own(&first), first.holds_count, first.waits_count), (vec![94.0], 1, 0));
    assert_eq!(first.threads[0].waits, 3);
    let second = scenario.analysis.take_judged();
    assert!(second.holds.is_empty() && second.threads.is_empty() && second.holds_count == 0);
}

#[test]
fn of_very_many_holds_the_worst_are_told_and_all_are_counted() {
    let mut scenario = scenario();
    for number in 0..500 {
        let start = number * 100 * MS;
        scenario.acquire(start, 0);
        scenario.wait(start, 1);
        scenario.ask(start, 1);
        scenario.ran(start, 0, (number % 50 + 4) * MS, false);
        scenario.forced(start + (number % 50 + 4) * MS, 0);
        scenario.hold(start + 60 * MS, start + 61 * MS, 1);
    }
    let judged = judged(scenario);
    assert_eq!((judged.holds.len(), judged.holds_count), (100, 500));
    assert_eq!((own(&judged)[0], own(&judged)[99]), (53.0, 44.0));
}

#[test]
fn a_thread_that_was_folded_keeps_its_name() {
    let mut scenario = scenario();
    asked(&mut scenario);
    scenario.ran(0, 0, 100 * MS, false);
    scenario.forced(100 * MS, 0);
    scenario.end_thread(101 * MS, 0, ThreadTotals::default());
    for thread in 3..2_000 {
        let at = (200 + u64::from(thread)) * MS;
        scenario.start(thread, at);
        scenario.hold(at, at + MS / 2, thread);
        scenario.end_thread(at + MS / 2, thread, ThreadTotals::default());
    }
    assert_eq!(judged(scenario).holds[0].name, "t0");
}

/// What a holder does in one ms.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Running,
    Delayed,
}

proptest! {
    /// Holders that run and are not run, in any way: nobody is charged with more than he did.
    #[test]
    fn nobody_is_charged_with_what_the_kernel_did(
        holds in prop::collection::vec(
            (prop::collection::vec(
                prop_oneof![Just(Doing::Running), Just(Doing::Delayed)], 5..60), 0usize..60, 0usize..60),
            1..20,
        ),
    ) {
        let mut scenario = scenario();
        let mut truth = Vec::new();
        let (mut now, mut did) = (0, 0);
        for (doing, waits, asks) in holds {
            let (start, length) = (now, doing.len());
            let waits = waits.min(length);
            let asks = waits + asks;
            let ran = |from: usize| {
                doing[from.min(length)..].iter().filter(|it| **it == Doing::Running).count()
            };
            scenario.acquire(start, 0);
            scenario.wait(start + waits as u64 * MS, 1);
            if asks < length {
                scenario.ask(start + asks as u64 * MS, 1);
                truth.push((start + START, ran(asks)));
            }
            scenario.ran(start, 0, ran(0) as u64 * MS, false);
            now += length as u64 * MS;
            scenario.event(now, 0, Kind::ReleaseForced);
            scenario.hold(now, now + MS, 1);
            now += 2 * MS;
            did += ran(0);
        }
        let judged = judged(scenario);
        prop_assert_eq!(judged.holds.len(), truth.len());
        for hold in &judged.holds {
            let (_, ran) = truth.iter().find(|it| it.0 == hold.start_ns).unwrap();
            prop_assert!(hold.own_ms <= *ran as f64);
        }
        let charged: f64 = judged.waits.iter().map(|wait| wait.own_ms).sum();
        prop_assert!(charged <= did as f64 + 1e-6, "{} of {}", charged, did);
        let waited: f64 = judged.threads.iter().map(|thread| thread.waited_ms).sum();
        prop_assert!(charged <= waited + 1e-6);
    }
}
