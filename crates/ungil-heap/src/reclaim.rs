//! What an object owns, given back when its last reference is gone.

use crate::Result;
use crate::object::{self};
use crate::segment::{Offset, Segment};

/// Notes all that the object at `at` owns: the objects it refers to lose a reference, its memory is
/// freed. Nobody else can reach it.
pub fn dismantle(
    segment: &Segment,
    at: Offset,
    _forgone: &mut Vec<Offset>,
    doomed: &mut Vec<(Offset, usize)>,
) -> Result<()> {
    object::head(segment, at)?.kind()?;
    doomed.push((at, object::SIZE));
    Ok(())
}
