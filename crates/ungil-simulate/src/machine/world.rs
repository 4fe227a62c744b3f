//! All threads of a simulation, the time, and the GIL between them.

use super::Setting;
use super::events::Events;
use super::following::Following;
use super::processors::Processors;
use super::stock::Cond;
use super::tally::{Outcome, Tally};
use crate::delays::Delays;
use crate::lengths::scaled;
use crate::plan::Planned;
use crate::rules::Gil;
use fastrand::Rng;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use ungil_core::atomic::AtomicU32;
use ungil_core::schedule::Line;

pub(super) const NOBODY: usize = usize::MAX;
/// It takes about so long to fall asleep. A thread that is woken before that goes on at once.
const FALLS_ASLEEP_NS: u64 = 1_500;
const GOES_ON_NS: u64 = 1_000;

/// A thread as the kernel sees it.
#[derive(Debug)]
pub(super) struct Task {
    /// Whether it computes with the GIL, and looks at requests.
    pub(super) heeds: bool,
    pub(super) cpu_ns: u64,
    /// When it last began to sleep for the GIL.
    pub(super) sleeps_since_ns: u64,
    /// Its place among those that share, when it had the GIL last.
    pub(super) place_ns: u64,
    /// Since when it computes, for how long, and how long it runs in that time.
    pub(super) computes: Option<[u64; 3]>,
    pub(super) answers: Arc<Delays>,
    pub(super) wake_ups: Arc<Delays>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) gil: Gil,
    pub(super) line: Line,
    pub(super) cond: RefCell<Cond>,
    pub(super) events: RefCell<Events>,
    pub(super) following: RefCell<Following>,
    /// Who begins how long after the end of each thread.
    successors: Vec<Option<(usize, u64)>>,
    pub(super) processors: Option<RefCell<Processors>>,
    pub(super) tasks: RefCell<Vec<Task>>,
    /// Who sleeps on which word.
    pub(super) sleepers: RefCell<HashMap<*const AtomicU32, usize>>,
    pub(super) random: RefCell<Rng>,
    /// So many times as long as recorded threads take to wake up.
    wake_up_factor: f64,
    pub(super) lateness: Delays,
    pub(super) now_ns: Cell<u64>,
    // CPython's `struct _gil_runtime_state`.
    pub(super) locked: Cell<bool>,
    pub(super) last_holder: Cell<usize>,
    pub(super) switches: Cell<u32>,
    pub(super) drop_requested: Cell<bool>,
    /// When the holder looks at the request.
    pub(super) answers_at_ns: Cell<u64>,
    /// Who sleeps on `switch_cond`, or [`NOBODY`].
    pub(super) forced_out: Cell<usize>,
    pub(super) tally: RefCell<Tally>,
}

impl World {
    pub(super) fn new(threads: &[Planned], setting: &Setting) -> Self {
        let mut events = Events::new(threads.len());
        for (number, thread) in threads.iter().enumerate() {
            if let Some(at_ns) = thread.begins_ns {
                events.plan(number, at_ns);
            }
        }
        let tasks = threads.iter().map(|thread| Task {
            heeds: false,
            cpu_ns: 0,
            place_ns: 0,
            sleeps_since_ns: 0,
            computes: None,
            answers: thread.answers.clone(),
            wake_ups: thread.wake_ups.clone(),
        });
        Self {
            gil: setting.gil,
            line: Line::new(0),
            cond: RefCell::new(Cond::new(threads.len())),
            events: RefCell::new(events),
            following: RefCell::new(Following::new(threads.len())),
            successors: threads.iter().map(|thread| thread.successor).collect(),
            processors: setting
                .cores
                .map(|count| RefCell::new(Processors::new(count, threads.len()))),
            tasks: RefCell::new(tasks.collect()),
            sleepers: RefCell::default(),
            random: RefCell::new(Rng::with_seed(setting.seed)),
            wake_up_factor: setting.wake_up_factor,
            lateness: setting.lateness.clone(),
            now_ns: Cell::new(0),
            locked: Cell::new(false),
            last_holder: Cell::new(NOBODY),
            switches: Cell::new(0),
            drop_requested: Cell::new(false),
            answers_at_ns: Cell::new(0),
            forced_out: Cell::new(NOBODY),
            tally: RefCell::new(Tally::new(threads.len())),
        }
    }

    /// A waiter asks the holder to let go.
    pub(super) fn request_drop(&self) {
        if self.drop_requested.replace(true) {
            return;
        }
        let holder = self.last_holder.get();
        let task = &self.tasks.borrow()[holder];
        let answers_ns = task.answers.draw(&mut self.random.borrow_mut());
        let at_ns = self.now_ns.get().saturating_add(answers_ns);
        self.answers_at_ns.set(at_ns);
        if task.heeds {
            self.events.borrow_mut().hasten(holder, at_ns);
        }
    }

    /// Thread `number`, which sleeps, is woken.
    pub(super) fn wake(&self, number: usize) {
        let task = &self.tasks.borrow()[number];
        let after_ns = task.wake_ups.draw(&mut self.random.borrow_mut());
        let after_ns = scaled(after_ns, self.wake_up_factor);
        let is_awake = self.now_ns.get() - task.sleeps_since_ns < FALLS_ASLEEP_NS;
        self.after(number, if is_awake { after_ns.min(GOES_ON_NS) } else { after_ns });
    }

    /// Thread `number` goes on in `ns`.
    pub(super) fn after(&self, number: usize, ns: u64) {
        self.events.borrow_mut().plan(number, self.now_ns.get().saturating_add(ns));
    }

    /// Thread `number` has ended.
    pub(super) fn ended(&self, number: usize) {
        let (now_ns, mut events) = (self.now_ns.get(), self.events.borrow_mut());
        self.following.borrow_mut().ended(number, now_ns, &mut events);
        if let Some((successor, ns)) = self.successors[number] {
            events.plan(successor, now_ns.saturating_add(ns));
        }
    }

    /// A timer of `ns`, as late as timers are.
    pub(super) fn timer_ns(&self, ns: u64) -> u64 {
        ns.saturating_add(self.lateness.draw(&mut self.random.borrow_mut()))
    }

    /// What has happened until `ended_ns`.
    pub(super) fn outcome(&self, ended_ns: u64) -> Outcome {
        let mut tally = self.tally.borrow_mut();
        for (number, task) in self.tasks.borrow().iter().enumerate() {
            if let Some([since_ns, wall_ns, runs_ns]) = task.computes {
                let wall_ran_ns = ended_ns.saturating_sub(since_ns).min(wall_ns);
                tally.ran(number, part(runs_ns, wall_ran_ns, wall_ns), task.heeds);
            }
        }
        tally.outcome(ended_ns)
    }
}

/// The part of `ns` that `some` is of `all`.
pub(super) fn part(ns: u64, some: u64, all: u64) -> u64 {
    let part = u128::from(ns) * u128::from(some) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(ns)
}
