//! The bits of a slab: taken and freed by anybody with one instruction each, while the slab itself
//! may become something else.
//!
//! Who takes a bit sets it and looks at the slab's state then. Who retires the slab changes the
//! state and looks at the bits then. So at least one of the two sees the other.

use crate::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
    in_total_order,
};
use crate::{fault, mutation};

/// Sets a clear bit of the first `count`, looking from word `from` on, as long as `state` is `slab`.
#[inline]
pub fn take(
    state: &AtomicU64,
    slab: u64,
    bitmap: &[AtomicU64],
    count: usize,
    from: usize,
) -> Option<usize> {
    if state.load(Relaxed) != slab {
        return None;
    }
    for index in (from..bitmap.len()).chain(0..from.min(bitmap.len())) {
        let word = &bitmap[index];
        let mut seen = word.load(Relaxed);
        loop {
            let bit = (!seen).trailing_zeros() as usize;
            let number = index * 64 + bit;
            if bit == 64 || number >= count {
                break;
            }
            seen = word.fetch_or(1 << bit, SeqCst);
            if seen >> bit & 1 == 1 {
                continue;
            }
            fault::point("slab: bit set");
            in_total_order();
            if state.load(SeqCst) == slab || mutation::is("take: a second look") {
                return Some(number);
            }
            // Nobody else clears it: it never stood for a block.
            word.fetch_and(!(1 << bit), SeqCst);
            return None;
        }
    }
    None
}

/// Whether a block of the slab can be taken: who has a block finds the chunk to be `slab`, or for a
/// moment `retiring`, as somebody tries in vain to retire it.
#[inline]
pub fn is_in_use(state: &AtomicU64, slab: u64, retiring: u64) -> bool {
    let state = state.load(Relaxed);
    state == slab || state == retiring && !mutation::is("free: retiring is in use")
}

/// Clears a bit; false: it was clear.
#[inline]
pub fn free(word: &AtomicU64, mask: u64) -> bool {
    let order = if mutation::is("free: what was written is seen") { Relaxed } else { SeqCst };
    word.fetch_and(!mask, order) & mask != 0
}

/// Makes the state `free` if no bit is set; else it stays `slab`. Meanwhile it is `retiring`, so
/// that nobody takes a bit. One thread at a time does this.
pub fn retire(
    state: &AtomicU64,
    (slab, retiring, free): (u64, u64, u64),
    bitmap: &[AtomicU64],
) -> bool {
    if state.compare_exchange(slab, retiring, SeqCst, Relaxed).is_err() {
        return false;
    }
    if mutation::is("retire: nobody takes") {
        state.store(slab, SeqCst);
    }
    fault::point("slab: retiring");
    in_total_order();
    let is_empty = bitmap.iter().all(|word| word.load(SeqCst) == 0);
    state.store(if is_empty { free } else { slab }, SeqCst);
    fault::point("slab: retired");
    is_empty
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    const FREE: u64 = 0;
    const SLAB: u64 = 1;
    const RETIRING: u64 = 2;
    const OTHER: u64 = 3;

    fn slab() -> Arc<(AtomicU64, [AtomicU64; 1])> {
        Arc::new((AtomicU64::new(SLAB), [AtomicU64::new(0)]))
    }

    #[test]
    fn two_never_get_the_same_block() {
        loom::model(|| {
            let shared = slab();
            let take = |shared: &(AtomicU64, [AtomicU64; 1])| {
                take(&shared.0, SLAB, &shared.1, 2, 0).expect("there are two")
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || take(&shared))
            };
            let mine = take(&shared);
            assert_ne!(mine, other.join().unwrap());
        });
    }

    // Fails if `take` does not look at the state again.
    #[test]
    fn a_slab_with_a_block_taken_is_not_used_for_something_else() {
        loom::model(|| {
            let shared = slab();
            let taker = {
                let shared = shared.clone();
                thread::spawn(move || take(&shared.0, SLAB, &shared.1, 64, 0).is_some())
            };
            let (state, bitmap) = &*shared;
            let retired = retire(state, (SLAB, RETIRING, FREE), bitmap);
            if retired {
                state.store(OTHER, SeqCst);
            }
            let taken = taker.join().unwrap();
            assert!(!(taken && retired), "a block of a chunk that is no slab any more is taken");
            assert_eq!(bitmap[0].load(SeqCst), u64::from(taken), "a bit is left set");
        });
    }

    // Fails if `is_in_use` knows only `slab`.
    #[test]
    fn who_has_a_block_can_free_it_whatever_others_try_to_retire() {
        loom::model(|| {
            let shared = slab();
            let mine = take(&shared.0, SLAB, &shared.1, 64, 0).expect("it is empty");
            let retirer = {
                let shared = shared.clone();
                thread::spawn(move || retire(&shared.0, (SLAB, RETIRING, FREE), &shared.1))
            };
            assert!(is_in_use(&shared.0, SLAB, RETIRING), "the chunk of a block is no slab");
            assert!(free(&shared.1[0], 1 << mine), "it was freed behind our back");
            let retired = retirer.join().unwrap();
            assert_eq!(shared.0.load(SeqCst), if retired { FREE } else { SLAB });
        });
    }

    #[test]
    fn what_is_freed_can_be_taken_while_another_retires() {
        loom::model(|| {
            let shared = slab();
            let mine = take(&shared.0, SLAB, &shared.1, 64, 0).expect("it is empty");
            let retirer = {
                let shared = shared.clone();
                thread::spawn(move || retire(&shared.0, (SLAB, RETIRING, FREE), &shared.1))
            };
            assert!(free(&shared.1[0], 1 << mine), "it was freed behind our back");
            let again = take(&shared.0, SLAB, &shared.1, 64, 0);
            assert!(!(retirer.join().unwrap() && again.is_some()));
        });
    }
}
