//! How long each stack held the GIL, and time that others waited meanwhile.

use crate::parts::{Part, Parts};
use crate::stacks::{StackFrame, StackId};
use crate::stretches::Stretches;
use std::collections::HashMap;
use ungil_trace::Record;
use ungil_trace::record::{ProcessId, ThreadId};

/// What the width of a stack means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// What other threads waited while it held, summed.
    Waited,
    /// For how long it held.
    Held,
}

/// Characters of a command line that are shown.
const COMMAND: usize = 60;
/// Holds of which nothing was seen, because they were short or nobody waited.
pub const NO_STACK: &str = "(no stack)";

/// Who held, and in which code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    process: ProcessId,
    gil: u8,
    thread: ThreadId,
    stack: Option<StackId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    waited_ns: u64,
    held_ns: u64,
}

/// One row: frames from the outermost to the innermost, and its weights.
#[derive(Clone, Debug)]
pub struct Weighed {
    /// The command if there are several processes, the GIL if it is not the main interpreter's, the
    /// thread, and then its stack.
    pub frames: Vec<StackFrame>,
    /// See [`Weight::Waited`].
    pub waited_ns: u64,
    /// See [`Weight::Held`].
    pub held_ns: u64,
}

/// Sums holds up by who held, and in which code.
#[derive(Debug)]
pub struct Weights {
    stretches: Stretches,
    parts: Parts,
    sums: HashMap<Place, Sums>,
}

impl Weights {
    /// See [`Stretches::new`].
    pub fn new(from_ns: u64, to_ns: u64) -> Self {
        Self {
            stretches: Stretches::new(from_ns, to_ns),
            parts: Parts::default(),
            sums: HashMap::new(),
        }
    }

    /// Takes in one record.
    pub fn push(&mut self, record: &Record) {
        let Self { stretches, parts, sums } = self;
        stretches.push(record, &mut |_, stretch| parts.push(&stretch, &mut |part| add(sums, part)));
    }

    /// All rows, in a stable order.
    pub fn rows(mut self) -> Vec<Weighed> {
        let Self { stretches, parts, sums } = &mut self;
        stretches.finish(&mut |_, stretch| parts.push(&stretch, &mut |part| add(sums, part)));
        parts.finish(&mut |part| add(sums, part));
        let mut places: Vec<_> = sums.iter().map(|(place, sums)| (*place, *sums)).collect();
        places.sort_unstable_by_key(|(place, _)| *place);
        let row = |(place, sums): (Place, Sums)| Weighed {
            frames: frames(stretches, place),
            waited_ns: sums.waited_ns,
            held_ns: sums.held_ns,
        };
        places.into_iter().map(row).collect()
    }
}

fn add(sums: &mut HashMap<Place, Sums>, part: Part) {
    let Part { process, gil, thread, stack, .. } = part;
    let sums = sums.entry(Place { process, gil, thread, stack }).or_default();
    sums.held_ns = sums.held_ns.saturating_add(part.held_ns);
    sums.waited_ns = sums.waited_ns.saturating_add(part.waited_ns);
}

fn frames(stretches: &Stretches, place: Place) -> Vec<StackFrame> {
    let mut frames = Vec::new();
    let with_gil = stretches.processes.values().filter(|known| known.has_gil()).count();
    if with_gil > 1 {
        frames.push(StackFrame::Label(process_label(stretches, place.process)));
    }
    if place.gil > 0 {
        frames.push(StackFrame::Label(format!("GIL {}", place.gil)));
    }
    frames.push(StackFrame::Label(thread_label(stretches, place.thread)));
    match place.stack {
        Some(stack) => frames.extend(stretches.stacks.frames(stack).iter().rev().cloned()),
        None => frames.push(StackFrame::Label(NO_STACK.to_owned())),
    }
    frames
}

/// The name of a thread, or what to call one without a name.
pub fn thread_label(stretches: &Stretches, thread: ThreadId) -> String {
    let Some(known) = stretches.threads.get(&thread.0) else { return "unknown".to_owned() };
    if known.name.is_empty() { format!("thread-{}", known.tid) } else { known.name.clone() }
}

/// The command line of a process without folders, and its number.
pub fn process_label(stretches: &Stretches, process: ProcessId) -> String {
    let Some(known) = stretches.processes.get(&process.0) else { return "unknown".to_owned() };
    let words = known.process.argv.iter().map(|word| match word.rsplit('/').next() {
        Some(name) if word.starts_with('/') && !name.is_empty() => name,
        _ => word.as_str(),
    });
    let mut line: String = words.collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(COMMAND) {
        line.truncate(end);
        line.push('…');
    }
    format!("{line} (pid {})", known.process.pid)
}
