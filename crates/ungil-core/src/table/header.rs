//! What is known of the traced process as a whole.

use super::ended::Ended;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::tick::Tick;

/// How many GILs of one process are told apart; further ones are not seen.
pub const GILS: usize = 64;

/// How many types of objects are named; further ones stay without a name.
pub const TYPES: usize = 60;

/// A type of objects at whose locks threads have waited.
#[repr(C)]
#[derive(Debug)]
pub struct TypeName {
    /// Where the type is in the process; 0 for none yet.
    pub address: AtomicU64,
    /// What it calls itself (`tp_name`), NUL-padded, cut to fit.
    pub name: [AtomicU64; 4],
}

/// What is known of the process as a whole.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Header {
    /// [`super::MAGIC`], stored last (`Release`) by the traced process.
    pub magic: AtomicU64,
    /// [`super::ABI`] of the writer.
    pub abi: AtomicU64,
    /// Process id as the process itself sees it.
    pub pid: AtomicU32,
    /// Process id of its parent.
    pub parent_pid: AtomicU32,
    /// A [`super::Status`] as a number.
    pub status: AtomicU32,
    /// A [`super::Recording`] as a number.
    pub recording: AtomicU32,
    /// When the table was created.
    pub started_ticks: AtomicU64,
    /// When the process left `main`, or 0 (it still runs, was killed, or called `_exit`).
    pub ended_ticks: AtomicU64,
    /// Length of a tick ([`Tick::fraction`]). The recorder, which measures it, stores it anew now
    /// and then.
    tick: AtomicU64,
    /// The switch interval last seen in a waiter's deadline, or the quantum of the policy that it
    /// waited under, in ns; 0 before the first wait.
    pub switch_interval_ns: AtomicU64,
    /// Threads that found no free slot, and so were not recorded.
    pub unrecorded_threads: AtomicU64,
    /// Slots at and above this index were never used, and have no memory yet.
    pub used_slots: AtomicU32,
    /// The [`crate::schedule::Policy`] that the last waiter waited under, as a number.
    pub policy: AtomicU32,
    /// The [`crate::tick::Clock`] of all times here and in the rings, as a number.
    pub clock: AtomicU32,
    /// The PID namespace of all ids of processes and threads here; 0 if the process does not know it.
    pub pid_namespace: AtomicU32,
    /// Counters of the threads that have ended.
    pub ended: Ended,
    /// `Py_GetVersion()`, NUL-padded, cut to fit.
    pub python: [AtomicU64; 16],
    /// Length of `command` in bytes.
    pub command_bytes: AtomicU32,
    /// A [`super::GilState`] as a number.
    pub gil_state: AtomicU32,
    /// Beginning of the command line, each word ended by a NUL as in `/proc/self/cmdline`: a
    /// process may be gone before the recorder sees its table.
    pub command: [AtomicU64; 256],
    /// The addresses of the GILs, by their number in events: of the condition variable that waiters
    /// sleep on, or of 2.7's semaphore. 0 for a number that was never used.
    pub gils: [AtomicU64; GILS],
    /// When the GIL of a free-threaded build was first seen to be on for good, or 0.
    pub gil_on_ticks: AtomicU64,
    /// Where `_PyRuntime` of a free-threaded build is in the process, or 0.
    pub runtime: AtomicU64,
    /// How many stacks have a number.
    pub stacks: AtomicU32,
    /// Number of the stack in which the GIL was seen to have been switched on, or 0.
    pub gil_on_stack: AtomicU32,
    /// The extension module that was loaded last then: its file, NUL-padded, cut at its beginning
    /// to fit.
    pub gil_on_library: [AtomicU64; 32],
    /// The types that [`crate::ParkEntry`] numbers.
    pub types: [TypeName; TYPES],
    /// 1 once there was no memory for an event, or for the slot of a thread.
    pub lacks_memory: AtomicU32,
}

impl Header {
    /// How long a tick of the table's clock is.
    #[inline]
    pub fn tick(&self) -> Tick {
        Tick::from_fraction(self.tick.load(Ordering::Relaxed))
    }

    /// Says how long a tick is from now on.
    pub fn set_tick(&self, tick: Tick) {
        self.tick.store(tick.fraction(), Ordering::Relaxed);
    }
}
