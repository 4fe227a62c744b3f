//! `take_gil` and `drop_gil` (`Python/ceval_gil.c`, 3.8 to 3.13) around the real [`Line`], under a
//! model checker: loom tries every interleaving of two or three threads with few preemptions,
//! shuttle random ones of more.
//!
//! The kernel is modelled where it matters: a futex compares and sleeps in one step, and a timer
//! fires at a time of its own choosing, which is when [`Gil::alarm`] happens to run, or when
//! nothing else can. There is no other safety net, so a lost wake-up is a thread that sleeps for
//! ever, which panics. A thread that was woken finds that no time has passed, one whose timer fired
//! that it has passed entirely.
//!
//! Mutations of line.rs that must fail here: no wake-up in `released`, in `adopt`, or of a new
//! timekeeper in `acquired`; a waiter that returns without leaving the queue; a timekeeper that
//! leaves and is remembered; a sleeper whose word is reset after its mutex is let go.

use super::{Account, Answer, Host, Line, Policy, Settings};
use crate::sync::AtomicU32;
use std::cell::{Cell, RefCell};

#[cfg(loom)]
use loom::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(not(loom))]
use shuttle::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};

const QUANTUM_NS: u64 = 5_000_000;
const FAIR: Settings = Settings { policy: Policy::Fair, quantum_ns: QUANTUM_NS };
const INTERACTIVE: Settings = Settings { policy: Policy::Interactive, quantum_ns: QUANTUM_NS };
const PRIORITY: Settings = Settings { policy: Policy::Priority, quantum_ns: QUANTUM_NS };
const STOCK: Settings = Settings { policy: Policy::Stock, quantum_ns: QUANTUM_NS };

/// What CPython and the hook guard with the GIL's mutex.
struct State {
    now_ns: u64,
    locked: bool,
    switches: u32,
    /// The hook's copy, which nobody resets but the thread that acquires.
    drop_requested: bool,
    stock_waiters: usize,
}

/// What CPython guards with `switch_mutex`; the request is an atomic there.
struct Switch {
    last_holder: usize,
    drop_requested: bool,
    /// Whether a thread waits on `switch_cond`.
    is_awaited: bool,
}

/// What a thread waits for without being able to run.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Word(*const AtomicU32),
    /// The condition variable `cond` of the GIL.
    Cond,
    /// It computes with the GIL until it is asked to let go, or until it is the only one left.
    Request,
}

#[derive(Clone, Copy, PartialEq)]
enum Woken {
    Name,
    Timer,
    Signal,
}

#[derive(Clone, Copy)]
struct Sleeper {
    place: Place,
    deadline_ns: u64,
    woken: Option<Woken>,
}

/// The kernel's side.
struct Kernel {
    /// How many threads could run.
    runnable: usize,
    sleepers: Vec<Option<Sleeper>>,
}

struct Gil {
    line: Line,
    mutex: Mutex<State>,
    switch_mutex: Mutex<Switch>,
    switch_cond: Condvar,
    kernel: Mutex<Kernel>,
    wakes: Vec<Condvar>,
    page: Mutex<Settings>,
    /// What the GIL protects.
    object: Mutex<u32>,
    /// Whether the main thread finalizes the interpreter while others use it.
    finalizes: bool,
    finalizing: Mutex<bool>,
}

// SAFETY: the line is used with `mutex` held, and the pointers in `kernel` are only compared.
unsafe impl Send for Gil {}
// SAFETY: as above.
unsafe impl Sync for Gil {}

impl Gil {
    /// For `threads`, of which all are started.
    fn new(threads: usize, settings: Settings) -> Self {
        let state = State {
            now_ns: 1,
            locked: false,
            switches: 0,
            drop_requested: false,
            stock_waiters: 0,
        };
        let switch = Switch { last_holder: usize::MAX, drop_requested: false, is_awaited: false };
        Self {
            line: Line::new(0),
            mutex: Mutex::new(state),
            switch_mutex: Mutex::new(switch),
            switch_cond: Condvar::new(),
            kernel: Mutex::new(Kernel { runnable: threads, sleepers: vec![None; threads] }),
            wakes: (0..threads).map(|_| Condvar::new()).collect(),
            page: Mutex::new(settings),
            object: Mutex::new(0),
            finalizes: false,
            finalizing: Mutex::new(false),
        }
    }

    fn settings(&self) -> Settings {
        *self.page.lock().unwrap()
    }

    /// Time passes: the timer that is due first fires.
    fn alarm(&self) {
        self.fire(&mut self.kernel.lock().unwrap());
    }

    fn fire(&self, kernel: &mut Kernel) -> bool {
        let timed = |(number, sleeper): (usize, &Option<Sleeper>)| {
            let sleeper = sleeper.filter(|sleeper| sleeper.woken.is_none())?;
            (sleeper.deadline_ns != u64::MAX).then_some((sleeper.deadline_ns, number))
        };
        let first = kernel.sleepers.iter().enumerate().filter_map(timed).min();
        if let Some((_, number)) = first {
            self.rouse(kernel, number, Woken::Timer);
        }
        first.is_some()
    }

    fn rouse(&self, kernel: &mut Kernel, number: usize, woken: Woken) {
        if let Some(sleeper) = &mut kernel.sleepers[number]
            && sleeper.woken.is_none()
        {
            sleeper.woken = Some(woken);
            kernel.runnable += 1;
            self.wakes[number].notify_one();
        }
    }

    fn wake_one(&self, place: Place) {
        self.wake_in(&mut self.kernel.lock().unwrap(), place);
    }

    fn wake_in(&self, kernel: &mut Kernel, place: Place) {
        let sleeps_here = |sleeper: &Option<Sleeper>| {
            sleeper.is_some_and(|sleeper| sleeper.place == place && sleeper.woken.is_none())
        };
        if let Some(number) = kernel.sleepers.iter().position(sleeps_here) {
            self.rouse(kernel, number, Woken::Name);
        }
    }

    /// The thread `number` cannot run until it is woken.
    fn rest<'a>(
        &'a self,
        mut kernel: MutexGuard<'a, Kernel>,
        number: usize,
        place: Place,
        deadline_ns: u64,
    ) -> Woken {
        kernel.sleepers[number] = Some(Sleeper { place, deadline_ns, woken: None });
        self.rests(&mut kernel);
        loop {
            if let Some(woken) = kernel.sleepers[number].and_then(|sleeper| sleeper.woken) {
                kernel.sleepers[number] = None;
                return woken;
            }
            kernel = self.wakes[number].wait(kernel).unwrap();
        }
    }

    /// A signal that thread 0 has a handler for.
    fn interrupt(&self) {
        self.rouse(&mut self.kernel.lock().unwrap(), 0, Woken::Signal);
    }

    /// The calling thread sleeps or has ended.
    fn rests(&self, kernel: &mut Kernel) {
        kernel.runnable -= 1;
        if kernel.runnable > 0 || self.fire(kernel) {
            return;
        }
        let mut left = kernel.sleepers.iter().flatten().map(|sleeper| sleeper.place);
        let first = left.next();
        let is_alone = left.next().is_none();
        let somebody_switches = self.switch_mutex.try_lock().is_ok_and(|it| it.is_awaited);
        assert!(!somebody_switches, "nobody takes the GIL that a thread was asked for");
        assert!(matches!(first, None | Some(Place::Request)) && is_alone, "a wake-up was lost");
        if let Some(place) = first {
            self.wake_in(kernel, place);
        }
    }
}

/// A thread, seen from inside.
struct Here<'a> {
    gil: &'a Gil,
    number: usize,
    account: Cell<Account>,
    /// While the thread holds the GIL's mutex.
    state: RefCell<Option<MutexGuard<'a, State>>>,
    slept_on: Cell<*const AtomicU32>,
}

impl<'a> Here<'a> {
    fn new(gil: &'a Gil, number: usize) -> Self {
        let slept_on = Cell::new(std::ptr::null());
        Self { gil, number, account: Cell::default(), state: RefCell::new(None), slept_on }
    }

    fn lock(&self) {
        *self.state.borrow_mut() = Some(self.gil.mutex.lock().unwrap());
    }

    fn unlock(&self) {
        drop(self.state.borrow_mut().take());
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(self.state.borrow_mut().as_mut().expect("the mutex is held"))
    }

    /// Uses the GIL, and lets go in the middle if it was asked. Returns whether it came to that.
    /// Thread 1 computes, and lets go only if it is asked.
    fn work(&self) -> bool {
        if !self.take() {
            return false;
        }
        for _ in 0..2 {
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
            let kernel = self.gil.kernel.lock().unwrap();
            drop(switch);
            self.gil.rest(kernel, self.number, Place::Request, u64::MAX);
        }
    }

    /// `take_gil`, or whether the thread had to exit.
    fn take(&self) -> bool {
        let must_exit = || self.number != 0 && *self.gil.finalizing.lock().unwrap();
        if must_exit() {
            return false;
        }
        self.lock();
        while self.state(|state| state.locked) {
            let switches = self.state(|state| state.switches);
            let timed_out = self.timedwait();
            if timed_out && self.state(|state| state.locked && state.switches == switches) {
                if must_exit() {
                    self.unlock();
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
            self.gil.line.acquired(self, &self.account);
            if std::mem::replace(&mut switch.is_awaited, false) {
                self.gil.kernel.lock().unwrap().runnable += 1;
            }
            self.gil.switch_cond.notify_one();
            switch.drop_requested = false;
        }
        self.unlock();
        if must_exit() {
            self.let_go();
            return false;
        }
        true
    }

    /// `drop_gil`.
    fn let_go(&self) {
        self.lock();
        self.state(|state| {
            state.now_ns += QUANTUM_NS / 2;
            state.locked = false;
        });
        self.signal_free();
        self.unlock();
        let mut switch = self.gil.switch_mutex.lock().unwrap();
        if switch.drop_requested && switch.last_holder == self.number {
            switch.drop_requested = false;
            switch.is_awaited = true;
            drop(switch);
            self.gil.rests(&mut self.gil.kernel.lock().unwrap());
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
            self.state(|state| state.stock_waiters += 1);
            let woken = self.sleep_at(Place::Cond, Some(QUANTUM_NS));
            self.state(|state| state.stock_waiters -= 1);
            return woken == Some(Woken::Timer);
        }
        let answer = self.gil.line.wait(self, settings, &self.account, false);
        assert!(!self.gil.line.remembers(self.slept_on.get()), "a waiter left something behind");
        answer == Answer::AskToDrop
    }

    /// The hook's stand-in for `pthread_cond_signal(cond)`.
    fn signal_free(&self) {
        let settings = self.gil.settings();
        let is_stock = settings.policy == Policy::Stock;
        if !is_stock || !self.gil.line.is_empty() {
            self.gil.line.released(self, settings, &self.account);
        }
        if is_stock || self.state(|state| state.stock_waiters > 0) {
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
        let kernel = self.gil.kernel.lock().unwrap();
        self.unlock();
        let woken = (!matches!(place, Place::Word(word) if has_changed(word)))
            .then(|| self.gil.rest(kernel, self.number, place, deadline_ns));
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
    unsafe { &*word }.load(crate::sync::Ordering::Relaxed) != 0
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
        let place = Place::Word(word);
        self.sleep_at(place, timeout_ns) == Some(Woken::Signal) && self.number == 0
    }

    fn wake(&self, word: &AtomicU32) {
        self.gil.wake_one(Place::Word(word));
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
}

/// What happens beside the threads that use the GIL.
type Event = fn(&Gil);

/// `threads` use the GIL `times` each while each of `events` happens, at any time. The caller is
/// the main thread.
fn play(gil: Gil, threads: usize, times: u32, events: &[Event]) {
    let gil = Arc::new(gil);
    let live = move |gil: &Gil, number| {
        let here = Here::new(gil, number);
        let done = (0..times).all(|_| here.work());
        let must_exit = number != 0 && *gil.finalizing.lock().unwrap();
        assert!(done || must_exit);
        gil.rests(&mut gil.kernel.lock().unwrap());
    };
    let mut others: Vec<_> = (1..threads)
        .map(|number| {
            let gil = gil.clone();
            thread::spawn(move || live(&gil, number))
        })
        .collect();
    others.extend(events.iter().map(|&event| {
        let gil = gil.clone();
        thread::spawn(move || {
            event(&gil);
            gil.rests(&mut gil.kernel.lock().unwrap());
        })
    }));
    live(&gil, 0);
    for other in others {
        other.join().unwrap();
    }
    assert!(gil.line.is_empty());
    if !*gil.finalizing.lock().unwrap() {
        let uses = u32::try_from(threads).unwrap() * times * 2;
        assert_eq!(*gil.object.lock().unwrap(), uses);
    }
}

fn alarm(gil: &Gil) {
    gil.alarm();
}

fn interrupt(gil: &Gil) {
    gil.interrupt();
}

fn change<const POLICY: u32>(gil: &Gil) {
    let policy = Policy::from_number(POLICY).unwrap();
    *gil.page.lock().unwrap() = Settings { policy, quantum_ns: QUANTUM_NS };
}

#[cfg(loom)]
mod few_threads {
    use super::*;

    fn check(preemptions: usize, scenario: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 10_000;
        builder.check(scenario);
    }

    #[test]
    fn two_threads_get_the_gil_as_often_as_they_want_it() {
        check(4, || play(Gil::new(2, INTERACTIVE), 2, 2, &[]));
    }

    #[test]
    fn two_threads_are_asked_at_any_time() {
        check(3, || play(Gil::new(3, FAIR), 2, 2, &[alarm]));
    }

    #[test]
    fn three_threads_get_the_gil_as_often_as_they_want_it() {
        check(3, || play(Gil::new(3, FAIR), 3, 1, &[]));
    }

    #[test]
    fn two_threads_policy() {
        check(3, || play(Gil::new(3, FAIR), 2, 1, &[change::<{ Policy::Priority as u32 }>]));
    }

    #[test]
    fn two_threads_stock() {
        check(3, || play(Gil::new(3, FAIR), 2, 1, &[change::<{ Policy::Stock as u32 }>]));
    }

    #[test]
    fn two_threads_signal() {
        check(3, || play(Gil::new(3, FAIR), 2, 1, &[interrupt]));
    }

    #[test]
    fn three_threads_alarm() {
        check(2, || play(Gil::new(4, FAIR), 3, 1, &[alarm]));
    }
}

#[cfg(not(loom))]
mod many_threads {
    use super::*;

    fn check(scenario: fn()) {
        shuttle::check_random(scenario, 500);
        shuttle::check_pct(scenario, 500, 4);
    }

    #[test]
    fn every_thread_gets_the_gil_as_often_as_it_wants_it() {
        for scenario in [
            (|| play(Gil::new(6, INTERACTIVE), 4, 3, &[alarm, alarm])) as fn(),
            || play(Gil::new(6, FAIR), 4, 3, &[alarm, alarm]),
            || play(Gil::new(6, PRIORITY), 4, 3, &[alarm, alarm]),
        ] {
            check(scenario);
        }
    }

    #[test]
    fn a_policy_changes_while_threads_wait() {
        const PRIORITY: u32 = Policy::Priority as u32;
        const FAIR: u32 = Policy::Fair as u32;
        const STOCK: u32 = Policy::Stock as u32;
        check(|| play(Gil::new(7, super::FAIR), 4, 3, &[alarm, change::<PRIORITY>, alarm]));
        check(|| play(Gil::new(7, INTERACTIVE), 4, 3, &[alarm, change::<STOCK>, alarm]));
        check(|| play(Gil::new(7, super::STOCK), 4, 3, &[alarm, change::<FAIR>, alarm]));
    }

    #[test]
    fn a_signal_interrupts_the_main_thread_in_its_wait() {
        check(|| play(Gil::new(6, INTERACTIVE), 3, 3, &[interrupt, alarm, interrupt]));
    }

    #[test]
    fn threads_exit_in_their_wait_when_the_interpreter_is_finalized() {
        check(|| play(Gil { finalizes: true, ..Gil::new(6, INTERACTIVE) }, 4, 3, &[alarm, alarm]));
    }
}
