//! Writes a large trace, as `bench/page.py` needs it.
//!
//! `cargo run --release -p ungil-trace --example big_trace FILE EVENTS [THREADS [PROCESSES]]`: in
//! each process, threads that compute for some microseconds and call something that blocks for a
//! while, with a computing thread among them that lets go when it is asked to. Lengths are noise, so
//! a page of it is no smaller than one of a real program.

use std::path::Path;
use std::{env, io};

use ungil_core::{Event, Kind};
use ungil_trace::Record;
use ungil_trace::perfetto::{Overwrite, Writer};
use ungil_trace::record::{Frame, Process, ProcessId, ThreadId};

const START_NS: u64 = 1_000_000_000;
/// What a waiter waits for one holder before it asks it to let go.
const INTERVAL_NS: u64 = 5_000_000;
/// Holds of the computing thread between two of its stacks.
const SAMPLED: u64 = 20;

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let usage = || io::Error::other("usage: big_trace FILE EVENTS [THREADS [PROCESSES]]");
    let number = |index: usize, default: u64| {
        words.get(index).map_or(Ok(default), |word| word.parse().map_err(|_| usage()))
    };
    let path = words.first().ok_or_else(usage)?;
    let (events, threads, processes) = (number(1, 10_000_000)?, number(2, 8)?, number(3, 1)?);
    let mut writer = Writer::create(Path::new(path), Overwrite::Replace)?;
    let threads = u32::try_from(threads.max(2)).map_err(|_| usage())?;
    let mut gils = Vec::new();
    for number in 0..u32::try_from(processes).map_err(|_| usage())? {
        gils.push(Gil::new(number, threads));
    }
    for gil in &gils {
        for record in gil.introduction() {
            writer.write(&record, None)?;
        }
    }
    let mut written = 0;
    while written < events {
        for gil in &mut gils {
            for record in gil.turn() {
                writer.write(&record, None)?;
                written += 1;
            }
        }
    }
    Ok(writer.finish()?)
}

/// A process, one GIL, and its threads: the first computes, the others serve.
struct Gil {
    process: ProcessId,
    first: u32,
    /// When each thread wants the GIL next; it waits from then on if somebody holds.
    wants_ns: Vec<u64>,
    waits: Vec<bool>,
    now_ns: u64,
    noise: u64,
    turns: u64,
}

impl Gil {
    fn new(number: u32, threads: u32) -> Self {
        let wants_ns: Vec<_> =
            (0..u64::from(threads)).map(|thread| START_NS + thread * 10_000).collect();
        let waits = vec![false; wants_ns.len()];
        let noise = 0x9e37_79b9 + u64::from(number);
        let process = ProcessId(number);
        Self {
            process,
            first: number * threads,
            wants_ns,
            waits,
            now_ns: START_NS,
            noise,
            turns: 0,
        }
    }

    fn introduction(&self) -> Vec<Record> {
        let pid = 4_000 + self.first;
        let mut records = vec![Record::ProcessStarted(Process {
            process: self.process,
            pid,
            parent_pid: 1,
            at_ns: START_NS,
            argv: vec!["python3".into(), format!("server-{}.py", self.process.0)],
            python: "3.13.0".into(),
            not_recorded: None,
            ran_before: false,
            processors: None,
        })];
        records.extend((0..self.wants_ns.len()).map(|thread| Record::ThreadStarted {
            thread: self.thread(thread),
            process: self.process,
            tid: pid + u32::try_from(thread).expect("it counts up to what was a u32"),
            at_ns: START_NS,
            name: if thread == 0 { "compute".into() } else { format!("worker-{thread}") },
        }));
        records
    }

    /// The next thread holds the GIL once; others begin to wait meanwhile.
    fn turn(&mut self) -> Vec<Record> {
        let next = (0..self.wants_ns.len()).min_by_key(|&thread| self.wants_ns[thread]);
        let next = next.expect("there are two at least");
        let begin_ns = self.now_ns.max(self.wants_ns[next]) + 2_000 + self.random(12);
        let computes = next == 0;
        // Between a thousand and some ten thousand nanoseconds, with a long tail.
        let length_ns = if computes {
            INTERVAL_NS + self.random(17)
        } else {
            1_000 + self.random(14) + self.random(16)
        };
        let end_ns = begin_ns + length_ns;
        let mut events = vec![(begin_ns, next, Kind::Acquire)];
        for thread in 0..self.wants_ns.len() {
            let wanted_ns = self.wants_ns[thread];
            if wanted_ns >= end_ns || (thread == next && wanted_ns >= self.now_ns) {
                continue;
            }
            if !std::mem::replace(&mut self.waits[thread], true) {
                events.push((wanted_ns, thread, Kind::Wait));
            }
            let asks_ns = wanted_ns.max(begin_ns) + INTERVAL_NS;
            if thread != next && asks_ns < end_ns {
                events.push((asks_ns, thread, Kind::DropRequest));
            }
        }
        let kind = if computes { Kind::ReleaseForced } else { Kind::ReleaseVoluntary };
        events.push((end_ns, next, kind));
        events.sort_unstable_by_key(|(at_ns, ..)| *at_ns);
        self.waits[next] = false;
        self.now_ns = end_ns;
        // It computes seldom, so that most events are of the others.
        let away_ns = if computes { 20_000_000 } else { 50_000 + self.random(18) };
        self.wants_ns[next] = end_ns + away_ns;
        let events = events.into_iter();
        let mut records: Vec<_> =
            events.map(|(at_ns, thread, kind)| self.event(thread, at_ns, kind)).collect();
        self.turns += u64::from(computes);
        if computes && self.turns.is_multiple_of(SAMPLED) {
            let stack = self.stack(begin_ns + length_ns / 2);
            records.insert(records.len() - 1, stack);
        }
        records
    }

    fn stack(&mut self, at_ns: u64) -> Record {
        let line = u32::try_from(self.random(4)).expect("it has four bits");
        let frame = |function: &str, line| Frame {
            function: function.into(),
            file: "/srv/app/server.py".into(),
            line,
        };
        let frames = vec![frame("render", 40 + line), frame("handle", 12), frame("<module>", 90)];
        Record::Stack { thread: self.thread(0), at_ns, frames, native: None }
    }

    fn event(&self, thread: usize, at_ns: u64, kind: Kind) -> Record {
        let event = Event { at_ns, kind, gil: 0, seq: 0 };
        Record::Gil { process: self.process, thread: self.thread(thread), event }
    }

    fn thread(&self, number: usize) -> ThreadId {
        ThreadId(self.first + u32::try_from(number).expect("it counts up to what was a u32"))
    }

    /// A number of so many bits.
    fn random(&mut self, bits: u32) -> u64 {
        self.noise = self.noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.noise >> (64 - bits)
    }
}
