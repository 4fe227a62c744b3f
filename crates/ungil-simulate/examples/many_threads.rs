//! How long it takes to simulate 10,000 threads on 64 processors for a minute, under each policy:
//! `cargo run --release -p ungil-simulate --example many_threads`.
#![expect(clippy::print_stdout, reason = "an example")]

use std::time::Instant;
use ungil_core::schedule::{Policy, Settings};
use ungil_core::{Event, Kind};
use ungil_simulate::{Change, Demand, Gil, Rules, predict};
use ungil_trace::Record;
use ungil_trace::record::{Process, ProcessId, ProcessTotals, ThreadId};

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const LASTS_NS: u64 = 60_000 * MS;
/// Each stands for a thousand.
const RECORDED: u32 = 10;
const TIMES: usize = 1_000;

fn main() {
    let demand = Demand::of(&recording()).remove(0);
    let changes = (0..demand.threads.len()).map(|thread| (thread, Change::Times(TIMES)));
    let changes: Vec<_> = changes.collect();
    let gils = Policy::ALL.into_iter().map(|policy| Gil::Scheduled(Settings::from(policy)));
    for gil in gils.chain([Gil::Free]) {
        let rules = Rules { cores: Some(64), changes: changes.clone(), runs: 1, ..Rules::of(gil) };
        // Done by the first prediction, once for all.
        let _ = demand.reproduced();
        let before = Instant::now();
        match predict(&demand, &rules) {
            Ok(prediction) => {
                let threads = prediction.figures.threads.len();
                let handoffs = prediction.figures.handoffs;
                println!(
                    "{gil:?}: {threads} threads, {handoffs} handoffs: {:.1?}",
                    before.elapsed()
                );
            }
            Err(error) => println!("{gil:?}: {error}"),
        }
    }
}

/// Threads that use the GIL for 0.2 ms each 50 ms, one of them for 20 ms.
fn recording() -> Vec<Record> {
    let process = ProcessId(0);
    let mut records = vec![Record::ProcessStarted(Process {
        process,
        pid: 1,
        parent_pid: 0,
        at_ns: 0,
        argv: Vec::new(),
        python: String::new(),
        not_recorded: None,
        ran_before: false,
        processors: None,
    })];
    for thread in 0..RECORDED {
        let (thread, name) = (ThreadId(thread), String::new());
        records.push(Record::ThreadStarted { thread, process, tid: thread.0 + 1, at_ns: 0, name });
    }
    for turn in 0..LASTS_NS / (50 * MS) {
        for thread in 0..RECORDED {
            let from_ns = turn * 50 * MS + u64::from(thread) * 300 * US;
            let held_ns = if thread + 1 == RECORDED { 20 * MS } else { 200 * US };
            let both = [(from_ns, Kind::Acquire), (from_ns + held_ns, Kind::ReleaseVoluntary)];
            for (at_ns, kind) in both {
                let event = Event { at_ns, kind, gil: 0, seq: 0 };
                records.push(Record::Gil { process, thread: ThreadId(thread), event });
            }
        }
    }
    let totals = ProcessTotals::default();
    records.push(Record::ProcessEnded { process, at_ns: LASTS_NS, totals });
    records
}
