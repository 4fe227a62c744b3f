//! Holding and releasing one object, where nothing stands in the way.
//!
//! To change one count and one entry of a process's table, nothing has to be written down to be
//! undone: a process that dies between the two has counted a reference that nobody has, which the
//! next collection finds. So of an operation only its beginning and its end are needed, by which the
//! collector knows of it. Whatever is not as usual is left to [`Heap::hold`] and [`Heap::release`].

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::gate::IDLE;
use crate::hazard::{self, Taken};
use crate::lock::Holder;
use crate::roots::{Root, Roots};
use crate::segment::Offset;
use crate::value::Cell;
use crate::{Heap, Result, fault, gate, lane, object};

/// A cell, and the version of the object that it was seen in.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// What was seen.
    pub cell: Cell,
    version: u32,
}

/// A thread that is busy and has nothing to undo.
pub(crate) struct Busy<'h> {
    me: Holder,
    state: &'h AtomicU32,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        fault::point("brief: about to end");
        self.state.store(IDLE, Release);
    }
}

impl Heap {
    /// Looks at a cell of an object once, without a lock. `None`: ask [`Self::read`].
    #[inline]
    pub(crate) fn glance_cell(
        &self,
        container: Offset,
        look: impl FnOnce() -> Result<Cell>,
    ) -> Option<Seen> {
        let (cell, version) = self.glance_when(container, look).ok()??;
        Some(Seen { cell, version })
    }

    /// Holds the object that was seen in `container`, which the caller holds. `None`: there was
    /// none, or it is not as usual, and [`Self::hold`] is to be asked.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if the heap is damaged.
    pub fn hold_seen(&self, container: Offset, seen: Seen) -> Result<Option<Root>> {
        let Some(at) = seen.cell.object() else { return Ok(None) };
        let Some(busy) = self.busy()? else { return Ok(None) };
        let Some(roots) = Roots::lock_free(self, busy.me)? else { return Ok(None) };
        if !roots.has_room() {
            return Ok(None);
        }
        let version = &object::head(&self.segment, container)?.version;
        let life = &object::head(&self.segment, at)?.life;
        let places = &*self.segment.header().hazards;
        // Whatever happened since the glance: if the version is still what it was, the object is
        // still in the container.
        match hazard::retain(places, busy.me.lane(), at, (version, seen.version), life) {
            Taken::Serial(serial) => {
                fault::point("brief: retained");
                roots.hold(at, serial).map(Some)
            }
            Taken::Changed | Taken::Crowded => Ok(None),
        }
    }

    /// Whether nothing has changed in `container`, which the caller holds, since this was seen in it:
    /// so the object that was seen has not gone away.
    #[inline]
    pub fn is_as_seen(&self, container: Offset, seen: Seen) -> bool {
        let head = object::head(&self.segment, container);
        head.is_ok_and(|head| head.version.load(Acquire) == seen.version)
    }

    /// Holds an object no longer, if somebody else refers to it. False: nothing has happened, and
    /// all of [`Self::release`] is needed.
    pub(crate) fn release_shared(&self, root: &Root) -> Result<bool> {
        let Some(busy) = self.busy()? else { return Ok(false) };
        let Some(roots) = Roots::lock_free(self, busy.me)? else { return Ok(false) };
        if !roots.has(root)?
            || !object::forgo_one_of_several(&self.segment, root.at(), root.serial())?
        {
            return Ok(false);
        }
        fault::point("brief: reference lost");
        roots.release(root)?;
        Ok(true)
    }

    /// Makes this thread busy, unless it is already, or the collector works, or a thread of this
    /// process is in a transaction.
    #[inline]
    pub(crate) fn busy(&self) -> Result<Option<Busy<'_>>> {
        if self.transactions.load(Relaxed) > 0 {
            return Ok(None);
        }
        let Some(me) = self.idle() else { return Ok(None) };
        let lane = lane::lane(&self.segment, me.lane())?;
        // What is left in the log is of an operation that has ended.
        lane.used.store(0, Relaxed);
        lane.more.store(0, Relaxed);
        let is_open = gate::enter(&lane.state, &self.segment.header().gate);
        Ok(is_open.then(|| Busy { me, state: &lane.state }))
    }
}
