//! A change of the heap that happens whole or not at all.

use std::rc::Rc;

use crate::atomic::Ordering::{Relaxed, Release, SeqCst};
use crate::lane::{self, DONE, IDLE, Lane};
use crate::lock::{self, Holder, Liveness};
use crate::segment::Offset;
use crate::thread::Thread;
use crate::work::{Savepoint, Work};
use crate::{
    Error, Heap, Result, allocator, fault, gate, memory, mutation, object, version, watch,
};

impl Heap {
    /// Begins to change the heap. Ends the operation that the thread has under way, if it has one,
    /// no earlier than that ends.
    #[inline]
    pub fn op(&self) -> Result<Op<'_>> {
        let thread = self.thread()?;
        if self.transactions.load(Relaxed) > 0 {
            self.may_go_on(&thread)?;
        }
        Op::begin(self, thread)
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
            let position = lane::position(&heap.segment, thread.lane)?;
            thread.work.borrow().savepoint(position)
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
    ///
    /// The caller made it in this operation, or vouches for a reference that lasts as long: others
    /// free an object that loses its last one, whoever has it locked.
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
        let at = allocator::take(self.heap, self.thread.me, bytes)?;
        self.thread.work.borrow_mut().taken.push((at, bytes));
        Ok(at)
    }

    /// Takes memory without which what is in the heap could not be used or taken out: from the
    /// reserve if there is no other.
    pub(crate) fn take_needed(&mut self, bytes: usize) -> Result<Offset> {
        self.thread.check()?;
        let at = allocator::take_needed(self.heap, self.thread.me, bytes)?;
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
        let at = allocator::take(self.heap, self.thread.me, bytes)?;
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
            let block = allocator::take_needed(self.heap, self.thread.me, bytes)?;
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
        if work.locked.len() > 1 && !mutation::is("op: what was made is unlocked first") {
            work.put_new_first();
        }
        for index in 0..work.locked.len() {
            let at = work.locked[index];
            // It was there when it was locked, and offsets do not cease to be inside.
            let Ok(head) = object::head(segment, at) else { continue };
            version::end(&head.version);
            fault::point("op: version even");
            lock::release(&head.lock);
            fault::point("op: object unlocked");
            // Nobody watches what was just made, and it may be something else by now.
            if watch::is_asked(head, watch::CHANGE) && !work.is_new(at) {
                watch::tell(segment, head, watch::CHANGE);
            }
        }
        work.locked.clear();
        let result = work.clear(segment, &self.heap.hints);
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
            lane::roll_back(segment, self.thread.lane, self.start.position)
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
        wait_for_gate(heap)?;
    }
    Ok(())
}

/// Waits until the collector lets the world go on.
fn wait_for_gate(heap: &Heap) -> Result<()> {
    let gate = &heap.segment.header().gate;
    loop {
        let seen = gate.load(SeqCst);
        let Some(holder) = Holder::of(seen) else {
            // A damaged word can be neither 0 nor anybody's, and would keep everybody out.
            let _ = gate.compare_exchange(seen, 0, SeqCst, Relaxed);
            return Ok(());
        };
        if holder == heap.me()? {
            return Err(Error::Corrupt("a thread that waits for the gate has closed it"));
        }
        heap.pause().pause(&mut || _ = lock::wait(gate, seen, lock::PATIENCE))?;
        if gate.load(SeqCst) == seen && heap.is_gone(holder)? {
            // What it left undone is garbage that stays garbage.
            let _ = gate.compare_exchange(seen, 0, SeqCst, Relaxed);
        }
    }
}
