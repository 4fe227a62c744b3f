//! A change of the heap that happens whole or not at all.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Weak;

use crate::atomic::Ordering::{Relaxed, Release};
use crate::lane::{self, DONE, IDLE, Lane, Mark};
use crate::lock::{self, Holder};
use crate::segment::{Offset, Segment};
use crate::{
    Error, Heap, Result, chunk, fault, gate, hazard, heap, memory, mutation, object, reclaim, slab,
    version,
};

/// What this process knows of a thread's lane.
#[derive(Debug)]
pub struct Thread {
    heap: Weak<Heap>,
    pub(crate) id: u64,
    lane: usize,
    pub(crate) me: Holder,
    /// How many operations are under way, one inside of the other.
    depth: Cell<u32>,
    /// In a forked child: the lane is the parent's, and so is what was under way.
    is_foreign: Cell<bool>,
    /// Whether the operation under way is begun once more if it fails with [`Error::Due`].
    can_begin_again: Cell<bool>,
    /// How many transactions are under way, one inside of the other.
    pub(crate) transactions: Cell<u32>,
    /// How many were undone before their end.
    pub(crate) left: Cell<u32>,
    /// In a transaction: the heap has grown, or could not, where garbage could have been collected.
    pub(crate) is_collection_wanted: Cell<bool>,
    work: RefCell<Work>,
}

/// What the operation under way has done. Its room is used again by the next one.
#[derive(Debug, Default)]
struct Work {
    /// Objects that are locked, and whose version is odd.
    locked: Vec<Offset>,
    /// Objects that are locked, but may be read. Those that were changed later are among the locked
    /// ones, too.
    guarded: Vec<Offset>,
    /// Objects that were made in a transaction, and their sizes.
    made: Vec<(Offset, usize)>,
    /// Memory that was taken: freed if the operation fails.
    taken: Vec<(Offset, usize)>,
    /// Memory that is to be freed when the operation has succeeded.
    doomed: Vec<(Offset, usize)>,
    /// Objects that lose a reference when the operation has succeeded.
    forgone: Vec<Offset>,
    /// Objects that got a reference, with their serial numbers: lost again if the operation fails.
    retained: Vec<(Offset, u32)>,
    /// Memory that is to be freed when the operation ends, even if it fails: what was made in a
    /// part of it that failed, and the continuations of the log.
    undone: Vec<(Offset, usize)>,
    /// Objects that lose a reference when the operation ends, even if it fails, and if they are
    /// still there.
    released: Vec<(Offset, u32)>,
}

impl Work {
    /// What was made since `start` is no more: its memory is freed at the end, and the references
    /// that were added are lost. There is less than at `start` if the whole was undone before a part.
    fn unmake(&mut self, segment: &Segment, start: &Savepoint) -> Result<()> {
        self.doomed.truncate(start.doomed);
        self.forgone.truncate(start.forgone);
        for (at, bytes) in self.taken.drain(start.taken.min(self.taken.len())..) {
            // References to objects that were made lead nowhere from now on.
            if bytes >= object::SIZE {
                object::forget(segment, at)?;
            }
            self.undone.push((at, bytes));
        }
        let retained = start.retained.min(self.retained.len());
        self.released.extend(self.retained.drain(retained..));
        for (at, bytes) in self.made.drain(start.made.min(self.made.len())..) {
            object::bury(segment, at, bytes)?;
        }
        Ok(())
    }

    /// Forgets what was made since `start`, where it cannot be said any more what refers to it.
    fn leak(&mut self, start: &Savepoint) {
        self.doomed.truncate(start.doomed);
        self.forgone.truncate(start.forgone);
        self.taken.truncate(start.taken);
        self.retained.truncate(start.retained);
        self.made.truncate(start.made);
    }

    /// Gives back what nobody needs any more. Goes on after an error, and returns the first: what
    /// is not freed then is left to the collector.
    #[inline]
    fn clear(&mut self, heap: &Heap) -> Result<()> {
        self.taken.clear();
        self.retained.clear();
        self.made.clear();
        let is_clear = self.doomed.is_empty()
            && self.forgone.is_empty()
            && self.undone.is_empty()
            && self.released.is_empty();
        if is_clear { Ok(()) } else { self.give_back(heap) }
    }

    fn give_back(&mut self, heap: &Heap) -> Result<()> {
        let Self { doomed, forgone, undone, released, .. } = self;
        let mut result = Ok(());
        let mut lose = |at, last: Result<bool>, forgone: &mut _, doomed: &mut Vec<_>| {
            let lost = last.and_then(|last| {
                if last {
                    fault::point("op: last reference gone");
                    let first = doomed.len();
                    reclaim::dismantle(&heap.segment, at, forgone, doomed)?;
                    if hazard::is_announced(&*heap.segment.header().hazards, at) {
                        leave_to_collector(&heap.segment, doomed, first)?;
                    }
                }
                Ok(())
            });
            if result.is_ok() {
                result = lost;
            }
        };
        while let Some((at, serial)) = released.pop() {
            lose(at, object::forgo_if_alive(&heap.segment, at, serial), forgone, doomed);
        }
        while let Some(at) = forgone.pop() {
            lose(at, object::forgo(&heap.segment, at), forgone, doomed);
        }
        for list in [undone, doomed] {
            while let Some((at, bytes)) = list.pop() {
                let freed = give(heap, at, bytes);
                if result.is_ok() {
                    result = freed;
                }
            }
        }
        result
    }
}

/// Keeps the memory of an object whose last reference is gone from being used anew: somebody may be
/// about to look at it. Its own memory is the first that it owns.
#[cold]
fn leave_to_collector(
    segment: &Segment,
    doomed: &mut Vec<(Offset, usize)>,
    first: usize,
) -> Result<()> {
    let (at, bytes) = doomed.remove(first);
    object::bury(segment, at, bytes)
}

/// How far the work of a thread had come.
#[derive(Clone, Copy, Debug, Default)]
struct Savepoint {
    mark: Mark,
    taken: usize,
    doomed: usize,
    forgone: usize,
    retained: usize,
    made: usize,
}

impl Thread {
    pub(crate) fn new(heap: Weak<Heap>, id: u64, lane: usize, me: Holder) -> Self {
        let (depth, is_foreign) = (Cell::new(0), Cell::new(false));
        let (can_begin_again, work) = (Cell::new(false), RefCell::default());
        let (transactions, is_collection_wanted) = (Cell::new(0), Cell::new(false));
        Self {
            heap,
            id,
            lane,
            me,
            depth,
            is_foreign,
            can_begin_again,
            transactions,
            left: Cell::new(0),
            is_collection_wanted,
            work,
        }
    }

    /// Whether an operation is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.depth.get() > 0
    }

    /// Whether it may change something at once, without an operation.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_busy() && self.left.get() == 0
    }

    /// Whether none but transactions are.
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

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_foreign.get() {
            let why = "the change was begun before the fork: it is the parent's to finish";
            return Err(Error::Refused(why.to_owned()));
        }
        Ok(())
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        heap::forget_latest(self);
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

/// A change of the heap. Dropped without [`Op::commit`], it has not happened.
#[derive(Debug)]
pub struct Op<'h> {
    heap: &'h Heap,
    thread: Rc<Thread>,
    start: Savepoint,
    is_over: bool,
}

impl<'h> Op<'h> {
    #[inline]
    pub(crate) fn begin(heap: &'h Heap, thread: Rc<Thread>) -> Result<Self> {
        let start = if thread.depth.get() == 0 {
            enter(heap, &thread)?;
            thread.can_begin_again.set(false);
            Savepoint::default()
        } else {
            thread.check()?;
            let work = thread.work.borrow();
            Savepoint {
                mark: lane::mark(&heap.segment, thread.lane)?,
                taken: work.taken.len(),
                doomed: work.doomed.len(),
                forgone: work.forgone.len(),
                retained: work.retained.len(),
                made: work.made.len(),
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

    /// Says that the operation is begun once more if it fails with [`Error::Due`], unless it is
    /// nested.
    #[inline]
    pub(crate) fn can_begin_again(&self) {
        if !self.is_nested() {
            self.thread.can_begin_again.set(true);
        }
    }

    /// Whether it is a transaction, or part of one.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.thread.transactions.get() > 0
    }

    /// Who this thread is in the words of locks.
    pub(crate) fn me(&self) -> Holder {
        self.thread.me
    }

    /// Locks an object until the outermost operation ends. Without effect if it already is.
    #[inline]
    pub fn lock(&mut self, at: Offset) -> Result<()> {
        self.thread.check()?;
        let head = object::head(&self.heap.segment, at)?;
        if !lock::try_acquire(&head.lock, self.thread.me) {
            if Holder::of(head.lock.load(Relaxed)) != Some(self.thread.me) {
                // However it was got, the version says whether the last holder finished.
                let _ = self.heap.acquire(&head.lock, self.thread.me)?;
            } else if head.version.load(Relaxed) & 1 == 1 {
                // An even one is only guarded.
                return Ok(());
            }
        }
        self.thread.work.borrow_mut().locked.push(at);
        if !mutation::is("op: odd while it changes") {
            version::begin(&head.version);
        }
        fault::point("op: object locked");
        Ok(())
    }

    /// Keeps others from changing an object until the outermost operation ends. They can still read
    /// it, until this one changes it, too.
    pub fn guard(&mut self, at: Offset) -> Result<()> {
        self.thread.check()?;
        let head = object::head(&self.heap.segment, at)?;
        if !lock::try_acquire(&head.lock, self.thread.me) {
            if Holder::of(head.lock.load(Relaxed)) == Some(self.thread.me) {
                return Ok(());
            }
            let _ = self.heap.acquire(&head.lock, self.thread.me)?;
        }
        self.note_guarded(at)
    }

    /// Notes an object whose lock was just got.
    fn note_guarded(&mut self, at: Offset) -> Result<()> {
        let head = object::head(&self.heap.segment, at)?;
        if head.version.load(Relaxed) & 1 == 1 {
            // The last holder died while it changed it: readers wait until somebody has finished.
            self.thread.work.borrow_mut().locked.push(at);
            version::begin(&head.version);
        } else {
            self.thread.work.borrow_mut().guarded.push(at);
        }
        fault::point("op: object guarded");
        Ok(())
    }

    /// As above, if nobody else has it locked.
    pub(crate) fn try_guard(&mut self, at: Offset) -> Result<bool> {
        let lock = &object::head(&self.heap.segment, at)?.lock;
        let is_free = lock::try_acquire(lock, self.thread.me);
        if is_free {
            self.note_guarded(at)?;
        }
        Ok(is_free || Holder::of(lock.load(Relaxed)) == Some(self.thread.me))
    }

    /// Takes memory. It is given back if the operation fails.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<Offset> {
        self.thread.check()?;
        let at = take(self.heap, self.thread.me, bytes)?;
        self.thread.work.borrow_mut().taken.push((at, bytes));
        Ok(at)
    }

    /// Takes memory without which what is in the heap could not be used or taken out: from the
    /// reserve if there is no other.
    pub(crate) fn take_needed(&mut self, bytes: usize) -> Result<Offset> {
        self.thread.check()?;
        let at = take_needed(self.heap, self.thread.me, bytes)?;
        self.thread.work.borrow_mut().taken.push((at, bytes));
        Ok(at)
    }

    /// A new object, with nothing in it, that nobody refers to.
    pub fn create(&mut self, kind: object::Kind, bytes: usize) -> Result<Offset> {
        let bytes = bytes.max(object::SIZE);
        if self.thread.transactions.get() > 0 {
            return self.create_for_now(kind, bytes);
        }
        let at = self.take(bytes)?;
        object::initialise(&self.heap.segment, at, kind)?;
        Ok(at)
    }

    /// As above, in a transaction: the program gets it in hand before it is sure that it stays, and
    /// may even give it to another thread. So that one must not change it yet, and its memory is no
    /// other object's until nobody holds it.
    fn create_for_now(&mut self, kind: object::Kind, bytes: usize) -> Result<Offset> {
        self.thread.check()?;
        let segment = &self.heap.segment;
        let at = take(self.heap, self.thread.me, bytes)?;
        object::initialise(segment, at, kind)?;
        object::head(segment, at)?.lock.store(self.thread.me.word(), Relaxed);
        let serial = object::retain(segment, at)?;
        let mut work = self.thread.work.borrow_mut();
        work.guarded.push(at);
        work.made.push((at, bytes));
        work.released.push((at, serial));
        Ok(at)
    }

    /// Frees memory of `bytes`, as it was taken, when the operation has succeeded.
    pub fn free(&mut self, at: Offset, bytes: usize) {
        self.thread.work.borrow_mut().doomed.push((at, bytes));
    }

    /// One reference more to an object, unless the operation fails.
    pub fn retain(&mut self, at: Offset) -> Result<()> {
        self.thread.check()?;
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

    /// Remembers words that are about to change.
    #[inline]
    pub fn save(&mut self, at: Offset, count: usize) -> Result<()> {
        self.thread.check()?;
        if lane::save(&self.heap.segment, self.thread.lane, at, count)? {
            return Ok(());
        }
        self.save_more(at, count)
    }

    /// As above, with a longer log or in several records.
    #[cold]
    fn save_more(&mut self, mut at: Offset, count: usize) -> Result<()> {
        let (segment, lane) = (&self.heap.segment, self.thread.lane);
        let mut left = count;
        // Each block is larger than the one before, so that few do.
        let mut wanted = lane::LEAST_MORE;
        while left > 0 {
            let piece = left.min(lane::LONGEST);
            if lane::save(segment, lane, at, piece)? {
                at += piece * 8;
                left -= piece;
                continue;
            }
            wanted = (wanted * 2).min(lane::needed(lane::LONGEST)).max(lane::needed(piece));
            let bytes = memory::rounded(wanted);
            let block = take_needed(self.heap, self.thread.me, bytes)?;
            self.thread.work.borrow_mut().undone.push((block, bytes));
            lane::extend(segment, lane, block, bytes)?;
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
    ///
    /// # Errors
    /// [`Error::Corrupt`]: it has happened, but not all of what it freed could be freed.
    #[inline]
    pub fn commit(mut self) -> Result<()> {
        self.is_over = true;
        self.thread.check()?;
        if self.thread.leave() { self.finish(&mut self.thread.work.borrow_mut()) } else { Ok(()) }
    }

    /// Lets go of the heap, and leaves the operation under way.
    pub(crate) fn pause(mut self) -> Paused {
        self.is_over = true;
        Paused { thread: self.thread.clone(), start: self.start }
    }

    /// Ends the outermost operation, whose changes are made or undone.
    #[inline]
    fn finish(&self, work: &mut Work) -> Result<()> {
        let segment = &self.heap.segment;
        let lane = lane::lane(segment, self.thread.lane)?;
        fault::point("op: about to end");
        // From here on it has happened, whoever dies.
        lane.state.store(DONE, Release);
        fault::point("op: ended");
        while let Some(at) = work.guarded.pop() {
            let Ok(head) = object::head(segment, at) else { continue };
            // Otherwise it is among the locked ones.
            if head.version.load(Relaxed) & 1 == 0 {
                lock::release(&head.lock);
                fault::point("op: object not guarded");
            }
        }
        while let Some(at) = work.locked.pop() {
            // It was there when it was locked, and offsets do not cease to be inside.
            let Ok(head) = object::head(segment, at) else { continue };
            version::end(&head.version);
            fault::point("op: version even");
            lock::release(&head.lock);
            fault::point("op: object unlocked");
        }
        let result = work.clear(self.heap);
        lane.state.store(IDLE, Release);
        result
    }
}

/// An operation that is under way though nobody has it in hand.
#[derive(Debug)]
pub(crate) struct Paused {
    pub(crate) thread: Rc<Thread>,
    start: Savepoint,
}

impl Paused {
    /// Goes on with it. `heap` is the one that it changes.
    pub(crate) fn resume(self, heap: &Heap) -> Op<'_> {
        Op { heap, thread: self.thread, start: self.start, is_over: false }
    }
}

impl Thread {
    /// Counts an operation that ends; true: it was the outermost.
    fn leave(&self) -> bool {
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        depth == 0
    }
}

impl Drop for Op<'_> {
    fn drop(&mut self) {
        if self.is_over || self.thread.is_foreign.get() || mutation::has_failed() {
            return;
        }
        let is_outermost = self.thread.leave();
        let segment = &self.heap.segment;
        let mut work = self.thread.work.borrow_mut();
        let undone = if mutation::is("op: what failed is undone") {
            Ok(())
        } else {
            lane::roll_back(segment, self.thread.lane, self.start.mark)
                .and_then(|()| work.unmake(segment, &self.start))
        };
        if undone.is_err() {
            // A damaged log undoes what it can.
            work.leak(&self.start);
        }
        if is_outermost {
            drop(self.finish(&mut work));
        }
    }
}

/// Begins the outermost operation of a thread, unless the collector works.
#[inline]
fn enter(heap: &Heap, thread: &Thread) -> Result<()> {
    let lane: &Lane = lane::lane(&heap.segment, thread.lane)?;
    lane.used.store(0, Relaxed);
    lane.more.store(0, Relaxed);
    while !gate::enter(&lane.state, &heap.segment.header().gate) {
        heap.wait_for_gate()?;
    }
    Ok(())
}

/// Takes memory, which is the caller's to give back.
#[inline]
pub(crate) fn take(heap: &Heap, me: Holder, bytes: usize) -> Result<Offset> {
    let (segment, hints) = (&heap.segment, &heap.hints);
    if let Some(class) = slab::class(bytes)
        && let Some(at) = memory::take_hinted(segment, hints, class)?
    {
        return Ok(at);
    }
    let before_growing = || {
        let thread = heap.thread()?;
        let is_atomic = thread.transactions.get() > 0;
        if !(is_atomic || thread.can_begin_again.get()) || !heap.is_collection_due()? {
            return Ok(());
        }
        if !is_atomic {
            return Err(Error::Due);
        }
        thread.is_collection_wanted.set(true);
        Ok(())
    };
    with_chunks(heap, me, || memory::take(segment, hints, bytes, &before_growing))
}

/// As above, from the reserve if there is no other.
#[inline]
pub(crate) fn take_needed(heap: &Heap, me: Holder, bytes: usize) -> Result<Offset> {
    match take(heap, me, bytes) {
        Err(Error::Full { .. }) => {
            with_chunks(heap, me, || memory::take_reserved(&heap.segment, bytes))
        }
        taken => taken,
    }
}

/// Gives memory of `bytes` back, as it was taken. Needs no lock, and waits for nobody.
#[inline]
pub(crate) fn give(heap: &Heap, at: Offset, bytes: usize) -> Result<()> {
    match slab::class(bytes) {
        Some(class) => memory::free_block(&heap.segment, &heap.hints, at, class),
        None => chunk::free_run(&heap.segment, at),
    }
}

/// Does something under the lock of the chunks. What a dead holder left is consistent.
#[cold]
pub(crate) fn with_chunks<T>(
    heap: &Heap,
    me: Holder,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let word = &heap.segment.header().chunk_lock;
    if mutation::is("chunks: a lock") {
        return work();
    }
    if !lock::try_acquire(word, me) {
        let _ = heap.acquire(word, me)?;
    }
    fault::point("op: chunks locked");
    let result = work();
    lock::release(word);
    result
}
