//! One change, made.

use crate::op::Op;
use crate::{Heap, Result};

impl Heap {
    /// Makes a change: an operation of its own, or a part of the one that the thread has under way.
    #[inline]
    pub fn change<'h, T>(&'h self, mut work: impl FnMut(&mut Op<'h>) -> Result<T>) -> Result<T> {
        let mut op = self.op()?;
        let done = work(&mut op)?;
        op.commit()?;
        Ok(done)
    }
}
