//! One change, made.

use std::time::Duration;

use crate::op::Op;
use crate::{Error, Heap, Result};

/// How long a change that finds the heap full waits for others, so that garbage can be collected.
const PATIENCE: Duration = Duration::from_secs(1);

impl Heap {
    /// Makes a change: an operation of its own, or a part of the one that the thread has under way.
    ///
    /// If there is no room for an operation of its own, or if a collection is due before the heap
    /// grows ([`Self::is_collection_due`]), garbage is collected and `work` called once more, with
    /// everything undone that it did before.
    #[inline]
    pub fn change<'h, T>(&'h self, mut work: impl FnMut(&mut Op<'h>) -> Result<T>) -> Result<T> {
        match self.attempt(&mut work, true) {
            // As a part of another one, it is for that one to be begun again.
            Err(Error::Due) if !self.thread()?.is_busy() => {
                // If others are busy, the heap grows.
                self.collect_patiently(Duration::ZERO)?;
                self.attempt(&mut work, false)
            }
            Err(Error::Full { .. }) if self.may_collect()? => {
                // If this finds nothing, another process may have collected it a moment ago.
                self.collect(PATIENCE)?;
                self.attempt(&mut work, false)
            }
            done => done,
        }
    }

    #[inline]
    fn attempt<'h, T>(
        &'h self,
        work: &mut impl FnMut(&mut Op<'h>) -> Result<T>,
        is_first: bool,
    ) -> Result<T> {
        let mut op = self.op()?;
        if is_first {
            op.can_begin_again();
        }
        let done = work(&mut op)?;
        op.commit()?;
        Ok(done)
    }

    /// Whether a change that finds the heap full may collect garbage: not inside of another one. A
    /// transaction does so at its end.
    #[cold]
    fn may_collect(&self) -> Result<bool> {
        let thread = self.thread()?;
        if thread.transactions.get() > 0 {
            thread.is_collection_wanted.set(true);
        }
        Ok(!thread.is_busy())
    }
}
