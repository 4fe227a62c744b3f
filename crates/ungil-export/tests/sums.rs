//! What is exported adds up to what is reported, whatever the events are, lost ones included.

use proptest::prelude::*;
use std::collections::BTreeMap;
use ungil_core::{Event, Kind};
use ungil_export::{Cell, Collapsed, Firefox, Rows, Weight};
use ungil_trace::Record;
use ungil_trace::analysis::Analysis;
use ungil_trace::record::{
    Doing, Frame, Process, ProcessId, ProcessTotals, ThreadId, ThreadTotals,
};
use ungil_trace::report::{Report, Who};

const PID: u32 = 100;
const START: u64 = 1_000;

fn process() -> Record {
    Record::ProcessStarted(Process {
        process: ProcessId(0),
        pid: PID,
        parent_pid: 1,
        at_ns: START,
        argv: vec!["/usr/bin/python".to_owned(), "app.py".to_owned()],
        python: "3.13.0".to_owned(),
        not_recorded: None,
        ran_before: false,
        processors: None,
    })
}

fn thread(number: u32) -> Record {
    Record::ThreadStarted {
        thread: ThreadId(number),
        process: ProcessId(0),
        tid: PID + number,
        at_ns: START,
        name: format!("t{number}"),
    }
}

fn event(thread: u32, at_ns: u64, kind: Kind) -> Record {
    let event = Event { at_ns, kind, gil: 0, seq: 0 };
    Record::Gil { process: ProcessId(0), thread: ThreadId(thread), event }
}

fn stack(thread: u32, at_ns: u64, function: &str) -> Record {
    let frame = |function: &str| Frame {
        function: function.to_owned(),
        file: "app.py".to_owned(),
        line: 7,
    };
    let frames = vec![frame(function), frame("main")];
    Record::Stack { thread: ThreadId(thread), at_ns, frames, native: None }
}

fn end(at_ns: u64) -> Record {
    let totals = ProcessTotals::default();
    Record::ProcessEnded { process: ProcessId(0), at_ns, totals }
}

/// Any events of four threads, legal or not.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let kind = prop_oneof![
        3 => Just(Kind::Wait),
        4 => Just(Kind::Acquire),
        1 => Just(Kind::DropRequest),
        3 => Just(Kind::ReleaseVoluntary),
        1 => Just(Kind::ReleaseForced),
    ];
    let what = (0u32..4, kind, 0u64..3_000_000, any::<bool>(), 0u8..40);
    prop::collection::vec(what, 0..150).prop_map(|steps| {
        let mut records = vec![process()];
        records.extend((0..4).map(thread));
        let mut now_ns = START;
        for (number, kind, pause_ns, is_sampled, ends) in steps {
            now_ns += pause_ns;
            records.push(event(number, now_ns, kind));
            if is_sampled {
                records.push(stack(number, now_ns, &format!("f{}", pause_ns % 3)));
            }
            if ends == 0 {
                let totals = ThreadTotals::default();
                records.push(Record::ThreadEnded {
                    thread: ThreadId(number),
                    at_ns: now_ns,
                    totals,
                });
            }
        }
        records.push(end(now_ns + 10));
        records
    })
}

/// Events of four threads as CPython makes them.
fn legal() -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec((0u32..4, any::<bool>(), 0u64..3_000_000), 0..150).prop_map(|steps| {
        let mut records = vec![process()];
        records.extend((0..4).map(thread));
        let (mut now_ns, mut holder) = (START, None);
        let mut waits = [false; 4];
        for (number, direct, pause_ns) in steps {
            now_ns += pause_ns;
            let waiting = &mut waits[number as usize];
            let kind = match holder {
                Some(holding) if holding == number => {
                    holder = None;
                    if direct { Kind::ReleaseVoluntary } else { Kind::ReleaseForced }
                }
                None if *waiting || direct => {
                    holder = Some(number);
                    *waiting = false;
                    Kind::Acquire
                }
                _ if *waiting => Kind::DropRequest,
                _ => {
                    *waiting = true;
                    Kind::Wait
                }
            };
            records.push(event(number, now_ns, kind));
        }
        records.push(end(now_ns + 10));
        records
    })
}

fn report(records: &[Record]) -> Report {
    let mut analysis = Analysis::new(20_000_000);
    for record in records {
        analysis.push(record);
    }
    analysis.report()
}

fn rows(records: &[Record], from_ns: u64, to_ns: u64) -> BTreeMap<&'static str, Vec<Vec<Cell>>> {
    let mut tables: BTreeMap<&'static str, Vec<Vec<Cell>>> = BTreeMap::new();
    let mut take = |(table, rows): (&'static str, Vec<Vec<Cell>>)| {
        tables.entry(table).or_default().extend(rows);
        Ok::<_, ()>(())
    };
    let mut made = Rows::new(from_ns, to_ns);
    for record in records {
        made.push(record, &mut take).unwrap();
    }
    made.finish(&mut take).unwrap();
    tables
}

fn number(cell: &Cell) -> i64 {
    match cell {
        Cell::Number(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}

/// By thread: how many, and how long they were in all.
fn lengths(rows: Option<&Vec<Vec<Cell>>>) -> BTreeMap<i64, (u64, i64)> {
    let mut lengths: BTreeMap<i64, (u64, i64)> = BTreeMap::new();
    for row in rows.into_iter().flatten() {
        let (count, ns) = lengths.entry(number(&row[3])).or_default();
        *count += 1;
        *ns += number(&row[5]) - number(&row[4]);
    }
    lengths
}

fn ns(seconds: f64) -> i64 {
    #[allow(clippy::cast_possible_truncation, reason = "whole ns")]
    let ns = (seconds * 1e9).round() as i64;
    ns
}

proptest! {
    #[test]
    fn holds_and_waits_of_each_thread_are_those_of_the_report(records in records()) {
        let (report, tables) = (report(&records), rows(&records, 0, u64::MAX));
        let (holds, waits) = (lengths(tables.get("holds")), lengths(tables.get("waits")));
        for thread in report.processes[0].gils.iter().flat_map(|gil| &gil.threads) {
            let id = i64::from(thread.tid - PID);
            let (held, waited) =
                (holds.get(&id).copied().unwrap_or_default(), waits.get(&id).copied().unwrap_or_default());
            prop_assert_eq!(held, (thread.holds.count, ns(thread.held_s)));
            prop_assert_eq!(waited, (thread.waits.count, ns(thread.waited_s)));
        }
    }

    #[test]
    fn what_others_waited_in_holds_is_what_holders_are_blamed_for(records in legal()) {
        let report = report(&records);
        let mut blamed: BTreeMap<i64, i64> = BTreeMap::new();
        for blame in report.processes[0].gils.iter().flat_map(|gil| &gil.blame) {
            if let Who::Thread(tid) = blame.culprit {
                *blamed.entry(i64::from(tid - PID)).or_default() += ns(blame.waited_s);
            }
        }
        let mut waited: BTreeMap<i64, i64> = BTreeMap::new();
        for hold in rows(&records, 0, u64::MAX).get("holds").into_iter().flatten() {
            *waited.entry(number(&hold[3])).or_default() += number(&hold[7]);
        }
        waited.retain(|_, ns| *ns > 0);
        prop_assert_eq!(waited, blamed);
    }

    #[test]
    fn the_samples_of_a_hold_add_up_to_it(records in records()) {
        let tables = rows(&records, 0, u64::MAX);
        let mut parts: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        let samples = tables.get("samples").into_iter().flatten();
        for sample in samples.filter(|it| it[0] != Cell::Null) {
            let (held, waited) = parts.entry(number(&sample[0])).or_default();
            *held += number(&sample[4]);
            *waited += number(&sample[5]);
        }
        for hold in tables.get("holds").into_iter().flatten() {
            if let Some(&(held, waited)) = parts.get(&number(&hold[0])) {
                prop_assert_eq!(held, number(&hold[5]) - number(&hold[4]));
                prop_assert_eq!(waited, number(&hold[7]));
            }
        }
    }

    #[test]
    fn parts_that_follow_one_another_add_up(records in records(), cut in 0u64..100_000_000) {
        let cut = START + cut;
        let sum = |from, to| -> (i64, i64) {
            let tables = rows(&records, from, to);
            let of = |table| lengths(tables.get(table)).values().map(|(_, ns)| ns).sum::<i64>();
            (of("holds"), of("waits"))
        };
        let (whole, first, second) = (sum(0, u64::MAX), sum(0, cut), sum(cut, u64::MAX));
        prop_assert_eq!((first.0 + second.0, first.1 + second.1), whole);
    }
}

fn convoy() -> Vec<Record> {
    vec![
        process(),
        thread(0),
        thread(1),
        event(0, START, Kind::Acquire),
        event(1, START + 10_000_000, Kind::Wait),
        stack(0, START + 20_000_000, "spin"),
        event(0, START + 40_000_000, Kind::ReleaseForced),
        event(1, START + 40_000_000, Kind::Acquire),
        event(1, START + 41_000_000, Kind::ReleaseVoluntary),
        // Told of late, as the recorder may do.
        stack(0, START + 30_000_000, "spin"),
        end(START + 50_000_000),
    ]
}

#[test]
fn who_held_is_blamed_for_what_was_waited() {
    let (records, report) = (convoy(), report(&convoy()));
    let blame = &report.processes[0].gils[0].blame;
    assert_eq!((blame.len(), blame[0].culprit), (1, Who::Thread(PID)));
    let tables = rows(&records, 0, u64::MAX);
    let hold = tables["holds"].iter().find(|hold| number(&hold[3]) == 0).unwrap();
    assert_eq!(number(&hold[7]), ns(blame[0].waited_s));
    assert_eq!(tables["samples"].len(), 2);
}

#[test]
fn a_collapsed_stack_weighs_what_others_waited() {
    let written = |weight| {
        let mut collapsed = Collapsed::new(weight, 0, u64::MAX);
        for record in &convoy() {
            collapsed.push(record);
        }
        let mut out = Vec::new();
        collapsed.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(written(Weight::Waited), "t0;main (app.py:7);spin (app.py:7) 30000\n");
    assert_eq!(
        written(Weight::Held),
        "t0;main (app.py:7);spin (app.py:7) 40000\nt1;(no stack) 1000\n"
    );
}

#[test]
fn a_look_at_a_short_hold_is_a_sample_of_those_before_it_too() {
    let mut records = vec![process(), thread(0), thread(1)];
    for turn in 0..3 {
        let at_ns = START + turn * 1_000_000;
        let doing = Doing::Held { waiters: 1 };
        let looked_ns = at_ns + 100_000;
        records.extend([
            event(0, at_ns, Kind::Acquire),
            event(1, at_ns + 10_000, Kind::Wait),
            event(0, at_ns + 310_000, Kind::ReleaseVoluntary),
            event(1, at_ns + 310_000, Kind::Acquire),
            event(1, at_ns + 320_000, Kind::ReleaseVoluntary),
        ]);
        if turn == 2 {
            let thread = ThreadId(0);
            records.push(Record::Look { thread, at_ns: looked_ns, doing, frames: Vec::new() });
            records.push(stack(0, looked_ns, "f"));
        }
    }
    records.push(end(START + 4_000_000));
    let tables = rows(&records, 0, u64::MAX);
    let samples: Vec<_> = tables["samples"]
        .iter()
        .map(|it| (it[0].clone(), [1, 2, 4, 5].map(|column| number(&it[column]))))
        .collect();
    assert_eq!(samples, [(Cell::Null, [0, 0, 930_000, 900_000])]);
}

/// What the samples of each thread weigh in a Firefox profile, in milliseconds.
fn firefox_weights(records: &[Record]) -> Vec<Vec<f64>> {
    let mut firefox = Firefox::new(1_000, 0, u64::MAX);
    for record in records {
        firefox.push(record);
    }
    let mut out = Vec::new();
    firefox.write(0, &mut out).unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let weights = |thread: &serde_json::Value| {
        let weights = thread["samples"]["weight"].as_array().unwrap();
        weights.iter().map(|weight| weight.as_f64().unwrap()).collect()
    };
    profile["threads"].as_array().unwrap().iter().map(weights).collect()
}

#[test]
fn a_firefox_sample_weighs_fractions_of_a_millisecond() {
    let mut records = vec![process(), thread(0), thread(1)];
    for turn in 0..3 {
        let at_ns = START + turn * 1_000_000;
        records.extend([
            event(0, at_ns, Kind::Acquire),
            event(1, at_ns + 10_000, Kind::Wait),
            stack(0, at_ns + 100_000, &format!("f{turn}")),
            event(0, at_ns + 310_000, Kind::ReleaseVoluntary),
            event(1, at_ns + 310_000, Kind::Acquire),
            event(1, at_ns + 320_000, Kind::ReleaseVoluntary),
        ]);
    }
    records.push(end(START + 4_000_000));
    assert_eq!(firefox_weights(&records), [vec![0.0, 0.3, 0.3, 0.3], vec![0.0]]);
}
