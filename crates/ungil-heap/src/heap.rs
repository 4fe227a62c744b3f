//! A heap that this process is attached to.

use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::path::Path;
use std::rc::Rc;
// What only this process has is no matter for loom.
use std::sync::atomic::{AtomicU64 as OwnU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use crate::header::{LANES, LOG_SIZE, MAGIC, PROCESSES, READY_LANES, VERSION};
use crate::lane::{self, BUSY, IDLE, Mark};
use crate::lock::{self, Acquired, GENERATIONS, Holder, Liveness, Pause};
use crate::memory::Hints;
use crate::op::{Op, Thread};
use crate::process::{self, Claim, FREE, LEFT, Life, Membership, Slot, TAKEN};
use crate::segment::{Offset, Segment};
use crate::{Error, Result, chunk, fault, hazard, mutation, object, pin, roots, version};

/// Says that a lane of this thread is no more.
pub(crate) fn forget_latest(thread: &Thread) {
    if std::ptr::eq(LATEST.get(), thread) {
        LATEST.set(std::ptr::null());
    }
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

/// No slot of the process table.
const NOWHERE: usize = usize::MAX;

/// Each heap of this process, and each of a forked child anew.
static NEXT_ID: OwnU64 = OwnU64::new(1);

/// A heap that this process is attached to, until it is dropped.
pub struct Heap {
    pub(crate) segment: Segment,
    pub(crate) hints: Hints,
    /// The slot of this process, or [`NOWHERE`] after a fork that failed to get one.
    slot: AtomicUsize,
    life: Mutex<Option<Life>>,
    /// Which heap of which process: threads find their lanes by it.
    id: OwnU64,
    /// How many threads of this process are in a transaction.
    pub(crate) transactions: AtomicUsize,
    pause: Box<dyn Pause>,
    itself: Weak<Heap>,
}

impl std::fmt::Debug for Heap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Heap({:032x})", self.uuid())
    }
}

thread_local! {
    /// This thread's lanes, by the heap's id.
    static THREADS: RefCell<Vec<Rc<Thread>>> = const { RefCell::new(Vec::new()) };
    /// That of them which was wanted last, found without a search. Null if it is no more.
    static LATEST: Cell<*const Thread> = const { Cell::new(std::ptr::null()) };
}

impl Heap {
    /// A new heap in an anonymous file.
    #[cfg(not(loom))]
    pub fn anonymous(max_size: usize, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        Self::create(Segment::anonymous(max_size)?, pause)
    }

    /// A new heap in a file that does not exist yet.
    #[cfg(not(loom))]
    pub fn named(path: &Path, max_size: usize, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let heap = Self::unnamed(path, max_size, pause)?;
        heap.publish(path)?;
        Ok(heap)
    }

    /// A new heap that [`Self::publish`] can give this path. Nobody finds it half made, and nothing
    /// is left of it if this process dies before.
    #[cfg(not(loom))]
    pub fn unnamed(path: &Path, max_size: usize, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        // An empty parent means the current folder.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Self::create(Segment::unnamed(folder.unwrap_or(Path::new(".")), max_size)?, pause)
    }

    /// Gives it the path that [`Self::unnamed`] was told; no file must be there.
    #[cfg(not(loom))]
    pub fn publish(&self, path: &Path) -> Result<()> {
        self.segment.publish(path)
    }

    /// Another process's heap, by the path of its file; also `/proc/PID/fd/N`.
    #[cfg(not(loom))]
    pub fn open(path: &Path, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let segment = Segment::open(path)?;
        let header = segment.header();
        if header.magic.load(Acquire) != MAGIC || header.version.load(Relaxed) != format() {
            return Err(Error::Refused(format!(
                "{} is no heap of this version of ungil",
                path.display()
            )));
        }
        Self::attach(segment, pause)
    }

    pub(crate) fn create(segment: Segment, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let layout = *segment.layout();
        let ready = layout.logs + READY_LANES * LOG_SIZE;
        segment.provide(layout.processes, ready - layout.processes)?;
        chunk::begin(&segment)?;
        let header = segment.header();
        let mut random = [0_u8; 32];
        // SAFETY: the buffer is as long as said; 32 bytes are never refused or cut.
        unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
        let words = header.uuid.iter().chain(&header.hash_key);
        for (word, bytes) in words.zip(random.chunks_exact(8)) {
            word.store(u64::from_ne_bytes(bytes.try_into().expect("eight of them")), Relaxed);
        }
        header.serial.store(1, Relaxed);
        header.created.store(process::now(), Relaxed);
        header.version.store(format(), Relaxed);
        header.magic.store(MAGIC, Release);
        Self::attach(segment, pause)
    }

    pub(crate) fn attach(segment: Segment, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let membership = join(&segment)?;
        let slot = membership.slot;
        let life = membership.settle(&segment)?;
        Ok(Arc::new_cyclic(|itself| Self {
            segment,
            hints: Hints::default(),
            slot: AtomicUsize::new(slot),
            life: Mutex::new(Some(life)),
            id: OwnU64::new(NEXT_ID.fetch_add(1, Relaxed)),
            transactions: AtomicUsize::new(0),
            pause,
            itself: itself.clone(),
        }))
    }

    /// Dies as the kernel sees it: this process does nothing more, and cleans up nothing.
    #[cfg(all(test, loom))]
    pub(crate) fn die(&self) {
        if let Ok(thread) = self.thread() {
            thread.leave_to_parent();
        }
        self.slot.store(NOWHERE, Relaxed);
        drop(self.life.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The heap's name among all heaps.
    pub fn uuid(&self) -> u128 {
        let [high, low] = &self.segment.header().uuid;
        u128::from(high.load(Relaxed)) << 64 | u128::from(low.load(Relaxed))
    }

    /// The key of the hash of strings.
    pub fn hash_key(&self) -> [u64; 2] {
        let [first, second] = &self.segment.header().hash_key;
        [first.load(Relaxed), second.load(Relaxed)]
    }

    /// The number of this process in the process table.
    pub fn slot(&self) -> usize {
        self.slot.load(Relaxed)
    }

    /// The open file with the memory: what [`Self::open`] finds under `/proc/PID/fd`.
    #[cfg(not(loom))]
    pub fn descriptor(&self) -> RawFd {
        self.segment.descriptor()
    }

    /// The memory.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// What a thread of this process does around a wait.
    pub fn pause(&self) -> &dyn Pause {
        &*self.pause
    }

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

    /// Another reference to it.
    pub(crate) fn itself(&self) -> Arc<Self> {
        self.itself.upgrade().expect("somebody asks it")
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

    pub(crate) fn id(&self) -> u64 {
        self.id.load(Relaxed)
    }

    /// Waits until the collector lets the world go on.
    pub(crate) fn wait_for_gate(&self) -> Result<()> {
        let gate = &self.segment.header().gate;
        loop {
            let seen = gate.load(SeqCst);
            let Some(holder) = Holder::of(seen) else {
                // A damaged word can be neither 0 nor anybody's, and would keep everybody out.
                let _ = gate.compare_exchange(seen, 0, SeqCst, Relaxed);
                return Ok(());
            };
            if holder == self.me()? {
                return Err(Error::Corrupt("the gate was closed by one who waits for it"));
            }
            self.pause.pause(&mut || _ = lock::wait(gate, seen, lock::PATIENCE))?;
            if gate.load(SeqCst) == seen && self.is_gone(holder)? {
                // What it left undone is garbage that stays garbage.
                let _ = gate.compare_exchange(seen, 0, SeqCst, Relaxed);
            }
        }
    }

    /// Takes a lock of the heap's own; the caller has an operation under way.
    pub(crate) fn acquire(&self, word: &AtomicU32, me: Holder) -> Result<Acquired> {
        let got = lock::acquire(word, me, self, self.pause(), None)?;
        Ok(got.expect("without a deadline a lock is got"))
    }

    /// Cleans up behind all dead processes; returns how many there were.
    pub fn clean(&self) -> Result<usize> {
        let mut cleaned = 0;
        for index in 0..PROCESSES {
            if process::slot(&self.segment, index)?.state.load(Acquire) == TAKEN {
                cleaned += usize::from(self.clean_slot(index)?);
            }
        }
        Ok(cleaned)
    }

    /// Cleans up behind the process in a slot, if it is dead and nobody else is at it.
    pub(crate) fn clean_slot(&self, index: usize) -> Result<bool> {
        if index == self.slot() || !process::is_dead(&self.segment, index)? {
            return Ok(false);
        }
        clean(&self.segment, index)
    }

    /// Prepares a fork: takes a place for the child, and has it hold what this process holds.
    /// Afterwards the child gives it to [`Self::forked`], and the parent drops it, in the same
    /// thread, also if there is no child. Other threads hold and release nothing meanwhile.
    ///
    /// No other thread should fork before it is dropped: its child would keep the place taken.
    ///
    /// Inside of a transaction there is no place for a child: [`Self::forked`] refuses it.
    pub fn before_fork(&self) -> Result<Reserved> {
        let heap = self.itself.clone();
        if self.is_in_transaction() {
            return Ok(Reserved { membership: None, heap, is_refused: true });
        }
        let membership = join(&self.segment)?;
        self.duplicate_roots(&membership)?;
        Ok(Reserved { membership: Some(membership), heap, is_refused: false })
    }

    /// Makes this process, which was just forked, one of its own: its threads get lanes of their
    /// own, and what this thread had under way stays the parent's. Without a place prepared it
    /// takes one, and holds nothing.
    ///
    /// # Errors
    /// As those of attaching. The heap can be read then, but not changed.
    pub fn forked(&self, reserved: impl Into<Option<Reserved>>) -> Result<()> {
        let parents = self.id.swap(NEXT_ID.fetch_add(1, Relaxed), Relaxed);
        THREADS.with_borrow_mut(|threads| {
            for thread in threads.extract_if(.., |thread| thread.id == parents) {
                thread.leave_to_parent();
            }
        });
        self.slot.store(NOWHERE, Relaxed);
        self.transactions.store(0, Relaxed);
        self.hints.clear();
        // Nobody else uses it: a fork has one thread, and the parent's others did not either.
        let mut life = self.life.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(life) = life.take() {
            life.was_not_inherited();
        }
        let reserved: Option<Reserved> = reserved.into();
        if reserved.as_ref().is_some_and(|reserved| reserved.is_refused) {
            let why = "a process that was forked inside of a transaction cannot use the heap";
            return Err(Error::Refused(why.to_owned()));
        }
        let membership = match reserved.and_then(|mut reserved| reserved.membership.take()) {
            Some(membership) => membership,
            None => join(&self.segment)?,
        };
        let slot = membership.slot;
        *life = Some(membership.settle(&self.segment)?);
        self.slot.store(slot, Relaxed);
        Ok(())
    }
}

/// A place for a child that is about to be forked.
#[derive(Debug)]
pub struct Reserved {
    /// `None` in the child that has taken it, and where there is none.
    membership: Option<Membership>,
    /// Whether there is none because the parent is in a transaction.
    is_refused: bool,
    heap: Weak<Heap>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.membership.is_some()
            && let Some(heap) = self.heap.upgrade()
        {
            // A table that cannot be unlocked is no table any more.
            drop(heap.end_duplication());
        }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let is_own = process::slot(&self.segment, self.slot()).is_ok_and(|slot| {
            // SAFETY: no arguments, no failure.
            slot.pid.load(Relaxed) == unsafe { libc::getpid() }.cast_unsigned()
        });
        // A child that was forked without [`Heap::forked`] has nothing to give back.
        if !is_own {
            return;
        }
        // What cannot be released now is found by the collector.
        drop(self.release_all());
        let id = self.id();
        // A thread that ends has no thread-local variables any more, and no lane either.
        let _ = THREADS.try_with(|threads| {
            if let Ok(mut threads) = threads.try_borrow_mut() {
                threads.retain(|thread| thread.id != id);
            }
        });
        let slot = self.slot();
        if let Ok(entry) = process::slot(&self.segment, slot) {
            drop(leave(&self.segment, slot, entry));
        }
    }
}

impl Liveness for Heap {
    fn is_gone(&self, holder: Holder) -> Result<bool> {
        if self.is_known_gone(holder) {
            return Ok(true);
        }
        let Ok(lane) = lane::lane(&self.segment, holder.lane()) else { return Ok(true) };
        // A lane gets its new generation before it is nobody's.
        let Some(slot) = (lane.owner.load(SeqCst) as usize).checked_sub(1) else {
            return Ok(true);
        };
        self.clean_slot(slot)?;
        Ok(self.is_known_gone(holder))
    }

    fn is_known_gone(&self, holder: Holder) -> bool {
        lane::lane(&self.segment, holder.lane())
            .map_or(true, |lane| lane.generation.load(SeqCst) % GENERATIONS != holder.generation())
    }
}

/// Takes a slot for one more process.
fn join(segment: &Segment) -> Result<Membership> {
    match Membership::take(segment) {
        Err(Error::Crowded { .. }) => {
            // Some of those in the table may be dead.
            clean_all(segment)?;
            pin::give_up(segment, pin::LATE)?;
            match Membership::take(segment) {
                Err(Error::Crowded { .. }) => {
                    pin::give_up(segment, Duration::ZERO)?;
                    Membership::take(segment)
                }
                other => other,
            }
        }
        other => other,
    }
}

/// Cleans up behind all dead processes, for one that is none yet.
fn clean_all(segment: &Segment) -> Result<()> {
    for index in 0..PROCESSES {
        if process::slot(segment, index)?.state.load(Acquire) == TAKEN
            && process::is_dead(segment, index)?
        {
            clean(segment, index)?;
        }
    }
    Ok(())
}

/// Undoes what a dead process was at, and frees its lanes and its slot; false: somebody else does.
///
/// May be killed anywhere and begun again by another. References that the dead one had are left to
/// the collector.
fn clean(segment: &Segment, index: usize) -> Result<bool> {
    let slot = process::slot(segment, index)?;
    let claim = Claim::take(segment, index)?;
    if claim.is_none() && !mutation::is("clean: one at a time") {
        return Ok(false);
    }
    // A place that was prepared for a fork that failed is nobody's death.
    if slot.state.load(Acquire) == TAKEN && slot.pid.load(Relaxed) != 0 {
        segment.header().deaths.fetch_add(1, Relaxed);
    }
    fault::point("heap: dead process claimed");
    leave(segment, index, slot)?;
    Ok(true)
}

/// Frees the lanes of a process, and then its slot.
fn leave(segment: &Segment, index: usize, slot: &Slot) -> Result<()> {
    for number in 0..LANES {
        let lane = lane::lane(segment, number)?;
        if lane.owner.load(Acquire) as usize != index + 1 {
            continue;
        }
        if mutation::is("leave: undone before the lane is free") {
            lane::give_back(lane);
        }
        if lane.state.load(Acquire) == BUSY && !mutation::is("leave: what was begun is undone") {
            // A damaged log undoes what it can: others must not wait for it for ever.
            drop(lane::roll_back(segment, number, Mark::default()));
        }
        hazard::withdraw(&*segment.header().hazards, number);
        lane.state.store(IDLE, SeqCst);
        fault::point("heap: lane undone");
        lane::give_back(lane);
    }
    fault::point("heap: lanes freed");
    if roots::has_pins(segment, slot) {
        // What it held is nobody's any more, but its handles are waited for.
        slot.since.store(process::now(), Relaxed);
        slot.state.store(LEFT, Release);
    } else {
        slot.roots.store(0, Relaxed);
        slot.state.store(FREE, Release);
    }
    Ok(())
}

/// Version and size of a pointer, as stored.
const fn format() -> u64 {
    (usize::BITS as u64) << 32 | VERSION as u64
}
