//! What it costs to analyse a trace, with its windows.
//!
//! `cargo run --release -p ungil-trace --example analysis_speed` prints CPU time per event, because
//! a recorder takes it from the traced program: of eight threads that always contend (windows are
//! always open), of one that nobody waits for (none ever is), and of a part of the former, which
//! has no windows for its first half.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use ungil_core::{Event, Kind};
use ungil_trace::Record;
use ungil_trace::analysis::{Analysis, Part};
use ungil_trace::record::{Process, ProcessId, ThreadId};

const EVENTS: u64 = 3_000_000;
const ROUNDS: usize = 5;
/// Time between two events: 52,000 a second, as in a busy server.
const STEP_NS: u64 = 19_000;

fn main() {
    println!("{EVENTS} events, {ROUNDS} rounds, ns/event");
    for _ in 0..ROUNDS {
        let contended = cost(8, |records| {
            let mut analysis = Analysis::new(20_000_000);
            for record in records {
                analysis.push(record);
            }
            analysis.report().findings.len()
        });
        let alone = cost(1, |records| {
            let mut analysis = Analysis::new(20_000_000);
            for record in records {
                analysis.push(record);
            }
            analysis.report().findings.len()
        });
        let half = cost(8, |records| {
            let mut part = Part::new(20_000_000, None, EVENTS / 2 * STEP_NS, EVENTS * STEP_NS);
            for record in records {
                part.push(record);
            }
            part.report().findings.len()
        });
        println!("contended {contended:6.1}, uncontended {alone:6.1}, second half {half:6.1}");
    }
}

/// CPU time per event of looking at what so many threads do.
fn cost(threads: u32, look: impl Fn(&[Record]) -> usize) -> f64 {
    let records = simulate(threads);
    let before = cpu_ns();
    let findings = look(&records);
    let after = cpu_ns();
    assert!(findings > 0);
    (after - before) as f64 / EVENTS as f64
}

/// Each thread in turn waits if there are others, gets the GIL, and lets go.
fn simulate(threads: u32) -> Vec<Record> {
    let process = ProcessId(0);
    let mut records = vec![Record::ProcessStarted(Process {
        process,
        pid: 4242,
        parent_pid: 1,
        at_ns: 0,
        argv: vec!["python3".into(), "server.py".into()],
        python: "3.13.0".into(),
        not_recorded: None,
        ran_before: false,
        processors: None,
    })];
    records.extend((0..threads).map(|id| Record::ThreadStarted {
        thread: ThreadId(id),
        process,
        tid: 4242 + id,
        at_ns: 0,
        name: format!("worker-{id}"),
    }));
    let mut at_ns = 0;
    let mut turn = 0;
    while records.len() < usize::try_from(EVENTS).expect("it fits") {
        let mut event = |thread: u32, kind| {
            at_ns += STEP_NS;
            let event = Event { at_ns, kind, gil: 0, seq: 0 };
            records.push(Record::Gil { process, thread: ThreadId(thread % threads), event });
        };
        event(turn, Kind::Acquire);
        if threads > 1 {
            event(turn + 2, Kind::Wait);
        }
        event(turn, Kind::ReleaseVoluntary);
        turn += 1;
    }
    records
}

fn cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
