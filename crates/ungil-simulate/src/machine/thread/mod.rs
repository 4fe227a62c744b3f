//! A thread, seen from inside.

mod processor;
mod gil;

use super::pools::Next;
use super::processors::SLICE_NS;
use super::world::{Task, World};
use crate::plan::{Begins, Planned, Until, Use, Waits};
use corosensei::Yielder;
use std::cell::Cell;
use ungil_core::schedule::Account;

pub(super) struct Here<'a> {
    world: &'a World,
    number: usize,
    thread: &'a Planned,
    yielder: &'a Yielder<(), ()>,
    account: Cell<Account>,
    /// Whether it let go of the GIL because it was asked.
    was_forced: Cell<bool>,
    /// Who woke it through a lock of the program since it last had the GIL.
    woken_by: Cell<Option<usize>>,
    /// Whether it has found what it would have slept for, and still has the GIL.
    keeps_gil: Cell<bool>,
    /// What is left of its slice of a processor.
    slice_ns: Cell<u64>,
}

impl<'a> Here<'a> {
    pub(super) fn new(
        world: &'a World,
        number: usize,
        yielder: &'a Yielder<(), ()>,
        thread: &'a Planned,
    ) -> Self {
        let mut account = Account::new();
        account.level = thread.level;
        Self {
            world,
            number,
            thread,
            yielder,
            account: Cell::new(account),
            was_forced: Cell::new(false),
            woken_by: Cell::new(None),
            keeps_gil: Cell::new(false),
            slice_ns: Cell::new(SLICE_NS),
        }
    }

    /// Does what the thread does.
    pub(super) fn live(&self) {
        let Self { world, thread, .. } = self;
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
        if self.keeps_gil.take() {
            self.drop_gil(None);
        }
        self.leave_processor();
    }

    /// Needs what others bring, and sleeps if nothing is there: whether it did.
    fn stops(&self) -> bool {
        let world = self.world;
        let Some(awaits) = &self.thread.awaits else { return false };
        if world.deliveries.borrow_mut().takes(self.number) {
            return false;
        }
        self.drop_gil(Some(u64::MAX));
        world.falls_idle(self.number, 0);
        self.wait_for_delivery(awaits.after_ns);
        self.take_gil();
        true
    }

    /// Waits until others have brought something, and goes on so long after that.
    fn wait_for_delivery(&self, after_ns: u64) {
        let deliveries = &self.world.deliveries;
        let Some(awaits) = &self.thread.awaits else { return };
        if deliveries.borrow_mut().has_to_sleep(self.number, after_ns) {
            self.block(Some(awaits.patience_ns));
            self.woken_by.set(deliveries.borrow_mut().is_awake(self.number));
        }
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
        if next.off_gil_ns > 0 && self.keeps_gil.take() {
            self.drop_gil(Some(next.off_gil_ns));
        }
        if !self.keeps_gil.take() {
            self.compute(next.off_gil_ns);
            self.take_gil();
        }
        if !next.goes_on {
            self.world.began(self.number);
        }
        self.compute_with_gil(next);
        // Who finds what it needs does not sleep, so it does not let go either.
        let finds = matches!(next.waits, Waits::Delivery { .. })
            && self.world.deliveries.borrow_mut().takes(self.number);
        self.keeps_gil.set(finds);
        if !finds {
            self.drop_gil(Some(next.away_ns()));
        }
        self.world.has_reached(self.number, next.end);
        if next.replies {
            self.world.replied(self.number);
        }
    }

    /// Runs without the GIL, and waits.
    fn be_away(&self, next: &Use) {
        let world = self.world;
        if self.keeps_gil.get() {
            return;
        }
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
            Waits::Wake(wake) => {
                if world.has_to_be_woken(self.number, wake) {
                    self.block(None);
                }
                self.woken_by.set(Some(wake.by));
            }
            Waits::Delivery { after_ns } => self.wait_for_delivery(after_ns),
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
        let Waits::Start { whom, start, after_all, sleeps_ns } = waits else { return waits };
        let instead = sleeps_ns.map_or(Waits::Arrival, Waits::For);
        let world = self.world;
        let thread = if let Some(thread) = whom {
            if after_all && world.has_to_wait_for_ends(self.number) {
                self.block(None);
            }
            world.launches(thread, self.number, start.begins_ns);
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
        if at_ns.is_none() {
            self.world.need_not_wait_for_ends(until.thread);
        }
        self.block(at_ns.map(|at_ns| at_ns - now_ns));
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

    fn with_task(&self, change: impl FnOnce(&mut Task)) {
        change(&mut self.world.tasks.borrow_mut()[self.number]);
    }
}
