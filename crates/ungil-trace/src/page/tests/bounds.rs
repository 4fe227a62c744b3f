//! What a page leaves out, and that it says so.

use super::read::*;
use crate::record::{Frame, NativeFrame, Process, ProcessId, ProcessTotals, Record, ThreadId};
use ungil_core::{Event, Kind};

/// Two threads in turn, each of which waits for the other; holds are of any length.
fn busy_records(holds: u64) -> Vec<Record> {
    let mut records = begun(2);
    let (mut at_ns, mut noise) = (0, 1u64);
    records.push(does(0, 0, Kind::Acquire));
    for turn in 0..holds {
        let (holder, other) = if turn % 2 == 0 { (0, 1) } else { (1, 0) };
        noise =
            noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        records.push(does(other, at_ns + 10, Kind::Wait));
        at_ns += 1_000 + (noise >> 44);
        records.push(does(holder, at_ns, Kind::ReleaseVoluntary));
        records.push(does(other, at_ns + 5, Kind::Acquire));
        at_ns += 5;
    }
    records
}

#[test]
fn without_room_for_all_holds_their_sums_stay_and_the_page_says_so() {
    let records = busy_records(110_000);
    let (whole, report) = page_of(&records, None, 1, usize::MAX);
    let (page, _) = page_of(&records, None, 1, 700_000);
    assert_eq!(
        (&whole.summary["is_whole"], &page.summary["is_whole"]),
        (&true.into(), &false.into())
    );
    assert!(page.summary["bounds"][0].as_str().unwrap().starts_with("the page has no room"));
    let [gil, all] = [&page.gils()[0], &whole.gils()[0]];
    let characters: usize = page.blocks.iter().map(|bytes| bytes.len() * 4 / 3).sum();
    assert!(characters < 700_000, "{characters}");
    let (kept, holds) = (page.holds(gil).len(), whole.holds(all).len());
    assert!(kept > 0 && kept < holds);
    // Those that are missing are told by how many, and how much was waited.
    let missing = gil["missing"].as_array().unwrap();
    let lost: u64 = missing
        .iter()
        .map(|it| {
            let lengths = page.table(&it["lengths"]);
            let holds = lengths["what"].iter().zip(&lengths["count"]);
            holds.filter(|(what, _)| **what == 0).map(|(_, count)| count).sum::<u64>()
        })
        .sum();
    assert_eq!(usize::try_from(lost).unwrap() + kept, holds);
    let waited: u64 =
        missing.iter().map(|it| page.table(&it["blame"])["waited"].iter().sum::<u64>()).sum();
    let exact: u64 = page.waits(gil).iter().map(|wait| wait[2] - wait[1]).sum();
    let told: f64 = report.processes[0].gils[0].threads.iter().map(|thread| thread.waited_s).sum();
    assert!(((waited + exact) as f64 / 1e9 - told).abs() < 1e-6);
    for chunk in gil["chunks"].as_array().unwrap() {
        let is_apart = |it: &serde_json::Value| {
            it["to"].as_u64() <= chunk["from"].as_u64()
                || it["from"].as_u64() >= chunk["to"].as_u64()
        };
        assert!(missing.iter().all(is_apart));
    }
}

#[test]
fn ten_thousand_threads_that_wait_for_a_minute_are_a_small_page() {
    let mut records = begun(10_000);
    records.push(does(0, 0, Kind::Acquire));
    records.extend((1..10_000).map(|thread| does(thread, u64::from(thread) * 1_000, Kind::Wait)));
    records.push(does(0, 60_000_000_000, Kind::ReleaseForced));
    let (page, _) = page_of(&records, None, 1_000, usize::MAX);
    let characters: usize = page.blocks.iter().map(|bytes| bytes.len() * 4 / 3).sum();
    assert!(characters < 1_500_000, "{characters}");
    let lanes = page.json(&page.gils()[0]["lanes"]);
    assert_eq!(lanes["tid"].as_array().unwrap().len(), 10_001);
}

#[test]
fn of_five_hundred_processes_those_that_waited_most_have_a_timeline() {
    let mut records = Vec::new();
    for number in 0..500u32 {
        let process = ProcessId(number);
        records.push(Record::ProcessStarted(Process {
            process,
            pid: 1_000 + number,
            parent_pid: 1,
            at_ns: START,
            argv: vec!["</script><script>alert(1)</script>".into()],
            python: "3.13.0".into(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        }));
        for thread in 0..2 {
            records.push(Record::ThreadStarted {
                thread: ThreadId(2 * number + thread),
                process,
                tid: 1_000 + number + 5_000 * thread,
                at_ns: START,
                name: "\u{202e}<img src=x onerror=alert(1)>\u{0}".into(),
            });
        }
        let mut event = |thread: u32, at_ns: u64, kind| {
            let event = Event { at_ns: START + at_ns, kind, gil: 0, seq: 0 };
            records.push(Record::Gil { process, thread: ThreadId(2 * number + thread), event });
        };
        event(0, 0, Kind::Acquire);
        event(1, 10, Kind::Wait);
        event(0, 1_000 * u64::from(number + 1), Kind::ReleaseForced);
        event(1, 1_000 * u64::from(number + 1), Kind::Acquire);
    }
    let (page, _) = page_of(&records, None, 1, usize::MAX);
    assert_eq!(page.summary["processes"].as_array().unwrap().len(), 500);
    assert_eq!(page.gils().len(), 64);
    let waited: Vec<_> = page.gils().iter().map(|gil| gil["waited_s"].as_f64().unwrap()).collect();
    assert!(waited.is_sorted_by(|a, b| a >= b));
    let bounds = page.summary["bounds"].to_string();
    assert!(bounds.contains("of 500 GILs, only the 64"), "{bounds}");
}

#[test]
fn a_stack_goes_to_the_hold_in_which_it_was_taken_however_late_it_is_told() {
    let frame =
        |function: &str| Frame { function: function.into(), file: "/srv/a.py".into(), line: 3 };
    let stack = |at_ns: u64, function: &str, native: Option<NativeFrame>| Record::Stack {
        thread: ThreadId(0),
        at_ns: START + at_ns,
        frames: vec![frame(function), frame("main")],
        native: native.map(|frame| vec![frame]),
    };
    let sort = NativeFrame {
        symbol: "list_sort".into(),
        library: "/usr/bin/python".into(),
        ..NativeFrame::default()
    };
    let mut records = begun(2);
    records.extend([
        does(0, 0, Kind::Acquire),
        does(1, 1_000_000, Kind::Wait),
        stack(10_000_000, "early", None),
        does(0, 30_000_000, Kind::ReleaseForced),
        does(1, 30_000_000, Kind::Acquire),
        stack(20_000_000, "late", Some(sort)),
        Record::NoStack {
            thread: ThreadId(1),
            at_ns: START + 31_000_000,
            why: "it was dark".into(),
        },
        does(1, 50_000_000, Kind::ReleaseVoluntary),
    ]);
    let (page, _) = page_of(&records, None, 1, usize::MAX);
    let samples = page.table(&page.gils()[0]["samples"]);
    assert_eq!(samples["lane"], [1, 1, 2]);
    assert_eq!(samples["begin"], [0, 0, 30_000_000]);
    assert_eq!(samples["waited"], [29_000_000, 29_000_000, 0]);
    assert_eq!(samples["at"], [10_000_000, 20_000_000, 1_000_000]);
    assert_eq!((&samples["stack"][..], &samples["why"][..]), (&[1, 2, 0][..], &[0, 0, 1][..]));
    let tables = page.json(&page.summary["stacks"]);
    let text = |index: &serde_json::Value| {
        tables["strings"][usize::try_from(index.as_u64().unwrap()).unwrap()]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let frame = |stack: usize, depth: usize| {
        let frame = usize::try_from(tables["stacks"][stack][depth].as_u64().unwrap()).unwrap();
        [0, 3, 4].map(|column| text(&tables["frames"][frame][column]))
    };
    assert_eq!(frame(0, 0), ["early", "", ""]);
    assert_eq!(frame(1, 0), ["list_sort", "native", "/usr/bin/python"]);
    assert_eq!(frame(1, 1), ["late", "", ""]);
    assert_eq!(text(&tables["whys"][0]), "it was dark");
    assert_eq!(tables["frames"][0][5], 1, "it is the user's own code");
}

#[test]
fn a_server_that_forks_for_each_request_is_bounded() {
    let mut records = Vec::new();
    for number in 0..3_000u32 {
        let (process, thread) = (ProcessId(number), ThreadId(number));
        let started_ns = START + 1_000 * u64::from(number);
        records.push(Record::ProcessStarted(Process {
            process,
            pid: 10 + number,
            parent_pid: 1,
            at_ns: started_ns,
            argv: Vec::new(),
            python: String::new(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        }));
        let name = String::new();
        let tid = 10 + number;
        records.push(Record::ThreadStarted { thread, process, tid, at_ns: started_ns, name });
        for (at_ns, kind) in [(10, Kind::Acquire), (20, Kind::ReleaseVoluntary)] {
            let event = Event { at_ns: started_ns + at_ns, kind, gil: 0, seq: 0 };
            records.push(Record::Gil { process, thread, event });
        }
        let totals = ProcessTotals::default();
        records.push(Record::ProcessEnded { process, at_ns: started_ns + 30, totals });
    }
    let (page, _) = page_of(&records, None, 1, usize::MAX);
    assert_eq!(page.gils().len(), 64);
    assert!(page.summary["bounds"].to_string().contains("of 3000 GILs, only the 64"));
}
