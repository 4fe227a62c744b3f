//! A change of the heap that happens whole or not at all.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Weak;
use std::sync::atomic::{
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};

use crate::lane::{self, BUSY, DONE, IDLE, Mark};
use crate::lock::{self, Holder};
use crate::segment::{Offset, Segment};
use crate::{Error, Heap, Result, fault, memory, object, slab};

/// What this process knows of a thread's lane.
#[derive(Debug)]
pub struct Thread {
    heap: Weak<Heap>,
    pub(crate) id: u64,
    lane: usize,
    pub(crate) me: Holder,
    /// How many operations are under way, one inside of the other.
    depth: Cell<u32>,
    work: RefCell<Work>,
}

/// What the operation under way has done. Its room is used again by the next one.
#[derive(Debug, Default)]
struct Work {
    /// Objects that are locked.
    locked: Vec<Offset>,
    /// Memory that was taken: freed if the operation fails.
    taken: Vec<(Offset, usize)>,
    /// Memory that is to be freed when the operation has succeeded.
    doomed: Vec<(Offset, usize)>,
    /// Objects that lose a reference when the operation has succeeded.
    forgone: Vec<Offset>,
    /// Objects that got a reference, with their serial numbers: lost again if the operation fails.
    retained: Vec<(Offset, u32)>,
    /// Memory that is to be freed when the operation ends, even if it fails.
    undone: Vec<(Offset, usize)>,
    /// Objects that lose a reference when the operation ends, even if it fails, and if they are
    /// still there.
    released: Vec<(Offset, u32)>,
}

impl Work {
    /// What was made since `start` is no more: its memory is freed at the end, and the references
    /// that were added are lost.
    fn unmake(&mut self, segment: &Segment, start: &Savepoint) -> Result<()> {
        self.doomed.truncate(start.doomed);
        self.forgone.truncate(start.forgone);
        for (at, bytes) in self.taken.drain(start.taken..) {
            // References to objects that were made lead nowhere from now on.
            if bytes >= object::SIZE {
                object::forget(segment, at)?;
            }
            self.undone.push((at, bytes));
        }
        self.released.extend(self.retained.drain(start.retained..));
        Ok(())
    }
}

/// How far the work of a thread had come.
#[derive(Clone, Copy, Debug, Default)]
struct Savepoint {
    mark: Mark,
    taken: usize,
    doomed: usize,
    forgone: usize,
    retained: usize,
}

impl Thread {
    pub(crate) fn new(heap: Weak<Heap>, id: u64, lane: usize, me: Holder) -> Self {
        Self { heap, id, lane, me, depth: Cell::new(0), work: RefCell::default() }
    }

    /// Whether an operation is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.depth.get() > 0
    }

    /// Whether its heap is no more, or was left to the parent of this process.
    pub(crate) fn is_orphan(&self) -> bool {
        self.heap.upgrade().is_none_or(|heap| heap.id() != self.id)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let Some(heap) = self.heap.upgrade() else { return };
        // In a forked child the lane belongs to the parent.
        if heap.id() == self.id
            && let Ok(lane) = lane::lane(&heap.segment, self.lane)
        {
            lane::give_back(lane);
        }
    }
}

/// A change of the heap. Dropped without [`Op::commit`], it has not happened.
#[derive(Debug)]
pub struct Op<'h> {
    heap: &'h Heap,
    thread: Rc<Thread>,
    start: Savepoint,
    is_over: bool,
}

impl<'h> Op<'h> {
    pub(crate) fn begin(heap: &'h Heap, thread: Rc<Thread>) -> Result<Self> {
        let start = if thread.depth.get() == 0 {
            enter(heap, &thread)?;
            Savepoint::default()
        } else {
            let work = thread.work.borrow();
            Savepoint {
                mark: lane::mark(&heap.segment, thread.lane)?,
                taken: work.taken.len(),
                doomed: work.doomed.len(),
                forgone: work.forgone.len(),
                retained: work.retained.len(),
            }
        };
        thread.depth.set(thread.depth.get() + 1);
        Ok(Self { heap, thread, start, is_over: false })
    }

    /// The heap.
    pub fn heap(&self) -> &'h Heap {
        self.heap
    }

    /// Whether it is part of another one, on which it depends whether this one happens.
    #[inline]
    pub fn is_nested(&self) -> bool {
        self.thread.depth.get() > 1
    }

    /// Locks an object until the outermost operation ends. Without effect if it already is.
    pub fn lock(&mut self, at: Offset) -> Result<()> {
        let head = object::head(&self.heap.segment, at)?;
        let me = self.thread.me;
        if !lock::try_acquire(&head.lock, me) {
            if Holder::of(head.lock.load(Relaxed)) == Some(me) {
                return Ok(());
            }
            // However it was got, the version says whether the last holder finished.
            let _ = self.heap.acquire(&head.lock, me)?;
        }
        self.thread.work.borrow_mut().locked.push(at);
        // Odd already: the last holder died, and what it changed is undone.
        let version = head.version.load(Relaxed) | 1;
        let version =
            if head.version.load(Relaxed) & 1 == 1 { version.wrapping_add(2) } else { version };
        head.version.store(version, Relaxed);
        fence(Release);
        fault::point("op: object locked");
        Ok(())
    }

    /// Takes memory. It is given back if the operation fails.
    pub fn take(&mut self, bytes: usize) -> Result<Offset> {
        let at = take(self.heap, self.thread.me, bytes)?;
        self.thread.work.borrow_mut().taken.push((at, bytes));
        Ok(at)
    }

    /// A new object, with nothing in it, that nobody refers to.
    pub fn create(&mut self, kind: object::Kind, bytes: usize) -> Result<Offset> {
        let at = self.take(bytes.max(object::SIZE))?;
        object::initialise(&self.heap.segment, at, kind)?;
        Ok(at)
    }

    /// Frees memory of `bytes`, as it was taken, when the operation has succeeded.
    pub fn free(&mut self, at: Offset, bytes: usize) {
        self.thread.work.borrow_mut().doomed.push((at, bytes));
    }

    /// One reference more to an object, unless the operation fails.
    pub fn retain(&mut self, at: Offset) -> Result<()> {
        let serial = object::retain(&self.heap.segment, at)?;
        self.thread.work.borrow_mut().retained.push((at, serial));
        fault::point("op: reference added");
        Ok(())
    }

    /// One reference less to an object, when the operation has succeeded.
    pub fn forgo(&mut self, at: Offset) {
        self.thread.work.borrow_mut().forgone.push(at);
    }

    /// One reference less to the object with this serial number when the outermost operation ends,
    /// even if it fails.
    pub(crate) fn release(&mut self, at: Offset, serial: u32) {
        self.thread.work.borrow_mut().released.push((at, serial));
    }

    /// Who this thread is in the words of locks.
    pub(crate) fn me(&self) -> Holder {
        self.thread.me
    }

    /// Remembers words that are about to change.
    #[inline]
    pub fn save(&mut self, at: Offset, count: usize) -> Result<()> {
        let (segment, lane) = (&self.heap.segment, self.thread.lane);
        if let Some(missing) = lane::save(segment, lane, at, count)? {
            let bytes = memory::rounded(missing.max(4096));
            // The log is no part of what is undone, so its memory is freed in any case.
            let block = take(self.heap, self.thread.me, bytes)?;
            lane::extend(segment, lane, block, bytes)?;
            self.thread.work.borrow_mut().undone.push((block, bytes));
            if lane::save(segment, lane, at, count)?.is_some() {
                return Err(Error::Corrupt("a log has no room after it was extended"));
            }
        }
        Ok(())
    }

    /// Changes a word.
    #[inline]
    pub fn store(&mut self, at: Offset, value: u64) -> Result<()> {
        self.save(at, 1)?;
        self.heap.segment.word(at)?.store(value, Relaxed);
        fault::point("op: word stored");
        Ok(())
    }

    /// Changes words in a row.
    #[inline]
    pub fn store_all(&mut self, at: Offset, values: &[u64]) -> Result<()> {
        self.save(at, values.len())?;
        for (word, value) in self.heap.segment.words(at, values.len())?.iter().zip(values) {
            word.store(*value, Relaxed);
        }
        fault::point("op: words stored");
        Ok(())
    }

    /// Makes it happen, if it is the outermost operation; else leaves that to the outer one.
    pub fn commit(mut self) -> Result<()> {
        self.is_over = true;
        let depth = self.thread.depth.get() - 1;
        self.thread.depth.set(depth);
        if depth == 0 { self.finish(true) } else { Ok(()) }
    }

    /// Ends the outermost operation, whose changes are made or undone.
    fn finish(&self, succeeded: bool) -> Result<()> {
        let segment = &self.heap.segment;
        let lane = lane::lane(segment, self.thread.lane)?;
        fault::point("op: about to end");
        // From here on it has happened, whoever dies.
        lane.state.store(DONE, SeqCst);
        fault::point("op: ended");
        let mut work = self.thread.work.borrow_mut();
        for at in work.locked.drain(..) {
            let head = object::head(segment, at)?;
            head.version.store(head.version.load(Relaxed).wrapping_add(1), Release);
            fault::point("op: version even");
            lock::release(&head.lock);
            fault::point("op: object unlocked");
        }
        let cleared = if succeeded { Ok(()) } else { work.unmake(segment, &Savepoint::default()) };
        let cleared = cleared.and_then(|()| self.clear_up(&mut work));
        // A damaged heap can make this fail. What was not freed then is left to the collector.
        if cleared.is_err() {
            *work = Work::default();
        }
        lane.state.store(IDLE, Release);
        cleared
    }

    /// Gives back what nobody needs any more.
    fn clear_up(&self, work: &mut Work) -> Result<()> {
        let segment = &self.heap.segment;
        let Work { taken, doomed, forgone, retained, undone, released, .. } = work;
        taken.clear();
        retained.clear();
        for (at, serial) in released.drain(..) {
            if object::forgo_if_alive(segment, at, serial)? {
                fault::point("op: last reference released");
                crate::reclaim::dismantle(segment, at, forgone, doomed)?;
            }
        }
        while let Some(at) = forgone.pop() {
            if object::forgo(segment, at)? {
                fault::point("op: last reference gone");
                crate::reclaim::dismantle(segment, at, forgone, doomed)?;
            }
        }
        for (at, bytes) in undone.drain(..).chain(doomed.drain(..)) {
            give(self.heap, self.thread.me, at, bytes)?;
        }
        Ok(())
    }
}

impl Drop for Op<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let depth = self.thread.depth.get() - 1;
        self.thread.depth.set(depth);
        // A damaged heap can make undoing fail. Then the lane stays as it is, and its locks are
        // held until the process ends and another one tries.
        if lane::roll_back(&self.heap.segment, self.thread.lane, self.start.mark).is_err() {
            return;
        }
        if depth == 0 {
            drop(self.finish(false));
            return;
        }
        let mut work = self.thread.work.borrow_mut();
        // Memory that was taken a moment ago is there, so this cannot fail.
        drop(work.unmake(&self.heap.segment, &self.start));
    }
}

/// Begins the outermost operation of a thread, unless the collector works.
#[inline]
fn enter(heap: &Heap, thread: &Thread) -> Result<()> {
    let lane = lane::lane(&heap.segment, thread.lane)?;
    lane.used.store(0, Relaxed);
    lane.more.store(0, Relaxed);
    loop {
        // The collector closes the gate and then looks at the states; this is the other way round.
        lane.state.swap(BUSY, SeqCst);
        if heap.segment.header().gate.load(SeqCst) == 0 {
            return Ok(());
        }
        lane.state.store(IDLE, SeqCst);
        heap.wait_for_gate()?;
    }
}

pub(crate) fn take(heap: &Heap, me: Holder, bytes: usize) -> Result<Offset> {
    let (segment, hints) = (&heap.segment, &heap.hints);
    if let Some(class) = slab::class(bytes)
        && let Some(at) = memory::take_hinted(segment, hints, class)?
    {
        return Ok(at);
    }
    with_chunks(heap, me, || memory::take(segment, hints, bytes))
}

pub(crate) fn give(heap: &Heap, me: Holder, at: Offset, bytes: usize) -> Result<()> {
    match slab::class(bytes) {
        Some(class) => memory::free_block(&heap.segment, &heap.hints, at, class),
        None => with_chunks(heap, me, || memory::free_run(&heap.segment, at)),
    }
}

/// Does something under the lock of the chunks. What a dead holder left is consistent.
pub(crate) fn with_chunks<T>(
    heap: &Heap,
    me: Holder,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let word = &heap.segment.header().chunk_lock;
    if !lock::try_acquire(word, me) {
        let _ = heap.acquire(word, me)?;
    }
    fault::point("op: chunks locked");
    let result = work();
    lock::release(word);
    result
}
