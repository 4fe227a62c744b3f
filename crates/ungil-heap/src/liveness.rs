//! Who of those that use a heap lives: locks are taken from the dead, once what they were changing
//! is undone.

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, SeqCst},
};
use crate::header::PROCESSES;
use crate::lock::{self, Acquired, GENERATIONS, Holder, Liveness};
use crate::process_table::{self, TAKEN};
use crate::{Heap, Result, cleanup, lane};

impl Heap {
    /// Takes a lock of the heap's own; the caller has an operation under way.
    pub(crate) fn acquire(&self, word: &AtomicU32, me: Holder) -> Result<Acquired> {
        let got = lock::acquire(word, me, self, self.pause(), None)?;
        Ok(got.expect("without a deadline a lock is got"))
    }

    /// Cleans up behind all dead processes; returns how many there were.
    pub fn clean(&self) -> Result<usize> {
        let mut cleaned = 0;
        for index in 0..PROCESSES {
            if process_table::slot(&self.segment, index)?.state.load(Acquire) == TAKEN {
                cleaned += usize::from(self.clean_slot(index)?);
            }
        }
        Ok(cleaned)
    }

    /// Cleans up behind the process in a slot, if it is dead and nobody else is at it.
    pub(crate) fn clean_slot(&self, index: usize) -> Result<bool> {
        if index == self.slot() || !process_table::is_dead(&self.segment, index)? {
            return Ok(false);
        }
        cleanup::clean(&self.segment, index)
    }
}

impl Liveness for Heap {
    fn is_gone(&self, holder: Holder) -> Result<bool> {
        if self.is_known_gone(holder) {
            return Ok(true);
        }
        let Ok(lane) = lane::lane(&self.segment, holder.lane()) else { return Ok(true) };
        // A lane gets its new generation before it is nobody's.
        let Some(slot) = (lane.owner.load(SeqCst) as usize).checked_sub(1) else {
            return Ok(true);
        };
        self.clean_slot(slot)?;
        Ok(self.is_known_gone(holder))
    }

    fn is_known_gone(&self, holder: Holder) -> bool {
        lane::lane(&self.segment, holder.lane())
            .map_or(true, |lane| lane.generation.load(SeqCst) % GENERATIONS != holder.generation())
    }
}
