//! The waiting threads in the order of their rank: a pairing heap (Fredman, Sedgewick, Sleator
//! and Tarjan, 1986) whose nodes lie on the stacks of the waiting threads, so that it needs no
//! memory of its own and has no limit. Equal ranks leave in the order in which they came.

use super::account::Standing;
use crate::atomic::AtomicU32;
use std::cell::Cell;
use std::ptr::null;

/// One waiting thread. It must stay where it is while it is queued.
#[derive(Debug)]
pub struct Waiter {
    /// What the thread sleeps on.
    pub word: AtomicU32,
    /// When its timer wakes it; `u64::MAX` if it has none, 0 if it has not slept yet.
    pub wakes_at_ns: Cell<u64>,
    standing: Cell<Standing>,
    arrival: Cell<u64>,
    child: Cell<*const Waiter>,
    next: Cell<*const Waiter>,
    /// The sibling before, or the parent of a first child; null for the root.
    previous: Cell<*const Waiter>,
}

impl Waiter {
    /// A thread that is not queued yet.
    pub fn new(standing: Standing) -> Self {
        Self {
            word: AtomicU32::new(0),
            wakes_at_ns: Cell::new(0),
            standing: Cell::new(standing),
            arrival: Cell::new(0),
            child: Cell::new(null()),
            next: Cell::new(null()),
            previous: Cell::new(null()),
        }
    }

    /// Its place.
    pub fn standing(&self) -> Standing {
        self.standing.get()
    }

    /// Gives a thread that is not queued another place.
    pub fn set_standing(&self, standing: Standing) {
        self.standing.set(standing);
    }

    fn goes_before(&self, other: &Self) -> bool {
        self.order() < other.order()
    }

    fn order(&self) -> (u64, u64, u64) {
        let standing = self.standing.get();
        (standing.rank, standing.since_ns, self.arrival.get())
    }
}

/// A heap of waiters. Everything in it is guarded by the mutex of the GIL it belongs to.
#[derive(Debug)]
pub struct Queue {
    root: Cell<*const Waiter>,
    weight: Cell<u64>,
    arrivals: Cell<u64>,
}

impl Default for Queue {
    fn default() -> Self {
        Self::new()
    }
}

impl Queue {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { root: Cell::new(null()), weight: Cell::new(0), arrivals: Cell::new(0) }
    }

    /// The weights of all that wait, in sum.
    pub fn weight(&self) -> u64 {
        self.weight.get()
    }

    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root.get().is_null()
    }

    /// Forgets everybody, in a child after fork.
    pub fn clear(&self) {
        self.root.set(null());
        self.weight.set(0);
    }

    /// The waiter that goes first.
    pub fn first(&self) -> Option<&Waiter> {
        // SAFETY: whoever is queued stays where it is until it has left (contract of `insert`).
        unsafe { self.root.get().as_ref() }
    }

    /// Whether a waiter is queued that sleeps on `word`.
    #[cfg(test)]
    pub(super) fn has(&self, word: *const AtomicU32) -> bool {
        let mut left = vec![self.root.get()];
        while let Some(waiter) = left.pop() {
            // SAFETY: the waiters that a queued one leads to are queued, so alive.
            if let Some(waiter) = unsafe { waiter.as_ref() } {
                if std::ptr::eq(&raw const waiter.word, word) {
                    return true;
                }
                left.extend([waiter.child.get(), waiter.next.get()]);
            }
        }
        false
    }

    /// Queues `waiter`.
    ///
    /// # Safety
    /// It is in no queue, and stays alive and in place until it was removed or popped.
    pub unsafe fn insert(&self, waiter: &Waiter) {
        self.arrivals.set(self.arrivals.get() + 1);
        waiter.arrival.set(self.arrivals.get());
        self.weight.set(self.weight.get() + waiter.standing().weight());
        // SAFETY: both are heaps of live waiters.
        self.root.set(unsafe { meld(self.root.get(), waiter) });
    }

    /// Takes out the waiter that goes first.
    pub fn pop(&self) -> Option<&Waiter> {
        let first = self.first()?;
        self.weight.set(self.weight.get() - first.standing().weight());
        // SAFETY: the children of a queued waiter are queued.
        self.root.set(unsafe { meld_siblings(first.child.replace(null())) });
        Some(first)
    }

    /// Takes out `waiter`.
    ///
    /// # Safety
    /// It is in this queue.
    pub unsafe fn remove(&self, waiter: &Waiter) {
        if std::ptr::eq(self.root.get(), waiter) {
            self.pop();
            return;
        }
        self.weight.set(self.weight.get() - waiter.standing().weight());
        let next = waiter.next.replace(null());
        let previous = waiter.previous.replace(null());
        // SAFETY: the neighbours of a queued waiter are queued, so alive; only the root has no
        // previous one. The children become a heap of their own.
        unsafe {
            if std::ptr::eq((*previous).child.get(), waiter) {
                (*previous).child.set(next);
            } else {
                (*previous).next.set(next);
            }
            if let Some(next) = next.as_ref() {
                next.previous.set(previous);
            }
            let children = meld_siblings(waiter.child.replace(null()));
            self.root.set(meld(self.root.get(), children));
        }
    }
}

/// The heap of both: the later root becomes the first child of the earlier one.
///
/// # Safety
/// Each is null or a root without siblings, of live waiters.
unsafe fn meld(one: *const Waiter, other: *const Waiter) -> *const Waiter {
    // SAFETY: the caller's promise.
    let (Some(a), Some(b)) = (unsafe { one.as_ref() }, unsafe { other.as_ref() }) else {
        return if one.is_null() { other } else { one };
    };
    let (root, child) = if b.goes_before(a) { (b, a) } else { (a, b) };
    child.next.set(root.child.get());
    child.previous.set(root);
    // SAFETY: a child of a live waiter is alive.
    if let Some(second) = unsafe { root.child.get().as_ref() } {
        second.previous.set(child);
    }
    root.child.set(child);
    root
}

/// One heap of `first` and all its siblings: pairs from the left, then all from the right.
///
/// # Safety
/// Null or a first child that has no parent any more, with its siblings, all alive.
unsafe fn meld_siblings(mut first: *const Waiter) -> *const Waiter {
    let mut pairs: *const Waiter = null();
    // SAFETY: the caller's promise covers every waiter that is reached here.
    unsafe {
        while let Some(a) = first.as_ref() {
            let b = a.next.replace(null());
            a.previous.set(null());
            first = match b.as_ref() {
                Some(b) => {
                    b.previous.set(null());
                    b.next.replace(null())
                }
                None => null(),
            };
            let pair = meld(a, b);
            (*pair).next.set(pairs);
            pairs = pair;
        }
        let mut heap: *const Waiter = null();
        while let Some(pair) = pairs.as_ref() {
            pairs = pair.next.replace(null());
            heap = meld(heap, pair);
        }
        heap
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Pop,
        Remove(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u64..8).prop_map(Step::Insert),
            2 => Just(Step::Pop),
            1 => any::<prop::sample::Index>().prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn waiters_leave_by_rank_and_among_equals_as_they_came(
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let queue = Queue::new();
            // The naive model: a list in the order of arrival.
            let mut model: Vec<Box<Waiter>> = Vec::new();
            let mut gone = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(rank) => {
                        let waiter = Box::new(Waiter::new(Standing::ranked(rank)));
                        // SAFETY: new, and on the heap, kept until the end of the test.
                        unsafe { queue.insert(&waiter) };
                        model.push(waiter);
                    }
                    Step::Pop => {
                        let expected = (0..model.len()).min_by_key(|&i| (model[i].standing().rank, i));
                        let popped = queue.pop().map(std::ptr::from_ref);
                        prop_assert_eq!(popped, expected.map(|i| &raw const *model[i]));
                        gone.extend(expected.map(|i| model.remove(i)));
                    }
                    Step::Remove(index) => if !model.is_empty() {
                        let waiter = model.remove(index.index(model.len()));
                        // SAFETY: the model holds exactly what is queued.
                        unsafe { queue.remove(&waiter) };
                        gone.push(waiter);
                    }
                }
                let weights = model.iter().map(|waiter| waiter.standing().weight());
                prop_assert_eq!(queue.weight(), weights.sum::<u64>());
            }
        }
    }
}
