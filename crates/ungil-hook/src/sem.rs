//! CPython 2.7: what the calls on semaphores say about the GIL, which is one of them.
//!
//! `PyEval_InitThreads` (`Python/ceval.c`) makes the semaphore when the first thread is started,
//! and takes it at once; in a child after fork `PyEval_ReInitThreads` makes it, then a second
//! lock, and takes the first. No other lock of the interpreter is made and at once taken with a
//! blocking call while a thread state is current. Every release of the GIL comes after
//! `PyThreadState_Swap(NULL)`, which confirms the guess.

use crate::interpreter::Interpreter;
use crate::{clock, gil, late, thread};
use libc::{c_int, c_uint, sem_t};
use std::cell::Cell;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// The GIL, or 0.
static GIL: AtomicUsize = AtomicUsize::new(0);
/// A semaphore that is the GIL if it is released without a current thread state.
static CANDIDATE: AtomicUsize = AtomicUsize::new(0);
static CURRENT_THREAD_STATE: AtomicPtr<AtomicUsize> = AtomicPtr::new(std::ptr::null_mut());
static TICKER: AtomicPtr<AtomicI32> = AtomicPtr::new(std::ptr::null_mut());
static CHECK_INTERVAL: AtomicPtr<AtomicI32> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// The semaphores that this thread made with its last two calls, the later one first, or 0.
    static JUST_MADE: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
    /// When this thread took the candidate.
    static CANDIDATE_TAKEN_TICKS: Cell<u64> = const { Cell::new(0) };
}

/// Finds the interpreter's variables that tell a release that a thread was made to do, because
/// its ticks ran out, from one of its own.
pub fn find_ticker(interpreter: &Interpreter) {
    let address = |name| interpreter.variable(name).map_or(0, |symbol| symbol.address);
    CURRENT_THREAD_STATE.store(address(c"_PyThreadState_Current") as *mut _, Relaxed);
    TICKER.store(address(c"_Py_Ticker") as *mut _, Relaxed);
    CHECK_INTERVAL.store(address(c"_Py_CheckInterval") as *mut _, Relaxed);
    // Those of an interpreter that was unloaded.
    GIL.store(0, Relaxed);
    CANDIDATE.store(0, Relaxed);
}

fn has_current_thread_state() -> bool {
    // SAFETY: null, or an aligned variable of the interpreter, which has called this function.
    unsafe { CURRENT_THREAD_STATE.load(Relaxed).as_ref() }
        .is_some_and(|state| state.load(Relaxed) != 0)
}

/// The evaluation loop refills the ticker right before it lets go of the GIL; any later
/// instruction has taken at least one tick.
fn ticks_ran_out() -> bool {
    // SAFETY: null, or an aligned variable of the interpreter, which has called this function.
    let ticker = unsafe { TICKER.load(Relaxed).as_ref() };
    // SAFETY: null, or another one of the same.
    let interval = unsafe { CHECK_INTERVAL.load(Relaxed).as_ref() };
    matches!((ticker, interval), (Some(ticker), Some(interval))
        if ticker.load(Relaxed) == interval.load(Relaxed))
}

/// Stands in for `sem_init`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn init(sem: *mut sem_t, shared: c_int, value: c_uint) -> c_int {
    JUST_MADE.set([sem as usize, JUST_MADE.get()[0]]);
    // SAFETY: the caller's own arguments, unchanged.
    unsafe { late::libc_sem_init(sem, shared, value) }
}

/// Stands in for `sem_wait`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn wait(sem: *mut sem_t) -> c_int {
    let just_made = JUST_MADE.take();
    if GIL.load(Relaxed) == sem as usize {
        // SAFETY: the caller's own argument, unchanged.
        return unsafe { take_gil(sem) };
    }
    // SAFETY: the caller's own argument, unchanged.
    let result = unsafe { libc::sem_wait(sem) };
    if result == 0 && GIL.load(Relaxed) == sem as usize {
        // It was recognised, by the release that ended this wait, while the thread slept.
        if let Some(thread) = thread::current() {
            thread.acquired(gil::main(), clock::now_ticks_after_others());
        }
    } else if result == 0 && just_made.contains(&(sem as usize)) && has_current_thread_state() {
        CANDIDATE_TAKEN_TICKS.set(clock::now_ticks_after_others());
        CANDIDATE.store(sem as usize, Relaxed);
    }
    result
}

/// # Safety
/// As `sem_wait`.
unsafe fn take_gil(sem: *mut sem_t) -> c_int {
    let gil = gil::main();
    // SAFETY: as the caller promised. Trying first tells a wait from a free GIL.
    let mut result = unsafe { libc::sem_trywait(sem) };
    if result != 0 {
        if let Some(thread) = thread::current() {
            thread.waits_for(gil);
        }
        // SAFETY: as the caller promised.
        result = unsafe { libc::sem_wait(sem) };
    }
    // Asked again: in a child after fork the holder may have created the table meanwhile.
    if result == 0
        && let Some(thread) = thread::current()
    {
        thread.acquired(gil, clock::now_ticks_after_others());
    }
    result
}

/// Stands in for `sem_post`.
///
/// # Safety
/// As for the function itself.
pub unsafe extern "C" fn post(sem: *mut sem_t) -> c_int {
    JUST_MADE.take();
    if CANDIDATE.load(Relaxed) == sem as usize {
        CANDIDATE.store(0, Relaxed);
        if !has_current_thread_state() {
            // Before others can know the GIL: a child creates its table here, and whoever came
            // meanwhile would find none.
            let thread = thread::current();
            if GIL.swap(sem as usize, Relaxed) == 0 {
                gil::add(sem as usize);
            }
            if let Some(thread) = thread {
                thread.acquired_before(gil::main(), CANDIDATE_TAKEN_TICKS.get());
            }
        }
    }
    if GIL.load(Relaxed) == sem as usize
        && let Some(thread) = thread::current()
    {
        thread.released(gil::main(), clock::now_ticks(), ticks_ran_out());
    }
    // SAFETY: the caller's own argument, unchanged.
    unsafe { libc::sem_post(sem) }
}
