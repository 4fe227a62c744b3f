//! The line of threads that wait for one GIL.
//!
//! `take_gil` and `drop_gil` (`Python/ceval_gil.c`) call the host's stand-ins for their condition
//! variable; those call this. Each waiting thread sleeps on a word of its own and is woken by
//! name. What `take_gil` allows is used in two ways: it asks the holder to let go when its wait
//! "timed out", which a wait in this line does when the policy says so, and it looks again at the
//! GIL after any return, which makes a needless return harmless.
//!
//! One of the waiting threads, the *timekeeper*, sleeps with a timer and does the asking, for
//! whoever is first; all others sleep until they are woken. The last one to come takes over when
//! there is none, because it is awake. A thread that comes of its own accord sleeps with a timer
//! once in any case: threads that come and go are granted the GIL before that, and if the one that
//! kept time is, another can take over in its sleep.
//!
//! Everything here runs under the GIL's own mutex, which [`Host::sleep`] lets go and takes again.

use super::account::{Account, Standing};
use super::holder::Holder;
use super::host::Host;
use super::modify;
use super::policy::{Policy, Settings};
use super::queue::{Queue, Waiter};
use super::scheduler::Scheduler;
use super::slice::Slice;
use super::spared::Spared;
use crate::atomic::Ordering::Relaxed;
use std::cell::Cell;
use std::ptr::null;

/// A thread that was given the GIL but did not take it for so long is passed over by the
/// timekeeper: the kernel has no processor for it.
const OVERDUE_NS: u64 = 2_000_000;
/// A request that was not met is repeated: CPython withdraws the requests of threads that it ends
/// when the interpreter is finalised (gh-96387).
const REPEAT_NS: u64 = 50_000_000;
/// Who has asked looks after this long whether the holder was spared and is to be asked again. It
/// is time enough for several uses of a lock.
const LOOK_AGAIN_NS: u64 = 50_000;
/// A thread that is asked earlier than the timekeeper's timer says is worth a wake-up only if it
/// is earlier by this much.
const WORTH_WAKING_NS: u64 = 100_000;
/// Values of [`Waiter::word`].
const ASLEEP: u32 = 0;
/// The GIL is meant for this thread, which is out of the queue.
const GRANTED: u32 = 1;
/// To look at the clock again.
const LOOK: u32 = 2;
/// Out of the queue without the GIL: the policy has changed.
const DISMISSED: u32 = 3;

/// What a thread that waited does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Look at the GIL again: it is free, or the policy has changed.
    LookAgain,
    /// Ask the holder to let go, then wait again.
    AskToDrop,
}

/// The line of one GIL.
#[derive(Debug)]
pub struct Line {
    scheduler: Cell<Scheduler>,
    queue: Queue,
    /// The thread that was given the GIL and has not woken since. Compared, never followed.
    granted: Cell<*const Waiter>,
    granted_ns: Cell<u64>,
    timekeeper: Cell<*const Waiter>,
    timer_ns: Cell<u64>,
    /// When a waiting thread last asked.
    asked_ns: Cell<u64>,
    /// The standing of the thread that is about to acquire after its wait.
    entering: Cell<Option<Standing>>,
    holder: Holder,
    spared: Spared,
}

impl Line {
    /// The line of the GIL with this number.
    pub const fn new(gil: u32) -> Self {
        let stock = Settings { policy: Policy::Stock, quantum_ns: Policy::Stock.quantum_ns() };
        Self {
            scheduler: Cell::new(Scheduler::new(gil, stock)),
            queue: Queue::new(),
            granted: Cell::new(null()),
            granted_ns: Cell::new(0),
            timekeeper: Cell::new(null()),
            timer_ns: Cell::new(0),
            asked_ns: Cell::new(0),
            entering: Cell::new(None),
            holder: Holder::new(),
            spared: Spared::new(),
        }
    }

    /// Forgets all threads, when the GIL is made anew or after a fork.
    pub fn clear(&self) {
        self.queue.clear();
        self.granted.set(null());
        self.timekeeper.set(null());
        self.entering.set(None);
        self.holder.forget();
        self.spared.forget();
    }

    /// Whether somebody waits here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the GIL, if it is free, is meant for a thread that is on its way.
    #[inline]
    pub fn is_granted(&self) -> bool {
        !self.granted.get().is_null() || self.spared.away_since_ns().is_some()
    }

    /// Whether it is meant for the last holder.
    pub fn is_spared(&self) -> bool {
        self.spared.away_since_ns().is_some()
    }

    /// Waits, while the GIL is locked or granted to another, for the calling thread's turn or until
    /// it has to ask for it. An urgent thread asks at once and goes first.
    pub fn wait(
        &self,
        host: &impl Host,
        settings: Settings,
        account: &Cell<Account>,
        mut urgent: bool,
    ) -> Answer {
        let switches = host.switches();
        let mut now = host.now_ns();
        self.adopt(host, settings);
        if host.is_locked() {
            modify(&self.scheduler, |scheduler| self.holder.is_wanted(scheduler, now));
        }
        if let Some(waker) = host.waker()
            && !account.get().is_waiting()
        {
            let holder = self.holder.standing();
            modify(account, |own| self.scheduler.get().was_woken(own, waker, &holder));
        }
        let waiter = Waiter::new(self.enter(account, now, urgent));
        // SAFETY: on every way out of this function it is out of the queue.
        unsafe { self.queue.insert(&waiter) };
        loop {
            let ask_at = self.ask_at_ns(host);
            if now >= ask_at {
                self.leave(&waiter);
                // take_gil does not ask a holder that came after it began to wait.
                if host.switches() != switches {
                    return Answer::LookAgain;
                }
                self.asked_ns.set(now);
                return Answer::AskToDrop;
            }
            let timeout = self.keep_time(&waiter, now, ask_at);
            waiter.word.store(ASLEEP, Relaxed);
            let interrupted = host.sleep(&waiter.word, ASLEEP, timeout);
            match waiter.word.load(Relaxed) {
                GRANTED => {
                    self.granted.set(null());
                    if !host.is_locked() {
                        self.entering.set(Some(waiter.standing()));
                        return Answer::LookAgain;
                    }
                    // Overtaken by a thread that came when the GIL was free.
                    if self.scheduler.get().settings() != settings {
                        return Answer::LookAgain; // Its standing is of another policy.
                    }
                    now = host.now_ns();
                    modify(account, |own| own.was_overtaken(now));
                    waiter.set_standing(self.enter(account, now, urgent));
                    // SAFETY: it was popped when the GIL was granted.
                    unsafe { self.queue.insert(&waiter) };
                }
                DISMISSED => return Answer::LookAgain,
                _ => {
                    now = host.now_ns();
                    if !host.is_locked() && self.may_pass_over(now) {
                        self.leave(&waiter);
                        self.entering.set(Some(waiter.standing()));
                        return Answer::LookAgain;
                    }
                }
            }
            if interrupted && !urgent {
                urgent = true;
                // SAFETY: it is in the queue in every case that comes here.
                unsafe { self.queue.remove(&waiter) };
                waiter.set_standing(self.enter(account, now, true));
                // SAFETY: just removed.
                unsafe { self.queue.insert(&waiter) };
            }
        }
    }

    /// Which slice the calling thread, which has `slice`, is to have when it waits here.
    pub fn slice(&self, account: &Cell<Account>, slice: Slice) -> Slice {
        self.scheduler.get().slice(&account.get(), slice)
    }

    /// The calling thread has taken the GIL.
    #[inline]
    pub fn acquired(&self, host: &impl Host, account: &Cell<Account>) {
        if self.spared.has_come(host) {
            return; // It goes on as if it had not let go. Who asked looks again.
        }
        if self.queue.is_empty() && self.granted.get().is_null() {
            // A clock for each acquire would cost too much; after a wait it does not count.
            let waited = self.entering.take().is_some();
            self.holder.took_alone(account, waited.then(|| host.now_ns()));
        } else if self.holder.is_back(host) && !account.get().is_waiting() {
            // Those who wait look by themselves when they are due.
            self.holder.took_back(&self.scheduler.get(), account);
        } else {
            self.acquired_before_others(host, account);
        }
    }

    #[cold]
    fn acquired_before_others(&self, host: &impl Host, account: &Cell<Account>) {
        let now = host.now_ns();
        let holder = self.entering.take().unwrap_or_else(|| self.enter(account, now, false));
        self.holder.took(host, holder, account, now);
        if let Some(first) = self.queue.first()
            && self.granted.get().is_null()
        {
            modify(&self.scheduler, |scheduler| scheduler.acquired(&holder, &first.standing()));
        }
        self.see_that_time_is_kept(host);
    }

    /// Wakes a thread that is to ask the new holder, unless a timer does so in time.
    fn see_that_time_is_kept(&self, host: &impl Host) {
        let timer = if self.timekeeper.get().is_null() { u64::MAX } else { self.timer_ns.get() };
        let ask_at = self.ask_at_ns(host);
        let late_enough = ask_at.saturating_add(WORTH_WAKING_NS);
        if timer <= late_enough {
            return;
        }
        if let Some(first) = self.queue.first()
            && (1..=late_enough).contains(&first.wakes_at_ns.get())
        {
            self.timekeeper.set(first);
            self.timer_ns.set(first.wakes_at_ns.get());
            return;
        }
        // SAFETY: the timekeeper is in the queue.
        let waiter = unsafe { self.timekeeper.get().as_ref() }.or(self.queue.first());
        if let Some(waiter) = waiter {
            waiter.word.store(LOOK, Relaxed);
            host.wake_when_unlocked(&waiter.word);
            // It may take long to get a processor, and is not to be woken again meanwhile.
            self.timekeeper.set(waiter);
            self.timer_ns.set(ask_at);
        }
    }

    /// The calling thread has let go of the GIL: it goes to the first in line.
    #[inline]
    pub fn released(&self, host: &impl Host, settings: Settings, account: &Cell<Account>) {
        if self.holder.wanted_since_ns() != 0 || !self.queue.is_empty() {
            self.released_to_others(host, settings, account);
        }
    }

    #[cold]
    fn released_to_others(&self, host: &impl Host, settings: Settings, account: &Cell<Account>) {
        let now = host.now_ns();
        if host.drop_requested()
            && self.scheduler.get().settings() == settings
            && self.spared.spares(host, now)
        {
            return;
        }
        let since = modify(&self.scheduler, |scheduler| {
            self.holder.let_go(host, scheduler, account, now, self.queue.weight())
        });
        self.adopt(host, settings);
        // One that was granted the GIL before is on its way and will find it free.
        if self.granted.get().is_null()
            && let Some(next) = self.queue.pop()
        {
            if std::ptr::eq(self.timekeeper.get(), next) {
                self.timekeeper.set(null());
            }
            self.granted.set(next);
            self.granted_ns.set(now);
            next.word.store(GRANTED, Relaxed);
            let holder = self.holder.standing();
            let due = self.scheduler.get().ask_at_ns(&holder, since, &next.standing());
            if due <= since {
                // It may not wait until the kernel lets this thread go on after the unlocking.
                host.wake(&next.word);
            } else {
                host.wake_when_unlocked(&next.word);
            }
        }
    }

    /// Decides by `settings` from now on. Everybody who queued before does so anew.
    pub fn adopt(&self, host: &impl Host, settings: Settings) {
        if self.scheduler.get().settings() == settings {
            return;
        }
        modify(&self.scheduler, |scheduler| scheduler.change(settings));
        self.timekeeper.set(null());
        while let Some(waiter) = self.queue.pop() {
            waiter.word.store(DISMISSED, Relaxed);
            host.wake(&waiter.word);
        }
    }

    fn enter(&self, account: &Cell<Account>, now: u64, urgent: bool) -> Standing {
        modify(account, |own| self.scheduler.get().enter(own, now, urgent))
    }

    /// Whether anything here points to the waiter that sleeps on `word`.
    #[cfg(test)]
    pub(super) fn remembers(&self, word: *const crate::atomic::AtomicU32) -> bool {
        let is_meant = |waiter: *const Waiter| {
            // SAFETY: it is only compared, and the address of a field is not a use of it.
            !waiter.is_null() && std::ptr::eq(unsafe { &raw const (*waiter).word }, word)
        };
        is_meant(self.granted.get()) || is_meant(self.timekeeper.get()) || self.queue.has(word)
    }

    fn leave(&self, waiter: &Waiter) {
        // SAFETY: the caller is `wait`, whose waiter is in the queue there.
        unsafe { self.queue.remove(waiter) };
        if std::ptr::eq(self.timekeeper.get(), waiter) {
            self.timekeeper.set(null());
        }
    }

    /// When the first in line is due, or never while there is nobody to ask.
    fn ask_at_ns(&self, host: &impl Host) -> u64 {
        let Some(first) = self.queue.first().filter(|_| host.is_locked()) else { return u64::MAX };
        let at = self.scheduler.get().ask_at_ns(
            &self.holder.standing(),
            self.holder.wanted_since_ns(),
            &first.standing(),
        );
        if host.drop_requested() { at.max(self.asked_ns.get() + REPEAT_NS) } else { at }
    }

    /// How long `waiter` sleeps: until the timer if it is the timekeeper, or becomes it, or sleeps
    /// for the first time and may be the one that is needed.
    fn keep_time(&self, waiter: &Waiter, now: u64, ask_at: u64) -> Option<u64> {
        // Whoever gets the GIL meanwhile has at least this long in most cases.
        let quantum = self.scheduler.get().settings().quantum_ns;
        let longest = if self.is_granted() { quantum.min(OVERDUE_NS) } else { quantum };
        let ask_at = if now < self.asked_ns.get() + LOOK_AGAIN_NS {
            ask_at.min(self.asked_ns.get() + LOOK_AGAIN_NS)
        } else {
            ask_at
        };
        let timer = ask_at.min(now.saturating_add(longest));
        let keeper = self.timekeeper.get();
        let keeps_time =
            keeper.is_null() || std::ptr::eq(keeper, waiter) || timer < self.timer_ns.get();
        if keeps_time {
            self.timekeeper.set(waiter);
            self.timer_ns.set(timer);
        }
        let is_first_sleep = waiter.wakes_at_ns.get() == 0 && waiter.standing().is_back;
        let wakes_at = if keeps_time || is_first_sleep { timer } else { u64::MAX };
        waiter.wakes_at_ns.set(wakes_at);
        (wakes_at != u64::MAX).then(|| timer - now)
    }

    /// Whether a free GIL may be taken by a thread to which it was not given.
    fn may_pass_over(&self, now: u64) -> bool {
        let granted_ns = (!self.granted.get().is_null()).then(|| self.granted_ns.get());
        let meant_since_ns = granted_ns.max(self.spared.away_since_ns());
        meant_since_ns.is_none_or(|since_ns| now >= since_ns + OVERDUE_NS)
    }
}
