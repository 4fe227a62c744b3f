//! All threads of a simulation, the time, and the GIL between them.

use super::Setting;
use super::arrivals::Arrivals;
use super::behind::Behind;
use super::deliveries::Deliveries;
use super::events::Events;
use super::following::Following;
use super::launched::Launched;
use super::pools::Pools;
use super::processors::Processors;
use super::progress::Progresses;
use super::requests::answered_after_ns;
use super::stock::Cond;
use super::supplies::Supplies;
use super::tally::{Outcome, Tally};
use crate::coldness::Coldness;
use crate::delays::Delays;
use crate::demand::{End, FOR_LONG_NS, OWN_NS, Progress, Races, Switches, Wake};
use crate::lengths::scaled;
use crate::naps::Naps;
use crate::plan::{Next, Planned};
use crate::rules::Gil;
use fastrand::Rng;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use ungil_core::atomic::AtomicU32;
use ungil_core::schedule::Line;

pub(super) const NOBODY: usize = usize::MAX;
/// It takes about so long to fall asleep. A thread that is woken before that goes on so soon, if it is
/// warm: docs/decisions/0081-the-shortest-waits-take-four-microseconds.md.
const FALLS_ASLEEP_NS: u64 = 500;
const GOES_ON_NS: u64 = 4_000;
/// What it takes to wake another thread.
pub(super) const SIGNALS_NS: u64 = 1_500;
/// A thread that took longer to go on waited for the processor of another,
const BEHIND_NS: u64 = 60_000;
/// and went on so long after that one slept,
const SWITCHES_NS: u64 = 2_500;
/// or was moved to another one, not before that.
pub(crate) const MOVES_NS: u64 = 600_000;
/// A thread that goes away runs for so long at most before it sleeps, if it does not compute then.
const FALLS_IDLE_NS: u64 = 8_000;
/// One that ran for less than such a part of another's CPU time takes the processor from it.
const LIGHT: u64 = 2;
/// A thread that comes too late comes once another has the GIL. If nobody takes that, it comes so
/// long after the one that let go would have been back.
const COMES_ANYWAY_NS: u64 = 60_000;
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
    /// Whether it was awake until then: it wanted the GIL just then, or asked for it.
    pub(super) falls_asleep: bool,
    /// How long it will be away from the GIL that it lets go of.
    pub(super) away_ns: u64,
    /// For how long it had slept when it last ran.
    pub(super) slept_ns: u64,
    /// Its place among those that share, when it had the GIL last.
    pub(super) place_ns: u64,
    /// Since when it computes, for how long, and how long it runs in that time.
    pub(super) computes: Option<[u64; 3]>,
    pub(super) answers: Arc<Delays>,
    pub(super) races: Arc<Races>,
    pub(super) switches: Arc<Switches>,
    /// Its thread's place in the demand.
    source: usize,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) gil: Gil,
    pub(super) line: Line,
    pub(super) cond: RefCell<Cond>,
    pub(super) events: RefCell<Events>,
    pub(super) following: RefCell<Following>,
    pub(super) arrivals: RefCell<Arrivals>,
    pub(super) launched: RefCell<Launched>,
    progresses: RefCell<Progresses>,
    pub(super) deliveries: RefCell<Deliveries>,
    pub(super) supplies: RefCell<Supplies>,
    pub(super) pools: RefCell<Pools>,
    successors: Vec<Option<Next>>,
    pub(super) processors: Option<RefCell<Processors>>,
    pub(super) tasks: RefCell<Vec<Task>>,
    behind: RefCell<Behind>,
    displaces: bool,
    /// Woken threads that come once another has the GIL.
    late: RefCell<Vec<usize>>,
    /// Who sleeps on which word.
    pub(super) sleepers: RefCell<HashMap<*const AtomicU32, usize>>,
    pub(super) random: RefCell<Rng>,
    /// So many times as long as recorded threads take to wake up.
    wake_up_factor: f64,
    pub(super) lateness: Delays,
    naps: Naps,
    pub(super) now_ns: Cell<u64>,
    // CPython's `struct _gil_runtime_state`.
    pub(super) locked: Cell<bool>,
    pub(super) last_holder: Cell<usize>,
    pub(super) switches: Cell<u32>,
    pub(super) drop_requested: Cell<bool>,
    /// When the holder looks at the request.
    pub(super) answers_at_ns: Cell<u64>,
    /// Who asked it last, or [`NOBODY`] once that is over.
    asker: Cell<usize>,
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
        let pools = Pools::new(threads);
        let mut events = Events::new(threads.len() + pools.clients());
        pools.begin(&mut events);
        for (number, thread) in threads.iter().enumerate() {
            if let Some(at_ns) = thread.begins_ns {
                events.plan(number, at_ns);
            }
        }
        let mut progresses = Progresses::new(threads.len());
        for (number, thread) in threads.iter().enumerate() {
            if let Some(Wake { by, at, after_ns, .. }) = thread.begins_after {
                progresses.has_to_wait(number, by, at, after_ns);
            }
        }
        let tasks = threads.iter().map(|thread| Task {
            heeds: false,
            cpu_ns: 0,
            place_ns: 0,
            sleeps_since_ns: 0,
            slept_ns: 0,
            falls_asleep: false,
            away_ns: u64::MAX,
            computes: None,
            answers: thread.answers.clone(),
            races: thread.races.clone(),
            switches: thread.switches.clone(),
            source: thread.source,
        });
        Self {
            gil: setting.gil,
            line: Line::new(0),
            cond: RefCell::new(Cond::new(threads.len())),
            events: RefCell::new(events),
            following: RefCell::new(Following::new(threads.len())),
            arrivals: RefCell::new(Arrivals::new(threads.len())),
            launched: RefCell::new(Launched::new(threads.len())),
            progresses: RefCell::new(progresses),
            deliveries: RefCell::new(Deliveries::new(threads)),
            supplies: RefCell::new(Supplies::new(threads)),
            pools: RefCell::new(pools),
            successors: threads.iter().map(|thread| thread.successor).collect(),
            processors: setting
                .cores
                .map(|count| RefCell::new(Processors::new(count, threads.len()))),
            tasks: RefCell::new(tasks.collect()),
            behind: RefCell::new(Behind::new(threads.len())),
            displaces: setting.displaces,
            late: RefCell::default(),
            sleepers: RefCell::default(),
            random: RefCell::new(Rng::with_seed(setting.seed)),
            wake_up_factor: setting.wake_up_factor,
            lateness: setting.lateness.clone(),
            naps: setting.naps,
            now_ns: Cell::new(0),
            locked: Cell::new(false),
            last_holder: Cell::new(NOBODY),
            switches: Cell::new(0),
            drop_requested: Cell::new(false),
            answers_at_ns: Cell::new(0),
            asker: Cell::new(NOBODY),
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
        self.asker.set(asker);
        let holder = self.last_holder.get();
        let tasks = &mut self.tasks.borrow_mut();
        tasks[asker].falls_asleep = true;
        let mut random = self.random.borrow_mut();
        let answers_ns = tasks[holder].answers.draw(&mut random);
        let answers_ns = answered_after_ns(answers_ns, tasks[asker].is_warm(), &mut random);
        let at_ns = self.now_ns.get().saturating_add(answers_ns);
        self.answers_at_ns.set(at_ns);
        if tasks[holder].heeds {
            self.events.borrow_mut().hasten(holder, at_ns);
        }
    }

    /// Thread `number`, which slept for the GIL, runs.
    pub(super) fn has_slept(&self, number: usize) {
        self.late.borrow_mut().retain(|late| *late != number);
        let task = &mut self.tasks.borrow_mut()[number];
        task.slept_ns = self.now_ns.get().saturating_sub(task.sleeps_since_ns);
        task.falls_asleep = false;
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
            return;
        }
        let after_ns = {
            let tasks = self.tasks.borrow();
            let delays = tasks[number].switches.after(tasks[by].source);
            delays.draw(&mut self.random.borrow_mut())
        };
        let asker = self.asker.replace(NOBODY);
        if after_ns > BEHIND_NS {
            self.goes_on_in(number, after_ns.max(MOVES_NS));
            self.behind.borrow_mut().wait(number, by);
            return;
        }
        self.goes_on_in(number, after_ns);
        if self.displaces && ![NOBODY, number, by].contains(&asker) {
            self.displaces(by, asker);
        }
    }

    /// Thread `by` was woken and has the GIL. If the one that let go has kept its processor, it has
    /// that of thread `asker`, which had asked and was about to sleep again. So that one is still
    /// awake, and goes on when the other sleeps. (The kernel prefers who has run for less.)
    fn displaces(&self, by: usize, asker: usize) {
        let is_light = {
            let tasks = self.tasks.borrow();
            tasks[by].cpu_ns.saturating_mul(LIGHT) < tasks[asker].cpu_ns
        };
        if is_light && self.cond.borrow_mut().leave(asker) {
            self.after(asker, MOVES_NS);
            self.behind.borrow_mut().wait(asker, by);
        }
    }

    /// Thread `number` goes on after a time that was recorded. Where processors are simulated, it does
    /// not wait for one of the recording.
    fn goes_on_in(&self, number: usize, ns: u64) {
        let waits = self.processors.is_some() && ns > BEHIND_NS;
        let ns = if waits { SWITCHES_NS } else { ns };
        self.after(number, scaled(ns, self.wake_up_factor));
    }

    /// Thread `number` sleeps in `ns`: those that wait for its processor have it.
    pub(super) fn leaves_in(&self, number: usize, ns: u64) {
        let at_ns = self.now_ns.get().saturating_add(ns).saturating_add(SWITCHES_NS);
        for freed in self.behind.borrow_mut().freed(number) {
            self.events.borrow_mut().hasten(freed, at_ns);
        }
    }

    /// Thread `number` is about to sleep, not for the GIL, and runs for so long before or after that:
    /// what others waited for is done.
    pub(super) fn falls_idle(&self, number: usize, runs_ns: u64) {
        let (now_ns, mut events) = (self.now_ns.get(), self.events.borrow_mut());
        self.following.borrow_mut().sleeps(number, now_ns, &mut events);
        drop(events);
        if runs_ns <= OWN_NS {
            self.leaves_in(number, runs_ns.min(FALLS_IDLE_NS));
        }
    }

    /// Its processor is free now.
    pub(super) fn leaves(&self, number: usize) {
        self.leaves_in(number, 0);
    }

    /// Thread `number` goes on.
    pub(super) fn goes_on(&self, number: usize) {
        self.behind.borrow_mut().goes_on(number);
    }

    /// Thread `number`, which sleeps, is woken by one that has let go of the GIL, and may be back
    /// before it.
    pub(super) fn wake_asleep(&self, number: usize, by: usize) {
        let (end, away_ns) = {
            let tasks = self.tasks.borrow();
            let Task { away_ns, source, .. } = tasks[by];
            let slept_ns = self.now_ns.get().saturating_sub(tasks[number].sleeps_since_ns);
            let random = &mut self.random.borrow_mut();
            (tasks[number].races.draw(source, away_ns, slept_ns, self.naps, random), away_ns)
        };
        match end {
            End::Woken(ns) | End::Later(ns) => self.goes_on_in(number, ns.into()),
            End::TooLate => {
                self.late.borrow_mut().push(number);
                self.after(number, away_ns.min(FOR_LONG_NS.into()) + COMES_ANYWAY_NS);
            }
        }
    }

    /// A thread has the GIL: those that were woken for it come too late.
    pub(super) fn is_taken(&self) {
        for late in self.late.borrow_mut().drain(..) {
            self.events.borrow_mut().hasten(late, self.now_ns.get());
        }
    }

    /// Whether thread `number`, which is about to sleep for the GIL, does not yet.
    pub(super) fn is_awake(&self, number: usize) -> bool {
        let task = &self.tasks.borrow()[number];
        let may_be = task.falls_asleep && task.is_warm();
        may_be && self.now_ns.get().saturating_sub(task.sleeps_since_ns) < FALLS_ASLEEP_NS
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

    /// Thread `number` has got so far.
    pub(super) fn has_reached(&self, number: usize, at: Progress) {
        let (now_ns, mut events) = (self.now_ns.get(), self.events.borrow_mut());
        self.progresses.borrow_mut().reached(number, at, now_ns, &mut events);
        self.deliveries.borrow_mut().reached(number, at, now_ns, &mut events);
    }

    /// Whether thread `number` has to wait for another to wake it, which it does then.
    pub(super) fn has_to_be_woken(
        &self,
        number: usize,
        Wake { by, at, after_ns, .. }: Wake,
    ) -> bool {
        self.progresses.borrow_mut().has_to_wait(number, by, at, after_ns)
    }

    /// Whether thread `number` waits until all that it has started have ended. Who waits for it would
    /// wait for ever.
    pub(super) fn has_to_wait_for_ends(&self, number: usize) -> bool {
        !self.following.borrow().is_waited_for(number)
            && self.launched.borrow_mut().has_to_wait(number)
    }

    /// Thread `number` does not wait for that any longer: a thread waits for a use of it.
    pub(super) fn need_not_wait_for_ends(&self, number: usize) {
        if self.launched.borrow_mut().need_not_wait(number) {
            self.after(number, 0);
        }
    }

    /// Thread `number` is started, and begins in `ns`, or at its end if it lives still.
    pub(super) fn launches(&self, number: usize, by: usize, ns: u64) {
        self.launched.borrow_mut().begins(number, by);
        let at_ns = self.now_ns.get().saturating_add(ns);
        self.following.borrow_mut().begins(number);
        self.arrivals.borrow_mut().plan(number, at_ns, &mut self.events.borrow_mut());
    }

    /// Thread `number` arrives where `starter` is to start it. Whether that one will.
    pub(super) fn arrives(&self, number: usize, starter: usize) -> bool {
        let (now_ns, mut events) = (self.now_ns.get(), self.events.borrow_mut());
        self.arrivals.borrow_mut().arrives(number, starter, now_ns, &mut events)
    }

    /// Whether that is no thread but a client of a pool.
    pub(super) fn is_client(&self, number: usize) -> bool {
        self.pools.borrow().is_client(number)
    }

    /// What client `number` of a pool asks for arrives.
    pub(super) fn arrives_at_pool(&self, number: usize) {
        let (now_ns, mut events) = (self.now_ns.get(), self.events.borrow_mut());
        let mut arrivals = self.arrivals.borrow_mut();
        self.pools.borrow_mut().arrives(number, now_ns, &mut arrivals, &mut events);
    }

    /// Thread `number` of a pool has answered what it works for.
    pub(super) fn answered(&self, number: usize) {
        let (now_ns, mut events) = (self.now_ns.get(), self.events.borrow_mut());
        self.pools.borrow_mut().answered(number, now_ns, &mut events);
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
        self.progresses.borrow_mut().ended(number, now_ns, &mut events);
        drop(events);
        if let Some(by) = self.launched.borrow_mut().ended(number) {
            self.after(by, 0);
        }
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
        let late_ns = self.lateness.draw(&mut self.random.borrow_mut());
        ns.saturating_add(self.naps.timer_late_ns(late_ns, ns))
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
