//! What it costs to write a trace and to read it back.
//!
//! `cargo run --release -p ungil-trace --example write_speed [DIRECTORY]` prints CPU time per
//! event, because a recorder takes it from the traced program, and bytes per event.
//! Eight threads contend: each waits, gets the GIL and lets go, at times that look measured.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use ungil_core::{Event, Kind};
use ungil_trace::Record;
use ungil_trace::perfetto::{Overwrite, Writer, read};
use ungil_trace::record::{Process, ProcessId, ThreadId};

const THREADS: u32 = 8;
const EVENTS: u64 = 3_000_000;
const ROUNDS: usize = 5;

fn main() -> io::Result<()> {
    let directory = env::args_os().nth(1).map_or_else(env::temp_dir, PathBuf::from);
    let path = directory.join(format!("write-speed-{}.pftrace", std::process::id()));
    println!("{EVENTS} events, {ROUNDS} rounds, into {}", directory.display());
    for _ in 0..ROUNDS {
        let before = cpu_ns();
        let input = simulate(|_, _| Ok(()))?;
        let simulated = cpu_ns();
        write(&path)?;
        let written = cpu_ns();
        let mut read_back = 0;
        read(&path, |record| read_back += u64::from(matches!(record, Record::Gil { .. })))
            .map_err(io::Error::other)?;
        let done = cpu_ns();
        assert_eq!(read_back, input);
        println!(
            "write {:6.1} ns/event, read {:6.1} ns/event, {:5.2} bytes/event",
            per_event((written - simulated) - (simulated - before)),
            per_event(done - written),
            per_event(fs::metadata(&path)?.len()),
        );
    }
    fs::remove_file(path)
}

fn write(path: &Path) -> io::Result<()> {
    let mut writer = Writer::create(path, Overwrite::Replace)?;
    writer.write(
        &Record::ProcessStarted(Process {
            process: ProcessId(0),
            pid: 4242,
            parent_pid: 1,
            at_ns: 0,
            argv: vec!["python3".into(), "server.py".into()],
            python: "3.13.0".into(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        }),
        None,
    )?;
    for id in 0..THREADS {
        let thread = Record::ThreadStarted {
            thread: ThreadId(id),
            process: ProcessId(0),
            tid: 4242 + id,
            at_ns: 0,
            name: format!("worker-{id}"),
        };
        writer.write(&thread, None)?;
    }
    simulate(|record, culprit| writer.write(record, culprit))?;
    Ok(writer.finish()?)
}

/// Hands the events to `take` and says how many there were.
fn simulate(mut take: impl FnMut(&Record, Option<ThreadId>) -> io::Result<()>) -> io::Result<u64> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut at_ns = 12 * 24 * 3_600_000_000_000;
    let mut count = 0;
    let mut holder = 0;
    while count < EVENTS {
        let next = (holder + 1) % THREADS;
        for (thread, kind, culprit) in [
            (next, Kind::Wait, None),
            (holder, Kind::ReleaseVoluntary, None),
            (next, Kind::Acquire, Some(ThreadId(holder))),
        ] {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            at_ns += 500 + random % 4096;
            let event = Event { at_ns, kind, gil: 0, seq: 0 };
            let record = Record::Gil { process: ProcessId(0), thread: ThreadId(thread), event };
            take(&record, culprit)?;
            count += 1;
        }
        holder = next;
    }
    Ok(count)
}

fn per_event(total: u64) -> f64 {
    total as f64 / EVENTS as f64
}

/// CPU time of this process.
fn cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).expect("CPU time counts up from 0")
}
