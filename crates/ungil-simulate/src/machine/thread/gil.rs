//! A thread and the GIL: what `take_gil` and `drop_gil` (`Python/ceval_gil.c`) do, and what the
//! scheduler of ungil needs of it.

use super::Here;
use crate::machine::world::{NOBODY, SIGNALS_NS};
use crate::plan::Use;
use crate::rules::Gil;
use ungil_core::atomic::AtomicU32;
use ungil_core::schedule::{Answer, Host, Policy, Settings, Waker};

/// What the clock shows at the beginning: the scheduler takes 0 for never.
const UPTIME_NS: u64 = 1_000_000_000;

impl Here<'_> {
    /// Uses the GIL, and lets go of it meanwhile if it is asked, but not in native code.
    pub(super) fn compute_with_gil(&self, used: &Use) {
        let world = self.world;
        let (mut left_ns, mut runs_left_ns) = (used.wall_ns, used.runs_ns);
        let (mut comes, mut slow_ns) = (true, 0);
        let mut posts = used.posts.iter().peekable();
        let mut stops = used.stops_ns.iter().peekable();
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
            // Others are woken after its own work, however slow it is.
            let done_ns = used.wall_ns.saturating_sub(left_ns);
            while let Some((_, at)) = posts.next_if(|(ns, _)| *ns <= done_ns) {
                world.has_reached(self.number, *at);
            }
            if stops.next_if(|ns| **ns <= done_ns).is_some() {
                comes = self.stops();
                continue;
            }
            let next_ns = [posts.peek().map(|it| it.0), stops.peek().map(|ns| **ns)];
            if let Some(ns) = next_ns.into_iter().flatten().min() {
                until_ns =
                    until_ns.min(left_ns.saturating_sub(used.wall_ns - ns.min(used.wall_ns)));
            }
            let [wall_ran_ns, ran_ns] =
                self.compute_for_a_while(until_ns.min(left_ns), left_ns, runs_left_ns, true);
            (left_ns, runs_left_ns) = (left_ns - wall_ran_ns, runs_left_ns - ran_ns);
        }
        for (_, at) in posts {
            world.has_reached(self.number, *at);
        }
    }

    /// How much longer `ns` take because of what others did.
    fn slow_ns(&self, ns: u64) -> u64 {
        match self.world.gil {
            Gil::Free => 0,
            Gil::Scheduled(_) => self.world.coldness.borrow_mut().added_to(self.number, ns),
        }
    }

    pub(super) fn take_gil(&self) {
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
    pub(super) fn drop_gil(&self, away_ns: Option<u64>) {
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
