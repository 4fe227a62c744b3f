//! Whether garbage is being collected, which is the usual reason for stopping the world.
//!
//! `_PyRuntime` begins with the offsets of fields for debuggers (`struct _Py_DebugOffsets` in
//! `Include/internal/pycore_runtime.h`), one word each. Their order is the same within a minor
//! version; that of 3.13 is known here.

use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};

/// `PY_VERSION_HEX` without its lower half.
const KNOWN_VERSION: u64 = 0x030d;
/// The places of these words.
const VERSION: usize = 1;
const INTERPRETER_GC: usize = 10;
const THREAD_INTERPRETER: usize = 22;
const GC_COLLECTING: usize = 72;
const WORDS: usize = 73;

/// From a thread state to the address of its interpreter, and from there to `gc.collecting`; 0 if
/// they are not known.
static TO_INTERPRETER: AtomicUsize = AtomicUsize::new(0);
static TO_COLLECTING: AtomicUsize = AtomicUsize::new(0);

/// Reads the offsets of the interpreter whose `_PyRuntime` is at these addresses.
pub fn prepare(runtime: &Range<usize>) {
    TO_INTERPRETER.store(0, Relaxed);
    if runtime.len() < WORDS * size_of::<u64>() {
        return;
    }
    // SAFETY: `runtime` is an object of at least so many words in a loaded image, aligned for them,
    // which are constants.
    let words = unsafe { &*(runtime.start as *const [u64; WORDS]) };
    if words[VERSION] >> 16 == KNOWN_VERSION {
        let offset = |place: usize| usize::try_from(words[place]).unwrap_or(0);
        TO_COLLECTING.store(offset(INTERPRETER_GC) + offset(GC_COLLECTING), Relaxed);
        TO_INTERPRETER.store(offset(THREAD_INTERPRETER), Relaxed);
    }
}

/// Whether the interpreter of the calling thread, whose state is at `state`, collects now.
pub fn is_going_on(state: usize) -> bool {
    let to_interpreter = TO_INTERPRETER.load(Relaxed);
    if to_interpreter == 0 {
        return false;
    }
    // SAFETY: a thread's own state is there, and has an aligned pointer at this offset.
    let interpreter = unsafe { *((state + to_interpreter) as *const usize) };
    // SAFETY: the interpreter is there as long as this thread is, and has an aligned int at this
    // offset, which others change.
    let collecting =
        unsafe { AtomicI32::from_ptr((interpreter + TO_COLLECTING.load(Relaxed)) as *mut i32) };
    collecting.load(Relaxed) == 1
}
