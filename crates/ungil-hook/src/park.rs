//! Threads that sleep on a semaphore until another one posts it.
//!
//! # With a GIL
//! A thread that wants a lock which another one has lets go of the GIL and sleeps on the semaphore
//! that the lock is (`Python/thread_pthread.h`), or that it parks with (`threading.Lock` of 3.14). Who
//! lets go of the lock posts that, whether it belongs to a mutex, a condition or a queue. So a trace
//! tells who was waited for. One that had taken the lock itself lets go of it; any other gives a
//! signal. The hook knows the last thread that took a semaphore on which others have slept.
//!
//! # Without one
//! A thread of a free-threaded interpreter (3.13 and later) whose GIL is off parks for whatever keeps
//! it from going on. `_PyParkingLot_Park` (`Python/parking_lot.c`) keeps what it waits for on its own
//! stack:
//! ```text
//! struct wait_entry { void *park_arg; uintptr_t addr; _PySemaphore sema; ... };
//! ```
//! and `sema` begins with the `sem_t`. So the address of the semaphore tells the rest:
//! * it lies right above the stack of this call: a park. `addr` is the byte or word waited for, and
//!   `park_arg` is not null if that is a `PyMutex`, or what a `SimpleQueue` waits for;
//! * otherwise it is a lock of `Python/thread_pthread.h`, which is a semaphore in the heap: those of
//!   extension modules, and `threading.RLock` where it is not yet a `PyMutex`.
//!
//! `_PyRawMutex_LockSlow`, which guards the parking lot itself, sleeps on a semaphore of its stack,
//! too, with the next waiter, mostly none, where `addr` would be.
//!
//! A thread that wants a lock looks at it 40 times before it parks, and yields the processor in
//! between. On a busy machine that takes milliseconds, so they count for the park that follows.
//!
//! # Who posted
//! Whoever posts a semaphore leaves its thread id in a table, by the address of the semaphore, before
//! the sleeper can go on; the sleeper takes it from there. If it sees that somebody sleeps it leaves
//! its Python stack, too ([`crate::stacks`]).

use crate::interpreter::Interpreter;
use crate::places::{PLACES, hash, place_of};
use crate::system::keeping_errno;
use crate::thread::Thread;
use crate::{clock, collecting, free_threaded, lock, objects, stacks, thread};
use libc::{c_int, c_void, clockid_t, sem_t, timespec};
use std::cell::Cell;
use std::mem::transmute;
use std::ops::Range;
use std::sync::atomic::{
    AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use ungil_core::ParkEntry;
use ungil_core::debug_offsets::{self, DebugOffsets};
use ungil_core::park::{COLLECTION, Cause, Ending};

/// How far above this call's own frame the entry of a park may lie, and its thread state above the
/// beginning of that. Both are a few hundred bytes in optimised builds.
const STACK_BYTES: usize = 8192;
const STATE_BYTES: usize = 512;

/// Who posted which semaphore last: the address, in words of eight bytes, above the thread id.
static POSTED: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// Thread ids are below 2^22 (`PID_MAX_LIMIT`).
const TID_BITS: u32 = 22;
/// In [`POSTED`]: that thread had taken it.
const HAD_IT: u32 = 1 << TID_BITS;
const POSTED_BITS: u32 = TID_BITS + 1;
/// The same with the number of the stack from which that was done.
static POSTED_IN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// Who took which semaphore last, as in [`POSTED`], if somebody had slept on it.
static TAKEN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// Semaphores on which somebody sleeps.
static SLEPT_ON: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

/// Before it parks for a lock a thread looks so often whether that is free, and yields in between
/// (`MAX_SPIN_COUNT` in `Python/lock.c`).
const LOOKS: u32 = 40;
/// At most so long after one look comes the next one, in ns: a thread that had the lock meanwhile
/// takes longer to come back. And so long after the last one it parks.
const LOOKS_APART_NS: u64 = 200;
const PARKS_AFTER_NS: u64 = 20_000;

/// Looks of a thread that followed each other, in ticks.
#[derive(Clone, Copy)]
struct Looking {
    since: u64,
    until: u64,
    count: u32,
}

impl Looking {
    const NO: Self = Self { since: 0, until: 0, count: 0 };

    /// Whether `now` comes so soon after the last look.
    fn is_near(self, now: u64, ns: u64) -> bool {
        self.count > 0 && now.saturating_sub(self.until) <= clock::tick().ticks(ns)
    }
}

thread_local! {
    static LOOKING: Cell<Looking> = const { Cell::new(Looking::NO) };
}

/// Addresses of `_PyRuntime`, in which the main interpreter lies.
static RUNTIME: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
/// `PyThreadState_GetUnchecked`, which reads a variable of the calling thread; 0 if there is none.
static GET_STATE: AtomicUsize = AtomicUsize::new(0);

/// Finds what is needed to tell parks apart, before the calls lead here.
pub fn prepare(interpreter: &Interpreter, runtime: &Range<usize>) {
    let offsets = offsets_in(runtime);
    collecting::prepare(offsets.as_ref());
    stacks::prepare(interpreter, offsets.as_ref());
    RUNTIME[0].store(runtime.start, Relaxed);
    RUNTIME[1].store(runtime.end, Relaxed);
    let get_state = interpreter.variable(c"PyThreadState_GetUnchecked");
    GET_STATE.store(get_state.map_or(0, |it| it.address), Relaxed);
}

/// Where `_PyRuntime` is, 0 if this is no free-threaded build.
pub fn runtime() -> usize {
    RUNTIME[0].load(Relaxed)
}

fn offsets_in(runtime: &Range<usize>) -> Option<DebugOffsets> {
    if runtime.len() < debug_offsets::WORDS * size_of::<u64>() {
        return None;
    }
    // SAFETY: `runtime` is an object of at least so many words in a loaded image, aligned for them,
    // which are constants.
    let words = unsafe { &*(runtime.start as *const [u64; debug_offsets::WORDS]) };
    DebugOffsets::of(words)
}

/// Whether sleeps are told: not as long as a free-threaded build has its GIL, because nothing of the
/// trace would tell them from those without.
#[inline]
fn are_told() -> bool {
    !free_threaded::is_build() || free_threaded::parks()
}

/// Whether somebody sleeps on it, or has slept.
#[inline]
fn is_slept_on(sem: *mut sem_t) -> bool {
    place_of(&SLEPT_ON, sem).load(Relaxed) == sem as usize
}

/// Stands in for `sem_post`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn post(sem: *mut sem_t) -> c_int {
    // Most locks that are let go of nobody else wants, and with a GIL nobody can come meanwhile.
    if (free_threaded::parks() || is_slept_on(sem))
        && let Some(thread) = thread::current()
    {
        if is_slept_on(sem) {
            let stack = keeping_errno(stacks::number);
            place_of(&POSTED_IN, sem).store(posted(sem, stack.into()), Release);
        }
        let had_it = if take(&TAKEN, sem) == thread.tid() { HAD_IT } else { 0 };
        place_of(&POSTED, sem).store(posted(sem, thread.tid() | had_it), Release);
    }
    // SAFETY: the caller's own argument, unchanged.
    unsafe { lock::post(sem) }
}

/// Stands in for `sem_trywait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn try_wait(sem: *mut sem_t) -> c_int {
    // SAFETY: the caller's own argument, unchanged.
    let result = unsafe { lock::try_wait(sem) };
    if result == 0 && is_slept_on(sem) {
        keeping_errno(|| {
            if let Some(thread) = thread::current() {
                took(&thread, sem);
            }
        });
    }
    result
}

/// The thread has taken it.
fn took(thread: &Thread, sem: *mut sem_t) {
    place_of(&TAKEN, sem).store(posted(sem, thread.tid()), Relaxed);
}

/// Stands in for `sem_wait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn wait(sem: *mut sem_t) -> c_int {
    // SAFETY: the caller's own argument, unchanged.
    parked(sem, false, || unsafe { lock::wait(sem) })
}

/// Stands in for `sem_timedwait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn timed_wait(sem: *mut sem_t, deadline: *const timespec) -> c_int {
    // SAFETY: the caller's own arguments, unchanged.
    parked(sem, true, || unsafe { lock::timed_wait(sem, deadline) })
}

/// Stands in for `sem_clockwait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn clock_wait(
    sem: *mut sem_t,
    clock: clockid_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's own arguments, unchanged.
    parked(sem, true, || unsafe { lock::clock_wait(sem, clock, deadline) })
}

/// Stands in for `sched_yield`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn yields() -> c_int {
    if !free_threaded::parks() {
        // SAFETY: it has no preconditions.
        return unsafe { libc::sched_yield() };
    }
    let now = clock::now_ticks();
    let before = LOOKING.get();
    let goes_on = before.count < LOOKS && before.is_near(now, LOOKS_APART_NS);
    let (since, count) = if goes_on { (before.since, before.count + 1) } else { (now, 1) };
    // SAFETY: it has no preconditions.
    let result = unsafe { libc::sched_yield() };
    LOOKING.set(Looking { since, until: clock::now_ticks(), count });
    result
}

/// Lets the thread sleep by `wait`, whose result it returns, and notes that.
#[inline]
fn parked(sem: *mut sem_t, is_timed: bool, wait: impl FnOnce() -> c_int) -> c_int {
    // Locks of the interpreter itself are mostly free (`HEAD_LOCK` up to 3.12).
    // SAFETY: `sem` is what the caller was called with: a semaphore.
    if !free_threaded::is_build() && keeping_errno(|| unsafe { try_wait(sem) }) == 0 {
        return 0;
    }
    if !are_told() {
        return wait();
    }
    keeping_errno(|| began(sem, is_timed));
    let result = wait();
    keeping_errno(|| ended(sem, result));
    result
}

fn began(sem: *mut sem_t, is_timed: bool) {
    // First of all: a thread that was never seen before has much to do.
    let now = clock::now_ticks();
    if let Some(thread) = thread::current() {
        place_of(&SLEPT_ON, sem).store(sem as usize, Relaxed);
        let (cause, of, address) = waited_for(sem as usize, is_timed);
        let looking = LOOKING.replace(Looking::NO);
        // The wait for a lock begins when it is not free, and not when the thread sleeps.
        let is_for_lock = matches!(cause, Cause::Object | Cause::Lock | Cause::Internal);
        let looked = is_for_lock && looking.is_near(now, PARKS_AFTER_NS);
        let at_ticks = if looked { looking.since } else { now };
        let (stack, lock) = (stacks::number(), number_of(address));
        thread.parks(ParkEntry::Began { at_ticks, cause, of, stack, lock });
    }
}

fn ended(sem: *mut sem_t, result: c_int) {
    let at_ticks = clock::now_ticks();
    // Asked again: the recording may have ended meanwhile, or have begun.
    if let Some(thread) = thread::current() {
        let entry = if result == 0 {
            // The stack first: whoever posts stores it first.
            let stack = take(&POSTED_IN, sem);
            let waker = take(&POSTED, sem);
            let stack = u16::try_from(stack).unwrap_or(0);
            took(&thread, sem);
            let ending = if waker & HAD_IT == 0 { Ending::Woken } else { Ending::LetGo };
            ParkEntry::Ended { at_ticks, ending, waker: waker & !HAD_IT, stack }
        } else {
            ParkEntry::Ended { at_ticks, ending: Ending::Alone, waker: 0, stack: 0 }
        };
        // With a GIL, posting where somebody has slept before costs no more than elsewhere, and others
        // may still sleep there.
        if free_threaded::is_build() {
            let slept_on = place_of(&SLEPT_ON, sem);
            let _ = slept_on.compare_exchange(sem as usize, 0, Relaxed, Relaxed);
        }
        thread.parks(entry);
    }
}

/// What a thread waits for that sleeps on the semaphore at `sem`: why, the type of the object if it
/// is known, and the address of what is waited for.
fn waited_for(sem: usize, is_timed: bool) -> (Cause, u8, usize) {
    let frame = &raw const sem as usize;
    let is_in_frame = (frame..frame + STACK_BYTES).contains(&sem);
    let [argument, address] = if is_in_frame {
        let words = (sem - 16) as *const [usize; 2];
        // SAFETY: the semaphore lies in the frame of a caller of this thread, and so do the two words
        // below it, above the frames of this library.
        unsafe { words.read_unaligned() }
    } else {
        [0, sem]
    };
    if !free_threaded::is_build() {
        return (Cause::OffGil, 0, address);
    }
    if !is_in_frame {
        return (Cause::Lock, 0, address);
    }
    if address == 0 {
        return (Cause::Internal, 0, 0);
    }
    if argument != 0 {
        let (cause, of) = objects::holder_of_lock(address);
        return (cause, of, address);
    }
    let state = thread_state();
    if state != 0 && (state..state + STATE_BYTES).contains(&address) {
        let of = if collecting::is_going_on(state) { COLLECTION } else { 0 };
        return (Cause::Pause, of, 0);
    }
    let runtime = RUNTIME[0].load(Relaxed)..RUNTIME[1].load(Relaxed);
    match (runtime.contains(&address), is_timed) {
        // `stop_the_world` looks again each millisecond whether all have stopped.
        (true, true) => (Cause::Stopping, 0, 0),
        (true, false) => (Cause::Internal, 0, address),
        (false, _) => (Cause::Event, 0, address),
    }
}

/// The thread state of the calling thread, 0 if it is detached from it.
fn thread_state() -> usize {
    let get = GET_STATE.load(Relaxed);
    if get == 0 {
        return 0;
    }
    // SAFETY: the function of this name takes nothing and returns a pointer, in every CPython since
    // 3.13; all it does is to read a variable of the thread.
    let get = unsafe { transmute::<usize, extern "C" fn() -> *const c_void>(get) };
    get() as usize
}

/// The number of a lock in a trace.
fn number_of(address: usize) -> u32 {
    let number = (hash(address) as u64 >> 32) as u32;
    if address == 0 { 0 } else { number.max(1) }
}

/// What is in a table of what posters of `sem` leave.
fn posted(sem: *mut sem_t, what: u32) -> u64 {
    // A semaphore is aligned to eight bytes. The highest bits of its address are lost, and it stays
    // one of very few.
    (sem as u64 >> 3) << POSTED_BITS | u64::from(what)
}

/// What the thread that has posted `sem` has left, once; 0 if that is not known.
fn take(table: &'static [AtomicU64; PLACES], sem: *mut sem_t) -> u32 {
    let place = place_of(table, sem);
    let found = place.load(Acquire);
    if found >> POSTED_BITS != posted(sem, 0) >> POSTED_BITS {
        return 0;
    }
    // If another thread has overwritten it meanwhile, that is of another semaphore.
    let _ = place.compare_exchange(found, 0, Relaxed, Relaxed);
    (found & ((1 << POSTED_BITS) - 1)) as u32
}
