//! All threads of a simulation, the time, and the GIL between them.

use super::Setting;
use super::arrivals::Arrivals;
use super::events::Events;
use super::following::Following;
use super::processors::Processors;
use super::requests::answered_after_ns;
use super::stock::Cond;
use super::supplies::Supplies;
use super::tally::{Outcome, Tally};
use crate::coldness::Coldness;
use crate::delays::Delays;
use crate::demand::{OWN_NS, Switches};
use crate::lengths::scaled;
use crate::plan::{Next, Planned};
use crate::rules::Gil;
use fastrand::Rng;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use ungil_core::atomic::AtomicU32;
use ungil_core::schedule::Line;

pub(super) const NOBODY: usize = usize::MAX;
/// It takes about so long to fall asleep. A thread that is woken before that goes on at once, if it
/// is warm.
const FALLS_ASLEEP_NS: u64 = 1_200;
const GOES_ON_NS: u64 = 1_000;
/// What it takes to wake another thread.
pub(super) const SIGNALS_NS: u64 = 1_500;
/// What it takes until the next thread runs on a processor whose thread has gone to sleep.
const SWITCHES_NS: u64 = 2_500;
/// The kernel puts nobody aside sooner.
const LEAST_SLICE_NS: u64 = 10_000;
/// Of so many that were put behind a thread some may have gone on meanwhile.
const MANY_BEHIND: usize = 64;
/// A thread that slept for so long finds a processor that has halted, and cold caches: it does the
/// little that lies between being woken and having the GIL as slowly as one that sleeps.
const COOLS_NS: u64 = 1_000_000;

/// A thread as the kernel sees it.
#[derive(Debug)]
pub(super) struct Task {
    /// Whether it computes with the GIL, and looks at requests.
    pub(super) heeds: bool,
    pub(super) cpu_ns: u64,
    /// When it last began to sleep for the GIL.
    pub(super) sleeps_since_ns: u64,
    /// The thread behind which it waits for a processor.
    pub(super) behind: Option<usize>,
    /// For how long it had slept when it last ran.
    pub(super) slept_ns: u64,
    /// Its place among those that share, when it had the GIL last.
    pub(super) place_ns: u64,
    /// Since when it computes, for how long, and how long it runs in that time.
    pub(super) computes: Option<[u64; 3]>,
    pub(super) answers: Arc<Delays>,
    pub(super) wake_ups: Arc<Delays>,
    pub(super) switches: Arc<Switches>,
    /// Its thread's place in the demand.
    source: usize,
    slice_ns: u64,
}

/// Those that wait for the processor of one thread.
#[derive(Clone, Debug, Default)]
struct Behind {
    threads: Vec<usize>,
    /// When the kernel puts that thread aside for all of them: it does so once a slice, however many
    /// they are.
    aside_at_ns: u64,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) gil: Gil,
    pub(super) line: Line,
    pub(super) cond: RefCell<Cond>,
    pub(super) events: RefCell<Events>,
    pub(super) following: RefCell<Following>,
    pub(super) arrivals: RefCell<Arrivals>,
    pub(super) supplies: RefCell<Supplies>,
    successors: Vec<Option<Next>>,
    pub(super) processors: Option<RefCell<Processors>>,
    pub(super) tasks: RefCell<Vec<Task>>,
    /// Who waits for the processor of each thread.
    behind: RefCell<Vec<Behind>>,
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
    pub(super) coldness: RefCell<Coldness>,
    pub(super) tally: RefCell<Tally>,
}

impl Task {
    fn is_warm(&self) -> bool {
        self.slept_ns < COOLS_NS
    }
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
            slept_ns: 0,
            behind: None,
            computes: None,
            answers: thread.answers.clone(),
            wake_ups: thread.wake_ups.clone(),
            switches: thread.switches.clone(),
            source: thread.source,
            slice_ns: thread.slice_ns,
        });
        Self {
            gil: setting.gil,
            line: Line::new(0),
            cond: RefCell::new(Cond::new(threads.len())),
            events: RefCell::new(events),
            following: RefCell::new(Following::new(threads.len())),
            arrivals: RefCell::new(Arrivals::new(threads.len())),
            supplies: RefCell::new(Supplies::new(threads)),
            successors: threads.iter().map(|thread| thread.successor).collect(),
            processors: setting
                .cores
                .map(|count| RefCell::new(Processors::new(count, threads.len()))),
            tasks: RefCell::new(tasks.collect()),
            behind: RefCell::new(vec![Behind::default(); threads.len()]),
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
            coldness: RefCell::new(setting.coldness),
        }
    }

    /// Thread `asker`, which waits, asks the holder to let go.
    pub(super) fn request_drop(&self, asker: usize) {
        if self.drop_requested.replace(true) {
            return;
        }
        let holder = self.last_holder.get();
        let tasks = self.tasks.borrow();
        let task = &tasks[holder];
        let mut random = self.random.borrow_mut();
        let answers_ns = task.answers.draw(&mut random);
        let answers_ns = answered_after_ns(answers_ns, tasks[asker].is_warm(), &mut random);
        let at_ns = self.now_ns.get().saturating_add(answers_ns);
        self.answers_at_ns.set(at_ns);
        if task.heeds {
            self.events.borrow_mut().hasten(holder, at_ns);
        }
    }

    /// Thread `number`, which slept for the GIL, runs.
    pub(super) fn has_slept(&self, number: usize) {
        let task = &mut self.tasks.borrow_mut()[number];
        task.slept_ns = self.now_ns.get().saturating_sub(task.sleeps_since_ns);
        task.behind = None;
    }

    /// Thread `number` sleeps from now on: one that waits for its processor has it.
    pub(super) fn leaves(&self, number: usize) {
        self.leaves_in(number, 0);
    }

    /// The same in `ns`.
    pub(super) fn leaves_in(&self, number: usize, ns: u64) {
        let at_ns = self.now_ns.get().saturating_add(ns).saturating_add(SWITCHES_NS);
        for behind in self.behind.borrow_mut()[number].threads.drain(..) {
            let task = &mut self.tasks.borrow_mut()[behind];
            if task.behind == Some(number) {
                task.behind = None;
                self.events.borrow_mut().hasten(behind, at_ns);
            }
        }
    }

    /// Thread `number`, which sleeps, is woken by another.
    pub(super) fn wake(&self, number: usize, by: usize) {
        if self.is_awake(number) {
            self.after(number, GOES_ON_NS);
        } else {
            self.wake_asleep(number, by);
        }
    }

    /// Thread `by` has the GIL that thread `number` was forced to let go of.
    pub(super) fn wake_switched(&self, number: usize, by: usize) {
        if self.is_awake(number) {
            self.after(number, GOES_ON_NS);
        } else {
            let delays = {
                let tasks = self.tasks.borrow();
                tasks[number].switches.after(tasks[by].source).clone()
            };
            self.wake_in(number, by, &delays);
        }
    }

    /// The same of one that is sure to sleep.
    pub(super) fn wake_asleep(&self, number: usize, by: usize) {
        let wake_ups = self.tasks.borrow()[number].wake_ups.clone();
        self.wake_in(number, by, &wake_ups);
    }

    fn wake_in(&self, number: usize, by: usize, delays: &Delays) {
        let after_ns = delays.draw(&mut self.random.borrow_mut());
        match after_ns {
            // Where processors are simulated it gets the next one.
            Delays::NEVER if self.processors.is_some() => self.after(number, SWITCHES_NS),
            Delays::NEVER => self.put_behind(number, by),
            _ => self.after(number, scaled(after_ns, self.wake_up_factor)),
        }
    }

    /// Thread `number` has the processor of thread `by` when that one sleeps, or is put aside: sooner if
    /// `number` has run less.
    fn put_behind(&self, number: usize, by: usize) {
        let part = {
            let tasks = &mut self.tasks.borrow_mut();
            tasks[number].behind = Some(by);
            tasks[number].cpu_ns as f64 / tasks[by].cpu_ns.max(1) as f64
        };
        self.waits_for_aside(number, by, part.sqrt().min(1.0));
        let tasks = self.tasks.borrow();
        let threads = &mut self.behind.borrow_mut()[by].threads;
        if threads.len() >= MANY_BEHIND && threads.len().is_power_of_two() {
            threads.retain(|one| tasks[*one].behind == Some(by));
        }
        threads.push(number);
    }

    /// Thread `number` goes on when thread `by` is put aside, which is once for all behind it: in this
    /// part of its slice at the latest.
    fn waits_for_aside(&self, number: usize, by: usize, part: f64) {
        let now_ns = self.now_ns.get();
        let aside_at_ns = &mut self.behind.borrow_mut()[by].aside_at_ns;
        if *aside_at_ns <= now_ns {
            let slice_ns = scaled(self.tasks.borrow()[by].slice_ns, part);
            let ns = self.random.borrow_mut().u64(..=slice_ns);
            *aside_at_ns = now_ns.saturating_add(ns.max(LEAST_SLICE_NS));
        }
        self.events.borrow_mut().plan(number, *aside_at_ns);
    }

    /// Whether thread `number`, which is to have the processor of another now, goes on waiting for it:
    /// that one is in a short call. If the kernel had put it aside there in the recording, the call
    /// would be a long one.
    pub(super) fn stays_behind(&self, number: usize) -> bool {
        let tasks = self.tasks.borrow();
        let is_in_short_call = |by: &usize| {
            let Task { computes, heeds, .. } = &tasks[*by];
            !heeds && computes.is_some_and(|[_, wall_ns, _]| wall_ns <= OWN_NS)
        };
        let Some(by) = tasks[number].behind.filter(is_in_short_call) else { return false };
        drop(tasks);
        self.waits_for_aside(number, by, 1.0);
        true
    }

    /// Whether thread `number`, which is about to sleep for the GIL, does not yet.
    pub(super) fn is_awake(&self, number: usize) -> bool {
        let task = &self.tasks.borrow()[number];
        task.is_warm() && self.now_ns.get().saturating_sub(task.sleeps_since_ns) < FALLS_ASLEEP_NS
    }

    /// Thread `number` goes on in `ns`.
    pub(super) fn after(&self, number: usize, ns: u64) {
        self.events.borrow_mut().plan(number, self.now_ns.get().saturating_add(ns));
    }

    /// Thread `number` begins.
    pub(super) fn begins(&self, number: usize) {
        self.arrivals.borrow_mut().begins(number);
        self.following.borrow_mut().begins(number);
        self.supplies.borrow_mut().begins(number);
    }

    /// Thread `number` begins to use the GIL.
    pub(super) fn began(&self, number: usize) {
        let (now_ns, mut events) = (self.now_ns.get(), self.events.borrow_mut());
        self.following.borrow_mut().began(number, now_ns, &mut events);
        self.supplies.borrow_mut().began(number, now_ns, &mut events);
    }

    /// Thread `number` arrives where `starter` is to start it. Whether that one will.
    pub(super) fn arrives(&self, number: usize, starter: usize) -> bool {
        let (now_ns, mut events) = (self.now_ns.get(), self.events.borrow_mut());
        self.arrivals.borrow_mut().arrives(number, starter, now_ns, &mut events)
    }

    /// Thread `number` has replied: its client asks again.
    pub(super) fn replied(&self, number: usize) {
        self.is_followed(number, true);
    }

    /// Thread `number` has ended.
    pub(super) fn ended(&self, number: usize) {
        let (now_ns, mut events) = (self.now_ns.get(), self.events.borrow_mut());
        self.following.borrow_mut().ended(number, now_ns, &mut events);
        self.arrivals.borrow_mut().ended(number, now_ns, &mut events);
        self.supplies.borrow_mut().ended(number, now_ns, &mut events);
        drop(events);
        self.is_followed(number, false);
    }

    fn is_followed(&self, number: usize, is_asked: bool) {
        let next = self.successors[number].filter(|next| next.is_asked == is_asked);
        if let Some(Next { thread, after_ns, .. }) = next {
            let at_ns = self.now_ns.get().saturating_add(after_ns);
            self.arrivals.borrow_mut().plan(thread, at_ns, &mut self.events.borrow_mut());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::planned;
    use crate::rules::Rules;
    use crate::tests::{MS, US, burst, demand, thread};

    /// Three threads that have run for equally long.
    fn world() -> World {
        let threads = vec![thread(0, &[burst(US, US)]); 3];
        let threads = planned(&demand(MS, threads), &Rules::of(Gil::Free));
        let setting = Setting {
            gil: Gil::Free,
            cores: None,
            wake_up_factor: 1.0,
            lateness: Delays::fixed(0),
            coldness: Coldness::NEVER,
            lasts_ns: MS,
            seed: 1,
        };
        let world = World::new(&threads, &setting);
        world.tasks.borrow_mut().iter_mut().for_each(|task| task.cpu_ns = MS);
        world
    }

    #[test]
    fn a_thread_is_put_aside_once_for_all_that_wait_for_its_processor() {
        let world = world();
        world.put_behind(1, 0);
        world.put_behind(2, 0);
        let mut events = world.events.borrow_mut();
        events.cancel(0);
        let (first, aside_at_ns) = events.next().unwrap();
        assert_eq!((first, events.next()), (1, Some((2, aside_at_ns))));
        assert!(aside_at_ns > 0);
    }

    #[test]
    fn who_waits_for_the_processor_of_a_thread_does_not_get_it_in_a_short_call_of_that_one() {
        let world = world();
        world.put_behind(1, 0);
        let (computes, heeds) = (Some([0, 20 * US, 20 * US]), false);
        {
            let task = &mut world.tasks.borrow_mut()[0];
            (task.computes, task.heeds) = (computes, heeds);
        }
        world.now_ns.set(4 * MS);
        assert!(world.stays_behind(1));
        world.tasks.borrow_mut()[0].heeds = true;
        assert!(!world.stays_behind(1));
        let mut events = world.events.borrow_mut();
        events.cancel(0);
        events.cancel(2);
        let (number, aside_at_ns) = events.next().unwrap();
        assert!(number == 1 && aside_at_ns > 4 * MS);
    }
}
