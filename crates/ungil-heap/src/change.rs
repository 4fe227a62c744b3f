//! One change, made.

use std::time::Duration;

use crate::op::Op;
use crate::{Error, Heap, Result};

/// How long a change that finds the heap full waits for others, so that garbage can be collected.
const PATIENCE: Duration = Duration::from_secs(1);

impl Heap {
    /// Makes a change: an operation of its own, or a part of the one that the thread has under way.
    ///
    /// If there is no room for an operation of its own, garbage is collected and `work` called once
    /// more, with everything undone that it did before.
    #[inline]
    pub fn change<'h, T>(&'h self, mut work: impl FnMut(&mut Op<'h>) -> Result<T>) -> Result<T> {
        match self.attempt(&mut work) {
            Err(Error::Full { wanted, limit }) => {
                self.make_room(wanted, limit)?;
                self.attempt(&mut work)
            }
            done => done,
        }
    }

    #[inline]
    fn attempt<'h, T>(&'h self, work: &mut impl FnMut(&mut Op<'h>) -> Result<T>) -> Result<T> {
        let mut op = self.op()?;
        let done = work(&mut op)?;
        op.commit()?;
        Ok(done)
    }

    /// Collects garbage; fails as it would without if there is none, or inside of an operation.
    #[cold]
    fn make_room(&self, wanted: usize, limit: &'static str) -> Result<()> {
        if !self.thread()?.is_busy()
            && let Some(collected) = self.collect(PATIENCE)?
            && collected.freed > 0
        {
            return Ok(());
        }
        Err(Error::Full { wanted, limit })
    }
}
