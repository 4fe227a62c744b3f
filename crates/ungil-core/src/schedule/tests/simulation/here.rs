//! A thread, seen from inside.

use super::world::{Task, World};
use crate::atomic::AtomicU32;
use crate::schedule::tests::queues::Posted;
use crate::schedule::tests::workload::{Act, Hold, Sliced, Step, Then, Thread, Wait};
use crate::schedule::{Account, Answer, Host, Slice, Waker};
use corosensei::Yielder;
use std::cell::{Cell, RefCell};
use std::ptr::null;

/// What the clock shows at the beginning.
const UPTIME_NS: u64 = 1_000_000_000;

pub struct Here<'a> {
    pub world: &'a World,
    pub number: usize,
    yielder: &'a Yielder<(), ()>,
    account: Cell<Account>,
    /// Whether it let go of the GIL because it was asked.
    was_forced: Cell<bool>,
    /// Who woke it since it last had the GIL.
    woken_by: Cell<Option<Posted>>,
    slice: Cell<Slice>,
    /// The mutexes that it has, and how many it has taken.
    pub mutexes: RefCell<Vec<usize>>,
    pub mutexes_taken: Cell<u32>,
}

impl<'a> Here<'a> {
    pub fn new(world: &'a World, number: usize, yielder: &'a Yielder<(), ()>) -> Self {
        Self {
            world,
            number,
            yielder,
            account: Cell::new(Account::new()),
            was_forced: Cell::new(false),
            woken_by: Cell::new(None),
            slice: Cell::new(Slice::Own),
            mutexes: RefCell::default(),
            mutexes_taken: Cell::new(0),
        }
    }

    /// Does what the thread does.
    pub fn live(&self, thread: &Thread) {
        loop {
            let mut account = Account::new();
            account.level = thread.level;
            self.account.set(account);
            self.has_slice(Slice::Own);
            loop {
                for step in &thread.steps {
                    match step {
                        Step::Compute(ns) => self.with_gil(|| self.compute(*ns, true)),
                        Step::Hold(ns) => self.with_gil(|| self.compute(*ns, false)),
                        Step::Block(ns) => self.pause(Some(*ns)),
                        Step::Use(acts) => {
                            self.with_gil(|| acts.iter().for_each(|act| self.act(*act)));
                        }
                    }
                }
                if thread.then != Then::Repeat {
                    break;
                }
            }
            if thread.then == Then::Exit {
                return;
            }
        }
    }

    fn with_gil(&self, work: impl FnOnce()) {
        self.take_gil();
        work();
        self.drop_gil();
    }

    fn act(&self, act: Act) {
        match act {
            Act::Compute(ns) => self.compute(ns, true),
            Act::ComputeLocked(ns) => {
                self.world.locks.take(self, self.world.mutex, None);
                self.compute(ns, true);
                self.world.locks.post(self, self.world.mutex);
            }
            Act::Put(queue) => self.world.queues[queue].put(self),
            Act::Get(queue) => self.world.queues[queue].get(self, None),
            Act::GetWithin(queue, ns) => self.world.queues[queue].get(self, Some(ns)),
        }
    }

    /// Lets the others run for `ns`, or until another thread schedules this one.
    pub fn pause(&self, ns: Option<u64>) {
        if let Some(ns) = ns {
            self.world.schedule(self.number, ns);
        }
        self.yielder.suspend(());
    }

    /// With the GIL, which it lets go of meanwhile if it heeds requests.
    pub fn compute(&self, ns: u64, heeds: bool) {
        let mut left_ns = ns;
        while left_ns > 0 {
            if heeds && self.world.drop_requested.get() {
                self.drop_gil();
                self.take_gil();
            }
            let from_ns = self.world.now_ns.get();
            self.task(|task| task.heeds = heeds);
            self.pause(Some(left_ns));
            let ran_ns = self.world.now_ns.get() - from_ns;
            left_ns -= ran_ns;
            self.task(|task| {
                task.heeds = false;
                task.cpu_ns += ran_ns;
            });
        }
    }

    /// The calling thread has let go of a lock.
    pub fn posted(&self) -> Posted {
        Posted { thread: self.number, place_ns: self.account.get().place_ns() }
    }

    /// The calling thread has waited for a lock without the GIL.
    pub fn was_woken(&self, by: Posted) {
        self.woken_by.set(Some(by));
    }

    pub fn take_gil(&self) {
        let world = self.world;
        let stands_back = if world.line.is_spared() {
            world.last_holder.get() != self.number
        } else {
            self.was_forced.get() && world.line.is_granted()
        };
        if world.locked.get() || stands_back {
            self.come_to_wait();
        }
        if stands_back && !world.locked.get() {
            self.wait_in_line();
        }
        while world.locked.get() {
            let switches = world.switches.get();
            let answer = self.wait_in_line();
            if answer == Answer::AskToDrop && world.locked.get() && world.switches.get() == switches
            {
                self.request_drop();
            }
        }
        world.locked.set(true);
        if world.last_holder.replace(self.number) != self.number {
            world.switches.set(world.switches.get() + 1);
        }
        world.drop_requested.set(false);
        self.was_forced.set(false);
        self.woken_by.set(None);
        world.line.acquired(self, &self.account);
        self.note_taken();
    }

    fn wait_in_line(&self) -> Answer {
        let line = &self.world.line;
        self.has_slice(line.slice(&self.account, self.slice.get()));
        line.wait(self, self.world.settings(), &self.account, false)
    }

    fn has_slice(&self, slice: Slice) {
        if self.slice.replace(slice) != slice {
            let from_ns = self.world.now_ns.get();
            let sliced = Sliced { thread: self.number, from_ns, slice };
            self.world.outcome.borrow_mut().slices.push(sliced);
        }
    }

    pub fn drop_gil(&self) {
        let world = self.world;
        world.locked.set(false);
        world.line.released(self, world.settings(), &self.account);
        self.note_dropped();
        if world.drop_requested.get() {
            self.was_forced.set(true);
        }
    }

    fn request_drop(&self) {
        let world = self.world;
        if world.drop_requested.replace(true) {
            return;
        }
        world.outcome.borrow_mut().requests += 1;
        let holder = world.last_holder.get();
        if world.tasks.borrow()[holder].heeds {
            world.schedule(holder, world.drop_ns);
        }
    }

    fn come_to_wait(&self) {
        self.world.waiting.set(self.world.waiting.get() + 1);
        let from_ns = self.world.now_ns.get();
        let wait = Wait { thread: self.number, from_ns, to_ns: from_ns, overtaken: 0 };
        self.task(|task| task.wait = Some(wait));
    }

    fn note_taken(&self) {
        let (world, now_ns) = (self.world, self.world.now_ns.get());
        let mut outcome = world.outcome.borrow_mut();
        if world.waiting.get() > 0 {
            outcome.idle_ns = outcome.idle_ns.max(now_ns - world.freed_ns.get());
        }
        if let Some(wait) = self.task(|task| task.wait.take()) {
            outcome.waits.push(Wait { to_ns: now_ns, ..wait });
            world.waiting.set(world.waiting.get() - 1);
        } else {
            let mut tasks = world.tasks.borrow_mut();
            tasks
                .iter_mut()
                .filter_map(|task| task.wait.as_mut())
                .for_each(|wait| wait.overtaken += 1);
        }
        outcome.holds.push(Hold { thread: self.number, from_ns: now_ns, to_ns: now_ns });
    }

    fn note_dropped(&self) {
        let world = self.world;
        world.freed_ns.set(self.world.now_ns.get());
        if let Some(hold) = world.outcome.borrow_mut().holds.last_mut() {
            hold.to_ns = self.world.now_ns.get();
        }
    }

    fn task<T>(&self, look: impl FnOnce(&mut Task) -> T) -> T {
        look(&mut self.world.tasks.borrow_mut()[self.number])
    }
}

impl Host for Here<'_> {
    fn now_ns(&self) -> u64 {
        UPTIME_NS + self.world.now_ns.get()
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.world.outcome.borrow_mut().cpu_reads += 1;
        self.task(|task| task.cpu_ns)
    }

    fn sleep(&self, word: &AtomicU32, _expected: u32, timeout_ns: Option<u64>) -> bool {
        self.task(|task| task.word = word);
        self.pause(timeout_ns);
        self.world.line.adopt(self, self.world.settings());
        self.task(|task| {
            task.word = null();
            std::mem::take(&mut task.interrupted)
        })
    }

    fn wake(&self, word: &AtomicU32) {
        self.world.outcome.borrow_mut().wakes += 1;
        let is_meant = |task: &Task| std::ptr::eq(task.word, word);
        let sleeper = self.world.tasks.borrow().iter().position(is_meant);
        if let Some(sleeper) = sleeper {
            self.world.tasks.borrow_mut()[sleeper].word = null();
            self.world.schedule(sleeper, self.world.wake_ns);
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
        let Posted { thread, place_ns } = self.woken_by.get()?;
        let is_holder = self.world.locked.get() && self.world.last_holder.get() == thread;
        Some(Waker { place_ns, is_holder })
    }

    fn lock_taken(&self) -> Option<u32> {
        (!self.mutexes.borrow().is_empty()).then(|| self.mutexes_taken.get())
    }

    fn forget_locks(&self) {
        self.mutexes.borrow_mut().clear();
    }
}
