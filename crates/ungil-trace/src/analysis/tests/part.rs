//! Parts of a trace.

use super::naive::{schedule, steps};
use super::scenario::*;
use super::window::records;
use crate::analysis::{Part, Span};
use crate::record::{ProcessTotals, Record, ThreadId, ThreadTotals};
use crate::report::{Report, Who};
use proptest::prelude::*;
use std::collections::BTreeMap;
use ungil_core::Kind;

fn part(records: &[Record], from_ns: u64, to_ns: u64) -> Report {
    let mut part = Part::new(BLAME_AFTER, None, START + from_ns, START + to_ns);
    for record in records {
        part.push(record);
    }
    part.report()
}

/// Thread 0 holds from 10 to 30 ms, thread 1 waits from 15 ms on and holds from 30 to 40.
fn two_threads() -> Vec<Record> {
    vec![
        process(0),
        thread_of(0, 0, START),
        thread_of(0, 1, START),
        event(0, 0, START + 10 * MS, Kind::Acquire),
        event(0, 1, START + 15 * MS, Kind::Wait),
        event(0, 1, START + 20 * MS, Kind::DropRequest),
        event(0, 0, START + 30 * MS, Kind::ReleaseForced),
        event(0, 1, START + 30 * MS, Kind::Acquire),
        event(0, 1, START + 40 * MS, Kind::ReleaseVoluntary),
        process_end(0, START + 50 * MS),
    ]
}

#[test]
fn what_crosses_an_edge_is_cut_there_and_counted() {
    let report = part(&two_threads(), 20 * MS, 35 * MS);
    assert_close(report.duration_s, 0.015);
    assert_close(thread(&report, 0).held_s, 0.010);
    assert_close(thread(&report, 1).waited_s, 0.010);
    assert_close(thread(&report, 1).held_s, 0.005);
    assert_close(gil(&report).contended_s, 0.010);
    assert_close(blamed_ms(&report, 1, who(0)), 10.0);
    let told = report.part.unwrap();
    assert_eq!((told.cut_holds, told.cut_waits), (2, 1));
    assert_close(told.window.start_s, 0.020);
    assert_close(told.window.end_s, 0.035);
}

#[test]
fn an_event_at_the_end_of_a_part_belongs_to_the_next_one() {
    let report = part(&two_threads(), 0, 30 * MS);
    assert_eq!((gil(&report).forced, thread(&report, 1).holds.count), (0, 0));
    let report = part(&two_threads(), 30 * MS, 50 * MS);
    assert_eq!((gil(&report).forced, thread(&report, 1).holds.count), (1, 1));
}

#[test]
fn a_part_after_everything_is_empty_and_one_of_everything_is_the_report() {
    let report = part(&two_threads(), 60 * MS, 70 * MS);
    assert_eq!(report.processes.len(), 0);
    let mut analysis = crate::analysis::Analysis::new(BLAME_AFTER);
    for record in &two_threads() {
        analysis.push(record);
    }
    let (whole, part) = (analysis.report(), part(&two_threads(), 0, 50 * MS));
    assert_close(gil(&part).held_s, gil(&whole).held_s);
    assert_eq!(gil(&part).long_holds.len(), gil(&whole).long_holds.len());
}

#[test]
fn the_switch_interval_is_known_in_a_part_that_ends_before_the_process() {
    let report = part(&two_threads(), 0, 20 * MS);
    assert_eq!(report.processes[0].switch_interval_ms, Some(5.0));
}

#[test]
fn totals_of_a_life_that_is_longer_than_the_part_replace_nothing_in_it() {
    let mut records = two_threads();
    let totals =
        ThreadTotals { holds: 9, held_ns: 900 * MS, lost_events: 3, cpu_ns: 7, ..<_>::default() };
    let at_ns = START + 45 * MS;
    records.insert(9, Record::ThreadEnded { thread: ThreadId(1), at_ns, totals });
    let report = part(&records, 20 * MS, 50 * MS);
    assert_close(thread(&report, 1).held_s, 0.010);
    assert_eq!((thread(&report, 1).cpu_s, report.lost_events), (None, 0));
    assert!(report.notes[0].contains("lost 3 events"), "{:?}", report.notes);
}

#[test]
fn a_process_that_ended_before_the_part_is_not_in_it() {
    let mut records = vec![process(1)];
    let totals = ProcessTotals::default();
    records.extend(two_threads());
    let end = Record::ProcessEnded {
        process: crate::record::ProcessId(1),
        at_ns: START + 5 * MS,
        totals,
    };
    records.insert(4, end);
    assert_eq!(part(&records, 0, 50 * MS).processes.len(), 2);
    assert_eq!(part(&records, 20 * MS, 50 * MS).processes.len(), 1);
}

#[test]
fn a_span_reaches_from_the_first_process_to_the_last_word() {
    let mut span = Span::default();
    for record in &two_threads() {
        span.push(record);
    }
    assert_eq!((span.started_ns(), span.end_ns()), (START, START + 50 * MS));
}

/// The same with a second process, whose records come after those of the first one: they are of
/// other times. Its thread 2 uses the GIL three times from 4 ms on, and holds from 14 to 24 ms.
fn told_later() -> Vec<Record> {
    let mut records = vec![process(1)];
    records.extend(two_threads());
    let end = records.pop();
    records.push(thread_of(1, 2, START));
    records.push(thread_of(1, 3, START));
    for from_ns in [4 * MS, 6 * MS, 8 * MS] {
        records.push(event(0, 2, START + from_ns, Kind::Acquire));
        records.push(event(0, 2, START + from_ns + MS, Kind::ReleaseVoluntary));
    }
    records.push(event(0, 2, START + 14 * MS, Kind::Acquire));
    records.push(event(0, 3, START + 16 * MS, Kind::Wait));
    records.push(event(0, 3, START + 17 * MS, Kind::DropRequest));
    records.push(event(0, 2, START + 24 * MS, Kind::ReleaseForced));
    records.push(event(0, 3, START + 24 * MS, Kind::Acquire));
    records.push(event(0, 3, START + 26 * MS, Kind::ReleaseVoluntary));
    records.extend(end);
    records
}

#[test]
fn what_ended_before_a_part_is_not_in_it_even_if_it_is_told_later() {
    let report = part(&told_later(), 20 * MS, 35 * MS);
    let [first, second] = [0, 1].map(|pid| {
        let found = report.processes.iter().find(|it| it.pid == PID + pid);
        &found.unwrap_or_else(|| panic!("{:?}", report.processes)).gils[0]
    });
    assert_close(first.threads.iter().map(|it| it.held_s).sum(), 0.015);
    let holder = second.threads.iter().find(|it| it.tid == PID + 2).unwrap();
    let waiter = second.threads.iter().find(|it| it.tid == PID + 3).unwrap();
    assert_close(holder.held_s, 0.004);
    assert_eq!((holder.holds.count, holder.voluntary, holder.forced), (1, 0, 1));
    assert_close(waiter.waited_s, 0.004);
    assert_eq!((waiter.waits.count, waiter.drop_requests), (1, 0));
    assert_close(second.contended_s, 0.004);
    let told = report.part.unwrap();
    assert_eq!((told.cut_holds, told.cut_waits), (3, 2));
}

#[test]
fn a_process_that_is_told_of_late_counts_from_the_beginning_of_the_part() {
    let records = told_later();
    let (mut late, told): (Vec<_>, Vec<_>) = (vec![process(1)], records[1..].to_vec());
    late.splice(0..0, told[..8].to_vec());
    late.extend(told[8..].to_vec());
    let (report, expected) = (part(&late, 20 * MS, 35 * MS), part(&records, 20 * MS, 35 * MS));
    assert_eq!(sums(&report), sums(&expected));
    let cut = |report: &Report| report.part.as_ref().map(|it| (it.cut_holds, it.cut_waits));
    assert_eq!(cut(&report), cut(&expected));
}

#[test]
fn what_ended_before_a_part_ends_in_it_not_once_more() {
    let mut records = told_later();
    let end = Record::ProcessEnded {
        process: crate::record::ProcessId(1),
        at_ns: START + 28 * MS,
        totals: ProcessTotals::default(),
    };
    records.insert(records.len() - 1, end);
    assert_eq!(part(&records, 27 * MS, 50 * MS).processes.len(), 2);
    assert_eq!(part(&records, 29 * MS, 50 * MS).processes.len(), 1);
}

#[test]
fn a_thread_whose_end_is_told_of_too_early_keeps_what_was_counted() {
    let end = |at_ns| Record::ThreadEnded {
        thread: ThreadId(2),
        at_ns: START + at_ns,
        totals: ThreadTotals::default(),
    };
    let mut records = told_later();
    records.insert(records.len() - 1, end(19 * MS));
    let late = |report: &Report| report.processes.iter().find(|it| it.pid == PID + 1).cloned();
    assert_eq!(late(&part(&records, 20 * MS, 50 * MS)).unwrap().gils[0].threads.len(), 2);
    let report = part(&records, 30 * MS, 50 * MS);
    assert_eq!(late(&report).unwrap().gils[0].threads.len(), 1);
}

/// What is additive in a report, in nanoseconds.
fn sums(report: &Report) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    let mut add = |what: String, seconds: f64| *sums.entry(what).or_default() += seconds * 1e9;
    for gil in report.processes.iter().flat_map(|process| &process.gils) {
        add("held".into(), gil.held_s);
        add("contended".into(), gil.contended_s);
        add("handoffs".into(), gil.handoffs as f64 / 1e9);
        for thread in &gil.threads {
            add(format!("{} held", thread.tid), thread.held_s);
            add(format!("{} waited", thread.tid), thread.waited_s);
            add(format!("{} forced", thread.tid), thread.forced as f64 / 1e9);
            add(format!("{} voluntary", thread.tid), thread.voluntary as f64 / 1e9);
            add(format!("{} asked", thread.tid), thread.drop_requests as f64 / 1e9);
        }
        for row in &gil.blame {
            assert!(row.victim != Who::Others);
            add(format!("{:?} for {:?}", row.victim, row.culprit), row.waited_s);
        }
    }
    sums.retain(|_, ns| *ns > 0.0);
    sums
}

proptest! {
    #[test]
    fn parts_that_follow_one_another_add_up_to_the_whole(
        threads in 1u32..6,
        steps in steps(),
        mut cuts in prop::collection::vec(0u64..2_000, 0..4),
    ) {
        let schedule = schedule(threads as usize, &steps);
        let records = records(&schedule, threads, 1, 0);
        cuts.extend([0, 4_000]);
        cuts.sort_unstable();
        let mut added: BTreeMap<String, f64> = BTreeMap::new();
        for edges in cuts.windows(2) {
            for (what, ns) in sums(&part(&records, edges[0], edges[1])) {
                *added.entry(what).or_default() += ns;
            }
        }
        let whole = sums(&part(&records, 0, 4_000));
        prop_assert_eq!(whole.keys().collect::<Vec<_>>(), added.keys().collect::<Vec<_>>());
        for (what, ns) in &whole {
            prop_assert!((ns - added[what]).abs() < 1e-3, "{what}: {ns} and {}", added[what]);
        }
        let mut analysis = crate::analysis::Analysis::new(BLAME_AFTER);
        for record in &records { analysis.push(record); }
        prop_assert_eq!(sums(&analysis.report()), whole);
    }
}
