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
    pub fn change<'h, T>(&'h self, work: impl FnMut(&mut Op<'h>) -> Result<T>) -> Result<T> {
        self.change_and_let_go(work, || ())
    }

    /// As [`Self::change`], where `work` takes locks that are to last longer than the operation:
    /// `let_go` is called with that undone, before a collection. That waits for whoever waits for
    /// such a lock.
    #[inline]
    pub(crate) fn change_and_let_go<'h, T>(
        &'h self,
        mut work: impl FnMut(&mut Op<'h>) -> Result<T>,
        let_go: impl FnOnce(),
    ) -> Result<T> {
        match self.attempt(&mut work, true) {
            // As a part of another one, it is for that one to be begun again.
            Err(Error::Due) if !self.thread()?.is_busy() => {
                let_go();
                // If others are busy, the heap grows.
                self.collect_patiently(Duration::ZERO)?;
                self.attempt(&mut work, false)
            }
            Err(Error::Full { .. }) if self.may_collect()? => {
                let_go();
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::lock::Sleep;

    #[test]
    fn what_lasts_longer_than_an_operation_is_let_go_of_before_a_collection() {
        let heap = Heap::anonymous(1 << 22, Box::new(Sleep)).unwrap();
        for error in [|| Error::Due, || Error::Full { wanted: 1, limit: "there is none" }] {
            let steps = RefCell::new(Vec::new());
            let done = heap.change_and_let_go(
                |_| {
                    steps.borrow_mut().push("work");
                    if steps.borrow().len() == 1 { Err(error()) } else { Ok(()) }
                },
                || steps.borrow_mut().push("let go"),
            );
            done.unwrap();
            assert_eq!(*steps.borrow(), ["work", "let go", "work"]);
        }
    }
}
