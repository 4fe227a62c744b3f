//! What a trace has told of processes and threads so far.

use crate::running::Running;
use ungil_trace::record::{Process, ProcessId, ProcessTotals, ThreadId, ThreadTotals};

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nobody had asked.
    Voluntary,
    /// A drop request was pending.
    Forced,
    /// Its release is not in the trace: the event was lost, or the thread or the trace ended.
    Unseen,
}

/// What is known of a process.
#[derive(Clone, Debug)]
pub struct KnownProcess {
    /// As it was first seen.
    pub process: Process,
    /// When it ended.
    pub ended_ns: Option<u64>,
    /// Its totals, once it has ended.
    pub totals: ProcessTotals,
    pub(crate) gils: Vec<u8>,
    pub(crate) threads: Vec<ThreadId>,
}

impl KnownProcess {
    /// Whether a thread of it has used a GIL.
    pub fn has_gil(&self) -> bool {
        !self.gils.is_empty()
    }
}

/// What is known of a thread.
#[derive(Clone, Debug)]
pub struct KnownThread {
    /// Where it lives.
    pub process: ProcessId,
    /// Its kernel thread id.
    pub tid: u32,
    /// The latest name.
    pub name: String,
    /// When it first touched a GIL.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: Option<u64>,
    /// Its own totals, once it has ended.
    pub totals: Option<ThreadTotals>,
    pub(crate) last_ns: u64,
    /// A hold that has ended, for samples of it that come late.
    pub(crate) ended: Option<Box<(u8, Running, u64, End)>>,
}
