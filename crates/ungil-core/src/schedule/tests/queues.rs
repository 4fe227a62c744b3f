//! Locks, conditions and queues of a simulated program, as CPython's `threading` and `queue` make
//! them: a lock is a semaphore, whose waiters sleep without the GIL and look again when they have
//! woken, so that another may take it first.

use super::simulation::Here;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// What one operation on a queue takes, with its mutex if it has one, beside what it waits for.
const OPERATION_NS: u64 = 10_000;

/// Who let go of a lock last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Posted {
    pub thread: usize,
    pub place_ns: u64,
}

#[derive(Debug, Default)]
struct Lock {
    is_free: bool,
    /// Whether threads let go only of what they have taken themselves.
    is_mutex: bool,
    sleepers: VecDeque<usize>,
    posted: Posted,
}

/// The locks of a program by their numbers.
#[derive(Debug, Default)]
pub struct Locks(RefCell<Vec<Lock>>);

impl Locks {
    /// A mutex, or a lock that is taken from the beginning and that another thread lets go of.
    pub fn add(&self, is_mutex: bool) -> usize {
        let mut all = self.0.borrow_mut();
        all.push(Lock { is_free: is_mutex, is_mutex, ..Lock::default() });
        all.len() - 1
    }

    fn take_if_free(&self, here: &Here<'_>, lock: usize) -> bool {
        let all = &mut self.0.borrow_mut()[lock];
        let has_it = std::mem::take(&mut all.is_free);
        if has_it && all.is_mutex {
            here.mutexes.borrow_mut().push(lock);
            here.mutexes_taken.set(here.mutexes_taken.get() + 1);
        }
        has_it
    }

    /// Waits for `lock` with the GIL, which it lets go of if that takes long. Returns whether it
    /// was there in time.
    pub fn take(&self, here: &Here<'_>, lock: usize, within_ns: Option<u64>) -> bool {
        if self.take_if_free(here, lock) {
            return true;
        }
        if self.0.borrow()[lock].is_mutex {
            here.world.lined_up.set(here.world.lined_up.get() + 1);
        }
        here.drop_gil();
        let has_it = loop {
            self.0.borrow_mut()[lock].sleepers.push_back(here.number);
            here.pause(within_ns);
            // Nobody has taken it from the sleepers if it was the time that woke it.
            let mut all = self.0.borrow_mut();
            let sleepers = &mut all[lock].sleepers;
            let count = sleepers.len();
            sleepers.retain(|sleeper| *sleeper != here.number);
            let is_late = within_ns.is_some() && sleepers.len() < count;
            let posted = all[lock].posted;
            drop(all);
            if self.take_if_free(here, lock) {
                here.was_woken(posted);
                break true;
            }
            if is_late {
                break false;
            }
        };
        here.take_gil();
        has_it
    }

    pub fn post(&self, here: &Here<'_>, lock: usize) {
        here.mutexes.borrow_mut().retain(|mutex| *mutex != lock);
        let mut all = self.0.borrow_mut();
        let lock = &mut all[lock];
        lock.is_free = true;
        lock.posted = here.posted();
        if let Some(sleeper) = lock.sleepers.pop_front() {
            here.world.schedule(sleeper, here.world.wake_ns);
        }
    }
}

/// `queue.Queue`: a mutex, and a lock of its own for each thread that waits for items or for room.
/// `queue.SimpleQueue` has neither mutex nor limit.
#[derive(Debug)]
pub struct Queue {
    room: Option<usize>,
    mutex: usize,
    items: Cell<usize>,
    not_empty: RefCell<VecDeque<usize>>,
    not_full: RefCell<VecDeque<usize>>,
}

impl Queue {
    pub fn new(locks: &Locks, room: Option<usize>) -> Self {
        Self {
            room,
            mutex: locks.add(true),
            items: Cell::new(0),
            not_empty: RefCell::default(),
            not_full: RefCell::default(),
        }
    }

    pub fn put(&self, here: &Here<'_>) {
        self.enter(here);
        while self.room == Some(self.items.get()) {
            self.wait(here, &self.not_full, None);
        }
        self.items.set(self.items.get() + 1);
        Self::notify(here, &self.not_empty);
        self.leave(here);
    }

    pub fn get(&self, here: &Here<'_>, within_ns: Option<u64>) {
        self.enter(here);
        let mut is_in_time = true;
        while self.items.get() == 0 && is_in_time {
            is_in_time = self.wait(here, &self.not_empty, within_ns);
        }
        if self.items.get() > 0 {
            self.items.set(self.items.get() - 1);
            Self::notify(here, &self.not_full);
        }
        self.leave(here);
    }

    fn enter(&self, here: &Here<'_>) {
        if self.room.is_some() {
            here.world.locks.take(here, self.mutex, None);
        }
        here.compute(OPERATION_NS / 2, true);
    }

    fn leave(&self, here: &Here<'_>) {
        here.compute(OPERATION_NS / 2, true);
        if self.room.is_some() {
            here.world.locks.post(here, self.mutex);
        }
    }

    /// `Condition.wait`. Returns whether it was notified in time.
    fn wait(
        &self,
        here: &Here<'_>,
        waiters: &RefCell<VecDeque<usize>>,
        within_ns: Option<u64>,
    ) -> bool {
        let locks = &here.world.locks;
        let own = locks.add(false);
        waiters.borrow_mut().push_back(own);
        if self.room.is_some() {
            locks.post(here, self.mutex);
        }
        let was_notified = locks.take(here, own, within_ns);
        waiters.borrow_mut().retain(|waiter| *waiter != own);
        if self.room.is_some() {
            locks.take(here, self.mutex, None);
        }
        was_notified
    }

    fn notify(here: &Here<'_>, waiters: &RefCell<VecDeque<usize>>) {
        let first = waiters.borrow_mut().pop_front();
        if let Some(first) = first {
            here.world.locks.post(here, first);
        }
    }
}
