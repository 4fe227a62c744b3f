//! Python stacks and thread names of running processes, taken from outside by the py-spy crate.
//!
//! No thread is stopped to see its Python stack: memory is read while it changes, so a read can fail
//! or, very rarely, show a frame that has just been left. To see native frames a thread is stopped
//! for some tens of microseconds. What costs little regardless of the number of
//! threads is the stack of *the thread that holds the GIL*, and that is the only one blame needs.
//!
//! Threads are named by `ident` (`pthread_self()`, [`Slot::ident`](ungil_core::table::Slot)):
//! before 3.11 an interpreter does not know its kernel thread ids. An ident is reused as soon as
//! its thread has ended, so compare [`Sample::at_ns`] with the life of the thread.
//!
//! A thread that runs code in a sub-interpreter has frames there, and below them some of the
//! interpreter that called it.
//!
//! Not known: sub-interpreters before Python 3.7, thread names of Python 2.

mod before_forks;
mod forbidden;
mod libraries;
mod interpreter_states;
mod spied;
mod free_threaded;
mod reader;
mod native;
mod everyone;
mod sampler;

pub use everyone::{Everyone, ThreadStack};
pub use native::NativeStack;
pub use reader::StackReader;
pub use sampler::{Answer, StackSampler};

use crate::record::Frame;
use std::ops::Range;

/// How often a read is tried at once. One in fifty reads of a busy thread fails because the
/// thread moved on meanwhile; each try costs about 0.15 ms.
const TRIES: u32 = 4;

/// What one look at a process showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When reading began, in ns of `CLOCK_MONOTONIC`.
    pub begun_ns: u64,
    /// When the holders' stacks had been read. A thread that held a GIL without a break from
    /// `begun_ns` until then was not mistaken for another.
    pub at_ns: u64,
    /// The threads that held a GIL: at most one, unless sub-interpreters have GILs of their own.
    pub holders: Vec<Holder>,
    /// What Python calls its threads; `None` if only stacks were wanted.
    pub names: Option<ThreadNames>,
    /// The shared libraries that its user may have built, if they were looked up and are others
    /// than before.
    pub libraries: Option<Vec<String>>,
    /// The native frames of the threads that were asked for, as far as they could be seen.
    pub natives: Vec<NativeStack>,
    /// Why there will never be native frames of this process, if they were asked for.
    pub no_natives: Option<String>,
}

/// A thread that held a GIL when the sample was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The addresses of the struct that is this GIL; `None` before Python 3.12, where there is one.
    pub gil: Option<Range<u64>>,
    /// Its `threading.get_ident()`, as the interpreter has it whose code it ran. In a
    /// sub-interpreter that can be another thread's: up to 3.12 `run_string` runs in the name of the
    /// thread that made the interpreter.
    pub ident: u64,
    /// Whether that was the main interpreter.
    pub in_main: bool,
    /// Its Python stack there, innermost frame first. Empty if it ran no Python function.
    pub frames: Vec<Frame>,
    /// What goes on from there: the frames of thread `ident` in the main interpreter and others.
    pub callers: Vec<Frame>,
}

/// What one look showed of the names of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadNames {
    /// When reading began, in ns of `CLOCK_MONOTONIC`, and
    pub begun_ns: u64,
    /// when it was over. A thread gets the ident of one that has ended, mostly at once: a name is
    /// only that of a thread which lived all this time.
    pub at_ns: u64,
    /// Every thread that Python has a name for, in no order.
    pub threads: Vec<ThreadName>,
}

/// A thread and what Python calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadName {
    /// Its `threading.get_ident()`.
    pub ident: u64,
    /// `threading.Thread.name`, as the main interpreter knows it, else as the oldest
    /// sub-interpreter does that has started it.
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

impl StackError {
    /// Why a hold has no stack, in a clause in which "it" is the hold.
    pub fn about_a_hold(&self) -> String {
        match self {
            // The note on the trace as a whole says what forbids it.
            Self::Forbidden(_) => "the platform forbids reading the process".to_owned(),
            Self::Gone => "the process ended before its stack was read".to_owned(),
            Self::NotReady(why) => format!("the process could not be read at that moment: {why}"),
            Self::Unsupported(why) => why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_a_reason_why_a_hold_has_no_stack() {
        let said = |error: StackError| error.about_a_hold();
        assert_eq!(
            said(StackError::Forbidden("...".into())),
            "the platform forbids reading the process"
        );
        assert_eq!(said(StackError::Gone), "the process ended before its stack was read");
        let torn = said(StackError::NotReady("no interpreter".into()));
        assert_eq!(torn, "the process could not be read at that moment: no interpreter");
        let unknown = "the stack reader does not know Python 9.9";
        assert_eq!(said(StackError::Unsupported(unknown.into())), unknown);
    }
}
