//! A snapshot against the part of a whole trace that begins at the same moment.

use super::*;
use crate::analysis::{Analysis, Part};
use crate::record::{Frame, Process, ProcessId, Record, ThreadId, ThreadTotals};
use crate::report::Report;
use proptest::prelude::*;
use serde_json::Value;
use ungil_core::{Event, Kind};

const MS: u64 = 1_000_000;
const BLAME_NS: u64 = 5 * MS;
const THREADS: u32 = 5;
/// Of one process; the other threads are of another one.
const FIRST: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Step {
    thread: u32,
    choice: u8,
    after_ns: u64,
    is_lost: bool,
}

fn steps(loss: f64) -> impl Strategy<Value = Vec<Step>> {
    let after_ns = prop_oneof![3 => 1..2 * MS, 1 => 1..20 * MS];
    let step = (0..THREADS, 0u8..5, after_ns, prop::bool::weighted(loss));
    let step = step.prop_map(|(thread, choice, after_ns, is_lost)| Step {
        thread,
        choice,
        after_ns,
        is_lost,
    });
    prop::collection::vec(step, 1..300)
}

fn process_of(thread: u32) -> ProcessId {
    ProcessId(u32::from(thread >= FIRST))
}

fn introduction(start_ns: u64) -> Vec<Record> {
    let process = |id, at_ns| {
        Record::ProcessStarted(Process {
            process: ProcessId(id),
            pid: 100 * (id + 1),
            parent_pid: 1,
            at_ns,
            argv: vec!["python3".into(), "app.py".into()],
            python: "3.13.0".into(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        })
    };
    let thread = |id: u32| Record::ThreadStarted {
        thread: ThreadId(id),
        process: process_of(id),
        tid: 100 + id,
        at_ns: start_ns,
        name: format!("t{id}"),
    };
    [process(0, start_ns), process(1, start_ns)]
        .into_iter()
        .chain((0..THREADS).map(thread))
        .collect()
}

/// What threads do that take turns at the GIL of their process, with what is seen of it.
fn records(steps: Vec<Step>) -> Vec<Record> {
    let mut now_ns = 1_000 * MS;
    let mut records = introduction(now_ns);
    let (mut holders, mut waits) = ([None; 2], [false; THREADS as usize]);
    for Step { thread, choice, after_ns, is_lost } in steps {
        now_ns += after_ns;
        let (id, process) = (ThreadId(thread), process_of(thread));
        let holder = &mut holders[process.0 as usize];
        let is_holder = *holder == Some(thread);
        let waits = &mut waits[thread as usize];
        let kind = match choice {
            0 | 1 if is_holder => {
                *holder = None;
                if choice == 0 { Kind::ReleaseVoluntary } else { Kind::ReleaseForced }
            }
            0 | 1 if holder.is_none() => {
                (*holder, *waits) = (Some(thread), false);
                Kind::Acquire
            }
            0 | 1 if !*waits => {
                *waits = true;
                Kind::Wait
            }
            2 if *waits && holder.is_some() => Kind::DropRequest,
            3 if is_holder => {
                let frames = vec![Frame {
                    function: format!("f{}", after_ns % 3),
                    file: "/srv/app.py".into(),
                    line: 7,
                }];
                records.push(Record::Stack { thread: id, at_ns: now_ns, frames, native: None });
                continue;
            }
            4 if after_ns % 5 == 0 => {
                records.push(Record::ThreadNamed { thread: id, name: format!("n{after_ns}") });
                continue;
            }
            _ => continue,
        };
        if !is_lost {
            let event = Event { at_ns: now_ns, kind, gil: 0, seq: 0 };
            records.push(Record::Gil { process, thread: id, event });
        }
    }
    records
}

/// How the recording would end now.
fn last_words(at_ns: u64) -> Vec<Record> {
    let thread = |id| {
        let totals = ThreadTotals::default();
        Record::ThreadEnded { thread: ThreadId(id), at_ns, totals }
    };
    let process = |id| Record::ProcessEnded {
        process: ProcessId(id),
        at_ns,
        totals: crate::record::ProcessTotals::default(),
    };
    (0..THREADS).map(thread).chain((0..2).map(process)).collect()
}

/// A recorder that keeps so much of these records.
fn kept(records: &[Record], last_ns: u64, most_bytes: usize) -> Kept {
    let mut kept = Kept::new(last_ns, most_bytes, 999 * MS);
    for record in records {
        if let Some(at_ns) = record.at_ns() {
            kept.tick(at_ns, Vec::new);
        }
        kept.push(record);
    }
    kept
}

fn without(mut value: Value, names: &[&str]) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            for field in fields.values_mut() {
                *field = without(field.take(), names);
            }
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                *item = without(item.take(), names);
            }
            // The row of a thread of which nothing was seen but, before, an event without sense.
            items.retain(|it| it["holds"]["count"] != 0 || it["waits"]["count"] != 0);
            // Rows with equal numbers come in no order.
            items.sort_by_key(ToString::to_string);
        }
        _ => {}
    }
    value
}

/// A report without the moments that are told from the start of its trace, and without what threads
/// counted, which a part does not know.
fn comparable(report: &Report) -> Value {
    let other = [
        "part",
        "started_s",
        "start_s",
        "ended_s",
        "end_s",
        "window",
        "findings",
        "notes",
        "cpu_s",
        "context_switches",
    ];
    without(serde_json::to_value(report).unwrap(), &other)
}

fn report_of(frozen: Frozen, end_ns: u64) -> (u64, Report) {
    let from_ns = frozen.from_ns();
    let snapshot = Snapshot { frozen, last_words: last_words(end_ns), stall: None };
    let mut analysis = Analysis::new(BLAME_NS);
    snapshot.tell(|record| analysis.push(record));
    (from_ns, analysis.report())
}

fn check(records: &[Record], last_ns: u64, most_bytes: usize) -> Result<(), TestCaseError> {
    let at_ns = |record: &Record| match record {
        Record::Stack { at_ns, .. } => Some(*at_ns),
        other => other.at_ns(),
    };
    let end_ns = records.iter().filter_map(at_ns).max().unwrap() + MS;
    let kept = kept(records, last_ns, most_bytes);
    let (from_ns, report) = report_of(kept.freeze(), end_ns);
    let mut part = Part::new(BLAME_NS, None, from_ns, end_ns + 1);
    for record in records.iter().chain(&last_words(end_ns)) {
        part.push(record);
    }
    let mut part = part.report();
    // Up to its last word, and not to the end of what was asked for.
    part.duration_s = report.duration_s;
    let different = differences("", &comparable(&report), &comparable(&part));
    prop_assert!(different.is_empty(), "from {}: {:#?}", from_ns, different);
    Ok(())
}

/// Where two values differ.
fn differences(place: &str, one: &Value, other: &Value) -> Vec<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if one.len() == other.len() => one
            .iter()
            .flat_map(|(name, value)| differences(&format!("{place}.{name}"), value, &other[name]))
            .collect(),
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => (0..one.len())
            .flat_map(|index| differences(&format!("{place}[{index}]"), &one[index], &other[index]))
            .collect(),
        _ if one == other => Vec::new(),
        _ => vec![format!("{place}: {one}, not {other}")],
    }
}

proptest! {
    #[test]
    fn a_snapshot_reports_what_that_part_of_a_whole_trace_does(
        steps in steps(0.0), last_ms in 1u64..200, kilobytes in prop::option::of(1usize..4)
    ) {
        check(&records(steps), last_ms * MS, kilobytes.map_or(1 << 20, |it| it << 10))?;
    }

    #[test]
    fn also_where_events_were_lost(steps in steps(0.1), last_ms in 1u64..200) {
        check(&records(steps), last_ms * MS, 1 << 20)?;
    }

    #[test]
    fn what_is_not_forgotten_comes_back_as_it_was(steps in steps(0.1)) {
        let records = records(steps);
        let frozen = kept(&records, u64::MAX / 2, usize::MAX).freeze();
        let mut told = Vec::new();
        frozen.chunks.iter().for_each(|chunk| chunk.each(|record| told.push(record.clone())));
        prop_assert_eq!(told, records);
    }

    #[test]
    fn no_more_memory_is_taken_than_there_may_be(steps in steps(0.0), kilobytes in 8usize..20) {
        let mut kept = Kept::new(u64::MAX / 2, kilobytes << 10, 0);
        for record in records(steps) {
            kept.push(&record);
            // Nothing is ever too old.
            kept.tick(0, Vec::new);
            // The last record, which may be a stack, has come since the last look.
            prop_assert!(kept.bytes() <= (kilobytes << 10) + 1_000);
        }
    }
}

/// Thread 0 computes, and is seen in `f0`; thread 1 waits for it from `wait_ns` on.
fn a_stall() -> (Vec<Record>, Stall) {
    let event = |at_ms: u64, thread, kind| Record::Gil {
        process: ProcessId(0),
        thread: ThreadId(thread),
        event: Event { at_ns: (1_000 + at_ms) * MS, kind, gil: 0, seq: 0 },
    };
    let frame = |function: &str, file: &str| Frame {
        function: function.into(),
        file: file.into(),
        line: 7,
    };
    let mut records = introduction(1_000 * MS);
    records.extend([
        event(0, 0, Kind::Acquire),
        event(1, 1, Kind::Wait),
        Record::Stack {
            thread: ThreadId(0),
            at_ns: 1_020 * MS,
            frames: vec![frame("match", "/usr/lib/python3.13/re.py"), frame("f0", "/srv/app.py")],
            native: None,
        },
        event(60, 0, Kind::ReleaseForced),
        event(61, 2, Kind::Acquire),
        event(62, 2, Kind::ReleaseForced),
        event(63, 1, Kind::Acquire),
    ]);
    let mut stalls = Stalls::new(&[Condition { limit: Limit::Wait, over_ns: 50 * MS }]);
    let stall = records.iter().filter_map(|record| stalls.push(record)).last().unwrap();
    (records, stall)
}

#[test]
fn who_held_longest_during_a_wait_is_its_cause_with_the_users_own_line() {
    let (records, stall) = a_stall();
    let frozen = kept(&records, u64::MAX / 2, usize::MAX).freeze();
    let snapshot = Snapshot { frozen, last_words: Vec::new(), stall: Some(stall) };
    let mut analysis = Analysis::new(BLAME_NS);
    let cause = snapshot.tell(|record| analysis.push(record)).unwrap();
    assert_eq!((cause.pid, cause.thread.as_str(), cause.length_ns), (100, "t1", 62 * MS));
    let holder = cause.holder.unwrap();
    assert_eq!((holder.tid, holder.thread.as_str()), (100, "t0"));
    assert_eq!(holder.line.as_deref(), Some("f0 (/srv/app.py:7)"));
}
