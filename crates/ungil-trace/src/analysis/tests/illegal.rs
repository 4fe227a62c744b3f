//! Whatever the records say, the report is made of finite numbers that are not negative.

use super::scenario::*;
use crate::analysis::Analysis;
use crate::record::{
    Doing, Frame, KernelCount, NativeFrame, Park, Process, ProcessId, ProcessTotals, Record,
    ThreadId, ThreadTotals,
};
use crate::report::{Report, Who};
use proptest::prelude::*;
use serde_json::Value;
use ungil_core::park::{Cause, Ending};
use ungil_core::{Event, Kind};

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..200 * MS, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn id() -> impl Strategy<Value = u32> {
    prop_oneof![20 => 0u32..6, 1 => any::<u32>()]
}

fn totals() -> impl Strategy<Value = ThreadTotals> {
    let number = || prop_oneof![Just(0), 0..200 * MS, any::<u64>()];
    (number(), number(), number(), number(), number()).prop_map(
        |(waits, waited_ns, holds, held_ns, lost_events)| ThreadTotals {
            waits,
            waited_ns,
            holds,
            held_ns,
            voluntary: holds,
            forced: waits,
            drop_requests: waits,
            cpu_ns: held_ns,
            lost_events,
            ..ThreadTotals::default()
        },
    )
}

fn record() -> impl Strategy<Value = Record> {
    let kind = (1u8..=7).prop_map(|number| Kind::from_number(number).unwrap());
    let gil = prop_oneof![5 => Just(0u8), 1 => any::<u8>()];
    prop_oneof![
        2 => (id(), time()).prop_map(|(id, at_ns)| Record::ProcessStarted(Process {
            process: ProcessId(id),
            pid: id,
            parent_pid: 0,
            at_ns,
            argv: Vec::new(),
            python: String::new(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        })),
        1 => (id(), time(), any::<u64>()).prop_map(|(id, at_ns, number)| Record::ProcessEnded {
            process: ProcessId(id),
            at_ns,
            totals: ProcessTotals { switch_interval_ns: number, policy: number, unrecorded_threads: number, gil_state: number, gil_on_ns: number, clock_error_ns: number },
        }),
        4 => (id(), id(), time()).prop_map(|(thread, process, at_ns)| Record::ThreadStarted {
            thread: ThreadId(thread),
            process: ProcessId(process),
            tid: thread,
            at_ns,
            name: String::new(),
        }),
        1 => (id(), time(), totals()).prop_map(|(thread, at_ns, totals)| Record::ThreadEnded {
            thread: ThreadId(thread),
            at_ns,
            totals,
        }),
        1 => (id(), time()).prop_map(|(thread, at_ns)| Record::Stack {
            thread: ThreadId(thread),
            at_ns,
            frames: vec![Frame { function: String::new(), file: String::new(), line: 0 }],
            native: (at_ns % 2 == 0).then(|| vec![NativeFrame::default()]),
        }),
        1 => (id(), time()).prop_map(|(thread, at_ns)| {
            Record::Stopped { thread: ThreadId(thread), at_ns, stood_ns: at_ns }
        }),
        3 => (id(), time(), time(), any::<bool>()).prop_map(|(id, at_ns, counted_ns, runnable)| {
            let (thread, ran_ns, delayed_ns) = (ThreadId(id), counted_ns, at_ns);
            let count = KernelCount { at_ns: counted_ns, ran_ns, delayed_ns, runnable };
            Record::KernelCount { thread, count }
        }),
        3 => (id(), time(), time(), id(), any::<u32>()).prop_map(
            |(thread, since_ns, until_ns, waker, number)| Record::Parked {
                thread: ThreadId(thread),
                park: Park {
                    since_ns,
                    until_ns,
                    cause: Cause::ALL[number as usize % Cause::ALL.len()],
                    of: String::new(),
                    lock: number % 4,
                    ending: Ending::Woken,
                    waker: (waker % 2 == 0).then_some(ThreadId(waker)),
                    stack: (number % 3) as u16,
                    waker_stack: (number % 5) as u16,
                },
            }
        ),
        1 => (id(), 0u16..5).prop_map(|(id, number)| {
            Record::ParkStack { process: ProcessId(id), number, frames: Vec::new() }
        }),
        1 => (id(), time()).prop_map(|(id, at_ns)| Record::GilSwitchedOn {
            process: ProcessId(id),
            at_ns,
            library: String::new(),
            frames: Vec::new(),
        }),
        1 => (id(), time(), any::<u64>()).prop_map(|(id, at_ns, times)| {
            Record::Throttled { process: ProcessId(id), at_ns, times, stopped_ns: times }
        }),
        1 => (id(), time()).prop_map(|(thread, at_ns)| Record::NoStack {
            thread: ThreadId(thread),
            at_ns,
            why: String::new(),
        }),
        1 => (id(), time(), any::<bool>()).prop_map(|(thread, at_ns, held)| Record::Look {
            thread: ThreadId(thread),
            at_ns,
            doing: if held {
                Doing::Held { waiters: thread }
            } else {
                let stands_for_ns = u64::from(thread).saturating_mul(at_ns);
                Doing::Off { stands_for_ns, call: "read".to_owned(), on: String::new() }
            },
            frames: vec![Frame { function: String::new(), file: String::new(), line: 0 }],
        }),
        1 => (id(), time()).prop_map(|(process, at_ns)| Record::Libraries {
            process: ProcessId(process),
            at_ns,
            files: vec![String::new()],
        }),
        60 => (id(), time(), kind, gil).prop_map(|(thread, at_ns, kind, gil)| Record::Gil {
            process: ProcessId(0),
            thread: ThreadId(thread),
            event: Event { at_ns, kind, gil, seq: 0 },
        }),
    ]
}

/// `place` is where in the report the value is.
fn assert_sound(value: &Value, place: &str) {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            assert!(number.is_finite() && number >= 0.0, "{place}: {number}");
        }
        Value::Array(items) => items.iter().for_each(|item| assert_sound(item, place)),
        Value::Object(items) => {
            items.iter().for_each(|(name, item)| assert_sound(item, &format!("{place}.{name}")));
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// `serde_json` writes a number that is not finite as null, so those places are looked at by hand.
fn assert_finite(report: &Report) {
    assert!(report.duration_s.is_finite());
    for gil in report.processes.iter().flat_map(|process| &process.gils) {
        assert!(gil.held_s.is_finite() && gil.contended_s.is_finite());
        assert!(gil.wanting_mean.is_finite());
        for thread in &gil.threads {
            let of = |lengths: &crate::report::Lengths| {
                [lengths.mean_us, lengths.p50_us, lengths.p99_us, lengths.max_us]
            };
            let numbers = of(&thread.holds).into_iter().chain(of(&thread.waits)).chain([
                thread.gaps.mean_ms,
                thread.gaps.max_ms,
                thread.blocking.late_p50_ms,
                thread.unanswered.total_s,
            ]);
            numbers.for_each(|number| assert!(number.is_finite()));
        }
    }
    assert!(report.findings.iter().all(|finding| finding.cost_s.is_finite()));
}

/// The charges of each victim add up to what it waited.
fn assert_balanced(report: &Report) {
    for gil in report.processes.iter().flat_map(|process| &process.gils) {
        for thread in &gil.threads {
            let rows = gil.blame.iter().filter(|row| row.victim == Who::Thread(thread.tid));
            let charged_s: f64 = rows.map(|row| row.waited_s).sum();
            let error = (charged_s - thread.waited_s).abs();
            assert!(error <= 1e-9 + thread.waited_s * 1e-9, "{charged_s} {}", thread.waited_s);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_records_give_a_sound_report(records in prop::collection::vec(record(), 0..300)) {
        let mut analysis = Analysis::new(20 * MS);
        analysis.push(&process(0));
        (0..4).for_each(|thread| { analysis.push(&thread_of(0, thread, 0)); });
        for record in &records {
            analysis.push(record);
        }
        let live = analysis.report();
        assert_sound(&serde_json::to_value(&live).unwrap(), "report");
        assert_finite(&live);
        assert_balanced(&live);
        analysis.push(&process_end(0, 300 * MS));
        let report = analysis.report();
        assert_sound(&serde_json::to_value(&report).unwrap(), "report");
        assert_finite(&report);
        assert_balanced(&report);
        prop_assert!(!report.findings.is_empty());
    }
}

#[test]
fn a_release_whose_hold_was_lost_ends_the_hold_that_is_known_without_a_length() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.release(10 * MS, 1);
    scenario.hold(15 * MS, 16 * MS, 0);
    let report = scenario.end(20 * MS);
    assert_close(thread(&report, 0).held_s, 0.001);
    assert_close(thread(&report, 0).holds.max_us, 1_000.0);
    assert_eq!((thread(&report, 1).voluntary, thread(&report, 1).holds.count), (1, 0));
}

#[test]
fn an_acquire_ends_a_hold_whose_release_was_lost_without_a_length() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.acquire(8 * MS, 1);
    scenario.release(9 * MS, 1);
    let report = scenario.end(20 * MS);
    assert_close(thread(&report, 0).held_s, 0.0);
    assert_close(gil(&report).held_s, 0.001);
}

#[test]
fn a_wait_whose_acquire_was_lost_is_not_counted() {
    let mut scenario = Scenario::new(2);
    scenario.acquire(0, 0);
    scenario.wait(MS, 1);
    scenario.wait(9 * MS, 1);
    scenario.release(10 * MS, 0);
    scenario.hold(10 * MS, 12 * MS, 1);
    let report = scenario.end(20 * MS);
    assert_eq!(thread(&report, 1).waits.count, 1);
    assert_close(thread(&report, 1).waited_s, 0.001);
    assert_close(blamed_ms(&report, 1, who(0)), 1.0);
}
