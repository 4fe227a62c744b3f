//! Whether garbage is being collected, which is the usual reason for stopping the world.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};
use ungil_core::debug_offsets::DebugOffsets;

/// From a thread state to the address of its interpreter, and from there to `gc.collecting`; 0 if
/// they are not known.
static TO_INTERPRETER: AtomicUsize = AtomicUsize::new(0);
static TO_COLLECTING: AtomicUsize = AtomicUsize::new(0);

/// Takes note of where that is told.
pub fn prepare(offsets: Option<&DebugOffsets>) {
    TO_COLLECTING.store(offsets.map_or(0, |it| it.gc + it.gc_collecting), Relaxed);
    TO_INTERPRETER.store(offsets.map_or(0, |it| it.thread_interpreter), Relaxed);
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
