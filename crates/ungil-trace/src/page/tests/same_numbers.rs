//! What a browser computes from a page is what the report says: for a whole trace, for a part, and
//! for traces in which events are missing.

use super::read::*;
use crate::record::Record;
use crate::report::{Report, Who};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::HashMap;
use ungil_core::Kind;

/// A thread, what it does, and how much later than the event before.
type Step = (u32, u8, u64);

/// Events that a real GIL could have.
fn legal(threads: u32, steps: &[Step]) -> Vec<Record> {
    let mut records = begun(threads);
    let (mut at_ns, mut holder, mut waiting) = (0, None, vec![false; threads as usize]);
    for &(thread, choice, pause) in steps {
        let thread = thread % threads;
        at_ns += pause;
        let waits = &mut waiting[thread as usize];
        let kind = match holder {
            Some(other) if other == thread => {
                holder = None;
                if choice < 128 { Kind::ReleaseVoluntary } else { Kind::ReleaseForced }
            }
            None if *waits || choice < 128 => {
                *waits = false;
                holder = Some(thread);
                Kind::Acquire
            }
            _ if *waits => Kind::DropRequest,
            _ => {
                *waits = true;
                Kind::Wait
            }
        };
        records.push(does(thread, at_ns, kind));
    }
    records
}

/// Events of which any may be missing.
fn any_events(threads: u32, steps: &[Step]) -> Vec<Record> {
    let mut records = begun(threads);
    let mut at_ns = 0;
    for &(thread, choice, pause) in steps {
        at_ns += pause;
        let kind = Kind::from_number(choice % 5 + 1).unwrap();
        records.push(does(thread % threads, at_ns, kind));
    }
    records
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![8 => 0u64..2_000, 1 => 0u64..40_000_000];
    prop::collection::vec((0u32..5, any::<u8>(), pause), 0..150)
}

/// Held and waited time, and numbers of holds, waits, forced releases and drop requests, by tid.
fn counted(page: &Parsed, gil: &Value) -> HashMap<u64, [u64; 6]> {
    let lanes = page.json(&gil["lanes"]);
    let tid = |lane: u64| lanes["tid"][usize::try_from(lane).unwrap()].as_u64().unwrap();
    let mut sums = HashMap::<u64, [u64; 6]>::new();
    for [lane, begin, end, _, how] in page.holds(gil) {
        let sum = sums.entry(tid(lane)).or_default();
        sum[0] += end - begin;
        sum[2] += 1;
        sum[4] += u64::from(how == 1);
    }
    for [lane, begin, end] in page.waits(gil) {
        let sum = sums.entry(tid(lane)).or_default();
        sum[1] += end - begin;
        sum[3] += 1;
    }
    for chunk in gil["chunks"].as_array().unwrap() {
        for lane in page.table(&chunk["asks"]).get("lane").into_iter().flatten() {
            sums.entry(tid(*lane)).or_default()[5] += 1;
        }
    }
    sums
}

fn agrees(units: u64, seconds: f64, pieces: u64, unit_ns: u64) -> Result<(), TestCaseError> {
    let off_ns = ((units * unit_ns) as f64 - seconds * 1e9).abs();
    prop_assert!(off_ns <= (pieces * unit_ns) as f64 + 0.01, "{units} units for {seconds} s");
    Ok(())
}

fn rows_agree(page: &Parsed, report: &Report, unit_ns: u64) -> Result<(), TestCaseError> {
    let Some(told) = report.processes.first().and_then(|process| process.gils.first()) else {
        prop_assert!(page.gils().is_empty());
        return Ok(());
    };
    let Some(gil) = page.gils().first() else {
        prop_assert!(
            told.threads.iter().all(|thread| thread.holds.count + thread.waits.count == 0)
        );
        return Ok(());
    };
    let sums = counted(page, gil);
    for thread in &told.threads {
        let sum = sums.get(&u64::from(thread.tid)).copied().unwrap_or_default();
        agrees(sum[0], thread.held_s, thread.holds.count, unit_ns)?;
        agrees(sum[1], thread.waited_s, thread.waits.count, unit_ns)?;
        prop_assert_eq!([sum[2], sum[3]], [thread.holds.count, thread.waits.count]);
        // Releases of holds whose begin was lost are none of a hold.
        prop_assert!(sum[4] <= thread.forced);
    }
    let lanes = page.json(&gil["lanes"]);
    for level in gil["levels"].as_array().unwrap() {
        for (lane, level) in page.level(level) {
            let tid = lanes["tid"][usize::try_from(lane).unwrap()].as_u64().unwrap();
            let exact = sums[&tid];
            // A lane never does two things at once; where lost events make it look so, levels tell
            // of the first.
            prop_assert!(level[0] <= exact[0] && level[1] <= exact[1]);
            prop_assert_eq!(&level[2..], &exact[2..]);
        }
    }
    Ok(())
}

/// Whom waits are charged to, as FORMAT.md has it: by culprit, `None` for nobody.
fn blame(page: &Parsed, gil: &Value) -> HashMap<(u64, Option<u64>), u64> {
    let lanes = page.json(&gil["lanes"]);
    let tid = |lane: u64| lanes["tid"][usize::try_from(lane).unwrap()].as_u64().unwrap();
    let holds = page.holds(gil);
    let mut blame = HashMap::new();
    for [victim, begin, end] in page.waits(gil) {
        let mut nobody = end - begin;
        for [culprit, from, to, ..] in &holds {
            let overlap = (*to).min(end).saturating_sub((*from).max(begin));
            if overlap > 0 {
                *blame.entry((tid(victim), Some(tid(*culprit)))).or_default() += overlap;
                nobody -= overlap;
            }
        }
        if nobody > 0 {
            *blame.entry((tid(victim), None)).or_default() += nobody;
        }
    }
    blame
}

proptest! {
    #[test]
    fn rows_levels_and_blame_of_a_whole_trace_are_those_of_the_report(
        threads in 1u32..6, steps in steps(),
    ) {
        let records = legal(threads, &steps);
        let (page, report) = page_of(&records, None, 1, usize::MAX);
        rows_agree(&page, &report, 1)?;
        let Some(gil) = page.gils().first() else { return Ok(()) };
        let told = &report.processes[0].gils[0];
        let expected: HashMap<_, _> = told.blame.iter().map(|row| {
            let Who::Thread(victim) = row.victim else { panic!("all threads are listed") };
            let culprit = match row.culprit { Who::Thread(tid) => Some(u64::from(tid)), _ => None };
            ((u64::from(victim), culprit), nanoseconds(row.waited_s))
        }).collect();
        prop_assert_eq!(blame(&page, gil), expected);
        let sums = counted(&page, gil);
        for level in gil["levels"].as_array().unwrap() {
            let by_lane = page.level(level);
            for which in 0..6 {
                let sum = |sums: &HashMap<u64, [u64; 6]>| -> u64 {
                    sums.values().map(|sum| sum[which]).sum()
                };
                prop_assert_eq!(sum(&by_lane), sum(&sums), "sum {}", which);
            }
        }
        let busy = |name: &str| -> u64 {
            gil["busy"][name].as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).sum()
        };
        prop_assert_eq!(busy("held"), nanoseconds(told.held_s));
        prop_assert_eq!(busy("contended"), nanoseconds(told.contended_s));
        for thread in &told.threads {
            let sum = sums.get(&u64::from(thread.tid)).copied().unwrap_or_default();
            prop_assert_eq!([sum[4], sum[5]], [thread.forced, thread.drop_requests]);
        }
    }

    #[test]
    fn a_part_is_cut_as_its_report_is(
        threads in 1u32..6, steps in steps(), from in 0u64..100_000, length in 1u64..200_000_000,
    ) {
        let records = legal(threads, &steps);
        let part = (START + from, START + from + length);
        let (page, report) = page_of(&records, Some(part), 1, usize::MAX);
        rows_agree(&page, &report, 1)?;
    }

    #[test]
    fn coarse_times_are_off_by_less_than_a_unit_for_each_piece(
        threads in 1u32..6, steps in steps(),
    ) {
        let (page, report) = page_of(&legal(threads, &steps), None, 1_000, usize::MAX);
        rows_agree(&page, &report, 1_000)?;
    }

    #[test]
    fn where_events_were_lost_the_page_has_what_the_report_counts(
        threads in 1u32..6, steps in steps(),
    ) {
        let (page, report) = page_of(&any_events(threads, &steps), None, 1, usize::MAX);
        rows_agree(&page, &report, 1)?;
    }
}
