//! Python stacks and thread names of running processes, taken from outside by the py-spy crate.
//!
//! The process is never stopped: its memory is read while it changes, so a read can fail or, very
//! rarely, show a frame that has just been left. What costs little regardless of the number of
//! threads is the stack of *the thread that holds the GIL*, and that is the only one blame needs.
//!
//! Threads are named by `ident` (`pthread_self()`, [`Slot::ident`](ungil_core::table::Slot)):
//! before 3.11 an interpreter does not know its kernel thread ids. An ident is reused as soon as
//! its thread has ended, so compare [`Sample::at_ns`] with the life of the thread.
//!
//! Not known: sub-interpreters other than the one py-spy finds first, thread names of Python 2.

mod forbidden;
mod reader;
mod sampler;

pub use reader::StackReader;
pub use sampler::{Answer, StackSampler};

use crate::record::Frame;

/// What one look at a process showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the holder's stack had been read, in ns of `CLOCK_MONOTONIC`. A thread that has held
    /// the GIL without a break from before the request until then was not mistaken for another.
    pub at_ns: u64,
    /// The thread that held the GIL, if any did.
    pub holder: Option<Holder>,
    /// Every thread that Python has a name for, in no order. A new name may be missing from a
    /// sample that only a stack was wanted of.
    pub names: Vec<ThreadName>,
}

/// The thread that held the GIL when the sample was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its `threading.get_ident()`.
    pub ident: u64,
    /// Its Python stack, innermost frame first. Empty if it runs no Python function.
    pub frames: Vec<Frame>,
}

/// A thread and what Python calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadName {
    /// Its `threading.get_ident()`.
    pub ident: u64,
    /// `threading.Thread.name`.
    pub name: String,
}

/// Why there is no sample.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// The platform does not let this process read that one's memory. The sentence says what
    /// forbids it and what to do. Final.
    #[error("{0}")]
    Forbidden(String),
    /// The process has ended. Final.
    #[error("the process has ended")]
    Gone,
    /// The interpreter is still starting, or changed what was being read. The only error that
    /// trying again can cure.
    #[error("no Python stack could be read: {0}")]
    NotReady(String),
    /// A version of Python that py-spy does not know. Final.
    #[error("no Python stacks: {0}")]
    Unsupported(String),
}
