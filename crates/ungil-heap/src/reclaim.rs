//! What an object owns, and what becomes of it when its last reference is gone.
//!
//! Each kind tells in its own module what its objects own. Everything that walks the heap asks
//! here: reclamation, the collector, the check and the statistics.

use crate::header::GRANULE;
use crate::object::{self, Kind};
use crate::segment::{Offset, Segment};
use crate::{Error, Result, deque, dict, list, set, structs, sync};

/// Something that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// Memory, of as many bytes as were asked for when it was taken. Freed with the object.
    Block {
        /// Where it begins.
        at: Offset,
        /// How long it is.
        bytes: usize,
    },
    /// A reference to an object. Lost with this one.
    Object(Offset),
}

/// Is told of one thing after the other. Its error ends the walk.
pub type Visit<'v> = dyn FnMut(Owned) -> Result<()> + 'v;

/// Calls `visit` with everything that the object at `at` owns, its own memory first.
///
/// The object does not change meanwhile: it is locked, or nobody else can reach it, or the world
/// stands still.
///
/// # Errors
/// [`Error::Corrupt`] if it is no object; and those of `visit`.
pub fn owned(segment: &Segment, at: Offset, visit: &mut Visit<'_>) -> Result<()> {
    match object::head(segment, at)?.kind()? {
        Kind::Dict => dict::owned(segment, at, visit),
        Kind::List => list::owned(segment, at, visit),
        Kind::Set => set::owned(segment, at, visit),
        Kind::Deque => deque::owned(segment, at, visit),
        Kind::Struct => structs::owned(segment, at, visit),
        Kind::Sync => sync::owned(segment, at, visit),
        Kind::Gone => object::owned(segment, at, visit),
    }
}

/// Notes all that the object at `at` owns: the objects it refers to lose a reference, its memory is
/// freed. Nobody else can reach it.
///
/// The caller goes on with what is noted in `forgone`, so that a chain of any length needs no stack.
pub fn dismantle(
    segment: &Segment,
    at: Offset,
    forgone: &mut Vec<Offset>,
    doomed: &mut Vec<(Offset, usize)>,
) -> Result<()> {
    // More than a heap can hold is owned only where two objects claim the same.
    let most = segment.layout().end / GRANULE;
    owned(segment, at, &mut |owned| {
        match owned {
            Owned::Block { at, bytes } => doomed.push((at, bytes)),
            Owned::Object(at) => forgone.push(at),
        }
        if doomed.len() > most || forgone.len() > most {
            return Err(Error::Corrupt("objects own more than the heap has"));
        }
        Ok(())
    })
}
