//! Reading an object without a lock: its version says whether what was seen is whole.

use crate::atomic::Ordering::{Acquire, Relaxed};
use crate::atomic::fence;
use crate::lock::Holder;
use crate::segment::Offset;
use crate::{Heap, Result, mutation, object, version};

impl Heap {
    /// Looks at an object once, without a lock; `None`: somebody changes it, so that what `look` saw
    /// means nothing, and [`Self::read`] is to be asked.
    ///
    /// Called from one place, `look` becomes a part of it, and what it returns stays in registers:
    /// that is half of the time of a short read.
    #[inline]
    pub fn glance<T>(&self, at: Offset, look: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        Ok(self.glance_when(at, look)?.map(|(seen, _)| seen))
    }

    /// As above; with the version that the object had.
    #[inline]
    pub(crate) fn glance_when<T>(
        &self,
        at: Offset,
        look: impl FnOnce() -> Result<T>,
    ) -> Result<Option<(T, u32)>> {
        let head = object::head(&self.segment, at)?;
        let before = head.version.load(Acquire);
        if before & 1 == 1 || self.is_in_transaction() {
            return Ok(None);
        }
        let seen = look();
        fence(Acquire);
        if head.version.load(Relaxed) == before {
            seen.map(|seen| Some((seen, before)))
        } else {
            Ok(None)
        }
    }

    /// Reads an object without a lock: `look` may see it half changed, and is called again if it
    /// did. It must not trust what it sees, nor keep it before this returns.
    #[inline]
    pub fn read<T>(&self, at: Offset, mut look: impl FnMut() -> Result<T>) -> Result<T> {
        let head = object::head(&self.segment, at)?;
        if self.is_in_transaction() && !mutation::is("transaction: what is read stays") {
            self.keep(at)?;
        }
        match version::glance(&head.version, &mut look) {
            Some(seen) => seen,
            None => self.read_busy(at, head, &mut look),
        }
    }

    /// Sees to it that what a transaction reads is not changed by others before it ends.
    #[cold]
    fn keep(&self, at: Offset) -> Result<()> {
        let mut op = self.op()?;
        op.guard(at)?;
        op.commit()
    }

    /// As above, where somebody changes the object: maybe this thread, or a dead one.
    #[cold]
    fn read_busy<T>(
        &self,
        at: Offset,
        head: &object::Head,
        look: &mut dyn FnMut() -> Result<T>,
    ) -> Result<T> {
        let me = self.thread()?.me;
        if Holder::of(head.lock.load(Relaxed)) != Some(me)
            && let Some(seen) = version::read(&head.version, &mut *look)
        {
            return seen;
        }
        let mut op = self.op()?;
        op.guard(at)?;
        let seen = look()?;
        op.commit()?;
        Ok(seen)
    }
}
