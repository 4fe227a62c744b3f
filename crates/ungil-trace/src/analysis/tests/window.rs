//! The worst ten seconds.

use super::naive::{Schedule, schedule, steps};
use super::scenario::*;
use crate::analysis::Part;
use crate::analysis::incidents::{Key, incidents};
use crate::analysis::verdict::worst_windows;
use crate::analysis::windows::LENGTH_NS;
use crate::record::Record;
use crate::report::{Evidence, Finding, Report, Scope};
use crate::wall_clock::WallClock;
use proptest::prelude::*;
use std::collections::BTreeMap;
use ungil_core::Kind;

const SECOND: u64 = 1_000 * MS;
/// One nanosecond of the naive model's schedules is so long here.
const TICK: u64 = 50 * MS;
/// And each event is so much later than the one before, at least: whether a moment or a share is
/// exactly at a limit is a matter of rounding.
const LATER: u64 = 7_001;

/// Thread 0 computes from then on for so long; threads 1 to 3 answer requests meanwhile, and get
/// the GIL a switch interval after they ask for it.
fn misery(scenario: &mut Scenario, from_ns: u64, length_ns: u64) {
    scenario.acquire(from_ns, 0);
    let mut at_ns = from_ns;
    while at_ns < from_ns + length_ns {
        (1..4).for_each(|thread| scenario.wait(at_ns, thread));
        at_ns += 5 * MS;
        scenario.ask(at_ns, 1);
        scenario.forced(at_ns, 0);
        for thread in 1..4 {
            scenario.hold(at_ns, at_ns + MS / 10, thread);
            at_ns += MS / 10;
        }
        scenario.acquire(at_ns, 0);
        at_ns += MS;
    }
    scenario.release(at_ns, 0);
}

fn assert_when(finding: &Finding, start_s: f64, end_s: f64) {
    let window = finding.window.as_ref().unwrap();
    assert!(
        (window.start_s - start_s).abs() < 0.01 && (window.end_s - end_s).abs() < 0.01,
        "{window:?}"
    );
}

#[test]
fn half_a_second_of_misery_after_forty_idle_seconds_is_the_first_finding() {
    let mut scenario = Scenario::new(4);
    scenario.analysis = scenario.analysis.with_wall_clock(Some(WallClock::new(START, 0)));
    misery(&mut scenario, 40 * SECOND, SECOND / 2);
    let report = scenario.end(41 * SECOND);
    let finding = &report.findings[0];
    assert!(matches!(finding.evidence, Evidence::Convoy { .. }), "{}", finding.text);
    assert_eq!(finding.scope, Scope::Window);
    assert_when(finding, 40.0, 40.5);
    assert_eq!(
        finding.window.as_ref().unwrap().started_at.as_deref(),
        Some("1970-01-01T00:00:40.000Z")
    );
    assert!(
        finding.text.starts_with("thread t3 waited 411 of 503 ms for the GIL"),
        "{}",
        finding.text
    );
    assert_eq!(report.findings.len(), 1);
}

#[test]
fn the_same_misery_at_the_end_of_an_hour_or_before_one_is_found_as_well() {
    for from_s in [1, 3_000] {
        let mut scenario = Scenario::new(4);
        misery(&mut scenario, from_s * SECOND, SECOND / 2);
        // The main thread wakes now and then, and nobody waits for it.
        (0..3_600)
            .filter(|s| *s > from_s + 1)
            .for_each(|s| scenario.hold(s * SECOND, s * SECOND + MS, 0));
        let report = scenario.end(3_600 * SECOND);
        assert!(matches!(report.findings[0].evidence, Evidence::Convoy { .. }));
        assert_when(&report.findings[0], from_s as f64, from_s as f64 + 0.5);
    }
}

#[test]
fn misery_is_found_while_it_goes_on() {
    let mut scenario = Scenario::new(4);
    misery(&mut scenario, 60 * SECOND, SECOND / 2);
    let report = scenario.analysis.report();
    assert!(matches!(report.findings[0].evidence, Evidence::Convoy { .. }));
    assert_when(&report.findings[0], 60.0, 60.5);
}

#[test]
fn the_worst_of_several_incidents_is_named() {
    let mut scenario = Scenario::new(4);
    for (from_s, length_ms) in [(20, 600), (100, 900), (200, 700)] {
        misery(&mut scenario, from_s * SECOND, length_ms * MS);
    }
    let report = scenario.end(400 * SECOND);
    assert_when(&report.findings[0], 100.0, 100.9);
}

#[test]
fn a_line_that_other_threads_of_a_server_come_to_later_is_one_finding() {
    let mut scenario = Scenario::new(21);
    // Each request has a thread of its own, and collects twice.
    for (from_s, requests) in [(0, 0..10), (20, 10..20)] {
        for (turn, keeps) in (0..20).zip(requests.flat_map(|thread| [thread, thread])) {
            let at = from_s * SECOND + turn * 200 * MS;
            scenario.acquire(at, keeps);
            scenario.wait(at + MS, 20);
            scenario.ask(at + 6 * MS, 20);
            scenario.stack(at + 20 * MS, keeps, "collect");
            scenario.forced(at + 90 * MS, keeps);
            scenario.hold(at + 90 * MS, at + 100 * MS, 20);
        }
    }
    let report = scenario.end(24 * SECOND);
    let is_native = |it: &&Finding| matches!(it.evidence, Evidence::NativeHold { .. });
    let native: Vec<_> = report.findings.iter().filter(is_native).collect();
    assert_eq!(native.len(), 1, "{:?}", report.findings);
    assert!(native[0].threads.len() >= 10);
}

#[test]
fn what_cost_most_in_one_window_is_told_of_that_window() {
    // After 40 s alone the run is so short that it shows the misery as well.
    let mut scenario = Scenario::new(1);
    scenario.hold(0, SECOND, 0);
    (1..4).for_each(|thread| scenario.start(thread, 40 * SECOND));
    misery(&mut scenario, 40 * SECOND, SECOND / 2);
    let report = scenario.end(40_600 * MS);
    let finding = &report.findings[0];
    assert_eq!((finding.scope, report.findings.len()), (Scope::Window, 1), "{}", finding.text);
    assert_when(finding, 40.0, 40.5);
}

#[test]
fn what_is_wrong_all_the_time_is_told_of_the_run_with_its_worst_window() {
    let mut scenario = Scenario::new(4);
    misery(&mut scenario, 0, 30 * SECOND);
    let report = scenario.end(40 * SECOND);
    let finding = &report.findings[0];
    assert_eq!((finding.scope, report.findings.len()), (Scope::Run, 1));
    assert_when(finding, 0.0, 40.0);
    let worst = finding.worst.as_ref().unwrap();
    assert!((worst.window.end_s - worst.window.start_s - 10.0).abs() < 0.01, "{worst:?}");
    assert!(worst.cost_s < 0.5 * finding.cost_s);
}

#[test]
fn what_is_true_of_the_run_is_told_beside_what_cost_more_in_its_worst_window() {
    // Eight times native code that computes for 100 ms and is not run for 900, in a run of 12 s.
    let mut scenario = Scenario::new(2);
    for from_ns in (2..10).map(|s| s * SECOND) {
        scenario.acquire(from_ns, 0);
        scenario.wait(from_ns, 1);
        scenario.ask(from_ns + 5 * MS, 1);
        scenario.ran(from_ns, 0, 100 * MS, false);
        scenario.release(from_ns + SECOND, 0);
        scenario.hold(from_ns + SECOND, from_ns + SECOND + MS / 10, 1);
    }
    let report = scenario.end(12 * SECOND);
    assert!(matches!(report.findings[0].evidence, Evidence::Descheduled { .. }));
    let is_native = |it: &&Finding| matches!(it.evidence, Evidence::NativeHold { .. });
    let native = report.findings.iter().find(is_native).unwrap();
    assert!(native.cost_s < report.findings[0].cost_s / 5.0);
    assert_when(native, 2.0, 10.0);
}

#[test]
fn one_hold_for_which_a_few_wait_for_a_moment_at_the_end_of_a_run_is_no_incident() {
    let mut scenario = Scenario::new(6);
    (0..60).for_each(|s| scenario.hold(s * SECOND, s * SECOND + 200 * MS, 1));
    scenario.acquire(60 * SECOND, 0);
    (1..6).for_each(|thread| scenario.wait(60 * SECOND + MS, thread));
    scenario.release(60 * SECOND + 60 * MS, 0);
    (1..6).for_each(|thread| {
        scenario.hold(
            60 * SECOND + (60 + u64::from(thread)) * MS,
            60 * SECOND + (61 + u64::from(thread)) * MS,
            thread,
        );
    });
    let report = scenario.end(60 * SECOND + 100 * MS);
    assert!(report.findings[0].text.starts_with("nothing wrong"), "{}", report.findings[0].text);
}

#[test]
fn a_script_that_ends_at_once_is_judged_as_a_whole() {
    let mut scenario = Scenario::new(4);
    scenario.hold(0, 400 * MS, 0);
    misery(&mut scenario, 400 * MS, 10 * MS);
    let report = scenario.end(500 * MS);
    assert!(report.findings[0].text.starts_with("nothing wrong"), "{}", report.findings[0].text);
    assert_when(&report.findings[0], 0.0, 0.5);
}

#[test]
fn threads_that_share_the_gil_fairly_for_a_moment_make_it_the_limit_of_that_moment() {
    let mut scenario = Scenario::new(4);
    (1..4).for_each(|thread| scenario.wait(50 * SECOND, thread));
    for turn in 0..120 {
        let (from_ns, thread) = (50 * SECOND + turn * 5 * MS, u32::try_from(turn % 4).unwrap());
        scenario.acquire(from_ns, thread);
        scenario.forced(from_ns + 5 * MS, thread);
        scenario.wait(from_ns + 5 * MS, thread);
    }
    (0..4).for_each(|thread| scenario.end_thread(50 * SECOND + 600 * MS, thread, <_>::default()));
    let report = scenario.end(100 * SECOND);
    let finding = &report.findings[0];
    assert!(
        finding
            .text
            .starts_with("no thread is at a disadvantage, but the GIL is the bottleneck: 4.0"),
        "{}",
        finding.text
    );
    assert_when(finding, 50.0, 50.6);
}

#[test]
fn a_name_a_policy_and_an_interval_that_become_known_later_are_those_of_the_window() {
    let mut scenario = Scenario::new(4);
    misery(&mut scenario, 40 * SECOND, SECOND / 2);
    scenario.hold(100 * SECOND, 101 * SECOND, 0);
    let name = "render".to_owned();
    scenario.analysis.push(&Record::ThreadNamed { thread: crate::record::ThreadId(0), name });
    let report = scenario.end(102 * SECOND);
    assert!(report.findings[0].text.contains("behind render"), "{}", report.findings[0].text);
}

/// All waits, by when they begin.
fn waits(schedule: &Schedule, end_ns: u64) -> Vec<(u64, u64)> {
    let mut waits = Vec::new();
    let mut since = BTreeMap::new();
    for (index, &(at, thread, kind)) in schedule.events.iter().enumerate() {
        let at_ns = at * TICK + index as u64 * LATER;
        match kind {
            Kind::Wait => _ = since.insert(thread, at_ns),
            Kind::Acquire => waits.extend(since.remove(&thread).map(|from| (from, at_ns))),
            _ => {}
        }
    }
    waits.extend(since.into_values().map(|from_ns| (from_ns, end_ns)));
    waits.sort_unstable();
    waits
}

/// All windows: ten seconds each, in each stretch without a second in which nobody waits, up to
/// when the last wait in them ends.
fn windows(waits: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut bursts: Vec<(u64, u64)> = Vec::new();
    for &(from_ns, to_ns) in waits {
        match bursts.last_mut() {
            Some(burst) if from_ns <= burst.1 + SECOND => burst.1 = burst.1.max(to_ns),
            _ => bursts.push((from_ns, to_ns)),
        }
    }
    let mut windows = Vec::new();
    for (from_ns, to_ns) in bursts {
        for start_ns in (from_ns..to_ns).step_by(usize::try_from(LENGTH_NS / 2).unwrap()) {
            let edge_ns = start_ns + LENGTH_NS;
            let inside = waits.iter().filter(|wait| wait.0 < edge_ns && wait.1 <= to_ns);
            let end_ns = inside.map(|wait| wait.1.min(edge_ns)).max().unwrap();
            windows.extend(Some((start_ns, end_ns)).filter(|_| start_ns < end_ns));
        }
    }
    windows
}

/// What a brute-force search finds to be the worst of all windows, for each finding.
fn brute_force(records: &[Record], windows: &[(u64, u64)]) -> Vec<(Key, f64)> {
    let mut worst: Vec<(Key, f64)> = Vec::new();
    for &(start_ns, end_ns) in windows {
        // The acquire that ends the last wait belongs to the window.
        let until_ns = (end_ns + 1).min(start_ns + LENGTH_NS);
        let mut part = Part::new(BLAME_AFTER, None, START + start_ns, START + until_ns);
        for record in records {
            part.push(record);
        }
        part.to_ns = START + end_ns;
        for incident in incidents(&part.report().processes) {
            match worst.iter_mut().find(|(key, _)| *key == incident.key) {
                Some((_, cost_s)) => *cost_s = cost_s.max(incident.cost_s),
                None => worst.push((incident.key, incident.cost_s)),
            }
        }
    }
    worst
}

fn end_ns(schedule: &Schedule, tick_ns: u64, later_ns: u64) -> u64 {
    schedule.doing.len() as u64 * tick_ns + schedule.events.len() as u64 * later_ns
}

/// The records of a schedule, in a process that ends with it.
pub(super) fn records(
    schedule: &Schedule,
    threads: u32,
    tick_ns: u64,
    later_ns: u64,
) -> Vec<Record> {
    let mut records = vec![process(0)];
    records.extend((0..threads).map(|thread| thread_of(0, thread, START)));
    records.extend(schedule.events.iter().enumerate().map(|(index, &(at, thread, kind))| {
        let at_ns = at * tick_ns + index as u64 * later_ns;
        event(0, u32::try_from(thread).unwrap(), START + at_ns, kind)
    }));
    let end_ns = end_ns(schedule, tick_ns, later_ns);
    records.push(process_end(0, START + end_ns));
    records
}

fn streamed(records: &[Record]) -> Vec<(Key, f64)> {
    let mut analysis = crate::analysis::Analysis::new(BLAME_AFTER);
    for record in records {
        analysis.push(record);
    }
    let tally = &analysis.tally;
    let processes = tally.processes_until(tally.now_ns, tally);
    let worst = worst_windows(tally, &analysis.passed(), &processes).into_iter();
    worst.map(|(_, incident)| (incident.key, incident.cost_s)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_worst_windows_are_those_of_a_brute_force_search(
        threads in 2u32..4,
        steps in prop::collection::vec(steps(), 1..4),
    ) {
        let steps: Vec<_> = steps.concat();
        let schedule = schedule(threads as usize, &steps);
        let end_ns = end_ns(&schedule, TICK, LATER);
        prop_assume!(end_ns > LENGTH_NS);
        let records = records(&schedule, threads, TICK, LATER);
        let expected = brute_force(&records, &windows(&waits(&schedule, end_ns)));
        let found = streamed(&records);
        prop_assert_eq!(found.len(), expected.len(), "{:?} {:?}", found, expected);
        for (key, cost_s) in &expected {
            let same = found.iter().find(|(other, _)| other == key);
            prop_assert!(
                same.is_some_and(|(_, found_s)| (found_s - cost_s).abs() < 1e-6),
                "{:?} cost {} s, not {:?}", key, cost_s, same
            );
        }
    }

    #[test]
    fn windows_change_no_number_of_the_run(threads in 1u32..5, steps in steps()) {
        let schedule = schedule(threads as usize, &steps);
        let records = records(&schedule, threads, TICK, LATER);
        let counted = |windows: bool| -> Report {
            let mut analysis = crate::analysis::Analysis::new(BLAME_AFTER);
            analysis.windows = analysis.windows.filter(|_| windows);
            for record in &records { analysis.push(record); }
            analysis.report()
        };
        let json = |report: Report| serde_json::to_string(&report.processes).unwrap();
        prop_assert_eq!(json(counted(true)), json(counted(false)));
    }
}
