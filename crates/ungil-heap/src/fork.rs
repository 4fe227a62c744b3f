//! What becomes of a heap when its process forks: the child is a process of its own, with a place
//! that the parent took for it.

use std::sync::{PoisonError, Weak};

use crate::atomic::Ordering::Relaxed;
use crate::heap::{self, Heap, NOWHERE};
use crate::process_table::Membership;
use crate::{Error, Result, cleanup, thread};

impl Heap {
    /// Prepares a fork: takes a place for the child, and has it hold what this process holds.
    /// Afterwards the child gives it to [`Self::forked`], and the parent drops it, in the same
    /// thread, also if there is no child. Other threads hold and release nothing meanwhile.
    ///
    /// No other thread should fork before it is dropped: its child would keep the place taken.
    ///
    /// Inside of a transaction there is no place for a child: [`Self::forked`] refuses it.
    pub fn before_fork(&self) -> Result<Reserved> {
        let heap = self.itself.clone();
        if self.is_in_transaction() {
            return Ok(Reserved { membership: None, heap, is_refused: true });
        }
        let membership = cleanup::join(&self.segment)?;
        self.duplicate_roots(&membership)?;
        Ok(Reserved { membership: Some(membership), heap, is_refused: false })
    }

    /// Makes this process, which was just forked, one of its own: its threads get lanes of their
    /// own, and what this thread had under way stays the parent's. Without a place prepared it
    /// takes one, and holds nothing.
    ///
    /// # Errors
    /// As those of attaching. The heap can be read then, but not changed.
    pub fn forked(&self, reserved: impl Into<Option<Reserved>>) -> Result<()> {
        let parents = self.id.swap(heap::new_id(), Relaxed);
        thread::leave_lanes_to_parent(parents);
        self.slot.store(NOWHERE, Relaxed);
        self.transactions.store(0, Relaxed);
        self.hints.clear();
        // Nobody else uses it: a fork has one thread, and the parent's others did not either.
        let mut life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(life) = life.take() {
            life.was_not_inherited();
        }
        let reserved: Option<Reserved> = reserved.into();
        if reserved.as_ref().is_some_and(|reserved| reserved.is_refused) {
            let why = "a process that was forked inside a transaction cannot use the heap";
            return Err(Error::Refused(why.to_owned()));
        }
        let membership = match reserved.and_then(|mut reserved| reserved.membership.take()) {
            Some(membership) => membership,
            None => cleanup::join(&self.segment)?,
        };
        let slot = membership.slot;
        *life = Some(membership.settle(&self.segment)?);
        self.slot.store(slot, Relaxed);
        Ok(())
    }
}

/// A place for a child that is about to be forked.
#[derive(Debug)]
pub struct Reserved {
    /// `None` in the child that has taken it, and where there is none.
    membership: Option<Membership>,
    /// Whether there is none because the parent is in a transaction.
    is_refused: bool,
    heap: Weak<Heap>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.membership.is_some()
            && let Some(heap) = self.heap.upgrade()
        {
            // A table that cannot be unlocked is no table any more.
            drop(heap.end_duplication());
        }
    }
}
