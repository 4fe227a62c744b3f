//! Looks at holders that are taken at regular times.

use super::read::*;
use crate::record::{Doing, Frame, NativeFrame, Record, ThreadId};
use ungil_core::Kind;

const MS: u64 = 1_000_000;

fn frame(function: &str) -> Frame {
    Frame { function: function.into(), file: "app.py".into(), line: 1 }
}

fn look(thread: u32, at_ns: u64, waiters: u32, function: &str) -> Record {
    let frames = vec![frame(function)];
    let (thread, at_ns) = (ThreadId(thread), START + at_ns);
    Record::Look { thread, at_ns, doing: Doing::Held { waiters }, frames }
}

/// Thread 0 holds for `ns` from `at_ns` on, and thread 1 waits for it all the time.
fn hold(at_ns: u64, ns: u64) -> Vec<Record> {
    vec![
        does(0, at_ns, Kind::Acquire),
        does(1, at_ns, Kind::Wait),
        does(0, at_ns + ns, Kind::ReleaseVoluntary),
        does(1, at_ns + ns, Kind::Acquire),
        does(1, at_ns + ns + 1, Kind::ReleaseVoluntary),
    ]
}

#[test]
fn a_look_and_the_stack_of_the_same_moment_are_one_sample() {
    let mut records = begun(2);
    let [acquire, wait, rest @ ..] = &hold(0, 5 * MS)[..] else { unreachable!() };
    records.extend([acquire.clone(), wait.clone(), look(0, MS, 1, "run")]);
    let native = vec![NativeFrame { symbol: "f".into(), ..NativeFrame::default() }];
    let frames = vec![frame("run"), frame("main")];
    let (thread, at_ns) = (ThreadId(0), START + MS);
    records.push(Record::Stack { thread, at_ns, frames, native: Some(native) });
    records.extend_from_slice(rest);
    let (page, _) = page_of(&records, None, 1, usize::MAX);
    let samples = page.table(&page.gils()[0]["samples"]);
    assert_eq!((&samples["lane"][..], &samples["waiters"][..]), (&[1][..], &[1][..]));
    assert_eq!((samples["at"][0], samples["waited"][0]), (MS, 5 * MS));
    let stacks = page.json(&page.summary["stacks"]);
    assert_eq!(stacks["stacks"][0].as_array().unwrap().len(), 3);
    assert_eq!(page.gils()[0]["look_for"], 200 * MS);
}

#[test]
fn a_look_at_a_short_hold_that_nothing_is_known_of_counts_and_a_stack_does_not() {
    let mut records = begun(2);
    for turn in 0..10 {
        records.extend(hold(turn * MS, 1_000));
    }
    // They come late, so their holds are over.
    records.push(look(0, MS, 3, "run"));
    let (thread, at_ns) = (ThreadId(0), START + 2 * MS);
    records.push(Record::Stack { thread, at_ns, frames: vec![frame("run")], native: None });
    records.extend(hold(20 * MS, 1_000));
    let (page, _) = page_of(&records, None, 1, usize::MAX);
    let samples = page.table(&page.gils()[0]["samples"]);
    let row = ["begin", "length", "at", "waiters"].map(|name| samples[name].clone());
    assert_eq!(row, [[MS], [0], [0], [3]]);
}

#[test]
fn of_too_many_looks_a_fair_part_stays_and_each_stands_for_more() {
    let mut records = begun(2);
    let turns = 80_000;
    for turn in 0..turns {
        records.extend(hold(turn * MS, 1_000));
        records.push(look(0, turn * MS + 500, 1, "run"));
    }
    let (page, _) = page_of(&records, None, 1_000, usize::MAX);
    let samples = page.table(&page.gils()[0]["samples"]);
    let (mut at, mut early) = (0, 0);
    for step in &samples["begin"] {
        at += step;
        early += usize::from(at < turns * MS / 1_000 / 2);
    }
    let all = samples["begin"].len();
    assert!((20_000..=75_000).contains(&all), "{all}");
    assert!(early.abs_diff(all - early) * 20 < all, "{early} of {all} in the first half");
    let one_in = page.gils()[0]["look_for"].as_u64().unwrap() / 200_000;
    assert!(one_in >= 2 && one_in.is_power_of_two());
}
