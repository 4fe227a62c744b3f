//! How those who change the heap and the one who wants it to stand still take note of each other.
//!
//! A thread says that it is busy and looks at the gate then. The collector closes the gate and looks
//! at the threads then. So at least one of the two sees the other.

use crate::atomic::{AtomicU32, Ordering::SeqCst, in_total_order};
use crate::mutation;

/// No operation is under way: the log is of no interest.
pub const IDLE: u32 = 0;
/// An operation is under way: the log undoes it, and the collector waits for it.
pub const BUSY: u32 = 1;
/// The operation has happened and is cleaning up: the collector waits for it still.
pub const DONE: u32 = 2;

/// Makes a thread busy, unless the gate is closed.
#[inline]
pub fn enter(state: &AtomicU32, gate: &AtomicU32) -> bool {
    if mutation::is("enter: busy first") {
        let is_open = gate.load(SeqCst) == 0;
        state.swap(if is_open { BUSY } else { IDLE }, SeqCst);
        return is_open;
    }
    state.swap(BUSY, SeqCst);
    in_total_order();
    if gate.load(SeqCst) == 0 || mutation::is("enter: a look at the gate") {
        return true;
    }
    state.store(IDLE, SeqCst);
    false
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::atomic::Ordering::{Relaxed, Release};

    // Fails if `enter` looks at the gate first.
    #[test]
    fn whoever_works_while_the_world_stands_still_was_seen() {
        loom::model(|| {
            let shared = Arc::new((AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0)));
            let worker = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (state, gate, data) = &*shared;
                    if enter(state, gate) {
                        data.store(1, Relaxed);
                        data.store(2, Relaxed);
                        state.store(IDLE, Release);
                    }
                })
            };
            let (state, gate, data) = &*shared;
            gate.swap(1, SeqCst);
            in_total_order();
            if state.load(SeqCst) == IDLE {
                let before = data.load(Relaxed);
                thread::yield_now();
                assert_eq!(data.load(Relaxed), before);
                assert_ne!(before, 1, "half of the work is seen");
            }
            worker.join().unwrap();
        });
    }
}
