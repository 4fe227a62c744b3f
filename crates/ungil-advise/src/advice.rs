//! A piece of advice, as `docs/advise.md` describes it key by key.

use serde::Serialize;

/// Version of the JSON schema.
pub const SCHEMA: u32 = 1;

/// All that is advised about a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Advised {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Best first; never empty.
    pub advice: Vec<Advice>,
    /// What was tried in the simulation and would gain too little to be advised.
    pub rejected: Vec<Advice>,
    /// At how many GILs threads wait for which no remedy was looked for, because they wait longer
    /// at enough others.
    pub gils_left_out: usize,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// What it is.
    pub kind: Kind,
    /// Of advice that says that it is not the GIL: what it is then.
    pub cause: Option<Cause>,
    /// A sentence, without a final dot.
    pub text: String,
    /// Whom it is about.
    pub subject: Subject,
    /// What to type.
    pub action: Action,
    /// What it is predicted to gain; `None` if nothing is predicted.
    pub gain: Option<Gain>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What the trace shows for it.
    pub evidence: Vec<Evidence>,
    /// The place in the list of a better piece that asks for the same in another process; `None` if
    /// there is none.
    pub same_as: Option<usize>,
}

/// The kind of a piece of advice. Names never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    // In the order of what they ask of the user, least first.
    /// Run the program with its GIL scheduled.
    Policy,
    /// Give threads a level.
    Priority,
    /// Ask the holder more often.
    SwitchInterval,
    /// Use fewer threads.
    FewerThreads,
    /// Let the garbage collector look at less, or less often.
    FewerCollections,
    /// Import modules before the threads start.
    EarlyImports,
    /// Let go of the GIL in one's own compiled code.
    LetGo,
    /// Run a function in another process.
    ToAProcess,
    /// Use a free-threaded build of Python.
    FreeThreaded,
    /// Nothing to gain here: it is not the GIL.
    NotTheGil,
}

/// What it is, where it is not the GIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A call that blocks, made by the thread of an event loop.
    BlockedEventLoop,
    /// All threads of a pool are inside of their work, and off the GIL.
    ExhaustedPool,
    /// Threads wake up again and again to look whether there is something to do.
    Polling,
    /// Threads are started for so little work that to start them takes longer.
    ShortThreads,
    /// A CPU limit stops the process.
    CpuLimit,
    /// The kernel does not run threads that have the GIL.
    Descheduled,
    /// The kernel does not run threads that were woken for the GIL.
    LateWakeups,
    /// Another lock.
    Lock,
    /// A file system.
    Disk,
    /// A peer in the network.
    Network,
    /// Sleeps.
    Sleep,
    /// Another process.
    Process,
    /// A pipe, a terminal, or some descriptors.
    Descriptor,
    /// Native code that has let go of the GIL.
    Computing,
    /// The trace does not show what.
    Unknown,
}

/// Whom a piece of advice is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Subject {
    /// Kernel process id; `None` if no process was recorded.
    pub pid: Option<u32>,
    /// Which GIL of it.
    pub gil: Option<u8>,
    /// Kernel thread ids.
    pub threads: Vec<u32>,
    /// What these threads are called, with `*` where they differ; `None` if they have no common name.
    pub thread_group: Option<String>,
    /// `function (file:line)`: the user's own, where there is one.
    pub function: Option<String>,
}

/// What to type: a command, a line of code, or neither where only a person can decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Action {
    /// A command, word by word.
    pub command: Option<Vec<String>>,
    /// The same for a shell.
    pub shell: Option<String>,
    /// Lines of Python.
    pub code: Option<String>,
}

/// What it is predicted to gain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// What is measured, of the threads that suffer, or of all that the program did.
    pub measure: Measure,
    /// Its unit.
    pub unit: Unit,
    /// What was recorded.
    pub before: f64,
    /// What is predicted.
    pub after: f64,
    /// The least and the most that are predicted.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// By how much these threads would wait less in each second, in seconds, for the same calls; of a
    /// duration, the part of what they wait by which that is shorter.
    pub saved_s_per_s: f64,
    /// How long all threads together wait for the GIL in each second: recorded, predicted.
    pub waited_s_per_s: [f64; 2],
    /// 99th percentile of the waits after blocking calls: recorded, predicted.
    pub p99_ms: [f64; 2],
    /// CPU time of all threads for each second: recorded, predicted.
    pub cpu_s_per_s: [f64; 2],
}

/// What a gain is told in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// How long a thread waits for the GIL when it comes back from a blocking call, on average: of
    /// the threads that suffer. It does not depend on how many calls there are.
    WaitAfterBlockingCall,
    /// The same for a thousand calls, where nearly all of them return at once.
    WaitAfterThousandBlockingCalls,
    /// How long they wait for it in each second.
    WaitedPerSecond,
    /// How long all the recorded work takes: of a batch, whose results the main thread collects.
    Duration,
}

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Seconds for each second.
    #[serde(rename = "s/s")]
    PerSecond,
    /// A part of 1.
    #[serde(rename = "share")]
    Share,
    /// A number of things.
    #[serde(rename = "count")]
    Count,
}

/// How sure a piece of advice is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Confidence {
    /// In a word.
    pub level: Sure,
    /// How it is known, in a sentence without a final dot.
    pub because: String,
}

/// How sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sure {
    /// The trace shows it, or the simulation reproduces the recording.
    High,
    /// It rests on something that the trace does not show.
    Medium,
    /// It may well be otherwise.
    Low,
}

/// A number that the trace shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is, in words.
    pub what: String,
    /// How much.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Where the same number is in the report's JSON (RFC 6901); `None` if it was made from several.
    pub pointer: Option<String>,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Policy,
        Self::Priority,
        Self::SwitchInterval,
        Self::FewerThreads,
        Self::FewerCollections,
        Self::EarlyImports,
        Self::ToAProcess,
        Self::LetGo,
        Self::FreeThreaded,
        Self::NotTheGil,
    ];
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::BlockedEventLoop,
        Self::ExhaustedPool,
        Self::Polling,
        Self::ShortThreads,
        Self::CpuLimit,
        Self::Descheduled,
        Self::LateWakeups,
        Self::Lock,
        Self::Disk,
        Self::Network,
        Self::Sleep,
        Self::Process,
        Self::Descriptor,
        Self::Computing,
        Self::Unknown,
    ];
}

impl Action {
    /// This command.
    pub(crate) fn command(words: Vec<String>) -> Self {
        let shell = crate::shell::joined(&words);
        Self { shell: Some(shell), command: Some(words), code: None }
    }

    /// These lines of Python.
    pub(crate) fn code(lines: impl Into<String>) -> Self {
        Self { code: Some(lines.into()), ..Self::default() }
    }
}

impl Evidence {
    /// A number of the report, and where it is there.
    pub(crate) fn at(what: impl Into<String>, value: f64, unit: Unit, pointer: String) -> Self {
        Self { what: what.into(), value, unit, pointer: Some(pointer) }
    }

    /// A number that several of the report make.
    pub(crate) fn made(what: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { what: what.into(), value, unit, pointer: None }
    }
}
