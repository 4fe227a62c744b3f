//! The GIL of the model, and what CPython and the hook keep beside it.

use super::kernel::{Kernel, Place, Threads, Woken};
use super::{Condvar, Mutex, MutexGuard};
use crate::atomic::{AtomicU32, Ordering::Relaxed};
use crate::schedule::{Line, Settings};

/// What CPython and the hook guard with the GIL's mutex.
pub struct State {
    pub now_ns: u64,
    pub locked: bool,
    pub switches: u32,
    /// The hook's copy, which nobody resets but the thread that acquires.
    pub drop_requested: bool,
    /// The word of the thread to wake once the mutex has been let go.
    pub to_wake: Option<*const AtomicU32>,
}

/// What CPython guards with `switch_mutex`; the request is an atomic there.
pub struct Switch {
    pub last_holder: usize,
    pub drop_requested: bool,
    /// Whether a thread waits on `switch_cond`.
    pub is_awaited: bool,
}

pub struct Gil {
    pub line: Line,
    pub mutex: Mutex<State>,
    /// How many sleep on `cond`, as the hook counts them.
    pub stock_waiters: AtomicU32,
    pub switch_mutex: Mutex<Switch>,
    pub switch_cond: Condvar,
    pub kernel: Kernel,
    /// The settings that anybody may change.
    pub page: Mutex<Settings>,
    /// What the GIL protects.
    pub object: Mutex<u32>,
    /// Whether the main thread finalizes the interpreter while others use it.
    pub finalizes: bool,
    /// Whether a thread has a lock in the first half of its use.
    pub has_locks: bool,
    pub finalizing: Mutex<bool>,
}

// SAFETY: the line is used with `mutex` held, and the pointers in `kernel` are only compared.
unsafe impl Send for Gil {}
// SAFETY: threads that share it use the line one at a time, under `mutex`.
unsafe impl Sync for Gil {}

impl Gil {
    /// For `threads`, of which all are started.
    pub fn new(threads: usize, settings: Settings) -> Self {
        let state =
            State { now_ns: 1, locked: false, switches: 0, drop_requested: false, to_wake: None };
        let switch = Switch { last_holder: usize::MAX, drop_requested: false, is_awaited: false };
        Self {
            line: Line::new(0),
            mutex: Mutex::new(state),
            stock_waiters: AtomicU32::new(0),
            switch_mutex: Mutex::new(switch),
            switch_cond: Condvar::new(),
            kernel: Kernel::new(threads),
            page: Mutex::new(settings),
            object: Mutex::new(0),
            finalizes: false,
            has_locks: false,
            finalizing: Mutex::new(false),
        }
    }

    pub fn has_stock_waiters(&self) -> bool {
        self.stock_waiters.load(Relaxed) > 0
    }

    pub fn settings(&self) -> Settings {
        *self.page.lock().unwrap()
    }

    /// Time passes: the timer that is due first fires.
    pub fn alarm(&self) {
        self.kernel.fire(&mut self.kernel.lock());
    }

    pub fn wake_one(&self, place: Place) {
        self.kernel.wake_one(&mut self.kernel.lock(), place);
    }

    /// A signal that thread 0 has a handler for.
    pub fn interrupt(&self) {
        self.kernel.rouse(&mut self.kernel.lock(), 0, Woken::Signal);
    }

    /// The calling thread has ended.
    pub fn ended(&self) {
        self.rests(&mut self.kernel.lock());
    }

    /// The thread `number` cannot run until it is woken.
    pub fn rest(
        &self,
        mut threads: MutexGuard<'_, Threads>,
        number: usize,
        place: Place,
        deadline_ns: u64,
    ) -> Woken {
        threads.sleeps(number, place, deadline_ns);
        self.rests(&mut threads);
        self.kernel.wait(threads, number)
    }

    /// One thread fewer can run.
    pub fn rests(&self, threads: &mut Threads) {
        threads.runnable -= 1;
        if threads.runnable > 0 || self.kernel.fire(threads) {
            return;
        }
        let mut left = threads.places();
        let (first, is_alone) = (left.next(), left.next().is_none());
        drop(left);
        let somebody_switches = self.switch_mutex.try_lock().is_ok_and(|it| it.is_awaited);
        assert!(!somebody_switches, "nobody takes the GIL that a thread was asked for");
        assert!(matches!(first, None | Some(Place::Request)) && is_alone, "a wake-up was lost");
        if let Some(place) = first {
            self.kernel.wake_one(threads, place);
        }
    }
}
