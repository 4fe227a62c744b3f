//! Writes a small trace in which everything occurs that a trace can hold.
//!
//! `cargo run -p ungil-trace --example sample_trace FILE`; `tests/test_perfetto_format.py` reads
//! it with Perfetto's own protobuf classes.

use std::path::Path;
use std::{env, io};

use ungil_core::{Event, Kind};
use ungil_trace::Record;
use ungil_trace::perfetto::{Overwrite, Writer};
use ungil_trace::record::{
    Frame, KernelCount, NativeFrame, Process, ProcessId, ProcessTotals, Processors, ThreadId,
    ThreadTotals,
};

const SERVER: ProcessId = ProcessId(0);
const EXECED: ProcessId = ProcessId(1);
const MAIN: ThreadId = ThreadId(0);
const WORKER: ThreadId = ThreadId(1);
const AFTER_EXEC: ThreadId = ThreadId(2);

fn main() -> io::Result<()> {
    let usage = || io::Error::other("usage: sample_trace FILE");
    let path = env::args_os().nth(1).ok_or_else(usage)?;
    let mut writer = Writer::create(Path::new(&path), Overwrite::Replace)?;
    for record in records() {
        writer.write(&record, culprit_of(&record))?;
    }
    Ok(writer.finish()?)
}

fn records() -> Vec<Record> {
    vec![
        process(SERVER, 100, &["/usr/bin/python3", "server.py", "--port", "80"], "3.13.0", None),
        thread(SERVER, MAIN, 4242, 110, "python3"),
        gil(MAIN, 120, Kind::Acquire, 0),
        thread(SERVER, WORKER, 4243, 200, "python3"),
        Record::ThreadNamed { thread: WORKER, name: "worker-1".into() },
        gil(WORKER, 210, Kind::Wait, 0),
        gil(WORKER, 5_000_210, Kind::DropRequest, 0),
        Record::Stack {
            thread: MAIN,
            at_ns: 5_000_300,
            frames: vec![
                Frame { function: "spin".into(), file: "/srv/app (2)/server.py".into(), line: 7 },
                Frame { function: "<module>".into(), file: "server.py".into(), line: 12 },
            ],
            native: Some(vec![NativeFrame {
                symbol: "spin_for".into(),
                method: "_fast.spin".into(),
                library: "/srv/app (2)/_fast.so".into(),
                by_ctypes: false,
            }]),
        },
        Record::Stopped { thread: MAIN, at_ns: 5_000_300, stood_ns: 25_000 },
        Record::KernelCount {
            thread: MAIN,
            count: KernelCount {
                at_ns: 5_000_350,
                ran_ns: 2_000_000,
                delayed_ns: 3_000_000,
                runnable: true,
            },
        },
        gil(MAIN, 2_000_120, Kind::RanAndBlocked, 0),
        gil(MAIN, 5_000_400, Kind::ReleaseForced, 0),
        gil(WORKER, 5_000_500, Kind::Acquire, 0),
        gil(WORKER, 6_000_000, Kind::ReleaseVoluntary, 0),
        // How long it ran in a hold whose acquire was lost.
        gil(WORKER, 6_000_050, Kind::Ran, 0),
        // A GIL of its own, and events of it that were lost: a hold without an end, a release
        // without a begin.
        gil(WORKER, 6_000_100, Kind::Acquire, 1),
        gil(WORKER, 6_000_200, Kind::Wait, 1),
        gil(WORKER, 6_000_300, Kind::ReleaseVoluntary, 1),
        Record::Note { text: "stacks are missing: ptrace is not permitted".into() },
        process(EXECED, 7_000_000, &["./a.out"], "", Some("PyPy has a GIL of its own kind")),
        thread(EXECED, AFTER_EXEC, 4242, 7_000_100, "a.out"),
        // Still waiting when recording stops.
        gil_of(EXECED, AFTER_EXEC, 7_000_200, Kind::Wait, 0),
        Record::ThreadEnded {
            thread: WORKER,
            at_ns: 8_000_000,
            totals: ThreadTotals {
                waits: 1,
                waited_ns: 5_000_290,
                holds: 1,
                held_ns: 999_500,
                voluntary: 1,
                drop_requests: 1,
                cpu_ns: u64::MAX,
                lost_events: 3,
                ..ThreadTotals::default()
            },
        },
        Record::Throttled { process: SERVER, at_ns: 8_000_100, times: 2, stopped_ns: 160_000_000 },
        Record::ProcessEnded {
            process: SERVER,
            at_ns: 8_000_100,
            totals: ProcessTotals {
                switch_interval_ns: 5_000_000,
                policy: 0,
                unrecorded_threads: 0,
                gil_state: 0,
                gil_on_ns: 0,
                clock_error_ns: 60,
            },
        },
    ]
}

/// The worker's one wait was for the main thread.
fn culprit_of(record: &Record) -> Option<ThreadId> {
    match record {
        Record::Gil { thread: WORKER, event: Event { at_ns: 5_000_500, .. }, .. } => Some(MAIN),
        _ => None,
    }
}

fn process(
    process: ProcessId,
    at_ns: u64,
    argv: &[&str],
    python: &str,
    not_recorded: Option<&str>,
) -> Record {
    Record::ProcessStarted(Process {
        process,
        pid: 4242,
        parent_pid: 1,
        at_ns,
        argv: argv.iter().copied().map(String::from).collect(),
        python: python.into(),
        not_recorded: not_recorded.map(String::from),
        ran_before: false,
        processors: Some(Processors { allowed: 4, limit_thousandths: Some(1_500) }),
    })
}

fn thread(process: ProcessId, thread: ThreadId, tid: u32, at_ns: u64, name: &str) -> Record {
    Record::ThreadStarted { thread, process, tid, at_ns, name: name.into() }
}

fn gil(thread: ThreadId, at_ns: u64, kind: Kind, gil: u8) -> Record {
    gil_of(SERVER, thread, at_ns, kind, gil)
}

fn gil_of(process: ProcessId, thread: ThreadId, at_ns: u64, kind: Kind, gil: u8) -> Record {
    Record::Gil { process, thread, event: Event { at_ns, kind, gil, seq: 0 } }
}
