//! A heap that this process is attached to.

use std::cell::RefCell;
use std::os::fd::RawFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError, Weak};
use std::time::Duration;

use crate::header::{LANES, MAGIC, PROCESSES, VERSION};
use crate::lane::{self, BUSY, IDLE, Mark};
use crate::lock::{self, Acquired, Holder, Liveness, Pause};
use crate::memory::Hints;
use crate::op::{Op, Thread};
use crate::process::{self, Membership, TAKEN};
use crate::segment::{Offset, Segment};
use crate::{Error, Result, fault, object};

/// How often a reader tries without the lock.
const TRIES: u32 = 16;

/// Each heap of this process, and each of a forked child anew.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A heap that this process is attached to, until it is dropped.
pub struct Heap {
    pub(crate) segment: Segment,
    pub(crate) hints: Hints,
    membership: RwLock<Membership>,
    slot: AtomicUsize,
    /// Which heap of which process: threads find their lanes by it.
    id: AtomicU64,
    pause: Box<dyn Pause>,
    recovering: Mutex<()>,
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
}

impl Heap {
    /// A new heap in an anonymous file.
    pub fn anonymous(max_size: usize, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        Self::create(Segment::anonymous(max_size)?, pause)
    }

    /// A new heap in a file that does not exist yet.
    pub fn named(path: &Path, max_size: usize, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        Self::create(Segment::named(path, max_size)?, pause)
    }

    /// Another process's heap, by the path of its file; also `/proc/PID/fd/N`.
    pub fn open(path: &Path, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let segment = Segment::open(path)?;
        let header = segment.header();
        if header.magic.load(Acquire) != MAGIC || header.version.load(Relaxed) != version() {
            return Err(Error::Refused(format!(
                "{} is no heap of this version of ungil, or is still being made",
                path.display()
            )));
        }
        Self::attach(segment, pause)
    }

    fn create(segment: Segment, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let layout = *segment.layout();
        segment.provide(layout.processes, layout.logs - layout.processes)?;
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
        header.version.store(version(), Relaxed);
        header.magic.store(MAGIC, Release);
        Self::attach(segment, pause)
    }

    fn attach(segment: Segment, pause: Box<dyn Pause>) -> Result<Arc<Self>> {
        let membership = match Membership::take(&segment) {
            Err(Error::Crowded { .. }) => {
                // Some of those in the table may be dead.
                clean_all(&segment)?;
                Membership::take(&segment)?
            }
            other => other?,
        };
        Ok(Arc::new_cyclic(|itself| Self {
            slot: AtomicUsize::new(membership.slot),
            membership: RwLock::new(membership),
            segment,
            hints: Hints::default(),
            id: AtomicU64::new(NEXT_ID.fetch_add(1, Relaxed)),
            pause,
            recovering: Mutex::new(()),
            itself: itself.clone(),
        }))
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
    pub fn op(&self) -> Result<Op<'_>> {
        Op::begin(self, self.thread()?)
    }

    /// Reads an object without a lock: `look` may see it half changed, and is called again if it
    /// did. It must not trust what it sees, nor keep it before this returns.
    #[inline]
    pub fn read<T>(&self, at: Offset, mut look: impl FnMut() -> Result<T>) -> Result<T> {
        let head = object::head(&self.segment, at)?;
        for _ in 0..TRIES {
            let before = head.version.load(Acquire);
            if before & 1 == 0 {
                let seen = look();
                fence(Acquire);
                if head.version.load(Relaxed) == before {
                    return seen;
                }
            }
            std::hint::spin_loop();
        }
        let mut op = self.op()?;
        op.lock(at)?;
        let seen = look()?;
        op.commit()?;
        Ok(seen)
    }

    /// The lane of this thread.
    #[inline]
    pub(crate) fn thread(&self) -> Result<Rc<Thread>> {
        let id = self.id.load(Relaxed);
        THREADS.with_borrow_mut(|threads| {
            if let Some(thread) = threads.iter().find(|thread| thread.id == id) {
                return Ok(thread.clone());
            }
            threads.retain(|thread| !thread.is_orphan());
            let membership = self.membership.read().unwrap_or_else(PoisonError::into_inner);
            let index = match lane::take(&self.segment, &membership) {
                Err(Error::Crowded { .. }) => {
                    self.clean()?;
                    lane::take(&self.segment, &membership)?
                }
                other => other?,
            };
            let generation = lane::lane(&self.segment, index)?.generation.load(Relaxed);
            let me = Holder::new(index, generation);
            let thread = Rc::new(Thread::new(self.itself.clone(), id, index, me));
            threads.push(thread.clone());
            Ok(thread)
        })
    }

    /// The identity of this thread as a holder of locks.
    #[inline]
    pub(crate) fn me(&self) -> Result<Holder> {
        let id = self.id.load(Relaxed);
        let known = THREADS.with_borrow(|threads| {
            threads.iter().find(|thread| thread.id == id).map(|thread| thread.me)
        });
        match known {
            Some(me) => Ok(me),
            None => Ok(self.thread()?.me),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id.load(Relaxed)
    }

    /// Waits until the collector lets the world go on.
    pub(crate) fn wait_for_gate(&self) -> Result<()> {
        let gate = &self.segment.header().gate;
        loop {
            let seen = gate.load(SeqCst);
            let Some(holder) = Holder::of(seen) else { return Ok(()) };
            let mut woken = true;
            self.pause.pause(&mut || woken = lock::wait(gate, seen, Duration::from_millis(20)))?;
            if !woken && self.is_gone(holder)? {
                // What it left undone is garbage that stays garbage.
                let _ = gate.compare_exchange(seen, 0, SeqCst, Relaxed);
            }
        }
    }

    /// Takes a lock of the heap's own; the caller has an operation under way.
    pub(crate) fn acquire(
        &self,
        word: &std::sync::atomic::AtomicU32,
        me: Holder,
    ) -> Result<Acquired> {
        let got = lock::acquire(word, me, self, self.pause(), None)?;
        Ok(got.expect("without a deadline a lock is got"))
    }

    /// A lock between threads of this process, which may wait with it for other processes.
    pub(crate) fn local<'m, T>(&self, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>> {
        loop {
            match mutex.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => self.pause.pause(&mut std::thread::yield_now)?,
            }
        }
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
    fn clean_slot(&self, index: usize) -> Result<bool> {
        let membership = self.membership.read().unwrap_or_else(PoisonError::into_inner);
        if !membership.is_dead(index)? {
            return Ok(false);
        }
        // Threads of a process share its open file, so the kernel does not keep them apart.
        let Ok(_alone) = self.recovering.try_lock() else { return Ok(false) };
        clean(&self.segment, &membership, index)
    }

    /// Prepares a fork; the child is to call [`Self::forked`] with it, the parent to drop it.
    pub fn before_fork(&self) -> Result<Membership> {
        Membership::take(&self.segment)
    }

    /// Makes this process, which was just forked, one of its own.
    pub fn forked(&self, membership: Membership) -> Result<()> {
        let slot = process::slot(&self.segment, membership.slot)?;
        // SAFETY: no arguments, no failure.
        slot.pid.store(unsafe { libc::getpid() }.cast_unsigned(), Relaxed);
        self.slot.store(membership.slot, Relaxed);
        self.id.store(NEXT_ID.fetch_add(1, Relaxed), Relaxed);
        *self.membership.write().unwrap_or_else(PoisonError::into_inner) = membership;
        Ok(())
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let id = self.id();
        // A thread that ends has no thread-local variables any more, and no lane either.
        let _ = THREADS.try_with(|threads| threads.borrow_mut().retain(|thread| thread.id != id));
        if let Ok(slot) = process::slot(&self.segment, self.slot()) {
            drop(leave(&self.segment, self.slot(), slot));
        }
    }
}

impl Liveness for Heap {
    fn is_gone(&self, holder: Holder) -> Result<bool> {
        let Ok(lane) = lane::lane(&self.segment, holder.lane()) else { return Ok(true) };
        let is_gone = || lane.generation.load(SeqCst) != holder.generation();
        if is_gone() {
            return Ok(true);
        }
        if let Some(slot) = (lane.owner.load(SeqCst) as usize).checked_sub(1) {
            self.clean_slot(slot)?;
        }
        Ok(is_gone())
    }
}

/// Cleans up behind all dead processes, for one that is none yet.
fn clean_all(segment: &Segment) -> Result<()> {
    let membership = Membership::onlooker(segment)?;
    for index in 0..PROCESSES {
        if process::slot(segment, index)?.state.load(Acquire) == TAKEN
            && membership.is_dead(index)?
        {
            clean(segment, &membership, index)?;
        }
    }
    Ok(())
}

/// Undoes what a dead process was at, and frees its lanes and its slot.
///
/// May be killed anywhere and begun again by another. References that the dead one had are left to
/// the collector.
fn clean(segment: &Segment, membership: &Membership, index: usize) -> Result<bool> {
    if !membership.claim_dead(index)? {
        return Ok(false);
    }
    let slot = process::slot(segment, index)?;
    let done = if slot.state.load(Acquire) == TAKEN {
        segment.header().deaths.fetch_add(1, Relaxed);
        fault::point("heap: dead process claimed");
        leave(segment, index, slot).map(|()| true)
    } else {
        Ok(false)
    };
    membership.release_dead(index);
    done
}

/// Frees the lanes of a process, and then its slot.
fn leave(segment: &Segment, index: usize, slot: &process::Slot) -> Result<()> {
    for number in 0..LANES {
        let lane = lane::lane(segment, number)?;
        if lane.owner.load(Acquire) as usize != index + 1 {
            continue;
        }
        if lane.state.load(Acquire) == BUSY {
            lane::roll_back(segment, number, Mark::default())?;
        }
        lane.state.store(IDLE, SeqCst);
        fault::point("heap: lane undone");
        lane::give_back(lane);
    }
    slot.roots.store(0, Relaxed);
    fault::point("heap: lanes freed");
    slot.state.store(process::FREE, Release);
    Ok(())
}

/// Version and size of a pointer, as stored.
const fn version() -> u64 {
    (usize::BITS as u64) << 32 | VERSION as u64
}
