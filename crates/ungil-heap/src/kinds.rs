//! All kinds of objects, each of which tells in its own module what its objects own.

use crate::object::{self, Kind, Owner, Visit};
use crate::segment::{Offset, Segment};
use crate::{Result, deque, dict, list, queue, set, structs, sync};

impl Owner for Kind {
    fn owned(self, segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
        match self {
            Self::Dict => dict::owned(segment, at, visit),
            Self::List => list::owned(segment, at, visit),
            Self::Set => set::owned(segment, at, visit),
            Self::Deque => deque::owned(segment, at, visit),
            Self::Struct => structs::owned(segment, at, visit),
            Self::Sync => sync::owned(segment, at, visit),
            Self::Gone => object::owned_by_gone(segment, at, visit),
            Self::Queue => queue::owned(segment, at, visit),
        }
    }
}
