//! The world stands still: no operation is under way in any process.
//!
//! The gate in the header is closed with a lock word that names this thread, so that whoever waits
//! at it notices if its holder dies. Then every lane is waited for. A lane becomes busy first and
//! looks at the gate second, here it is the other way round: one of the two always sees the other.
//!
//! A transaction can take long, and whoever meets the closed gate waits. So the gate is opened
//! again after a moment if a lane was still busy, and closed again later.

use std::time::{Duration, Instant};

use crate::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    in_total_order,
};
use crate::header::LANES;
use crate::lane::{self, IDLE, Lane};
use crate::lock::{self, Holder, Liveness};
use crate::process_table::{self, FREE};
use crate::{Error, Heap, Result, clock, fault, mutation};

/// How long others stand at the gate for somebody who is busy, at first
const MOMENT: Duration = Duration::from_millis(50);
/// and at last: on a machine that is busy with other things, nobody may be run for a moment.
const LONGEST_MOMENT: Duration = Duration::from_millis(400);
/// How long a busy lane is left alone between two looks.
const GLANCE: Duration = Duration::from_millis(1);

/// The world stands still while this lives.
#[derive(Debug)]
pub(crate) struct Stillness<'h> {
    heap: &'h Heap,
}

impl<'h> Stillness<'h> {
    /// Stops the world. `None`: somebody was busy all through `patience`.
    ///
    /// # Errors
    /// [`Error::Refused`] if this thread has an operation under way itself.
    pub(crate) fn begin(heap: &'h Heap, patience: Duration) -> Result<Option<Self>> {
        let thread = heap.thread()?;
        if thread.is_busy() {
            return Err(Error::Refused(
                "the heap cannot be walked inside a transaction".to_owned(),
            ));
        }
        let end = clock::now() + patience;
        let mut moment = MOMENT;
        loop {
            let gate = &heap.segment.header().gate;
            while !lock::try_acquire(gate, thread.me) {
                if clock::now() >= end {
                    return Ok(None);
                }
                wait_for_other(heap, gate)?;
            }
            let still = Self { heap };
            in_total_order();
            fault::point("world: gate closed");
            if mutation::is("world: lanes are waited for") {
                return Ok(Some(still));
            }
            if still.wait_for_lanes(clock::now() + moment)? {
                fault::point("world: stands still");
                return Ok(Some(still));
            }
            drop(still);
            if clock::now() >= end {
                return Ok(None);
            }
            moment = (moment * 2).min(LONGEST_MOMENT);
            // Those who stood at the gate are not to find it closed again at once.
            heap.pause().pause(&mut || clock::sleep(GLANCE * 20))?;
        }
    }

    /// Waits until no lane is busy; false: it did not happen until `deadline`.
    fn wait_for_lanes(&self, deadline: Instant) -> Result<bool> {
        for index in 0..LANES {
            let lane = lane::lane(&self.heap.segment, index)?;
            while let Some(state) = busy(lane) {
                let mut changed = true;
                self.heap
                    .pause()
                    .pause(&mut || changed = lock::wait(&lane.state, state, GLANCE))?;
                if !changed {
                    self.look_after(lane)?;
                    if clock::now() >= deadline {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Cleans up behind the owner of a busy lane, if it is dead.
    pub(crate) fn look_after(&self, lane: &Lane) -> Result<()> {
        let generation = lane.generation.load(SeqCst);
        in_total_order();
        let owner = lane.owner.load(SeqCst);
        let Some(slot) = (owner as usize).checked_sub(1) else { return Ok(()) };
        in_total_order();
        let is_free = process_table::slot(&self.heap.segment, slot)?.state.load(SeqCst) == FREE;
        in_total_order();
        // The same owner in the same generation: nobody gave the lane back meanwhile, and it belongs
        // to the process that was looked at, not to a later one in its place.
        if is_free
            && busy(lane).is_some()
            && lane.owner.load(SeqCst) == owner
            && (lane.generation.load(SeqCst) == generation || mutation::is("world: the same lane"))
        {
            return Err(Error::Corrupt("a busy lane belongs to nobody"));
        }
        self.heap.clean_slot(slot)?;
        Ok(())
    }
}

/// Waits a moment for somebody else who has closed the gate, and opens it if that one is dead.
fn wait_for_other(heap: &Heap, gate: &AtomicU32) -> Result<()> {
    let seen = gate.load(SeqCst);
    let Some(holder) = Holder::of(seen) else { return Ok(()) };
    let mut opened = true;
    heap.pause().pause(&mut || opened = lock::wait(gate, seen, GLANCE * 20))?;
    if !opened && heap.is_gone(holder)? {
        // Whoever is quicker has done the same.
        let _ = gate.compare_exchange(seen, 0, SeqCst, Relaxed);
    }
    Ok(())
}

/// The state of a lane that somebody has and that is not idle.
fn busy(lane: &Lane) -> Option<u32> {
    let state = lane.state.load(SeqCst);
    (state != IDLE && lane.owner.load(SeqCst) != 0).then_some(state)
}

impl Drop for Stillness<'_> {
    fn drop(&mut self) {
        let gate = &self.heap.segment.header().gate;
        gate.store(0, SeqCst);
        fault::point("world: gate opened");
        lock::wake(gate, i32::MAX);
    }
}
