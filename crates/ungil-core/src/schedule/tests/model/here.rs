//! A thread, seen from inside: what it does of `take_gil` and `drop_gil`, and the hook's stand-ins.

use super::gil::{Gil, State};
use super::kernel::{Place, Woken};
use super::{MutexGuard, QUANTUM_NS};
use crate::atomic::{AtomicU32, Ordering::Relaxed};
use crate::schedule::{Account, Answer, Host, Policy, Settings, Waker};
use std::cell::{Cell, RefCell};

pub struct Here<'a> {
    gil: &'a Gil,
    number: usize,
    account: Cell<Account>,
    /// While the thread holds the GIL's mutex.
    state: RefCell<Option<MutexGuard<'a, State>>>,
    slept_on: Cell<*const AtomicU32>,
    /// Whether it was forced to let go, and has not had the GIL since.
    was_forced: Cell<bool>,
    /// Whether it was spared, and takes the GIL back.
    takes_back: Cell<bool>,
    /// The number of the lock that it took last, and whether it still has it.
    lock_number: Cell<u32>,
    has_lock: Cell<bool>,
}

impl<'a> Here<'a> {
    pub fn new(gil: &'a Gil, number: usize) -> Self {
        Self {
            gil,
            number,
            account: Cell::new(Account::new()),
            state: RefCell::new(None),
            slept_on: Cell::new(std::ptr::null()),
            was_forced: Cell::new(false),
            takes_back: Cell::new(false),
            lock_number: Cell::new(0),
            has_lock: Cell::new(false),
        }
    }

    fn lock(&self) {
        *self.state.borrow_mut() = Some(self.gil.mutex.lock().unwrap());
    }

    fn unlock(&self) {
        drop(self.state.borrow_mut().take());
    }

    /// The hook's stand-in for `pthread_mutex_lock`.
    fn lock_gil(&self) {
        self.lock();
        let is_passed_by = if self.gil.line.is_spared() {
            !self.takes_back.get()
        } else {
            self.gil.line.is_granted() && self.was_forced.get()
        };
        if is_passed_by && !self.is_locked() {
            let settings = self.gil.settings();
            if settings.policy != Policy::Stock {
                self.wait_in_line(settings);
            }
        }
    }

    /// The hook's stand-in for `pthread_mutex_unlock`.
    fn unlock_gil(&self) {
        let to_wake = self.state(|state| state.to_wake.take());
        self.unlock();
        if let Some(word) = to_wake {
            self.gil.wake_one(Place::Word(word));
        }
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(self.state.borrow_mut().as_mut().expect("the mutex is held"))
    }

    /// Uses the GIL, and lets go in the middle if it was asked. Returns whether it came to that.
    /// Thread 1 computes, and lets go only if it is asked.
    pub fn work(&self) -> bool {
        if !self.take() {
            return false;
        }
        self.lock_number.set(self.lock_number.get() + 1);
        for has_lock in [self.gil.has_locks, false] {
            self.has_lock.set(has_lock);
            *self.gil.object.try_lock().expect("one thread holds the GIL") += 1;
            if self.number == 1 {
                self.compute();
            }
            if self.number == 0 && self.gil.finalizes {
                *self.gil.finalizing.lock().unwrap() = true;
            }
            if self.gil.switch_mutex.lock().unwrap().drop_requested {
                self.let_go();
                if !self.take() {
                    return false;
                }
            }
        }
        self.let_go();
        true
    }

    /// Until it is asked to let go.
    fn compute(&self) {
        let switch = self.gil.switch_mutex.lock().unwrap();
        if !switch.drop_requested {
            let threads = self.gil.kernel.lock();
            drop(switch);
            self.gil.rest(threads, self.number, Place::Request, u64::MAX);
        }
    }

    /// `take_gil`, or whether the thread had to exit.
    fn take(&self) -> bool {
        let must_exit = || self.number != 0 && *self.gil.finalizing.lock().unwrap();
        if must_exit() {
            return false;
        }
        self.lock_gil();
        while self.state(|state| state.locked) {
            let switches = self.state(|state| state.switches);
            let timed_out = self.timedwait();
            if timed_out && self.state(|state| state.locked && state.switches == switches) {
                if must_exit() {
                    self.unlock_gil();
                    return false;
                }
                self.gil.switch_mutex.lock().unwrap().drop_requested = true;
                self.gil.wake_one(Place::Request);
                self.state(|state| state.drop_requested = true);
            }
        }
        {
            let mut switch = self.gil.switch_mutex.lock().unwrap();
            let switched = std::mem::replace(&mut switch.last_holder, self.number) != self.number;
            self.state(|state| {
                state.locked = true;
                state.switches += u32::from(switched);
                state.drop_requested = false;
            });
            self.was_forced.set(false);
            self.takes_back.set(false);
            self.gil.line.acquired(self, &self.account);
            if std::mem::replace(&mut switch.is_awaited, false) {
                self.gil.kernel.lock().runnable += 1;
            }
            self.gil.switch_cond.notify_one();
            switch.drop_requested = false;
        }
        self.unlock_gil();
        if must_exit() {
            self.let_go();
            return false;
        }
        true
    }

    /// `drop_gil`.
    fn let_go(&self) {
        self.lock_gil();
        self.state(|state| {
            state.now_ns += QUANTUM_NS / 2;
            state.locked = false;
        });
        self.signal_free();
        self.unlock_gil();
        let mut switch = self.gil.switch_mutex.lock().unwrap();
        if switch.drop_requested && switch.last_holder == self.number {
            switch.drop_requested = false;
            let needs_nobody = self.takes_back.get() || !self.gil.has_stock_waiters();
            if self.gil.settings().policy != Policy::Stock && needs_nobody {
                return;
            }
            switch.is_awaited = true;
            drop(switch);
            self.gil.rests(&mut self.gil.kernel.lock());
            switch = self.gil.switch_mutex.lock().unwrap();
            while switch.is_awaited {
                switch = self.gil.switch_cond.wait(switch).unwrap();
            }
        }
    }

    /// The hook's stand-in for `pthread_cond_timedwait(cond)`.
    fn timedwait(&self) -> bool {
        let settings = self.gil.settings();
        if settings.policy == Policy::Stock {
            self.gil.stock_waiters.fetch_add(1, Relaxed);
            let woken = self.sleep_at(Place::Cond, Some(QUANTUM_NS));
            self.gil.stock_waiters.fetch_sub(1, Relaxed);
            return woken == Some(Woken::Timer);
        }
        self.wait_in_line(settings) == Answer::AskToDrop
    }

    fn wait_in_line(&self, settings: Settings) -> Answer {
        let answer = self.gil.line.wait(self, settings, &self.account, false);
        assert!(!self.gil.line.remembers(self.slept_on.get()), "a waiter left something behind");
        answer
    }

    /// The hook's stand-in for `pthread_cond_signal(cond)`.
    fn signal_free(&self) {
        let settings = self.gil.settings();
        let is_stock = settings.policy == Policy::Stock;
        if self.drop_requested() {
            self.was_forced.set(true);
        }
        if !is_stock || !self.gil.line.is_empty() {
            self.gil.line.released(self, settings, &self.account);
        }
        self.takes_back.set(self.gil.line.is_spared());
        if is_stock || self.gil.has_stock_waiters() {
            self.gil.wake_one(Place::Cond);
        }
    }

    /// Sleeps with the mutex let go. Returns how it ended, or `None` if the word had changed.
    fn sleep_at(&self, place: Place, timeout_ns: Option<u64>) -> Option<Woken> {
        let now_ns = self.state(|state| state.now_ns);
        let deadline_ns = timeout_ns.map_or(u64::MAX, |timeout_ns| now_ns + timeout_ns);
        // A condition variable is waited for before the mutex is let go, a word is not.
        if place != Place::Cond {
            self.unlock();
        }
        let threads = self.gil.kernel.lock();
        self.unlock();
        let woken = (!matches!(place, Place::Word(word) if has_changed(word)))
            .then(|| self.gil.rest(threads, self.number, place, deadline_ns));
        self.lock();
        if woken == Some(Woken::Timer) {
            self.state(|state| state.now_ns = state.now_ns.max(deadline_ns));
        }
        woken
    }
}

/// The line only sleeps on words that are 0.
fn has_changed(word: *const AtomicU32) -> bool {
    // SAFETY: the word is on the stack of the calling thread, which is in `Line::wait`.
    unsafe { &*word }.load(Relaxed) != 0
}

impl Host for Here<'_> {
    fn now_ns(&self) -> u64 {
        self.state(|state| state.now_ns)
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.now_ns()
    }

    fn sleep(&self, word: &AtomicU32, expected: u32, timeout_ns: Option<u64>) -> bool {
        assert_eq!(expected, 0);
        self.slept_on.set(word);
        let interrupted = self.sleep_at(Place::Word(word), timeout_ns) == Some(Woken::Signal);
        self.gil.line.adopt(self, self.gil.settings());
        interrupted && self.number == 0
    }

    fn wake(&self, word: &AtomicU32) {
        self.gil.wake_one(Place::Word(word));
    }

    fn wake_when_unlocked(&self, word: &AtomicU32) {
        let before = self.state(|state| state.to_wake.replace(word));
        assert_eq!(before, None, "one wake-up would be lost");
    }

    fn is_locked(&self) -> bool {
        self.state(|state| state.locked)
    }

    fn switches(&self) -> u32 {
        self.state(|state| state.switches)
    }

    fn drop_requested(&self) -> bool {
        self.state(|state| state.drop_requested)
    }

    /// In every other wait it was the holder.
    fn waker(&self) -> Option<Waker> {
        let is_holder = self.state(|state| state.switches % 2 == 0 && state.locked);
        is_holder.then_some(Waker { place_ns: 0, is_holder })
    }

    fn lock_taken(&self) -> Option<u32> {
        self.has_lock.get().then(|| self.lock_number.get())
    }

    fn forget_locks(&self) {
        self.has_lock.set(false);
    }
}
