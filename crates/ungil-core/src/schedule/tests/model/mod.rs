//! `take_gil` and `drop_gil` (`Python/ceval_gil.c`, 3.8 to 3.13) and the hook's stand-ins for what
//! they call, around the real [`Line`](crate::schedule::Line), on the locks of a model checker.
//!
//! The kernel is modelled where it matters: a futex compares and sleeps in one step, and a timer
//! fires at a time of its own choosing, which is when [`Gil::alarm`] happens to run, or when
//! nothing else can. There is no other safety net, so a lost wake-up is a thread that sleeps for
//! ever, which panics. A thread that was woken finds that no time has passed, one whose timer fired
//! that it has passed entirely.

mod kernel;
mod gil;
mod here;

pub use gil::Gil;
pub use here::Here;

#[cfg(loom)]
pub use loom::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(not(loom))]
pub use shuttle::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};

pub const QUANTUM_NS: u64 = 5_000_000;
