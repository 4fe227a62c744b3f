//! What happens in a simulation, and what came of it.

use crate::schedule::{Level, Settings, Slice};

/// What happens, and for how long.
#[derive(Clone, Debug)]
pub struct Workload {
    pub threads: Vec<Thread>,
    /// From when on which settings are in force; the first from the beginning.
    pub settings: Vec<(u64, Settings)>,
    /// For how many items each `queue.Queue` has room; `None` is a `queue.SimpleQueue`.
    pub queues: Vec<Option<usize>>,
    /// When a signal comes that thread 0 has a handler for.
    pub signal_ns: Option<u64>,
    pub lasts_ns: u64,
    pub wake_ns: u64,
    pub drop_ns: u64,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub level: Level,
    pub begins_ns: u64,
    pub steps: Vec<Step>,
    pub then: Then,
}

#[derive(Clone, Debug)]
pub enum Step {
    /// Takes the GIL, computes this long, with interruptions if it is asked, and lets go.
    Compute(u64),
    /// The same in one piece, as an extension module that never looks at requests.
    Hold(u64),
    /// Is away without the GIL.
    Block(u64),
    /// Takes the GIL, does this, with interruptions if it is asked, and lets go.
    Use(Vec<Act>),
}

/// What a thread does with the GIL, which it lets go of while it waits for another.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Compute(u64),
    /// The same with the mutex that all threads share.
    ComputeLocked(u64),
    /// Puts an item into the queue of this number.
    Put(usize),
    /// Takes one out.
    Get(usize),
    /// The same with a limit to the wait for an item.
    GetWithin(usize, u64),
}

/// What a thread does after its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Exit,
    Repeat,
    /// Exits, and a new thread begins with the same steps.
    Replace,
}

/// One use of the GIL, from taking to letting go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    pub thread: usize,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// One call of `take_gil`.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub thread: usize,
    pub from_ns: u64,
    /// When it had the GIL, or the end of the simulation.
    pub to_ns: u64,
    /// How often a thread that did not wait took the GIL meanwhile, because it was free.
    pub overtaken: u64,
}

/// A thread got another slice of the processor.
#[derive(Clone, Copy, Debug)]
pub struct Sliced {
    pub thread: usize,
    pub from_ns: u64,
    pub slice: Slice,
}

/// What happened.
#[derive(Debug, Default)]
pub struct Outcome {
    pub holds: Vec<Hold>,
    pub waits: Vec<Wait>,
    /// The longest time in which the GIL was free though a thread waited for it.
    pub idle_ns: u64,
    /// How often a holder was asked to let go.
    pub requests: usize,
    /// How often the line woke a thread, and read the CPU time of one: system calls both.
    pub wakes: usize,
    pub cpu_reads: usize,
    pub slices: Vec<Sliced>,
    /// How often a thread had to sleep for a mutex.
    pub lined_up: usize,
}

impl Outcome {
    /// How long `thread` held the GIL between two times.
    pub fn held_ns(&self, thread: usize, from_ns: u64, to_ns: u64) -> u64 {
        let holds = self.holds.iter().filter(|hold| hold.thread == thread);
        holds.map(|hold| hold.to_ns.min(to_ns).saturating_sub(hold.from_ns.max(from_ns))).sum()
    }

    /// The waits of `thread` that began at `from_ns` or later.
    pub fn waits_of(&self, thread: usize, from_ns: u64) -> impl Iterator<Item = &Wait> {
        self.waits.iter().filter(move |wait| wait.thread == thread && wait.from_ns >= from_ns)
    }

    /// Which slice `thread` has at `at_ns`.
    pub fn slice_of(&self, thread: usize, at_ns: u64) -> Slice {
        let before = |sliced: &&Sliced| sliced.thread == thread && sliced.from_ns <= at_ns;
        self.slices.iter().rfind(before).map_or(Slice::Own, |sliced| sliced.slice)
    }

    /// The longest of those.
    pub fn longest_wait_ns(&self, thread: usize, from_ns: u64) -> u64 {
        self.waits_of(thread, from_ns).map(|wait| wait.to_ns - wait.from_ns).max().unwrap_or(0)
    }
}
