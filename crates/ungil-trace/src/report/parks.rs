//! What threads waited for besides a GIL: in a free-threaded interpreter that had none, and in locks.

use super::look::What;
use super::thread::Lengths;
use serde::Serialize;

/// The parks of one process: the sleeps of threads that could not go on. Waits that a thread spent
/// without sleeping, and locks that were free, are not seen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ParksReport {
    /// Those that waited longest first.
    pub threads: Vec<ParkedThread>,
    /// Of threads that are too many to be told apart.
    pub others: Vec<ParkedBy>,
    /// What threads waited for, and who woke them: longest first, but what may have been waited
    /// for in idleness comes last: locks of the program for which no two parked at once, and events.
    pub waits: Vec<ParkedAt>,
    /// How often the world was stopped.
    pub pauses: WorldPauses,
}

/// A thread that parked.
#[derive(Clone, Debug, Serialize)]
pub struct ParkedThread {
    /// Kernel thread id.
    pub tid: u32,
    /// The best name known.
    pub name: String,
    /// Whether it is the main thread of its process.
    pub main: bool,
    /// Its parks, by what they were for.
    pub causes: Vec<ParkedBy>,
}

impl ParkedThread {
    /// How long it waited for locks and pauses, and not just for something to happen.
    pub fn waited_s(&self) -> f64 {
        let causes = self.causes.iter().filter(|it| it.cause != "event");
        causes.map(|it| it.waited_s).sum()
    }
}

/// Parks with one cause.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ParkedBy {
    /// "lock off the GIL": one of the program, while the interpreter had its GIL. Without one,
    /// "object": the lock of an object; "lock": one of the program; "internal": one of the
    /// interpreter or of an extension module; "pause": another thread had stopped the world;
    /// "stopping": it waited until the others had stopped; "event": for something to happen.
    pub cause: &'static str,
    /// All of them.
    pub waited_s: f64,
    /// One by one.
    pub parks: Lengths,
}

/// What one thread waited for at one lock, or for one cause.
#[derive(Clone, Debug, Serialize)]
pub struct ParkedAt {
    /// Kernel thread id of the thread that waited.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// As in [`ParkedBy`].
    pub cause: &'static str,
    /// The type of the object; `None` if it is not known.
    pub of: Option<String>,
    /// A number of the lock, the same for all threads of the process; `None` if there is no single
    /// one. A lock that was made where another one had been has that one's number.
    pub lock: Option<u32>,
    /// Whether two threads slept for that lock at the same time.
    pub together: bool,
    /// Whether a thread that waited for it also let go of it for others: threads take it in turn, and do
    /// not wait there for something to do. Only known with a GIL.
    pub contended: bool,
    /// How often.
    pub count: u64,
    /// For how long in all.
    pub waited_s: f64,
    /// The longest time.
    pub max_ms: f64,
    /// The lines of code that it waited at, those where it waited longest; empty if that is not
    /// known.
    pub places: Vec<ParkedIn>,
    /// Who woke it, by what it had waited until then, most first.
    pub wakers: Vec<Waker>,
}

/// A lock that threads took in turn, while the interpreter had a GIL.
#[derive(Clone, Debug, Serialize)]
pub struct LockReport {
    /// Its number, as in [`ParkedAt`].
    pub lock: u32,
    /// How often a thread slept for it.
    pub count: u64,
    /// For how long all of them did.
    pub waited_s: f64,
    /// For how long any thread did, at least: time in which several slept counts once.
    pub waited_for_s: f64,
    /// Looks at a thread that had it meanwhile, off the GIL.
    pub looks: u64,
    /// What that one did, most looks first.
    pub did: Vec<DidWithLock>,
}

/// What a thread did that had a lock for which others slept.
#[derive(Clone, Debug, Serialize)]
pub struct DidWithLock {
    /// What it is called.
    pub what: What,
    /// As in [`OffGil`](super::OffGil).
    pub call: String,
    /// Likewise.
    pub on: String,
    /// The innermost frame.
    pub frame: Option<String>,
    /// The innermost frame of the user's own code.
    pub user_frame: Option<String>,
    /// Looks that found a thread there.
    pub looks: u64,
}

/// A line of code at which a thread waited.
#[derive(Clone, Debug, Serialize)]
pub struct ParkedIn {
    /// The innermost Python frame.
    pub frame: String,
    /// The innermost frame of the user's own code, if there is any.
    pub user_frame: Option<String>,
    /// All frames that were kept of one such stack, innermost first.
    pub stack: Vec<String>,
    /// How often.
    pub count: u64,
    /// For how long in all.
    pub waited_s: f64,
}

/// A thread that woke another one.
#[derive(Clone, Debug, Serialize)]
pub struct Waker {
    /// Kernel thread id; `None` if it is not known, or the park ended by itself.
    pub tid: Option<u32>,
    /// Its name.
    pub name: Option<String>,
    /// How often.
    pub count: u64,
    /// What the other one had waited until then.
    pub waited_s: f64,
    /// How often it had the lock, and let go of it; the other times it gave a signal, or that is not
    /// known.
    pub let_go: u64,
    /// The innermost Python frame from which it did so for the longest waits; `None` if that is not
    /// known.
    pub frame: Option<String>,
    /// The innermost frame of the user's own code there.
    pub user_frame: Option<String>,
}

/// How often, and for how long, all threads were stopped, as far as threads that wanted to run
/// slept.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WorldPauses {
    /// How often.
    pub count: u64,
    /// For how long in all.
    pub stopped_s: f64,
    /// The longest time.
    pub max_ms: f64,
    /// How many of them were collections of garbage, as far as that is known (of 3.13).
    pub collections: u64,
    /// For how long these were.
    pub collections_s: f64,
}
