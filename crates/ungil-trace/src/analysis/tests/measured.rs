//! What two runs are compared by.

use super::naive::{schedule, steps};
use super::scenario::*;
use super::window::records;
use crate::analysis::{Analysis, Busy, Measured, Part};
use crate::record::{Record, ThreadId};
use crate::report::{GroupMeasures, Measures, Report, Stretch};
use proptest::prelude::*;
use ungil_core::Kind;
use ungil_core::park::Ending;

fn measured(records: &[Record], most: u64, least_ns: u64) -> Measures {
    let mut busy = Busy::default();
    for record in records {
        busy.push(record);
    }
    let mut measured = Measured::new(Analysis::new(BLAME_AFTER), &busy, most, least_ns);
    for record in records {
        measured.push(record);
    }
    measured.measures()
}

fn part(records: &[Record], from_ns: u64, to_ns: u64) -> Report {
    let mut part = Part::new(BLAME_AFTER, None, from_ns, to_ns);
    for record in records {
        part.push(record);
    }
    part.report()
}

fn sum(stretch: &Stretch, of: fn(&GroupMeasures) -> f64) -> f64 {
    let gils = stretch.processes.iter().flat_map(|process| &process.gils);
    gils.flat_map(|gil| &gil.groups).map(of).sum()
}

fn nanoseconds(seconds: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole ns")]
    let ns = (seconds * 1e9).round() as u64;
    ns
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

proptest! {
    #[test]
    fn each_part_is_what_a_report_of_that_part_says(threads in 2u32..6, steps in steps()) {
        let schedule = schedule(threads as usize, &steps);
        let records = records(&schedule, threads, 1, 0);
        let measures = measured(&records, 4, 1);
        for stretch in &measures.parts {
            let (from_ns, to_ns) =
                (START + nanoseconds(stretch.start_s), START + nanoseconds(stretch.end_s));
            let report = part(&records, from_ns, to_ns);
            let told = |of: fn(&crate::report::ThreadReport) -> f64| -> f64 {
                let gils = report.processes.iter().flat_map(|process| &process.gils);
                gils.flat_map(|gil| &gil.threads).map(of).sum()
            };
            prop_assert!(close(sum(stretch, |it| it.waited_s), told(|it| it.waited_s)));
            prop_assert!(close(sum(stretch, |it| it.held_s), told(|it| it.held_s)));
            prop_assert!(close(sum(stretch, |it| it.forced as f64), told(|it| it.forced as f64)));
            prop_assert!(close(sum(stretch, |it| it.waits as f64), told(|it| it.waits.count as f64)));
        }
    }

    #[test]
    fn parts_add_up_to_the_whole(threads in 2u32..6, steps in steps(), most in 2u64..9) {
        let schedule = schedule(threads as usize, &steps);
        let measures = measured(&records(&schedule, threads, 1, 0), most, 1);
        let parts: f64 = measures.parts.iter().map(|it| sum(it, |group| group.waited_s)).sum();
        if measures.parts.is_empty() {
            prop_assert!(schedule.doing.len() < 2);
        } else {
            prop_assert!(close(parts, sum(&measures.whole, |group| group.waited_s)));
        }
    }
}

/// A pool of two and the main thread, which computes alone for 100 ms, and then holds while the
/// pool waits for 10 and 30 ms.
fn pool() -> Vec<Record> {
    let name = |thread: u32| Record::ThreadNamed {
        thread: ThreadId(thread),
        name: if thread == 0 { "MainThread".to_owned() } else { format!("pool-1_{thread}") },
    };
    vec![
        process(0),
        thread_of(0, 0, START),
        name(0),
        event(0, 0, START, Kind::Acquire),
        event(0, 0, START + 90 * MS, Kind::ReleaseVoluntary),
        thread_of(0, 1, START + 100 * MS),
        name(1),
        event(0, 0, START + 100 * MS, Kind::Acquire),
        event(0, 1, START + 110 * MS, Kind::Wait),
        thread_of(0, 2, START + 110 * MS),
        name(2),
        event(0, 2, START + 110 * MS, Kind::Wait),
        event(0, 0, START + 120 * MS, Kind::ReleaseVoluntary),
        event(0, 1, START + 120 * MS, Kind::Acquire),
        event(0, 1, START + 140 * MS, Kind::ReleaseVoluntary),
        event(0, 2, START + 140 * MS, Kind::Acquire),
        event(0, 2, START + 150 * MS, Kind::ReleaseVoluntary),
        process_end(0, START + 200 * MS),
    ]
}

#[test]
fn threads_whose_names_differ_in_numbers_are_one_group_without_the_start_up() {
    let measures = measured(&pool(), 10, MS);
    let [process] = &measures.whole.processes[..] else { panic!("{:?}", measures.whole) };
    assert_eq!((process.pattern.as_str(), &process.pids[..]), ("python app*.py", &[PID][..]));
    assert_close(process.busy_s, 0.1);
    let [gil] = &process.gils[..] else { panic!("{process:?}") };
    assert_close(gil.held_s, 0.050);
    let [main, pool] = &gil.groups[..] else { panic!("{gil:?}") };
    assert_eq!((main.name.as_deref(), main.threads), (Some("MainThread"), 1));
    assert_close(main.held_s, 0.020);
    assert_eq!((pool.pattern.as_deref(), pool.name.as_deref()), (Some("pool-*_*"), None));
    assert_eq!((pool.threads, pool.waits), (2, 2));
    assert_close(pool.waited_s, 0.040);
    let p99_us = pool.wait_p99_us.unwrap();
    assert!((p99_us - 10_000.0).abs() < 200.0 || (p99_us - 30_000.0).abs() < 600.0, "{p99_us}");
}

#[test]
fn blocking_calls_of_the_start_up_are_none_of_the_run() {
    let mut records = vec![process(0), thread_of(0, 0, START)];
    let call = |at_ms: u64| {
        [(at_ms, Kind::Acquire), (at_ms + 1, Kind::ReleaseVoluntary)]
            .map(|(at_ms, kind)| event(0, 0, START + at_ms * MS, kind))
    };
    records.extend([0, 10, 20].into_iter().flat_map(call));
    records.push(thread_of(0, 1, START + 50 * MS));
    records.extend([30, 40, 60, 70].into_iter().flat_map(call));
    records.push(process_end(0, START + 100 * MS));
    let calls = |stretch: &Stretch| sum(stretch, |group| group.blocking_calls as f64);
    assert_close(calls(&measured(&records, 1, MS).whole), 2.0);
    assert_close(measured(&records, 5, MS).parts.iter().map(calls).sum(), 2.0);
}

#[test]
fn parts_begin_when_there_is_a_second_thread() {
    let measures = measured(&pool(), 10, MS);
    assert_eq!(measures.parts.len(), 10);
    assert_close(measures.parts[0].start_s, 0.1);
    assert_close(measures.parts[9].end_s, 0.2);
    assert!(measured(&pool(), 10, 60 * MS).parts.is_empty());
}

#[test]
fn what_is_told_after_an_edge_counts_in_the_part_in_which_it_was() {
    let mut records = vec![process(0), process(1)];
    records.extend(
        [(0, 0), (0, 1), (1, 2), (1, 3)].map(|(process, it)| thread_of(process, it, START)),
    );
    records.push(event(0, 0, START + 55 * MS, Kind::Acquire));
    for at_ms in [10, 30, 60] {
        records.push(event(0, 2, START + at_ms * MS, Kind::Acquire));
        records.push(event(0, 2, START + (at_ms + 10) * MS, Kind::ReleaseVoluntary));
    }
    records.push(process_end(0, START + 100 * MS));
    let measures = measured(&records, 2, MS);
    let held: Vec<f64> = measures.parts.iter().map(|it| sum(it, |group| group.held_s)).collect();
    assert!(close(held[0], 0.020) && close(held[1], 0.055), "{held:?}");
    let holds: Vec<f64> = measures.parts.iter().map(|it| sum(it, |it| it.holds as f64)).collect();
    assert!(close(holds[0], 2.0) && close(holds[1], 2.0), "{holds:?}");
}

#[test]
fn waits_for_a_lock_that_is_taken_in_turn_count_in_each_part_with_a_piece_of_them() {
    let slept = |thread: u32, from_ms: u64, to_ms: u64, waker: u32| {
        off_gil(thread, (from_ms * MS, to_ms * MS), waker, Ending::LetGo)
    };
    let mut records = vec![process(0)];
    records.extend([0, 1].map(|it| thread_of(0, it, START)));
    records.extend([0, 1].map(|it| event(0, it, START, Kind::Wait)));
    records.extend([slept(0, 5, 10, 1), slept(1, 15, 95, 0), process_end(0, START + 100 * MS)]);
    let measures = measured(&records, 5, MS);
    let waited = |stretch: &Stretch| sum(stretch, |group| group.lock_waited_s);
    let parts: Vec<_> = measures.parts.iter().map(waited).collect();
    let expected = [0.010, 0.020, 0.020, 0.020, 0.015];
    assert!(parts.iter().zip(expected).all(|(part, it)| close(*part, it)), "{parts:?}");
    assert_close(waited(&measures.whole), 0.085);
    // Of a lock at which a thread waits for something to do nothing is compared.
    records[5] = slept(1, 5, 10, 0);
    assert_close(waited(&measured(&records, 5, MS).whole), 0.0);
}

#[test]
fn nothing_at_all_is_measured_too() {
    let measures = measured(&[], 10, MS);
    assert!(measures.whole.processes.is_empty() && measures.parts.is_empty());
}
