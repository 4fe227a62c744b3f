//! What a process does before its second thread.

use super::scenario::*;
use crate::record::{ProcessId, Record, ThreadId};
use crate::report::Evidence;
use ungil_core::{Event, Kind};

#[test]
fn imports_before_the_second_thread_are_set_apart() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, 900 * MS, 0);
    scenario.acquire(900 * MS, 0);
    scenario.start(1, 1_000 * MS);
    scenario.release(1_000 * MS, 0);
    scenario.hold(1_500 * MS, 1_600 * MS, 1);
    let report = scenario.end(2_000 * MS);
    assert_close(report.processes[0].startup_s.unwrap(), 1.0);
    assert_close(gil(&report).startup_held_s, 1.0);
    assert_close(thread(&report, 0).startup_held_s, 1.0);
    assert_close(thread(&report, 1).startup_held_s, 0.0);
    assert_close(gil(&report).held_s, 1.1);
    let finding = &report.findings[0];
    let Evidence::None { held_share, .. } = finding.evidence else { panic!("{}", finding.text) };
    assert_close(held_share, 0.1);
    assert!(
        finding.text.ends_with(
            "before its second thread started, the process ran for 1 s and held the GIL for 100 % \
             of that"
        ),
        "{}",
        finding.text
    );
}

/// The recorder tells of new threads first, then of what all threads did.
#[test]
fn imports_that_are_told_after_the_second_thread_are_set_apart_too() {
    let mut scenario = Scenario::new(1);
    scenario.start(1, 1_000 * MS);
    scenario.hold(100 * MS, 700 * MS, 0);
    scenario.hold(900 * MS, 1_200 * MS, 0);
    scenario.hold(1_500 * MS, 1_600 * MS, 1);
    let report = scenario.end(2_000 * MS);
    assert_close(report.processes[0].startup_s.unwrap(), 1.0);
    assert_close(gil(&report).startup_held_s, 0.7);
    assert_close(thread(&report, 0).startup_held_s, 0.7);
    assert_close(thread(&report, 1).startup_held_s, 0.0);
    assert_close(gil(&report).held_s, 1.0);
}

#[test]
fn who_wanted_the_gil_is_told_with_and_without_the_startup() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, 1_000 * MS, 0);
    scenario.start(1, 1_000 * MS);
    for turn in 0..1_000 {
        let (at_ns, holder) = ((1_000 + turn) * MS, u32::try_from(turn % 2).unwrap());
        scenario.acquire(at_ns, holder);
        scenario.wait(at_ns, 1 - holder);
        scenario.release(at_ns + MS, holder);
    }
    let report = scenario.end(2_000 * MS);
    assert_close(gil(&report).wanting_mean, 1.5);
    assert_close(gil(&report).wanting_busy_mean, 2.0);
    let text = &report.findings[0].text;
    assert!(text.contains("2.0 threads wanted it on average"), "{text}");
}

#[test]
fn of_several_processes_the_one_is_told_of_that_held_most_after_its_startup() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, 900 * MS, 0);
    scenario.start(1, 1_000 * MS);
    scenario.hold(1_500 * MS, 1_501 * MS, 1);
    scenario.analysis.push(&process(1));
    scenario.analysis.push(&thread_of(1, 2, START));
    for (at_ms, kind) in [(100, Kind::Acquire), (400, Kind::ReleaseVoluntary)] {
        let event = Event { at_ns: START + at_ms * MS, kind, gil: 0, seq: 0 };
        let (process, thread) = (ProcessId(1), ThreadId(2));
        scenario.analysis.push(&Record::Gil { process, thread, event });
    }
    scenario.analysis.push(&process_end(1, START + 2_000 * MS));
    let text = &scenario.end(2_000 * MS).findings[0].text;
    let says = "nothing wrong with the GIL of app1.py (pid 101): it was held 15 % of the time";
    assert!(text.starts_with(says), "{text}");
}

#[test]
fn a_process_with_one_thread_has_no_startup() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, 900 * MS, 0);
    let report = scenario.end(1_000 * MS);
    assert_eq!((report.processes[0].startup_s, gil(&report).startup_held_s.to_bits()), (None, 0));
    assert!(
        report.findings[0].text.contains("was held 90 % of the time"),
        "{}",
        report.findings[0].text
    );
}

#[test]
fn imports_make_no_hog_of_the_main_thread() {
    let mut scenario = Scenario::new(1);
    scenario.hold(0, 9_000 * MS, 0);
    scenario.start(1, 9_000 * MS);
    let mut at_ns = 9_000 * MS;
    for _ in 0..150 {
        scenario.acquire(at_ns, 0);
        scenario.wait(at_ns, 1);
        scenario.forced(at_ns + 2 * MS, 0);
        scenario.hold(at_ns + 2 * MS, at_ns + 4 * MS, 1);
        at_ns += 4 * MS;
    }
    let report = scenario.end(at_ns);
    assert!(
        !matches!(report.findings[0].evidence, Evidence::Hog { .. }),
        "{}",
        report.findings[0].text
    );
}

/// Its other threads may wait, or sleep: nothing is known of them before they use the GIL.
#[test]
fn a_process_that_ran_before_it_was_recorded_has_no_startup() {
    let mut scenario = Scenario::new(0);
    let Record::ProcessStarted(mut known) = process(1) else { unreachable!() };
    known.ran_before = true;
    scenario.analysis.push(&Record::ProcessStarted(known));
    for (thread, at_ns) in [(0, 0), (1, 15 * MS)] {
        scenario.analysis.push(&thread_of(1, thread, START + at_ns));
    }
    scenario.hold(0, 10 * MS, 0);
    scenario.hold(15 * MS, 20 * MS, 1);
    scenario.analysis.push(&process_end(1, START + 100 * MS));
    let report = scenario.end(100 * MS);
    let found = report.processes.iter().find(|process| process.pid == 101).unwrap();
    assert_eq!((found.startup_s, found.gils[0].startup_held_s.to_bits()), (None, 0));
}
