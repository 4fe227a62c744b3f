//! The lanes of this process's threads: under which name each of them changes a heap, and what it has
//! under way there.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Weak;

use crate::atomic::Ordering::Relaxed;
use crate::heap::{Heap, NOWHERE};
use crate::lane::{self, IDLE};
use crate::lock::Holder;
use crate::work::Work;
use crate::{Error, Result};

/// What this process knows of a thread's lane.
#[derive(Debug)]
pub struct Thread {
    heap: Weak<Heap>,
    pub(crate) id: u64,
    pub(crate) lane: usize,
    pub(crate) me: Holder,
    /// How many operations are under way, one inside of the other.
    pub(crate) depth: Cell<u32>,
    /// In a forked child: the lane is the parent's, and so is what was under way.
    pub(crate) is_foreign: Cell<bool>,
    /// Whether the operation under way is begun once more if it fails with [`Error::Due`].
    pub(crate) can_begin_again: Cell<bool>,
    /// How many transactions are under way, one inside of the other.
    pub(crate) transactions: Cell<u32>,
    /// How many were undone before their end.
    pub(crate) left: Cell<u32>,
    /// In a transaction: the heap has grown, or could not, where garbage could have been collected.
    pub(crate) is_collection_wanted: Cell<bool>,
    pub(crate) work: RefCell<Work>,
}

impl Thread {
    pub(crate) fn new(heap: Weak<Heap>, id: u64, lane: usize, me: Holder) -> Self {
        Self {
            heap,
            id,
            lane,
            me,
            depth: Cell::new(0),
            is_foreign: Cell::new(false),
            can_begin_again: Cell::new(false),
            transactions: Cell::new(0),
            left: Cell::new(0),
            is_collection_wanted: Cell::new(false),
            work: RefCell::default(),
        }
    }

    /// Whether an operation is under way.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.depth.get() > 0
    }

    /// Whether it may change something at once, without an operation.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_busy() && self.left.get() == 0
    }

    /// Whether none but transactions are.
    #[inline]
    pub(crate) fn is_between_operations(&self) -> bool {
        self.depth.get() == self.transactions.get()
    }

    /// Whether its heap is no more.
    pub(crate) fn is_orphan(&self) -> bool {
        self.heap.strong_count() == 0
    }

    /// In a forked child: leaves the lane to the parent, and what is under way.
    pub(crate) fn leave_to_parent(&self) {
        self.is_foreign.set(true);
    }

    /// Refuses to go on in a forked child with what was begun in the parent.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_foreign.get() {
            let why = "the change was begun before the fork: it is the parent's to finish";
            return Err(Error::Refused(why.to_owned()));
        }
        Ok(())
    }

    /// Counts an operation that ends; true: it was the outermost.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        depth == 0
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        forget_latest(self);
        // With the heap, all lanes of the process were given back.
        let Some(heap) = self.heap.upgrade() else { return };
        if !self.is_foreign.get()
            && let Ok(lane) = lane::lane(&heap.segment, self.lane)
            && lane.state.load(Relaxed) == IDLE
        {
            lane::give_back(lane);
        }
    }
}

thread_local! {
    /// This thread's lanes, by the heap's id.
    static THREADS: RefCell<Vec<Rc<Thread>>> = const { RefCell::new(Vec::new()) };
    /// That of them which was wanted last, found without a search. Null if it is no more.
    static LATEST: Cell<*const Thread> = const { Cell::new(std::ptr::null()) };
}

/// Says that a lane of this thread is no more.
fn forget_latest(thread: &Thread) {
    if std::ptr::eq(LATEST.get(), thread) {
        LATEST.set(std::ptr::null());
    }
}

/// Gives back the lane that this thread has in the heap with this id, which is dropped.
pub(crate) fn forget_lanes(id: u64) {
    // A thread that ends has no thread-local variables any more, and no lane either.
    let _ = THREADS.try_with(|threads| {
        if let Ok(mut threads) = threads.try_borrow_mut() {
            threads.retain(|thread| thread.id != id);
        }
    });
}

/// In a forked child: leaves the lane that this thread has in the heap with this id to the parent.
pub(crate) fn leave_lanes_to_parent(id: u64) {
    THREADS.with_borrow_mut(|threads| {
        for thread in threads.extract_if(.., |thread| thread.id == id) {
            thread.leave_to_parent();
        }
    });
}

/// Leaves all lanes as they are, where a model has failed and there are no atomics any more.
#[cfg(all(test, loom))]
pub(crate) fn forget_threads() {
    THREADS.with_borrow_mut(|threads| std::mem::forget(std::mem::take(threads)));
}

/// Whether this thread is in a transaction, of any heap.
pub(crate) fn is_in_any_transaction() -> bool {
    if cfg!(loom) {
        // All threads of a model are one, and each is a process of its own.
        return false;
    }
    let any = |threads: &RefCell<Vec<Rc<Thread>>>| {
        threads.borrow().iter().any(|thread| thread.transactions.get() > 0)
    };
    THREADS.try_with(any).unwrap_or(false)
}

impl Heap {
    /// The lane of this thread.
    #[inline]
    pub(crate) fn thread(&self) -> Result<Rc<Thread>> {
        let id = self.id.load(Relaxed);
        let known = THREADS
            .try_with(|threads| threads.borrow().iter().find(|thread| thread.id == id).cloned());
        match known {
            Ok(Some(thread)) => Ok(thread),
            Ok(None) => {
                let thread = self.new_thread(id)?;
                THREADS.with_borrow_mut(|threads| {
                    threads.retain(|thread| !thread.is_orphan());
                    threads.push(thread.clone());
                });
                Ok(thread)
            }
            // The thread is ending and has no such variables any more: a lane for this time only.
            Err(_) => self.new_thread(id),
        }
    }

    #[cold]
    fn new_thread(&self, id: u64) -> Result<Rc<Thread>> {
        let slot = self.slot();
        if slot == NOWHERE {
            let why = "this process got no place in the heap when it was forked";
            return Err(Error::Refused(why.to_owned()));
        }
        let index = match lane::take(&self.segment, slot) {
            Err(Error::Crowded { .. }) => {
                self.clean()?;
                lane::take(&self.segment, slot)?
            }
            other => other?,
        };
        let generation = lane::lane(&self.segment, index)?.generation.load(Relaxed);
        let me = Holder::new(index, generation);
        Ok(Rc::new(Thread::new(self.itself.clone(), id, index, me)))
    }

    /// Who this thread is in the words of locks.
    #[inline]
    pub(crate) fn me(&self) -> Result<Holder> {
        match self.latest(|thread| thread.me) {
            Some(me) => Ok(me),
            None => self.me_again(),
        }
    }

    /// The same if it was asked for lately.
    #[inline]
    pub(crate) fn lately_me(&self) -> Option<Holder> {
        self.latest(|thread| thread.me)
    }

    #[cold]
    fn me_again(&self) -> Result<Holder> {
        let thread = self.thread()?;
        LATEST.set(Rc::as_ptr(&thread));
        Ok(thread.me)
    }

    /// Calls `with` with the lane of this thread, if it was the last one that was asked for.
    #[inline]
    fn latest<T>(&self, with: impl FnOnce(&Thread) -> T) -> Option<T> {
        // SAFETY: null, or a lane of this thread, which is there until `forget_latest`.
        let thread = unsafe { LATEST.get().as_ref()? };
        (thread.id == self.id.load(Relaxed)).then(|| with(thread))
    }

    /// Who this thread is, unless it has an operation under way or has had none yet.
    #[inline]
    pub(crate) fn idle(&self) -> Option<Holder> {
        let known = self.latest(|thread| thread.is_idle().then_some(thread.me));
        known.unwrap_or_else(|| self.idle_again())
    }

    #[cold]
    fn idle_again(&self) -> Option<Holder> {
        let id = self.id.load(Relaxed);
        let known = THREADS.try_with(|threads| {
            let threads = threads.borrow();
            let mine = threads.iter().find(|thread| thread.id == id)?;
            LATEST.set(Rc::as_ptr(mine));
            mine.is_idle().then_some(mine.me)
        });
        known.ok().flatten()
    }

    /// Asks whoever knows, if this thread has transactions under way or had some that were left.
    pub(crate) fn may_go_on(&self, thread: &Thread) -> Result<()> {
        let is_asked = thread.transactions.get() > 0 || thread.left.get() > 0;
        if is_asked && thread.is_between_operations() { self.pause().may_go_on() } else { Ok(()) }
    }

    /// Whether this thread is in a transaction.
    #[inline]
    pub fn is_in_transaction(&self) -> bool {
        self.transactions.load(Relaxed) > 0
            && self.thread().is_ok_and(|thread| thread.transactions.get() > 0)
    }
}
