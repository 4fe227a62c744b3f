//! What a trace consists of, in the order in which it happened.
//!
//! The recorder makes these records from the rings of running processes, the reader makes the
//! same ones from a trace file, and the analysis cannot tell the two apart.
//! Invariants: a process and a thread are introduced before anything else names them; the
//! events of one GIL come in the order in which it was acquired and released; the events of one
//! thread come in the order in which they happened; other times may step back a little.

use ungil_core::Event;
use ungil_core::park::{Cause, Ending};

/// One process image in a trace: counts up from 0. A process that calls exec gets a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// One thread in a trace: counts up from 0 over all processes, so a reused kernel thread id is a
/// new thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// One thing that a trace says. Times are in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A process image was seen; all that is known of it.
    ProcessStarted(Process),
    /// The process was seen to be gone, or recording stopped (then `at_ns` is that moment).
    ProcessEnded {
        /// Which.
        process: ProcessId,
        /// When.
        at_ns: u64,
        /// Totals of the process as a whole.
        totals: ProcessTotals,
    },
    /// A thread was seen for the first time.
    ThreadStarted {
        /// Its new id.
        thread: ThreadId,
        /// Where it lives.
        process: ProcessId,
        /// Its kernel thread id.
        tid: u32,
        /// When it first touched a GIL.
        at_ns: u64,
        /// The best name known so far.
        name: String,
    },
    /// A better name for a thread (Python's own instead of the kernel's), or a changed one.
    ThreadNamed {
        /// Which.
        thread: ThreadId,
        /// `threading.Thread.name`.
        name: String,
    },
    /// A thread ended, or recording stopped: its last word.
    ThreadEnded {
        /// Which.
        thread: ThreadId,
        /// When.
        at_ns: u64,
        /// Exact totals, kept by the thread itself.
        totals: ThreadTotals,
    },
    /// Something happened to a GIL.
    Gil {
        /// Whose process.
        process: ProcessId,
        /// Whose doing.
        thread: ThreadId,
        /// What, when, which GIL.
        event: Event,
    },
    /// A thread slept for a lock, or, in a free-threaded interpreter, because it could not go on. Told
    /// before the events of a GIL that follow from it.
    Parked {
        /// Which.
        thread: ThreadId,
        /// Why, and for how long.
        park: Park,
    },
    /// A Python stack in which threads of a free-threaded interpreter slept, or from which they woke
    /// others; told before, or after, the parks that name it.
    ParkStack {
        /// Whose process.
        process: ProcessId,
        /// What parks call it.
        number: u16,
        /// Innermost frame first; the outermost ones of a deep stack are missing.
        frames: Vec<Frame>,
    },
    /// The GIL of a free-threaded interpreter was seen to have been switched on.
    GilSwitchedOn {
        /// Whose process.
        process: ProcessId,
        /// When.
        at_ns: u64,
        /// The file of the extension module that was loaded last then; empty if it is not known.
        library: String,
        /// What the thread that had the GIL did then, without what imports modules; innermost frame
        /// first.
        frames: Vec<Frame>,
    },
    /// What the kernel had counted for a thread that holds a GIL for long: some time before that
    /// hold, during it, or once it had ended.
    KernelCount {
        /// The holder.
        thread: ThreadId,
        /// What, and when.
        count: KernelCount,
    },
    /// How often a CPU limit stopped a process, while it was recorded; told before its end, if it
    /// is known.
    Throttled {
        /// Which.
        process: ProcessId,
        /// When that was read.
        at_ns: u64,
        /// In how many periods of the limit.
        times: u64,
        /// For how long, summed over the processors on which the programs of its control group
        /// stood.
        stopped_ns: u64,
    },
    /// The Python stack of a thread that holds a GIL for long, taken from outside.
    Stack {
        /// The holder.
        thread: ThreadId,
        /// When the sample was taken.
        at_ns: u64,
        /// Innermost frame first.
        frames: Vec<Frame>,
        /// The native frames above the innermost of these, innermost first: the last one is what
        /// that Python code called. Empty if it called none; `None` if that was not looked at.
        native: Option<Vec<NativeFrame>>,
    },
    /// A thread was stopped for a moment, to see its native frames.
    Stopped {
        /// Which.
        thread: ThreadId,
        /// When.
        at_ns: u64,
        /// How long it stood still, at most.
        stood_ns: u64,
    },
    /// Why there is no stack of a hold that was to have one, or no further one.
    NoStack {
        /// The holder.
        thread: ThreadId,
        /// A moment of that hold.
        at_ns: u64,
        /// The reason, about "it", the hold, without a final dot.
        why: String,
    },
    /// What a thread did when the recorder looked at it, which it does several times a second. So
    /// many looks at holders are a fair sample of what held while somebody waited, which stacks of
    /// long holds are not. One for whom nobody waits is looked at only if it has held for long.
    Look {
        /// The thread.
        thread: ThreadId,
        /// When its stack had been read.
        at_ns: u64,
        /// What it did.
        doing: Doing,
        /// Innermost frame first; empty if it could not be read.
        frames: Vec<Frame>,
    },
    /// Shared libraries that a process has loaded and its user may have built: they are no part of
    /// Python, of an installed package or of the system. Told with a stack, when they have changed.
    Libraries {
        /// Which process.
        process: ProcessId,
        /// When they were looked up.
        at_ns: u64,
        /// Their files.
        files: Vec<String>,
    },
    /// The trace is a snapshot, and begins here: what was told before is what stood at that moment
    /// (who lived, held and waited), with that time, and none of it counts.
    Snapshot {
        /// When the seconds begin that were kept.
        from_ns: u64,
    },
    /// A sentence the report must show (why stacks are missing, why a process was not traced).
    Note {
        /// The sentence, without a final dot.
        text: String,
    },
}

impl Record {
    /// When something happened, if the record says so; not the time of what is seen from outside,
    /// which may be told of late, or early.
    #[inline]
    pub fn at_ns(&self) -> Option<u64> {
        match self {
            Self::Gil { event, .. } => Some(event.at_ns),
            Self::Parked { park, .. } => Some(park.until_ns),
            Self::ProcessStarted(process) => Some(process.at_ns),
            Self::ProcessEnded { at_ns, .. }
            | Self::ThreadStarted { at_ns, .. }
            | Self::ThreadEnded { at_ns, .. }
            | Self::GilSwitchedOn { at_ns, .. }
            | Self::Snapshot { from_ns: at_ns } => Some(*at_ns),
            Self::Stack { .. }
            | Self::Stopped { .. }
            | Self::NoStack { .. }
            | Self::Look { .. }
            | Self::KernelCount { .. }
            | Self::Throttled { .. }
            | Self::Libraries { .. }
            | Self::ParkStack { .. }
            | Self::ThreadNamed { .. }
            | Self::Note { .. } => None,
        }
    }
}

/// How the note begins that says why a trace has no process.
pub const NOTHING_RECORDED: &str = "nothing was recorded: ";

/// What a thread did when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It had the GIL, and so many threads waited for that.
    Held {
        /// 0 of a hold that is long, for which nobody waits.
        waiters: u32,
    },
    /// It was off the GIL, neither holding nor waiting. What a thread does in one such gap is done in
    /// one line of Python.
    Off {
        /// 0 in a gap that is long: the look is told once, and is about all of it. Otherwise the
        /// look is a sample, and no look could tell of this thread for so many nanoseconds before.
        stands_for_ns: u64,
        /// The system call it slept in (`futex`, `read`); `computing` if it ran, empty if unknown.
        call: String,
        /// What its descriptor was, if the call has one: `socket`, `pipe`, `file`, or empty.
        on: String,
    },
}

/// What a pause of the world is of while garbage is being collected.
pub const COLLECTED: &str = "collection";

/// A sleep of a thread for a lock, or in a free-threaded interpreter. It is told when it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Park {
    /// When it began.
    pub since_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// What it was for.
    pub cause: Cause,
    /// The type of the object whose lock it was, as the type calls itself, or of a pause
    /// [`COLLECTED`]; empty if not known.
    pub of: String,
    /// A number that stands for what was waited for, 0 if that has no name of its own.
    pub lock: u32,
    /// What ended it.
    pub ending: Ending,
    /// The thread that did, if it is known.
    pub waker: Option<ThreadId>,
    /// The number of the stack ([`Record::ParkStack`]) that the thread slept in, 0 if not known.
    pub stack: u16,
    /// The number of the stack from which the other one woke it, 0 if not known.
    pub waker_stack: u16,
}

impl Park {
    /// How long it was.
    pub const fn length_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.since_ns)
    }
}

/// What the kernel had counted for a thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelCount {
    /// When it was asked.
    pub at_ns: u64,
    /// The thread's time on a processor until then. It may lack what the thread ran since the last
    /// tick of the kernel.
    pub ran_ns: u64,
    /// Time until then in which it wanted to run and did not. It lacks a delay that goes on.
    pub delayed_ns: u64,
    /// Whether it ran then or wanted to, and did not sleep: a delay may be going on.
    pub runnable: bool,
}

/// What is known of a process image when it is first seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its new id in the trace.
    pub process: ProcessId,
    /// Kernel process id.
    pub pid: u32,
    /// That of its parent.
    pub parent_pid: u32,
    /// When it was first seen.
    pub at_ns: u64,
    /// Its command line.
    pub argv: Vec<String>,
    /// First word of `Py_GetVersion()` ("3.13.0"), or empty.
    pub python: String,
    /// `None` if its GIL is recorded, otherwise why not, in a sentence without a final dot.
    pub not_recorded: Option<String>,
    /// Whether it had run before, so that it may have had threads of which nothing is known.
    pub ran_before: bool,
    /// The processors that it may use; `None` if that is not known.
    pub processors: Option<Processors>,
}

/// The processors that a process may use, as it was when the process was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    /// On how many it may run: those of its affinity.
    pub allowed: u32,
    /// The lowest CPU limit of its control groups, in thousandths of a processor; `None` if it has
    /// none.
    pub limit_thousandths: Option<u32>,
}

/// Totals of a process, known when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTotals {
    /// The interpreter's switch interval, or the quantum of its policy, in ns as its waiters used
    /// it; 0 if nobody ever waited.
    pub switch_interval_ns: u64,
    /// The number of the [`ungil_core::schedule::Policy`] that the last waiter waited under.
    pub policy: u64,
    /// Threads that found no slot and were not recorded.
    pub unrecorded_threads: u64,
    /// The number of a [`ungil_core::table::GilState`].
    pub gil_state: u64,
    /// When the GIL of a free-threaded build was first seen to be on for good, or 0.
    pub gil_on_ns: u64,
    /// How far its times may be from `CLOCK_MONOTONIC`: 0 if they are readings of that clock.
    pub clock_error_ns: u64,
}

/// Exact totals of a thread, independent of lost events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTotals {
    /// Waits that ended in an acquire.
    pub waits: u64,
    /// Their total length.
    pub waited_ns: u64,
    /// Holds that ended in a release.
    pub holds: u64,
    /// Their total length.
    pub held_ns: u64,
    /// Releases nobody had asked for.
    pub voluntary: u64,
    /// Releases while a drop request was pending.
    pub forced: u64,
    /// Drop requests made.
    pub drop_requests: u64,
    /// CPU time.
    pub cpu_ns: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Events that were lost because the ring was full.
    pub lost_events: u64,
}

/// One frame of a Python stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Frame {
    /// Function name.
    pub function: String,
    /// File as the code object names it.
    pub file: String,
    /// Line being executed; 0 if unknown.
    pub line: u32,
}

/// Stands for the kind of a descriptor where a wait has none and ends by itself within 20 ms.
pub const SHORT_TIMEOUT: &str = "short timeout";
/// The same where a call that waits for descriptors was given none, and so sleeps.
pub const NO_DESCRIPTOR: &str = "nothing";

/// One frame of native code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NativeFrame {
    /// The function as its library names it, C++ and Rust as they were written; empty if the library
    /// has no symbol for it.
    pub symbol: String,
    /// What Python calls it (`re.Pattern.match`); empty if Python does not call it, or that is not
    /// known.
    pub method: String,
    /// The file that the code is from; empty for code that was made while the program ran.
    pub library: String,
    /// Whether Python code called it by ctypes.
    pub by_ctypes: bool,
}

impl NativeFrame {
    /// What to call the function: what Python calls it, else its symbol. `None` if it has no name.
    pub fn function(&self) -> Option<&str> {
        [&self.method, &self.symbol].into_iter().find(|it| !it.is_empty()).map(String::as_str)
    }
}
