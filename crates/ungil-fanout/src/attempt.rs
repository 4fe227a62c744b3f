//! An attempt at an item, and how it failed.

use crate::dispatch::Membership;
use crate::limit::Ticket;

/// An attempt at an item, as it was when it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attempt {
    /// The group of the item.
    pub membership: Membership,
    /// When it began.
    pub started: u64,
    /// What [`Dispatcher::begin`](crate::dispatcher::Dispatcher::begin) has returned.
    pub ticket: Ticket,
}

/// How an attempt failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// How many attempts at the item have failed, this one included.
    pub attempts: u32,
    /// Whether that may come from load.
    pub may_be_load: bool,
    /// After how many nanoseconds whoever was asked wants to be asked again, if that is what they
    /// say: it is too much.
    pub too_much: Option<u64>,
    /// What becomes of the item.
    pub next: After,
}

/// What becomes of an item whose attempt has failed.
#[derive(Clone, Debug)]
pub enum After {
    /// It is tried again after so many nanoseconds.
    Again(u64),
    /// It is tried again after so many nanoseconds and what the backoff says.
    AgainLater(u64),
    /// It has failed, in the way of this name.
    Never(String),
}
