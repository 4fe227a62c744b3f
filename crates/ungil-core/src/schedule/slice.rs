//! How much of a processor a thread asks the kernel for at a time.
//!
//! Linux 6.12 and later let each thread say how long it wants to run when it runs, its *slice*
//! (Peter Zijlstra, "sched/eevdf: Use sched_attr::sched_runtime to set request/slice suggestion",
//! 2023). It gets no more or less time by that: who asks for less is run sooner after it was woken,
//! also before a thread that runs, and is not put aside for the thread that it has just woken. That
//! is what a thread wants which uses the GIL a little and often, and only that one: a short slice of
//! everybody's is nobody's.

use super::policy::{Policy, Settings};

/// The slice of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slice {
    /// What it has without ungil.
    #[default]
    Own,
    /// The shortest that the kernel knows.
    Short,
}

/// How many quanta less than its share a thread has to use for a short slice.
const BEHIND: u64 = 2;

impl Slice {
    /// What a thread is to have that has `self` and asks for the GIL, of which it used `behind_ns`
    /// less than its share; `was_forced` to let go of it the last time.
    ///
    /// It keeps a short one until it has used up all that it was behind, so that each change costs
    /// it quanta. A thread that computes can be as far behind, when the kernel did not run it for a
    /// while; but that one was forced.
    pub(super) fn next(self, settings: Settings, behind_ns: u64, was_forced: bool) -> Self {
        if settings.policy != Policy::Interactive {
            return Self::Own;
        }
        match self {
            Self::Own if behind_ns >= BEHIND * settings.quantum_ns && !was_forced => Self::Short,
            Self::Short if behind_ns == 0 => Self::Own,
            _ => self,
        }
    }
}
