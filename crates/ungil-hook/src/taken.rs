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

    /// The thread has taken the lock at `address`. If it had that already, somebody else has let go
    /// of it: a signal, which nobody has.
    #[inline]
    pub fn push(&self, address: usize) {
        let count = self.count.get();
        if count > 0 && self.pop(address) {
            return;
        }
        // They are held for long, or were let go of by others.
        let index = if count == REMEMBERED { 0 } else { count };
        self.addresses[index].set(address);
        self.count.set(index + 1);
        self.number.set(self.number.get().wrapping_add(1));
    }

    /// Forgets the one at `address`, and says whether it was there.
    #[inline]
    pub fn pop(&self, address: usize) -> bool {
        let count = self.count.get();
        let Some(last) = count.checked_sub(1) else { return false };
        if self.addresses[last].get() == address {
            self.count.set(last);
            return true;
        }
        self.pop_from_below(address)
    }

    #[cold]
    fn pop_from_below(&self, address: usize) -> bool {
        let taken = &self.addresses[..self.count.get()];
        let Some(index) = taken.iter().rposition(|taken| taken.get() == address) else {
            return false;
        };
        for (place, next) in taken[index..].iter().zip(&taken[index + 1..]) {
            place.set(next.get());
        }
        self.count.set(taken.len() - 1);
        true
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

    #[test]
    fn each_time_a_lock_is_taken_has_another_number() {
        let taken = Taken::new();
        taken.push(16);
        let number = taken.number();
        assert!(number.is_some());
        assert!(taken.pop(16));
        assert_eq!(taken.number(), None);
        taken.push(16);
        assert!(taken.number().is_some() && taken.number() != number);
    }

    #[test]
    fn locks_may_be_let_go_of_in_any_order() {
        let taken = Taken::new();
        for address in [16, 32, 48] {
            taken.push(address);
        }
        assert!(taken.pop(16));
        assert!(taken.pop(48));
        assert!(taken.number().is_some());
        assert!(taken.pop(32));
        assert_eq!(taken.number(), None);
    }

    /// The steps of `Condition.wait`, whose thread is told before it sleeps.
    #[test]
    fn a_lock_that_is_taken_twice_is_a_signal() {
        let (taken, condition, own) = (Taken::new(), 16, 32);
        taken.push(condition);
        taken.push(own);
        assert!(taken.pop(condition));
        taken.push(own);
        assert_eq!(taken.number(), None);
    }

    #[test]
    fn a_lock_of_another_is_not_among_them() {
        let taken = Taken::new();
        taken.push(16);
        assert!(!taken.pop(32));
        assert!(taken.pop(16));
        assert!(!taken.pop(16));
    }

    #[test]
    fn those_that_are_never_let_go_of_make_room() {
        let taken = Taken::new();
        for address in 1..=3 * REMEMBERED {
            taken.push(address);
            taken.push(100);
            assert!(taken.pop(100), "{address}");
        }
        taken.forget();
        assert_eq!(taken.number(), None);
    }
}
