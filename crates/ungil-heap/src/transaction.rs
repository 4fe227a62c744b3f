//! Several changes as one: all of them happen, or none.
//!
//! A transaction is an operation ([`crate::op`]) that stays under way while the program goes on. What
//! is true of operations is true of it: who dies in it has not begun it, and what it changes stays
//! locked, with an odd version, until it ends, so that others see all of it or nothing. Beyond that:
//!
//! * *One at a time.* It locks objects in the order in which the program comes by them, so two of
//!   them could wait for each other. Therefore a lock of the whole heap comes first. Changes outside
//!   of transactions do not take it: they lock one object for a moment.
//! * *It sees nothing change but by itself.* What it reads is guarded until it ends ([`Op::guard`]):
//!   others still read it, but wait if they want to change it.
//! * *It can be part of another one*, of the same thread. If it fails then, what it did is undone,
//!   and the other one goes on.
//! * *What is made in one that fails is no more*, though the program may have it in hand: it becomes
//!   [`Kind::Gone`](crate::object::Kind::Gone), which all that meets it reports as [`Error::Stale`].
//! * *It waits for no lock of the user's*, since who has that may wait for this transaction; and a
//!   collection waits for it, so that none can begin in it. Garbage that would have made room is
//!   collected as soon as it has ended.
//!
//! All this is the affair of the thread that has it under way. In a forked child it is the parent's.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::atomic::Ordering::Relaxed;
use crate::lock::{self, Holder};
use crate::op::{Op, Paused};
use crate::thread::{self, Thread};
use crate::{Error, Heap, Result, fault, mutation};

/// A transaction of this thread. Dropped without [`Transaction::commit`], it has not happened.
///
/// Those of one thread end in the opposite order of their beginning, dropped or not.
#[derive(Debug)]
pub struct Transaction {
    heap: Arc<Heap>,
    /// `None` when it has ended.
    op: Option<Paused>,
    /// How many there are, with this one, one inside of the other.
    level: u32,
}

impl Heap {
    /// Begins a transaction, or a part of the one that this thread has under way already. Waits until
    /// no other thread or process has one.
    ///
    /// # Errors
    /// [`Error::Misuse`] inside of an operation that is none, and in a transaction of another heap:
    /// two threads that begin the same two in opposite order would wait for each other for ever.
    /// Those of [`crate::lock::Pause`].
    pub fn begin(&self) -> Result<Transaction> {
        let thread = self.thread()?;
        thread.check()?;
        self.may_go_on(&thread)?;
        let level = thread.transactions.get();
        if level == 0 {
            if thread.is_busy() {
                return Err(Error::Misuse("a transaction cannot be part of a single change"));
            }
            if thread::is_in_any_transaction() {
                return Err(Error::Misuse(
                    "this thread is in a transaction of another heap: end it before, because two \
                     that are begun in opposite order would wait for each other for ever",
                ));
            }
            self.be_alone(thread.me)?;
        }
        let begun = self.op();
        if begun.is_err() && level == 0 {
            self.be_no_longer_alone();
        }
        let op = Some(begun?.pause());
        if level == 0 {
            self.transactions.fetch_add(1, Relaxed);
            thread.is_collection_wanted.set(false);
        }
        thread.transactions.set(level + 1);
        fault::point("transaction: begun");
        Ok(Transaction { heap: self.itself(), op, level: level + 1 })
    }

    fn be_alone(&self, me: Holder) -> Result<()> {
        let word = &self.segment.header().transaction_lock;
        if mutation::is("transaction: one at a time") {
            return Ok(());
        }
        if !lock::try_acquire(word, me) {
            // What one who died with it had begun is undone by then.
            let _ = self.acquire(word, me)?;
        }
        fault::point("transaction: alone");
        Ok(())
    }

    fn be_no_longer_alone(&self) {
        lock::release(&self.segment.header().transaction_lock);
    }
}

impl Transaction {
    /// Makes it happen, unless it is part of another one: then that is left to the other one.
    ///
    /// # Errors
    /// Before it has happened: [`Error::Misuse`] if a part of it is still under way,
    /// [`Error::Refused`] in a forked child; it is undone by then. After it has happened: those of a
    /// collection, and [`Error::Corrupt`] if not all of what it freed could be freed.
    pub fn commit(mut self) -> Result<()> {
        self.end(commit)
    }

    /// Undoes it.
    ///
    /// # Errors
    /// As those of [`Self::commit`].
    pub fn roll_back(mut self) -> Result<()> {
        self.end(undo)
    }

    /// Undoes it before its end. As long as what is returned is there, this thread is asked before
    /// it changes anything ([`crate::lock::Pause::may_go_on`]).
    ///
    /// # Errors
    /// As those of [`Self::commit`].
    pub fn leave(mut self) -> Result<Left> {
        let thread = self.heap.thread()?;
        let heap = self.heap.clone();
        thread.left.set(thread.left.get() + 1);
        heap.transactions.fetch_add(1, Relaxed);
        let left = Left { heap, thread };
        self.end(undo)?;
        Ok(left)
    }

    fn end(&mut self, end: fn(Op<'_>) -> Result<()>) -> Result<()> {
        let Some(op) = self.op.take() else { return Ok(()) };
        let thread = op.thread.clone();
        let op = op.resume(&self.heap);
        // In a child nothing is left to do: it is the parent's.
        thread.check()?;
        let is_innermost = thread.transactions.get() == self.level;
        let ended = if is_innermost {
            end(op)
        } else {
            drop(op);
            Err(Error::Misuse("a transaction ends after those that are part of it"))
        };
        thread.transactions.set(thread.transactions.get().min(self.level - 1));
        if self.level > 1 {
            return ended;
        }
        self.heap.transactions.fetch_sub(1, Relaxed);
        fault::point("transaction: ended");
        self.heap.be_no_longer_alone();
        ended.and_then(|()| self.collect_garbage(&thread))
    }

    /// Collects the garbage that would have made room.
    fn collect_garbage(&self, thread: &Rc<Thread>) -> Result<()> {
        if thread.is_collection_wanted.take() {
            self.heap.collect(Duration::ZERO)?;
        }
        Ok(())
    }
}

fn commit(op: Op<'_>) -> Result<()> {
    op.commit()
}

#[expect(clippy::unnecessary_wraps, reason = "the other way to end one can fail")]
fn undo(op: Op<'_>) -> Result<()> {
    drop(op);
    Ok(())
}

/// A transaction that was undone before its end, which has not come yet.
#[derive(Debug)]
pub struct Left {
    heap: Arc<Heap>,
    thread: Rc<Thread>,
}

impl Drop for Left {
    fn drop(&mut self) {
        // A forked child has begun to count anew.
        if self.thread.check().is_ok() {
            self.thread.left.set(self.thread.left.get() - 1);
            self.heap.transactions.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !mutation::has_failed() {
            // There is nobody to tell.
            drop(self.end(undo));
        }
    }
}
