//! What threads did when they were looked at: where they held while others waited or on an event
//! loop, and what they did while they were off the GIL.

use serde::Serialize;

/// A function of the user's own in which a thread held while others waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldIn {
    /// `function (file)`.
    pub function: String,
    /// How many other functions of the user's own had called it, at least: 0 is outermost.
    pub depth: u64,
    /// Looks at the thread that found it in this function or in one that it called.
    pub looks: u64,
    /// Over these looks, how many threads waited.
    pub waiters: u64,
    /// Looks that found it in this function itself, or in code that is not the user's.
    pub innermost: u64,
    /// Looks that found this function inside of a call that an outer one of the user's own had made
    /// to other code, and that called back.
    pub called_back: u64,
    /// Looks that found it importing, or at the code of a module that was being imported.
    pub importing: u64,
    /// The modules that it imported in these, as far as that is known.
    pub imported: Vec<String>,
    /// The line at which most of them did, as `function (file:line)`; `None` if none did.
    pub frame: Option<String>,
}

/// What kept the event loop of a thread from going on while the thread had the GIL, whether or not
/// another thread waited for that.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventLoop {
    /// The function that runs the loop, as `function (file)`.
    pub by: String,
    /// Holds, at least as long as the blame time, in which the loop's callbacks computed.
    pub holds: u64,
    /// For how long the thread ran in them.
    pub computed_s: f64,
    /// The longest time that it ran in one.
    pub longest_ms: f64,
    /// Looks that found it in a callback, when it had held for half the blame time or more and nobody
    /// waited.
    pub looks: u64,
    /// The functions in which they did, most looks first.
    pub functions: Vec<ComputedIn>,
}

/// A function in which looks found a thread that computed on its event loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComputedIn {
    /// `function (file)`. It is the user's own, unless none of those was on the stack.
    pub function: String,
    /// How many other functions of the user's own had called it, at least: 0 is outermost.
    pub depth: u64,
    /// Looks that found the thread in this function or in one that it called.
    pub looks: u64,
    /// Looks that found it in this function itself, or in code that is not the user's.
    pub innermost: u64,
    /// Looks that found this function inside of a call that an outer one of the user's own had made
    /// to other code, and that called back.
    pub called_back: u64,
    /// The line at which most of them did, as `function (file:line)`; `None` if none did.
    pub frame: Option<String>,
}

impl HeldIn {
    /// Whether mostly other code called it, inside of a call by an outer function of the user's.
    pub fn is_called_back(&self) -> bool {
        2 * self.called_back > self.looks
    }

    /// Whether it mostly imports modules that are known.
    pub fn is_importing(&self) -> bool {
        2 * self.importing > self.looks && !self.imported.is_empty()
    }
}

impl ComputedIn {
    /// The same.
    pub fn is_called_back(&self) -> bool {
        2 * self.called_back > self.looks
    }
}

/// What a thread did in gaps that were looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OffGil {
    /// What it is called.
    pub what: What,
    /// Whether it did so inside of an event loop's callback, so that the loop stood still.
    pub on_event_loop: bool,
    /// The system call it slept in; `computing` if it ran, empty if unknown.
    pub call: String,
    /// What its descriptor was: `socket`, `pipe`, `file`, or empty; `short timeout` for a wait
    /// without one that ends by itself within 20 ms, `nothing` for one for no descriptor.
    pub on: String,
    /// The innermost frame, as `function (file:line)`; `None` if its stack could not be read, or not
    /// as fast as such a gap is over.
    pub frame: Option<String>,
    /// The innermost frame that is the user's own code; `None` if there is none.
    pub user_frame: Option<String>,
    /// The stack of the first such gap, innermost frame first.
    pub stack: Vec<String>,
    /// How many such gaps were long enough (50 to 100 ms) to be looked at for certain.
    pub gaps: u64,
    /// How many samples of shorter ones there are.
    pub samples: u64,
    /// How long they were, without the waits for the GIL at their ends: long ones to the
    /// nanosecond, shorter ones by their part of the samples of gaps that were about as long.
    pub total_s: f64,
    /// The part of it that was sampled.
    pub sampled_s: f64,
    /// The longest of the long ones.
    pub longest_ms: f64,
}

/// What a thread did off the GIL, by its system call and the Python code that led there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// It waited for something to do: a worker of a pool, an event loop, a server that accepts.
    Idle,
    /// It waited for another thread: a join, a result, an event, a condition, a queue.
    Thread,
    /// It waited for a lock.
    Lock,
    /// It slept for a time.
    Sleep,
    /// It waited for a peer in the network.
    Network,
    /// It waited for a file system.
    Disk,
    /// It waited for another process.
    Process,
    /// It waited for a pipe, a terminal, or until one of some descriptors was ready.
    Descriptor,
    /// It ran native code, or wanted to.
    Computing,
    /// Not known.
    Unknown,
}
