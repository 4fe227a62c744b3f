//! What the task that is being driven waits for: left here by a primitive that yields, found by the
//! loop that it yields to.

use std::cell::{Cell, RefCell};

use super::want::{Belongs, Want};

thread_local! {
    /// The number of the loop that drives tasks in this thread, or 0.
    static LOOP: Cell<u64> = const { Cell::new(0) };
    static WANT: RefCell<Option<Want>> = const { RefCell::new(None) };
    /// How many operations the task may do before others have their turn.
    static LEFT: Cell<u32> = const { Cell::new(OPERATIONS) };
}

/// So many operations a task may do without a wait.
const OPERATIONS: u32 = 64;

/// The loop that drives the task which calls this, if there is one in this thread.
pub fn driver() -> Option<u64> {
    let number = LOOP.get();
    (number != 0).then_some(number)
}

/// Whose a descriptor of ours is to the loop that drives this thread, of which `kept_by` says that
/// it has seen it before; it has from now on.
pub fn belongs(kept_by: &mut u64) -> Belongs {
    let Some(driver) = driver() else { return Belongs::User };
    if std::mem::replace(kept_by, driver) == driver { Belongs::Kept } else { Belongs::New }
}

/// Leaves what the calling primitive wants.
pub fn leave(want: Want) {
    WANT.set(Some(want));
}

/// What was left since the last time.
pub fn take() -> Option<Want> {
    LEFT.set(OPERATIONS);
    WANT.take()
}

/// Whether the task may have the result of an operation at once, or has to yield first. A peer that
/// always has more to say would otherwise keep all others waiting.
pub fn may_go_on() -> bool {
    let left = LEFT.get();
    LEFT.set(left.checked_sub(1).unwrap_or(OPERATIONS));
    left > 0
}

/// As long as it lives, a loop drives tasks in this thread.
#[derive(Debug)]
pub struct Driving {
    before: u64,
}

impl Driving {
    /// The loop with this number, which is not 0, does so.
    pub fn begin(number: u64) -> Self {
        Self { before: LOOP.replace(number) }
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        LOOP.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_want_is_found_once() {
        assert!(take().is_none());
        leave(Want::Sleep(1));
        leave(Want::Sleep(2));
        assert!(matches!(take(), Some(Want::Sleep(2))));
        assert!(take().is_none());
    }

    #[test]
    fn a_task_that_never_waits_lets_others_go_first_at_times() {
        take();
        for _ in 0..2 {
            let at_once = (0..OPERATIONS).filter(|_| may_go_on()).count();
            assert_eq!(at_once, OPERATIONS as usize);
            assert!(!may_go_on());
        }
        may_go_on();
        take();
        assert!((0..OPERATIONS).all(|_| may_go_on()), "a wait begins the count again");
    }

    #[test]
    fn a_descriptor_is_new_to_each_loop_once_and_is_the_users_without_a_loop() {
        let mut kept_by = 0;
        assert_eq!(belongs(&mut kept_by), Belongs::User);
        {
            let _outer = Driving::begin(7);
            assert_eq!(driver(), Some(7));
            assert_eq!(belongs(&mut kept_by), Belongs::New);
            assert_eq!(belongs(&mut kept_by), Belongs::Kept);
            {
                let _inner = Driving::begin(8);
                assert_eq!(belongs(&mut kept_by), Belongs::New);
            }
            assert_eq!(driver(), Some(7));
            assert_eq!(belongs(&mut kept_by), Belongs::New);
        }
        assert_eq!(driver(), None);
    }
}
