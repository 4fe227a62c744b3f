//! Which of the interpreter's locks a thread has.

use std::cell::Cell;

/// How many are remembered.
const REMEMBERED: usize = 4;

/// The locks that a thread has taken and not let go of, as a stack.
pub struct Taken {
    addresses: [Cell<usize>; REMEMBERED],
    count: Cell<usize>,
    /// Goes up with each lock.
    number: Cell<u32>,
}

impl Taken {
    /// None.
    pub const fn new() -> Self {
        Self {
            addresses: [const { Cell::new(0) }; REMEMBERED],
            count: Cell::new(0),
            number: Cell::new(0),
        }
    }

    /// The thread has taken the lock at `address`.
    #[inline]
    pub fn push(&self, address: usize) {
        let count = self.count.get();
        // They are held for long, or were let go of by others.
        let index = if count == REMEMBERED { 0 } else { count };
        self.addresses[index].set(address);
        self.count.set(index + 1);
        self.number.set(self.number.get().wrapping_add(1));
    }

    /// Forgets the one that was taken last, if it is that at `address`, and says whether it was.
    #[inline]
    pub fn pop_last(&self, address: usize) -> bool {
        let count = self.count.get();
        let is_last = count > 0 && self.addresses[count - 1].get() == address;
        if is_last {
            self.count.set(count - 1);
        }
        is_last
    }

    /// Forgets the one at `address`, and what was taken later: `Condition.wait` takes the lock on
    /// which it will sleep, then lets go of the condition's.
    pub fn pop(&self, address: usize) {
        let mut taken = self.addresses[..self.count.get()].iter();
        if let Some(index) = taken.rposition(|taken| taken.get() == address) {
            self.count.set(index);
        }
    }

    /// A number for the last one, if there is any: another one each time.
    pub fn number(&self) -> Option<u32> {
        (self.count.get() > 0).then(|| self.number.get())
    }

    /// Forgets all.
    pub fn forget(&self) {
        self.count.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of `Condition.wait` and of what a thread does around it.
    #[test]
    fn a_condition_that_is_left_takes_the_lock_to_sleep_on_with_it() {
        let (taken, condition, own) = (Taken::new(), 16, 32);
        taken.push(condition);
        let number = taken.number();
        assert!(number.is_some());
        taken.push(own);
        assert_ne!(taken.number(), number);
        assert!(!taken.pop_last(condition));
        taken.pop(condition);
        assert_eq!(taken.number(), None);
        taken.push(condition);
        assert!(taken.number().is_some() && taken.number() != number);
        assert!(taken.pop_last(condition));
        assert_eq!(taken.number(), None);
    }

    #[test]
    fn a_lock_of_another_is_not_among_them() {
        let taken = Taken::new();
        taken.push(16);
        taken.pop(32);
        assert!(!taken.pop_last(32));
        assert!(taken.pop_last(16));
    }

    #[test]
    fn those_that_are_never_let_go_of_make_room() {
        let taken = Taken::new();
        for address in 1..=3 * REMEMBERED {
            taken.push(address);
            taken.push(100);
            assert!(taken.pop_last(100), "{address}");
        }
        taken.forget();
        assert_eq!(taken.number(), None);
    }
}
