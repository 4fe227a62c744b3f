//! What has to happen before a task goes on.

use std::os::fd::RawFd;
use std::sync::Arc;

use super::reactor::Direction;
use super::resolver::Lookup;

/// What has to happen before a task goes on.
#[derive(Debug)]
pub enum Want {
    /// So many nanoseconds pass; with 0 the others have their turn.
    Sleep(u64),
    /// A descriptor is ready.
    Ready {
        /// Its number.
        fd: RawFd,
        /// For what it is to be ready.
        direction: Direction,
        /// Of what kind it is, for the reactor.
        belongs: Belongs,
    },
    /// A name is resolved.
    Lookup(Arc<Lookup>),
}

/// Whose a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// Ours, and this loop has not seen it.
    New,
    /// Ours, and this loop keeps it.
    Kept,
    /// The user's.
    User,
}

/// How far an operation has come.
#[derive(Debug)]
pub enum Progress<T> {
    /// To its end, with this value.
    Done(T),
    /// It goes on when this has happened. To be asked earlier is legal.
    Wait(Want),
}
