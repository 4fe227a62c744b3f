//! Holds and waits, one by one, as limits judge them.

use serde::Serialize;

/// What was judged since the last time that somebody asked. Times named `*_ns` are of
/// `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct JudgedReport {
    /// Those with the most own time first; at most a hundred a GIL.
    pub holds: Vec<JudgedHoldReport>,
    /// How many there were, listed or not.
    pub holds_count: u64,
    /// Those charged with most first; at most a hundred a GIL.
    pub waits: Vec<JudgedWaitReport>,
    /// How many there were, listed or not.
    pub waits_count: u64,
    /// What each thread has waited in all, by GIL.
    pub threads: Vec<JudgedThreadReport>,
}

/// A hold during which somebody asked for the GIL.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedHoldReport {
    /// Kernel process id.
    pub pid: u32,
    /// Which GIL of the process.
    pub gil: u8,
    /// The holder.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// For how long, after somebody had asked, the holder ran or slept, at least.
    pub own_ms: f64,
    /// For how long the holder ran in all of it; `None` if that is not known.
    pub cpu_ms: Option<f64>,
    /// The holder's Python stack, as in [`super::LongHoldReport::stack`].
    pub stack: Vec<String>,
    /// As in [`super::LongHoldReport::user_frame`].
    pub user_frame: Option<String>,
    /// Why `stack` is empty, in a clause in which "it" is the hold; `None` if it is not.
    pub stack_missing: Option<String>,
}

/// A wait that has ended with an acquire.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedWaitReport {
    /// Kernel process id.
    pub pid: u32,
    /// Which GIL of the process.
    pub gil: u8,
    /// Who waited.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// For how long the holders that it waited for ran or slept meanwhile, at least.
    pub own_ms: f64,
    /// Who held longest meanwhile; `None` if nobody did.
    pub culprit_tid: Option<u32>,
    /// Its name.
    pub culprit_name: Option<String>,
}

/// All waits of one thread.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedThreadReport {
    /// Kernel process id.
    pub pid: u32,
    /// Which GIL of the process.
    pub gil: u8,
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// How many.
    pub waits: u64,
    /// For how long.
    pub waited_ms: f64,
    /// How much of that the holders ran or slept, at least.
    pub own_ms: f64,
}
