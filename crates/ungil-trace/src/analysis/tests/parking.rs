//! What is said of threads that slept for each other: without a GIL, and for locks with one.

use super::scenario::*;
use crate::analysis::Part;
use crate::record::Record;
use crate::report::{Evidence, Finding, ParksReport, Report};
use proptest::prelude::*;
use ungil_core::park::{Cause, Ending};
use ungil_core::table::GilState;

const DICT: (Cause, u32) = (Cause::Object, 7);
const OWN: (Cause, u32) = (Cause::Lock, 8);
const PAUSE: (Cause, u32) = (Cause::Pause, 0);

fn parks(report: &Report) -> &ParksReport {
    report.processes[0].parks.as_ref().unwrap()
}

fn kinds(report: &Report) -> Vec<&'static str> {
    let kind = |finding: &Finding| match finding.evidence {
        Evidence::Parked { .. } => "parked",
        Evidence::WorldPauses { .. } => "world-pauses",
        _ => "another",
    };
    report.findings.iter().map(kind).collect()
}

#[test]
fn who_slept_for_the_lock_of_one_object_is_told_with_who_woke_it() {
    let mut scenario = Scenario::new(3);
    for at in [0, 100, 200] {
        scenario.park(1, (at * MS, (at + 50) * MS), DICT, 2);
    }
    scenario.park(1, (300 * MS, 310 * MS), DICT, 0);
    scenario.park(0, (40 * MS, 60 * MS), DICT, 1);
    scenario.park(0, (60 * MS, 900 * MS), (Cause::Event, 9), 1);
    let report = scenario.end(1_000 * MS);
    assert_eq!(
        report.findings[0].text,
        "thread t1 waited 160 ms of 1 s for the lock of one dict, in 4 parks, mostly woken by t2; \
         2 threads waited for it for 180 ms summed over them"
    );
    assert_eq!(report.findings[0].threads, [PID + 1, PID]);
    let parks = parks(&report);
    let [first, second, event] = &parks.waits[..] else { panic!("{:?}", parks.waits) };
    assert_eq!((first.tid, first.count, first.of.as_deref()), (PID + 1, 4, Some("dict")));
    let wakers: Vec<_> = first.wakers.iter().map(|it| (it.tid, it.count)).collect();
    assert_eq!(wakers, [(Some(PID + 2), 3), (Some(PID), 1)]);
    assert_eq!((second.tid, second.together), (PID, true));
    assert_eq!(event.cause, "event");
    assert_eq!(parks.threads[0].causes[0].parks.max_us.to_bits(), 50_000_f64.to_bits());
}

#[test]
fn a_lock_of_the_program_is_contended_if_two_sleep_for_it_at_once() {
    let told = |second: (u64, u64)| {
        let mut scenario = Scenario::new(3);
        scenario.park(1, (0, 400 * MS), OWN, 0);
        scenario.park(2, (second.0 * MS, second.1 * MS), OWN, 0);
        kinds(&scenario.end(1_000 * MS)).contains(&"parked")
    };
    assert!(told((300, 500)));
    assert!(!told((400, 600)), "that may be a condition of which nobody waits in vain");
}

/// What threads of a process with a GIL waited for in a lock: from, to, and who ended it in this way.
fn lock_waits(ended: Ending, sleeps: &[(u32, (u64, u64), u32)]) -> Report {
    let mut scenario = Scenario::new(3);
    for &(thread, (from, to), waker) in sleeps {
        scenario.analysis.push(&off_gil(thread, (from * MS, to * MS), waker, ended));
    }
    scenario.end(1_000 * MS)
}

#[test]
fn waits_for_locks_with_a_gil_are_told_apart_from_parks() {
    let report = lock_waits(Ending::LetGo, &[(1, (0, 400), 0), (1, (500, 600), 2)]);
    assert_eq!(kinds(&report), ["another"], "a condition, of which nobody waits in vain");
    let process = &report.processes[0];
    assert!(process.parks.is_none());
    let [row] = &process.lock_waits[..] else { panic!("{:?}", process.lock_waits) };
    assert_eq!((row.tid, row.count, row.contended), (PID + 1, 2, false));
    let wakers: Vec<_> = row.wakers.iter().map(|it| (it.tid, it.count)).collect();
    assert_eq!(wakers, [(Some(PID), 1), (Some(PID + 2), 1)]);
}

#[test]
fn a_lock_that_threads_take_in_turn_is_contended() {
    let contended = |sleeps: &[(u32, (u64, u64), u32)]| {
        lock_waits(Ending::LetGo, sleeps).processes[0].lock_waits.iter().all(|row| row.contended)
    };
    assert!(contended(&[(1, (0, 100), 0), (2, (50, 200), 1)]), "1 had it before 2");
    assert!(!contended(&[(1, (0, 100), 0), (2, (50, 200), 0)]), "0 did not have to wait");
}

#[test]
fn a_lock_with_which_threads_give_each_other_signals_is_not() {
    let report = lock_waits(Ending::Woken, &[(1, (0, 100), 2), (2, (150, 200), 1)]);
    let rows = &report.processes[0].lock_waits;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| !row.contended && row.wakers[0].let_go == 0));
}

#[test]
fn where_nobody_is_known_to_have_a_lock_it_is_contended_if_two_wait_at_once() {
    let report = lock_waits(Ending::Woken, &[(1, (0, 100), 0), (2, (50, 200), 1)]);
    assert!(report.processes[0].lock_waits.iter().all(|row| row.contended));
    let report = lock_waits(Ending::Woken, &[(1, (0, 100), 0), (2, (50, 200), 0)]);
    assert!(report.processes[0].lock_waits.iter().all(|row| !row.contended));
}

#[test]
fn pauses_of_several_threads_at_once_are_one_pause_of_the_world() {
    let mut scenario = Scenario::new(4);
    scenario.park(1, (0, 100 * MS), PAUSE, 0);
    scenario.park(1, (200 * MS, 300 * MS), PAUSE, 0);
    // Told later, because its ring was read later.
    scenario.park(2, (10 * MS, 105 * MS), PAUSE, 0);
    scenario.park(2, (195 * MS, 290 * MS), PAUSE, 0);
    let report = scenario.end(1_000 * MS);
    let pauses = parks(&report).pauses;
    assert_eq!((pauses.count, pauses.max_ms.to_bits()), (2, 105_f64.to_bits()));
    assert!((pauses.stopped_s - 0.21).abs() < 1e-9);
    assert_eq!(
        report.findings[0].text,
        "the world was stopped 2 times, for 210 ms of 1 s, at most 105 ms; threads that wanted to \
         run slept meanwhile for 390 ms summed over them"
    );
}

#[test]
fn a_thread_that_wakes_itself_waits_for_nobody() {
    let mut scenario = Scenario::new(2);
    scenario.park(1, (0, 500 * MS), DICT, 1);
    assert_eq!(kinds(&scenario.end(1_000 * MS)), ["another"]);
}

#[test]
fn without_a_gil_nothing_is_wrong_if_threads_hardly_slept_for_others() {
    let told = |waker: u32| {
        let mut scenario = Scenario::new(2);
        scenario.park(1, (0, 500 * MS), DICT, 1);
        scenario.park(1, (600 * MS, 604 * MS), (Cause::Internal, 4), waker);
        let Record::ProcessEnded { process, at_ns, mut totals } =
            process_end(0, START + 1_000 * MS)
        else {
            unreachable!()
        };
        totals.gil_state = GilState::Off as u64;
        scenario.analysis.push(&Record::ProcessEnded { process, at_ns, totals });
        let report = scenario.analysis.report();
        let Evidence::None { waited_max_s, .. } = report.findings[0].evidence else {
            panic!("{:?}", report.findings)
        };
        (report.findings[0].text.clone(), waited_max_s)
    };
    let (text, slept_s) = told(0);
    assert_eq!(
        text,
        "nothing wrong: this Python is free-threaded, and its GIL was off; no thread slept for \
         others for more than 4 ms in all"
    );
    assert!((slept_s - 0.004).abs() < 1e-9, "{slept_s}");
    let (text, _) = told(1);
    assert!(text.ends_with("; no thread slept for others"), "{text}");
}

#[test]
fn a_process_without_a_gil_in_which_no_thread_slept_has_nothing_wrong() {
    let mut scenario = Scenario::new(1);
    let Record::ProcessEnded { process, at_ns, mut totals } = process_end(0, START + 1_000 * MS)
    else {
        unreachable!()
    };
    totals.gil_state = GilState::Off as u64;
    scenario.analysis.push(&Record::ProcessEnded { process, at_ns, totals });
    let text = &scenario.analysis.report().findings[0].text;
    assert!(text.starts_with("nothing wrong: this Python is free-threaded"), "{text}");
    assert!(text.ends_with("; no thread slept for others"), "{text}");
}

#[test]
fn locks_that_threads_had_themselves_do_not_crowd_out_others() {
    let mut scenario = Scenario::new(3);
    for lock in 0..10_000 {
        let at = u64::from(lock) * 1_000;
        scenario.park(1, (at, at + 1_000), (Cause::Object, 100 + lock), 1);
    }
    scenario.park(1, (100 * MS, 300 * MS), DICT, 2);
    scenario.park(1, (400 * MS, 410 * MS), DICT, 1);
    let report = scenario.end(1_000 * MS);
    let [contended, own] = &parks(&report).waits[..] else { panic!("{:?}", parks(&report).waits) };
    assert_eq!((contended.lock.is_some(), contended.of.as_deref()), (true, Some("dict")));
    assert_eq!((contended.count, contended.wakers[0].tid), (1, Some(PID + 2)));
    assert_eq!((own.lock, own.of.as_deref(), own.count), (None, None, 10_001));
    assert_eq!(own.wakers.len(), 1);
    assert_eq!(own.wakers[0].tid, Some(PID + 1));
    assert!(report.findings[0].text.contains("200 ms of 1 s for the lock of one dict, in 1 park"));
}

#[test]
fn what_is_waited_for_in_idleness_is_no_finding() {
    let mut scenario = Scenario::new(2);
    scenario.park(1, (0, 900 * MS), (Cause::Event, 3), 0);
    scenario.park(1, (900 * MS, 990 * MS), OWN, 0);
    assert_eq!(kinds(&scenario.end(1_000 * MS)), ["another"]);
}

#[test]
fn a_sleep_counts_for_the_part_in_which_it_lies() {
    let mut part = Part::new(BLAME_AFTER, None, START + 100 * MS, START + 200 * MS);
    part.push(&process(0));
    (0..3).for_each(|thread| part.push(&thread_of(0, thread, START)));
    let sleeps = [(0, 50), (50, 130), (140, 150), (190, 260), (210, 300)];
    for (since, until) in sleeps {
        part.push(&parked(1, (since * MS, until * MS), DICT, 0));
    }
    let report = part.report();
    let row = &parks(&report).waits[0];
    assert_eq!(row.count, 3);
    assert!((row.waited_s - 0.05).abs() < 1e-9, "{}", row.waited_s);
}

#[test]
fn ten_thousand_threads_are_summed_beyond_the_first_thousand() {
    let mut scenario = Scenario::new(0);
    for thread in 0..10_000 {
        scenario.start(thread, 0);
        scenario.park(thread, (0, MS), (Cause::Object, thread + 1), 0);
    }
    let report = scenario.end(MS);
    let parks = parks(&report);
    assert_eq!((parks.threads.len(), parks.others[0].parks.count), (1_000, 9_000));
    assert!(parks.waits.len() <= 256);
}

proptest! {
    /// Against the naive model: the milliseconds in which any thread slept.
    #[test]
    fn the_pauses_of_the_world_are_the_time_in_which_any_thread_slept(
        sleeps in prop::collection::vec((1u32..4, 0u64..200, 1u64..30), 1..60)
    ) {
        let mut scenario = Scenario::new(4);
        for (thread, since, length) in &sleeps {
            scenario.park(*thread, (since * MS, (since + length) * MS), PAUSE, 0);
        }
        let slept = |at: &u64| sleeps.iter().any(|(_, since, length)| (*since..since + length).contains(at));
        let expected = (0..300).filter(slept).count();
        let report = scenario.end(1_000 * MS);
        prop_assert!((parks(&report).pauses.stopped_s * 1e3 - expected as f64).abs() < 1e-6);
    }
}
