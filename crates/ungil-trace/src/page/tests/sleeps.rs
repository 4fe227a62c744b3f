//! The sleeps of a page are those that the report counts, row by row.

use super::read::*;
use crate::record::{COLLECTED, Park, Record, ThreadId};
use crate::report::{ParkedAt, Report};
use proptest::prelude::*;
use serde_json::Value;
use ungil_core::Kind;
use ungil_core::park::{Cause, Ending};

const THREADS: u32 = 4;

/// Who slept, since when, for how long, for what, at which lock, who ended it, and how.
type Slept = (u32, u64, u64, usize, u32, Option<u32>, bool);

fn slept() -> impl Strategy<Value = Vec<Slept>> {
    let waker = prop::option::of(0..THREADS);
    let one = (0..THREADS, 0u64..60_000, 0u64..90_000, 0usize..7, 0u32..4, waker, any::<bool>());
    prop::collection::vec(one, 0..120)
}

fn parked((thread, since, length, cause, lock, waker, let_go): Slept) -> Record {
    let cause = Cause::ALL[cause];
    let park = Park {
        since_ns: START + since,
        until_ns: START + since + length,
        cause,
        of: if cause == Cause::Pause && let_go { COLLECTED.into() } else { String::new() },
        lock,
        ending: if let_go { Ending::LetGo } else { Ending::Woken },
        waker: waker.map(ThreadId),
        stack: 0,
        waker_stack: 0,
    };
    Record::Parked { thread: ThreadId(thread), park }
}

fn records(slept: Vec<Slept>) -> Vec<Record> {
    let mut records = begun(THREADS);
    records.extend((0..THREADS).map(|thread| does(thread, 0, Kind::Wait)));
    records.extend(slept.into_iter().map(parked));
    records
}

/// How many, how long in all and at most, in units, and the same number and sum of each waker.
type Sums = (u64, u64, u64, Vec<(u64, u64)>);

/// What a browser counts for each row.
fn counted(page: &Parsed, table: &Value, rows: &[ParkedAt]) -> Vec<Sums> {
    let none = |row: &ParkedAt| (0, 0, 0, vec![(0, 0); row.wakers.len()]);
    let mut sums: Vec<Sums> = rows.iter().map(none).collect();
    let names = ["row", "length", "waker"];
    for [row, length, waker] in super::read::rows(&page.table(table), names) {
        let sum = &mut sums[usize::try_from(row).unwrap()];
        *sum = (sum.0 + 1, sum.1 + length, sum.2.max(length), std::mem::take(&mut sum.3));
        let by = &mut sum.3[usize::try_from(waker).unwrap() - 1];
        *by = (by.0 + 1, by.1 + length);
    }
    sums
}

fn told(rows: &[ParkedAt]) -> Vec<Sums> {
    let row = |it: &ParkedAt| {
        let wakers = it.wakers.iter().map(|by| (by.count, nanoseconds(by.waited_s)));
        (it.count, nanoseconds(it.waited_s), nanoseconds(it.max_ms / 1e3), wakers.collect())
    };
    rows.iter().map(row).collect()
}

fn agree(page: &Parsed, report: &Report) -> Result<(), TestCaseError> {
    let process = &report.processes[0];
    let sleeps = &page.summary["processes"][0]["sleeps"];
    let parks = process.parks.as_ref().map_or(&[][..], |parks| &parks.waits);
    prop_assert_eq!(counted(page, &sleeps["parks"], parks), told(parks));
    let locks = &process.lock_waits[..];
    prop_assert_eq!(counted(page, &sleeps["lock_waits"], locks), told(locks));
    prop_assert_eq!(&page.summary["sleeps_from"], 0);
    Ok(())
}

proptest! {
    #[test]
    fn each_sleep_is_in_the_row_that_counts_it(slept in slept()) {
        let (page, report) = page_of(&records(slept), None, 1, usize::MAX);
        agree(&page, &report)?;
    }

    #[test]
    fn sleeps_are_cut_where_the_report_of_a_part_cuts_them(
        slept in slept(), from in 0u64..100_000, length in 1u64..100_000,
    ) {
        let part = (START + from, START + from + length);
        // As a recorder tells them: in the order of their ends.
        let mut slept = slept;
        slept.sort_by_key(|it| it.1 + it.2);
        let (page, report) = page_of(&records(slept), Some(part), 1, usize::MAX);
        agree(&page, &report)?;
    }
}

#[test]
fn a_page_tells_how_long_the_shortest_of_too_many_sleeps_is() {
    let slept = (0..150_000).map(|n| (0, n, n, Cause::Lock as usize - 1, 1, None, false));
    let (page, report) = page_of(&records(slept.collect()), None, 1, usize::MAX);
    let from = page.summary["sleeps_from"].as_u64().unwrap();
    let table = page.table(&page.summary["processes"][0]["sleeps"]["parks"]);
    assert_eq!(table["length"].iter().min(), Some(&from));
    assert_eq!(table["length"].len() as u64, 150_000 - from, "all those are there");
    assert!((50_000..=100_000).contains(&table["length"].len()));
    assert_eq!(report.processes[0].parks.as_ref().unwrap().waits[0].count, 150_000);
}
