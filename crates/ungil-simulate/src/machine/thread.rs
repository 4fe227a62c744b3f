//! A thread, seen from inside.

use super::pools::Next;
use super::processors::{Processors, SLICE_NS};
use super::world::{NOBODY, SIGNALS_NS, Task, World, part};
use crate::plan::{Begins, Planned, Until, Use, Waits};
use crate::rules::Gil;
use corosensei::Yielder;
use std::cell::{Cell, RefCell};
use ungil_core::atomic::AtomicU32;
use ungil_core::schedule::{Account, Answer, Host, Level, Policy, Settings, Waker};

/// What the clock shows at the beginning: the scheduler takes 0 for never.
const UPTIME_NS: u64 = 1_000_000_000;

pub(super) struct Here<'a> {
    world: &'a World,
    number: usize,
    yielder: &'a Yielder<(), ()>,
    account: Cell<Account>,
    /// Whether it let go of the GIL because it was asked.
    was_forced: Cell<bool>,
    /// Who woke it through a lock of the program since it last had the GIL.
    woken_by: Cell<Option<usize>>,
    /// What is left of its slice of a processor.
    slice_ns: Cell<u64>,
}

impl<'a> Here<'a> {
    pub(super) fn new(
        world: &'a World,
        number: usize,
        yielder: &'a Yielder<(), ()>,
        level: Level,
    ) -> Self {
        let mut account = Account::new();
        account.level = level;
        Self {
            world,
            number,
            yielder,
            account: Cell::new(account),
            was_forced: Cell::new(false),
            woken_by: Cell::new(None),
            slice_ns: Cell::new(SLICE_NS),
        }
    }

    /// Does what the thread does.
    pub(super) fn live(&self, thread: &Planned) {
        let world = self.world;
        world.begins(self.number);
        if thread.started_by.is_some_and(|starter| world.arrives(self.number, starter)) {
            self.suspend(None);
        }
        self.take_processor();
        let lives = world.following.borrow().lives(self.number);
        let before = thread.works_in.as_ref().map_or(usize::MAX, |(_, before)| *before);
        for next in thread.uses(lives).take(before) {
            while !world.supplies.borrow_mut().is_there(self.number) {
                world.falls_idle(self.number, 0);
                self.block(None);
            }
            self.do_next(&next);
        }
        if thread.works_in.is_some() {
            self.work_for_clients();
        }
        self.leave_processor();
    }

    /// Does what the clients of its pool ask for.
    fn work_for_clients(&self) {
        let world = self.world;
        loop {
            let next = world.pools.borrow_mut().next(self.number);
            match next {
                Next::Job(work, job) => {
                    for (next, is_answer) in work.uses(job) {
                        self.use_gil(&next);
                        if is_answer {
                            world.answered(self.number);
                        }
                        self.be_away(&next);
                    }
                }
                Next::Nothing => {
                    world.falls_idle(self.number, 0);
                    self.block(None);
                }
                Next::Over => return,
            }
        }
    }

    /// Uses the GIL, and is away from it.
    fn do_next(&self, next: &Use) {
        self.use_gil(next);
        self.be_away(next);
    }

    fn use_gil(&self, next: &Use) {
        self.take_gil();
        self.world.began(self.number);
        self.compute_with_gil(next);
        self.drop_gil(Some(next.away_ns()));
        if next.replies {
            self.world.replied(self.number);
        }
    }

    /// Runs without the GIL, and waits.
    fn be_away(&self, next: &Use) {
        let world = self.world;
        let waits = self.with_started(next.waits);
        // What it waits for may come while it runs.
        let number = match waits {
            Waits::Until(until) => world.following.borrow().number(until),
            _ => 0,
        };
        if !next.ends_in_short_call() {
            world.falls_idle(self.number, next.away_runs_ns);
        }
        self.compute(next.away_runs_ns);
        match waits {
            Waits::Until(until) => self.wait_for(until, number),
            Waits::For(ns) => self.block(Some(ns)),
            Waits::Arrival | Waits::Start { .. } => {
                while !world.arrivals.borrow_mut().lets_in(self.number) {
                    self.block(None);
                }
            }
        }
    }

    /// Starts a thread, if that is what it is to do, and has somebody to start: what it waits for
    /// then.
    fn with_started(&self, waits: Waits) -> Waits {
        let Waits::Start { whom, start, sleeps_ns } = waits else { return waits };
        let instead = sleeps_ns.map_or(Waits::Arrival, Waits::For);
        let world = self.world;
        let thread = if let Some(thread) = whom {
            world.launches(thread, start.begins_ns);
            thread
        } else {
            let Some(thread) = world.arrivals.borrow_mut().starts(self.number) else {
                return instead;
            };
            world.after(thread, start.begins_ns);
            if world.is_client(thread) {
                // A job is handed on, which takes no time.
                return instead;
            }
            thread
        };
        let (begins, after_ns) = (Begins::Turn { turn: 1, awake: false }, start.goes_on_ns);
        Waits::Until(Until { thread, begins, after_ns, posted: true })
    }

    /// Waits until another thread has begun that use.
    fn wait_for(&self, until: Until, number: usize) {
        let now_ns = self.now_ns();
        let at_ns = self.world.following.borrow_mut().wait(self.number, until, number, now_ns);
        match at_ns {
            Some(at_ns) => self.block(Some(at_ns - now_ns)),
            None => self.block(None),
        }
        self.woken_by.set(until.posted.then_some(until.thread));
    }

    fn now_ns(&self) -> u64 {
        self.world.now_ns.get()
    }

    /// Lets the others run for `ns`, or until another thread wakes this one.
    fn suspend(&self, ns: Option<u64>) {
        if let Some(ns) = ns {
            self.world.after(self.number, ns);
        }
        self.yielder.suspend(());
    }

    /// The same without a processor.
    fn block(&self, ns: Option<u64>) {
        if ns == Some(0) {
            return;
        }
        let now_ns = self.now_ns();
        self.world.leaves(self.number);
        self.leave_processor();
        self.suspend(ns);
        self.take_processor();
        let slept_ns = self.now_ns() - now_ns;
        self.with_task(|task| task.slept_ns = slept_ns);
    }

    fn take_processor(&self) {
        let Some(processors) = &self.world.processors else { return };
        let has_one = processors.borrow_mut().take(self.number);
        if !has_one {
            self.suspend(None);
        }
        self.slice_ns.set(SLICE_NS);
    }

    fn leave_processor(&self) {
        let Some(processors) = &self.world.processors else { return };
        let next = processors.borrow_mut().leave(self.number);
        if let Some(next) = next {
            self.world.after(next, 0);
        }
    }

    /// Has used up its slice: lets others run, if there are any. What is left of the new one.
    fn slice_ns(&self, processors: &RefCell<Processors>) -> u64 {
        if self.slice_ns.get() == 0 {
            let are_wanted = processors.borrow().are_wanted();
            if are_wanted {
                self.leave_processor();
                self.take_processor();
            }
            self.slice_ns.set(SLICE_NS);
        }
        self.slice_ns.get()
    }

    /// Runs for `ns` without the GIL.
    fn compute(&self, ns: u64) {
        let mut left_ns = ns;
        while left_ns > 0 {
            left_ns -= self.compute_for_a_while(left_ns, left_ns, left_ns, false)[0];
        }
    }

    /// Uses the GIL, and lets go of it meanwhile if it is asked, but not in native code.
    fn compute_with_gil(&self, used: &Use) {
        let world = self.world;
        let (mut left_ns, mut runs_left_ns) = (used.wall_ns, used.runs_ns);
        let (mut comes, mut slow_ns) = (true, 0);
        while left_ns > 0 {
            if std::mem::take(&mut comes) {
                let ns = self.slow_ns(left_ns);
                (left_ns, runs_left_ns) = (left_ns + ns, runs_left_ns + ns);
                slow_ns += ns;
            }
            let mut until_ns = u64::MAX;
            if world.drop_requested.get() {
                let did_ns = used.wall_ns + slow_ns - left_ns;
                let behind = used.unanswered_ns.partition_point(|it| it[1] <= did_ns);
                let native = used.unanswered_ns.get(behind).filter(|it| it[0] <= did_ns);
                let native_ns = native.map_or(0, |[_, to_ns]| to_ns - did_ns);
                let answers_ns = world.answers_at_ns.get().saturating_sub(self.now_ns());
                until_ns = answers_ns.max(native_ns);
                if until_ns == 0 {
                    self.drop_gil(None);
                    self.take_gil();
                    comes = true;
                    continue;
                }
            }
            let [wall_ran_ns, ran_ns] =
                self.compute_for_a_while(until_ns.min(left_ns), left_ns, runs_left_ns, true);
            (left_ns, runs_left_ns) = (left_ns - wall_ran_ns, runs_left_ns - ran_ns);
        }
    }

    /// How much longer `ns` take because of what others did.
    fn slow_ns(&self, ns: u64) -> u64 {
        match self.world.gil {
            Gil::Free => 0,
            Gil::Scheduled(_) => self.world.coldness.borrow_mut().added_to(self.number, ns),
        }
    }

    /// Computes for `most_ns` at most of `wall_ns`, in which it runs for `runs_ns`. How long it
    /// did, and ran.
    fn compute_for_a_while(
        &self,
        most_ns: u64,
        wall_ns: u64,
        runs_ns: u64,
        with_gil: bool,
    ) -> [u64; 2] {
        let mut ns = most_ns;
        if let Some(processors) = &self.world.processors {
            ns = ns.min(self.slice_ns(processors));
        }
        let from_ns = self.now_ns();
        let computes = Some([from_ns, wall_ns, runs_ns]);
        self.with_task(|task| (task.heeds, task.computes) = (with_gil, computes));
        self.suspend(Some(ns));
        let did_ns = (self.now_ns() - from_ns).min(wall_ns);
        if self.world.processors.is_some() {
            self.slice_ns.set(self.slice_ns.get().saturating_sub(did_ns));
        }
        let ran_ns = part(runs_ns, did_ns, wall_ns);
        self.with_task(|task| {
            (task.heeds, task.computes) = (false, None);
            task.cpu_ns += ran_ns;
        });
        self.world.tally.borrow_mut().ran(self.number, ran_ns, with_gil);
        [did_ns, ran_ns]
    }

    fn with_task(&self, change: impl FnOnce(&mut Task)) {
        change(&mut self.world.tasks.borrow_mut()[self.number]);
    }

    fn take_gil(&self) {
        let world = self.world;
        match world.gil {
            Gil::Free => {
                let now_ns = self.now_ns();
                world.tally.borrow_mut().acquired(self.number, now_ns, false);
                return;
            }
            Gil::Scheduled(settings) if settings.policy == Policy::Stock => {
                if world.locked.get() {
                    self.begin_to_wait();
                    self.wait_as_in_cpython(settings);
                }
            }
            Gil::Scheduled(settings) => self.wait_in_line(settings),
        }
        world.locked.set(true);
        world.is_taken();
        let before = world.last_holder.replace(self.number);
        if before != self.number {
            world.switches.set(world.switches.get().wrapping_add(1));
            let forced_out = world.forced_out.replace(NOBODY);
            if forced_out != NOBODY {
                world.wake_switched(forced_out, self.number);
            }
        }
        world.drop_requested.set(false);
        self.was_forced.set(false);
        let now_ns = self.now_ns();
        let is_handoff = ![NOBODY, self.number].contains(&before);
        world.tally.borrow_mut().acquired(self.number, now_ns, is_handoff);
        self.woken_by.set(None);
        if is_scheduled(world.gil) {
            world.line.acquired(self, &self.account);
            self.with_task(|task| task.place_ns = self.account.get().place_ns());
        }
    }

    fn falls_asleep(&self) {
        let now_ns = self.now_ns();
        self.with_task(|task| task.sleeps_since_ns = now_ns);
        self.world.leaves(self.number);
    }

    fn begin_to_wait(&self) {
        let now_ns = self.now_ns();
        self.world.tally.borrow_mut().waits(self.number, now_ns);
        self.with_task(|task| task.falls_asleep = true);
    }

    fn wait_as_in_cpython(&self, settings: Settings) {
        while self.world.locked.get() {
            self.falls_asleep();
            self.leave_processor();
            self.world.wait_for_signal(self.number, settings);
            self.suspend(None);
            // From now on it waits for a processor, and a signal is for another.
            self.world.has_woken(self.number);
            self.take_processor();
            self.world.has_slept(self.number);
        }
    }

    /// As `take_gil` does it where the hook stands in for its calls.
    fn wait_in_line(&self, settings: Settings) {
        let world = self.world;
        let wait = || world.line.wait(self, settings, &self.account, false);
        let stands_back = self.was_forced.get() && world.line.is_granted();
        if world.locked.get() || stands_back {
            self.begin_to_wait();
        }
        if stands_back && !world.locked.get() {
            wait();
        }
        while world.locked.get() {
            let switches = world.switches.get();
            if wait() == Answer::AskToDrop && world.locked.get() && world.switches.get() == switches
            {
                world.request_drop(self.number);
            }
        }
    }

    /// Lets go of the GIL, for a call that takes so long or because it was asked.
    fn drop_gil(&self, away_ns: Option<u64>) {
        let world = self.world;
        let asked = world.drop_requested.get();
        let now_ns = self.now_ns();
        self.with_task(|task| (task.slept_ns, task.away_ns) = (0, away_ns.unwrap_or(u64::MAX)));
        let held_ns =
            world.tally.borrow_mut().released(self.number, now_ns, asked, away_ns.is_some());
        let Gil::Scheduled(settings) = world.gil else { return };
        world.coldness.borrow_mut().held(self.number, held_ns);
        world.locked.set(false);
        if settings.policy != Policy::Stock {
            world.line.released(self, settings, &self.account);
            self.with_task(|task| task.place_ns = self.account.get().place_ns());
            self.was_forced.set(asked);
            return;
        }
        world.signal(self.number);
        if asked && world.last_holder.get() == self.number {
            // FORCE_SWITCHING, after the system call that wakes the other.
            self.with_task(|task| task.sleeps_since_ns = now_ns + SIGNALS_NS);
            world.leaves_in(self.number, SIGNALS_NS);
            world.forced_out.set(self.number);
            self.block(None);
            world.goes_on(self.number);
        }
    }
}

fn is_scheduled(gil: Gil) -> bool {
    matches!(gil, Gil::Scheduled(settings) if settings.policy != Policy::Stock)
}

impl Host for Here<'_> {
    fn now_ns(&self) -> u64 {
        UPTIME_NS + self.world.now_ns.get()
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.world.tasks.borrow()[self.number].cpu_ns
    }

    fn sleep(&self, word: &AtomicU32, _expected: u32, timeout_ns: Option<u64>) -> bool {
        self.falls_asleep();
        self.leave_processor();
        self.world.sleepers.borrow_mut().insert(word, self.number);
        self.suspend(timeout_ns.map(|ns| self.world.timer_ns(ns).max(1)));
        self.world.sleepers.borrow_mut().remove(&std::ptr::from_ref(word));
        self.take_processor();
        self.world.has_slept(self.number);
        false
    }

    fn wake(&self, word: &AtomicU32) {
        let sleeper = self.world.sleepers.borrow_mut().remove(&std::ptr::from_ref(word));
        if let Some(sleeper) = sleeper {
            self.world.wake(sleeper, self.number);
        }
    }

    fn is_locked(&self) -> bool {
        self.world.locked.get()
    }

    fn switches(&self) -> u32 {
        self.world.switches.get()
    }

    fn drop_requested(&self) -> bool {
        self.world.drop_requested.get()
    }

    fn waker(&self) -> Option<Waker> {
        let number = self.woken_by.get()?;
        let place_ns = self.world.tasks.borrow()[number].place_ns;
        let is_holder = self.world.locked.get() && self.world.last_holder.get() == number;
        Some(Waker { place_ns, is_holder })
    }

    fn lock_taken(&self) -> Option<u32> {
        None
    }

    fn forget_locks(&self) {}
}
