//! Reading without a lock what others change under one: a version that is odd during a change.
//!
//! Who changes something holds its lock, so that there is one at a time. The version does not mind
//! a writer that dies: it stays odd until another one has the lock, has undone the change and
//! finished one of its own.

use crate::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

use crate::mutation;

/// How often a reader tries.
const TRIES: u32 = if cfg!(loom) { 2 } else { 16 };

/// A change begins: the caller has the lock.
#[inline]
pub fn begin(version: &AtomicU32) {
    // Odd already: the last writer died. No reader has accepted that version.
    version.store(version.load(Relaxed) | 1, Relaxed);
    // With the reader's fence: who sees a word of the change sees the odd version, or a later one.
    if !mutation::is("version: odd before the change") {
        fence(Release);
    }
}

/// A change has ended, before the lock is released.
#[inline]
pub fn end(version: &AtomicU32) {
    // Release: who sees this version sees the whole change.
    let order = if mutation::is("version: the change is seen") { Relaxed } else { Release };
    version.store((version.load(Relaxed) | 1).wrapping_add(1), order);
}

/// What `look` sees while nothing changes; `None` if something does, or its writer died.
///
/// It is called at one place, so that it becomes a part of its caller: a quarter of the time of a
/// short read is lost otherwise.
#[inline]
pub fn glance<T>(version: &AtomicU32, look: impl FnOnce() -> T) -> Option<T> {
    let before = version.load(Acquire);
    if before & 1 == 1 {
        return None;
    }
    let seen = look();
    fence(Acquire);
    let is_same = version.load(Relaxed) == before || mutation::is("glance: a second look");
    is_same.then_some(seen)
}

/// As above; `None` if there was no such moment soon.
pub fn read<T>(version: &AtomicU32, mut look: impl FnMut() -> T) -> Option<T> {
    for _ in 0..TRIES {
        if let Some(seen) = glance(version, &mut look) {
            return Some(seen);
        }
        std::hint::spin_loop();
    }
    None
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::atomic::AtomicU64;

    // Fails without either fence, and if `end` stores with `Relaxed`.
    #[test]
    fn a_reader_never_accepts_half_of_a_change() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let shared = Arc::new((AtomicU32::new(0), AtomicU64::new(0), AtomicU64::new(0)));
            let writer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (version, left, right) = &*shared;
                    for value in 1..=2 {
                        begin(version);
                        left.store(value, Relaxed);
                        right.store(value, Relaxed);
                        end(version);
                    }
                })
            };
            let (version, left, right) = &*shared;
            if let Some((left, right)) = read(version, || (left.load(Relaxed), right.load(Relaxed)))
            {
                assert_eq!(left, right);
            }
            writer.join().unwrap();
        });
    }
}
