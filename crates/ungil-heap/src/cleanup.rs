//! Cleaning up behind processes that are dead or have left, so that others get their places.
//!
//! All of it may be killed anywhere and begun again by another.

use std::time::Duration;

use crate::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::header::{LANES, PROCESSES};
use crate::lane::{self, BUSY, IDLE, Position};
use crate::process_table::{self, Claim, FREE, LEFT, Membership, Slot, TAKEN};
use crate::segment::Segment;
use crate::{Error, Result, fault, hazard, mutation, root_table};

/// How long the handles of a process that has ended are waited for.
pub(crate) const LATE: Duration = Duration::from_secs(600);

/// Takes a slot for one more process.
pub(crate) fn join(segment: &Segment) -> Result<Membership> {
    match Membership::take(segment) {
        Err(Error::Crowded { .. }) => {
            // Some of those in the table may be dead.
            clean_all(segment)?;
            give_up(segment, LATE)?;
            match Membership::take(segment) {
                Err(Error::Crowded { .. }) => {
                    give_up(segment, Duration::ZERO)?;
                    Membership::take(segment)
                }
                other => other,
            }
        }
        other => other,
    }
}

/// Cleans up behind all dead processes, for one that is none yet.
fn clean_all(segment: &Segment) -> Result<()> {
    for index in 0..PROCESSES {
        if process_table::slot(segment, index)?.state.load(Acquire) == TAKEN
            && process_table::is_dead(segment, index)?
        {
            clean(segment, index)?;
        }
    }
    Ok(())
}

/// Undoes what a dead process was at, and frees its lanes and its slot; false: somebody else does.
///
/// May be killed anywhere and begun again by another. References that the dead one had are left to
/// the collector.
pub(crate) fn clean(segment: &Segment, index: usize) -> Result<bool> {
    let slot = process_table::slot(segment, index)?;
    let claim = Claim::take(segment, index)?;
    if claim.is_none() && !mutation::is("clean: one at a time") {
        return Ok(false);
    }
    // A place that was prepared for a fork that failed is nobody's death.
    if slot.state.load(Acquire) == TAKEN && slot.pid.load(Relaxed) != 0 {
        segment.header().deaths.fetch_add(1, Relaxed);
    }
    fault::point("heap: dead process claimed");
    leave(segment, index, slot)?;
    Ok(true)
}

/// Frees the lanes of a process, and then its slot.
pub(crate) fn leave(segment: &Segment, index: usize, slot: &Slot) -> Result<()> {
    for number in 0..LANES {
        let lane = lane::lane(segment, number)?;
        if lane.owner.load(Acquire) as usize != index + 1 {
            continue;
        }
        if mutation::is("leave: undone before the lane is free") {
            lane::give_back(lane);
        }
        if lane.state.load(Acquire) == BUSY && !mutation::is("leave: what was begun is undone") {
            // A damaged log undoes what it can: others must not wait for it for ever.
            drop(lane::roll_back(segment, number, Position::default()));
        }
        hazard::withdraw(&*segment.header().hazards, number);
        lane.state.store(IDLE, SeqCst);
        fault::point("heap: lane undone");
        lane::give_back(lane);
    }
    fault::point("heap: lanes freed");
    if root_table::has_pins(segment, slot) {
        // What it held is nobody's any more, but its handles are waited for.
        slot.since.store(process_table::now(), Relaxed);
        slot.state.store(LEFT, Release);
    } else {
        slot.roots.store(0, Relaxed);
        slot.state.store(FREE, Release);
    }
    Ok(())
}

/// Gives up the handles of processes that ended longer ago than this, and the slots of those whose
/// handles were all used.
pub(crate) fn give_up(segment: &Segment, ended: Duration) -> Result<()> {
    for index in 0..PROCESSES {
        let slot = process_table::slot(segment, index)?;
        if slot.state.load(Acquire) != LEFT {
            continue;
        }
        let since = process_table::now().saturating_sub(slot.since.load(Relaxed));
        if since >= ended.as_secs() || !root_table::has_pins(segment, slot) {
            slot.roots.store(0, Relaxed);
            fault::point("pin: table given up");
            slot.state.store(FREE, Release);
        }
    }
    Ok(())
}
