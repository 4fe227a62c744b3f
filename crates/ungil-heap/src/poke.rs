//! The shortest change there is: another number in a cell, by one store.
//!
//! An integer in the place of an integer leaves the first word of its cell as it is, and so does a
//! float in the place of a float. One store is never half done, so nothing has to be written down
//! to be undone, and of the thread's lane only the name in the lock is needed: half of the time of
//! an operation is saved. Who dies in it leaves the lock and an odd version, as it would otherwise.
//!
//! The gate is not looked at. A collection may be under way: what refers to what does not change
//! here, and it leaves the locks of the living alone.

use crate::atomic::Ordering::Relaxed;
use crate::segment::Offset;
use crate::value::Cell;
use crate::{Heap, Result, fault, lock, object, version, watch};

impl Heap {
    /// Changes the number in a cell of the object at `at`: `find` says where the cell is, while the
    /// object is locked, and `change` what is to be in it; returns that.
    ///
    /// `None`: it cannot be done in this way, because the object is locked by somebody, because the
    /// thread has an operation under way, because `find` or `change` say so, or because the old and
    /// the new value are not numbers of one kind. Then nothing has happened.
    #[inline]
    pub(crate) fn poke(
        &self,
        at: Offset,
        find: impl FnOnce() -> Result<Option<Offset>>,
        change: impl FnOnce(Cell) -> Option<Cell>,
    ) -> Result<Option<Cell>> {
        let Some(me) = self.idle() else { return Ok(None) };
        let head = object::head(&self.segment, at)?;
        if !lock::try_acquire(&head.lock, me) && !lock::acquire_soon(&head.lock, me) {
            return Ok(None);
        }
        fault::point("poke: object locked");
        let poked = find().and_then(|place| match place {
            Some(place) => self.poke_locked(head, place, change),
            None => Ok(None),
        });
        lock::release(&head.lock);
        watch::tell(&self.segment, head, watch::CHANGE);
        poked
    }

    #[inline]
    fn poke_locked(
        &self,
        head: &object::Head,
        place: Offset,
        change: impl FnOnce(Cell) -> Option<Cell>,
    ) -> Result<Option<Cell>> {
        let old = Cell::read(&self.segment, place)?;
        let Some(new) = change(old).filter(|new| new.0 == old.0 && new.is_number()) else {
            return Ok(None);
        };
        version::begin(&head.version);
        fault::point("poke: version odd");
        self.segment.word(place + 8)?.store(new.1, Relaxed);
        fault::point("poke: word stored");
        version::end(&head.version);
        fault::point("poke: version even");
        Ok(Some(new))
    }
}
