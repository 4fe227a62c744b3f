//! Writes a trace whose names are hostile wherever a program can choose them: of threads, commands,
//! functions, files, native symbols and libraries.
//!
//! `cargo run -p ungil-trace --example hostile_trace FILE [THREADS [PROCESSES]]`: in each process a
//! thread computes, and each other thread comes back from a call that blocks and waits for it.
//! `tests/test_hostile_names.py` shows it in every way in which ungil can show a trace.

use std::path::Path;
use std::{env, io};

use ungil_core::{Event, Kind};
use ungil_trace::Record;
use ungil_trace::perfetto::{Overwrite, Writer};
use ungil_trace::record::{
    Doing, Frame, NativeFrame, Process, ProcessId, ProcessTotals, ThreadId, ThreadTotals,
};

const MS: u64 = 1_000_000;
/// A thread computes for so long, and is asked to let go then.
const HOLD_NS: u64 = 20 * MS;
/// So often a process does it, and fewer times where there are many.
const ROUNDS: u32 = 200;
const ROUNDS_OF_MANY: u32 = 40;
const MANY_PROCESSES: u32 = 100;

const NAMES: [&str; 16] = [
    "<script>document.title = 'owned'</script>",
    "\u{202e}evil\u{2066}",
    "\x1b[31mred\x1b]0;title\x07",
    "\u{9b}31m\u{9d}0;title\u{9c}",
    "line\nbreak\r\ttab\x08\x7f",
    "\0",
    "",
    " ",
    "a;b c 12",
    "\"quoted\\\" {marker.name}",
    "' OR 1 = 1; DROP TABLE holds; --",
    "$(touch owned) `touch owned`",
    "[red]rich[/red] [link=https://example.org]markup[/link]",
    "--policy=batch",
    "*",
    "f (a (b:1) \u{2028}[c]",
];

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let usage = || io::Error::other("usage: hostile_trace FILE [THREADS [PROCESSES]]");
    let number = |index: usize, default: u32| {
        words.get(index).map_or(Ok(default), |word| word.parse().map_err(|_| usage()))
    };
    let path = words.first().ok_or_else(usage)?;
    let (threads, processes) = (number(1, 17)?.max(2), number(2, 1)?);
    let mut writer = Writer::create(Path::new(path), Overwrite::Replace)?;
    let mut write = |record: Record| writer.write(&record, None);
    for process in 0..processes {
        write(started(process))?;
        for thread in 0..threads {
            write(Record::ThreadStarted {
                thread: ThreadId(process * threads + thread),
                process: ProcessId(process),
                tid: tid(process, thread),
                at_ns: MS,
                name: name(thread),
            })?;
        }
        write(gil(process, process * threads, MS, Kind::Acquire))?;
    }
    let rounds = if processes < MANY_PROCESSES { ROUNDS } else { ROUNDS_OF_MANY }.max(threads);
    for round in 0..rounds {
        for process in 0..processes {
            let first = process * threads;
            let waiter = first + 1 + round % (threads - 1);
            for record in turn(process, first, waiter, round) {
                write(record)?;
            }
        }
    }
    write(Record::Note { text: format!("a note about {}", NAMES[2]) })?;
    let at_ns = MS + u64::from(rounds) * (HOLD_NS + MS) + MS;
    for process in 0..processes {
        for thread in 0..threads {
            let totals = ThreadTotals { cpu_ns: MS, ..ThreadTotals::default() };
            write(Record::ThreadEnded {
                thread: ThreadId(process * threads + thread),
                at_ns,
                totals,
            })?;
        }
        let totals = ProcessTotals { switch_interval_ns: 5 * MS, ..ProcessTotals::default() };
        write(Record::ProcessEnded { process: ProcessId(process), at_ns, totals })?;
    }
    Ok(writer.finish()?)
}

/// The first thread computes, another one waits for it, and holds for a moment.
fn turn(process: u32, first: u32, waiter: u32, round: u32) -> Vec<Record> {
    let at_ns = MS + u64::from(round) * (HOLD_NS + MS);
    let frames: Vec<_> = (0..3).map(|depth| frame(round + depth)).collect();
    let (function, library) = (name(round + 5), name(round + 9));
    let native = NativeFrame { symbol: name(round), method: function, library, by_ctypes: false };
    let looked_ns = at_ns + HOLD_NS / 2;
    let doing = Doing::Held { waiters: 1 };
    let ends_ns = at_ns + HOLD_NS;
    vec![
        gil(process, waiter, at_ns + MS, Kind::Wait),
        gil(process, waiter, at_ns + 6 * MS, Kind::DropRequest),
        Record::Look { thread: ThreadId(first), at_ns: looked_ns, doing, frames: frames.clone() },
        Record::Stack {
            thread: ThreadId(first),
            at_ns: looked_ns,
            frames: frames.clone(),
            native: Some(vec![native]),
        },
        gil(process, first, ends_ns, Kind::ReleaseForced),
        gil(process, waiter, ends_ns, Kind::Acquire),
        gil(process, first, ends_ns, Kind::Wait),
        gil(process, waiter, ends_ns + MS / 2, Kind::ReleaseVoluntary),
        gil(process, first, ends_ns + MS / 2, Kind::Acquire),
        Record::Look {
            thread: ThreadId(waiter),
            at_ns: ends_ns + MS,
            doing: Doing::Off {
                stands_for_ns: 50 * MS,
                call: NAMES[2].to_owned(),
                on: NAMES[4].to_owned(),
            },
            frames,
        },
    ]
}

fn started(process: u32) -> Record {
    // The kernel ends a word there, so no command line has it.
    let words = [process, process + 2, process + 11].map(|number| name(number).replace('\0', ""));
    Record::ProcessStarted(Process {
        process: ProcessId(process),
        pid: tid(process, 0),
        parent_pid: 1,
        at_ns: MS,
        argv: std::iter::once("/usr/bin/python3".to_owned()).chain(words).collect(),
        python: format!("3.13.0{}", NAMES[2]),
        not_recorded: None,
        ran_before: false,
        processors: None,
    })
}

fn frame(number: u32) -> Frame {
    Frame { function: name(number), file: format!("/srv/{}.py", name(number + 3)), line: number }
}

/// Each name again and again, so that groups of threads have them too.
fn name(number: u32) -> String {
    let name = NAMES[number as usize % NAMES.len()];
    if (number as usize) < NAMES.len() { name.to_owned() } else { format!("{name}-{number}") }
}

fn tid(process: u32, thread: u32) -> u32 {
    1_000 + process * 20_000 + thread
}

fn gil(process: u32, thread: u32, at_ns: u64, kind: Kind) -> Record {
    let event = Event { at_ns, kind, gil: 0, seq: 0 };
    Record::Gil { process: ProcessId(process), thread: ThreadId(thread), event }
}
