//! `Lock` and `RLock`: the lock that every object has, on an object that has nothing else.
//!
//! A `Lock` is used with [`crate::monitor::acquire`] and [`crate::monitor::release`], an `RLock`
//! with [`crate::monitor::enter`] and [`crate::monitor::leave`].

use crate::Result;
use crate::object;
use crate::op::Op;
use crate::segment::Offset;
use crate::sync::sort::{self, Sort};

/// A new lock.
pub fn create(op: &mut Op<'_>) -> Result<Offset> {
    sort::create(op, Sort::Lock, object::SIZE)
}

/// A new lock that its holder can take again.
pub fn create_reentrant(op: &mut Op<'_>) -> Result<Offset> {
    sort::create(op, Sort::RLock, object::SIZE)
}
