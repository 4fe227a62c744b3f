//! `limit="auto"`: how many items should run at once.
//!
//! With more in flight the throughput grows until something is busy: this process, or a service that
//! the items share. From there on, the knee, more in flight only wait longer. [`Adaptive`] looks for
//! the knee while the run goes on:
//!
//! * It opens with all that may run if the items are known to go to hosts of their own, or to do
//!   nothing but sleep, and with a few if they may share a service ([`Opening`]).
//! * It grows by 1.8 a round as long as latencies do not, and beyond that in small steps, as
//!   described at [`search`]. Rounds are compared as a whole, because every host may be visited but
//!   once; hosts that are visited again are compared with themselves.
//! * It never goes beyond what keeps a processor busy (Little's law), nor the ceiling. Latencies that
//!   this process itself may be to blame for are not taken for those of a service.
//! * Slots of items that hang until they time out, while others come and go, do not count
//!   ([`overtaken`]): the limit is that of those that answer, and these.
//! * It goes back when items are turned away or time out more than usual, and when the event loop
//!   comes late.
//!
//! It has no clock and no randomness: the same calls lead to the same limits.

mod hosts;
mod jitter;
mod late;
mod opening;
mod overtaken;
mod processor;
mod release;
mod report;
mod resting;
mod round;
mod sample;
mod search;
mod stalled;
mod story;
mod trouble;

pub use jitter::{MOST_JITTER_NS, jitter};
pub use opening::{FEW, Opening};
pub use processor::Driver;
pub use report::{BackOff, Hold, Level, Reason, Report};
pub use sample::{Outcome, Sample, Ticket};

use hosts::Hosts;
use late::Late;
use opening::Start;
use overtaken::Overtaken;
use processor::Processor;
use release::Release;
use resting::Resting;
use round::Round;
use search::Search;
use stalled::Stalled;
use story::Story;
use trouble::{Answer, Trouble};

/// What an item is taken to wait before one has come back, ns: about what one over the internet does.
const WAIT_NS: f32 = 50_000_000.0;

/// On the ramp, slots are spread over this share of what an item takes if all take about the same. It
/// keeps them out of step, and costs a quarter of a round.
const SPREAD_ON_RAMP: f32 = 0.25;

/// What an adaptive limit is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The limit is never above this; zero counts as one.
    pub ceiling: usize,
    /// What the items are taken for before anything has come back.
    pub opening: Opening,
    /// How many are started at first if they may share a service.
    pub first: usize,
    /// How many are started at once at most where each goes to a host of its own.
    pub at_once: usize,
    /// Who lets items go on.
    pub driver: Driver,
    /// Processor time that the process has used before the run, ns.
    pub cpu_so_far: u64,
}

impl Settings {
    /// Of items that a loop drives, [`FEW`] at first.
    pub fn new(ceiling: usize, opening: Opening) -> Self {
        let (first, at_once, driver) = (FEW, usize::MAX, Driver::Loop);
        Self { ceiling, opening, first, at_once, driver, cpu_so_far: 0 }
    }
}

/// An adaptive limit. See the [module](self).
#[derive(Debug)]
pub struct Adaptive {
    ceiling: usize,
    at_once: usize,
    slots: Release,
    /// Whether the slots have been spread over the time that an item takes.
    spread: bool,
    in_flight: usize,
    overtaken: Overtaken,
    /// Until the first round at the full limit has been judged.
    opening: Option<Box<Start>>,
    round: Round,
    search: Search,
    hosts: Hosts,
    resting: Resting,
    trouble: Trouble,
    processor: Processor,
    story: Story,
    stalled: Stalled,
    late: Late,
}

impl Adaptive {
    /// A limit for a run that begins now.
    pub fn new(settings: Settings, now: u64) -> Self {
        let ceiling = settings.ceiling.max(1);
        let first = settings.first.clamp(1, ceiling);
        let at_once = settings.at_once.clamp(1, ceiling);
        let limit = if settings.opening == Opening::Hosts { at_once } else { first };
        let mut round = Round::default();
        round.open(1, first as f32, Search::first(first), now);
        Self {
            ceiling,
            at_once,
            slots: Release::at(limit),
            spread: false,
            in_flight: 0,
            overtaken: Overtaken::default(),
            opening: Some(Box::new(Start::new(settings.opening))),
            round,
            search: Search::new(),
            hosts: Hosts::default(),
            resting: Resting::default(),
            trouble: Trouble::new(limit as f32, now),
            processor: Processor::new(now, settings.cpu_so_far, settings.driver),
            story: Story::new(limit),
            stalled: Stalled::new(now),
            late: Late::default(),
        }
    }

    /// How many items may run now. Never zero.
    pub fn limit(&self) -> usize {
        let open = self.slots.open.saturating_sub(self.resting.len()).max(1);
        open.saturating_add(self.overtaken.hanging()).min(self.ceiling)
    }

    /// Those that hang from now on hold no slot.
    fn lets_go(&mut self, now: u64) {
        while let Some((started, items)) = self.overtaken.lets_go(now) {
            self.trouble.hang(started, items);
        }
    }

    /// The longest that the start of an item should be put off by [`jitter`], ns: a quarter of what
    /// items take, as far as that is known.
    pub fn most_jitter(&self) -> u64 {
        let share = self.search.latency_ns().map(|latency| whole_ns(jitter::OF_LATENCY * latency));
        share.map_or(MOST_JITTER_NS, |share| share.min(MOST_JITTER_NS))
    }

    /// How many run that do not hang: what a level is about.
    fn active(&self) -> usize {
        self.in_flight - self.overtaken.hanging().min(self.in_flight)
    }

    /// An item starts. The ticket belongs into the [`Sample`] of its end.
    pub fn started(&mut self, now: u64, group: Option<u64>) -> Ticket {
        if self.in_flight == 0 && self.story.finished == 0 {
            // What was done before the first start is not waiting.
            self.stalled.last_end = now;
        }
        self.in_flight += 1;
        let cohort = self.overtaken.started(now);
        self.lets_go(now);
        self.trouble.started();
        self.processor.started();
        self.processor.runs(self.active(), now);
        self.open_slots(now);
        if self.opening.is_some() {
            self.opens(now, group);
        }
        let is_member = self.round.enter(self.active(), now);
        let crowd = u32::try_from(self.active()).unwrap_or(u32::MAX);
        Ticket { round: self.round.number, is_member, cohort, crowd }
    }

    /// An attempt has ended.
    pub fn finished(&mut self, sample: Sample) {
        let now = sample.finished;
        self.in_flight = self.in_flight.saturating_sub(1);
        self.story.finished += 1;
        self.stalled.ended(now);
        self.open_slots(now);
        let latency_ns = now.saturating_sub(sample.started).max(1) as f32;
        let answered = sample.outcome != Outcome::Overloaded;
        let Ticket { round, is_member, cohort, .. } = sample.ticket;
        let hung = self.overtaken.ended(cohort, answered.then_some(latency_ns));
        self.lets_go(now);
        self.processor.finished(sample.cpu_so_far);
        self.processor.runs(self.active(), now);
        let (mut latency, mut own) = (None, None);
        if answered {
            let root = latency_ns.sqrt();
            latency = Some(root);
            own = sample.group.and_then(|group| self.hosts.visit(group, root, self.round.number));
        }
        if answered && !hung {
            self.trouble.completed(latency_ns);
        }
        if is_member && round == self.round.number {
            self.round.returns(now, latency, own);
        }
        if let Some(start) = &mut self.opening {
            start.ended(sample.group, latency_ns, sample.cpu_so_far);
            if is_member && round != self.round.number {
                let rung = start.rungs.get_mut(round.saturating_sub(1) as usize);
                if let Some(rung) = rung {
                    rung.returns(now, latency, own);
                }
            }
            self.judge_rungs(now);
        }
        let answer = match (hung, answered) {
            (true, _) => self.trouble.hung(!answered, now),
            (false, true) => None,
            (false, false) => self.refused(&sample),
        };
        if let Some(answer) = answer {
            self.answer(answer, now);
            return;
        }
        if self.round.ready(now) {
            self.judge(now);
        }
    }

    /// An item was turned away.
    fn refused(&mut self, sample: &Sample) -> Option<Answer> {
        let now = sample.finished;
        self.trouble.asked(sample.asked, now);
        let answer = self.trouble.refused(sample.started, sample.ticket.crowd as f32, now);
        let until = sample.started.saturating_add(whole_ns(self.wait_ns()));
        if until > now && self.trouble.is_unusual() && self.resting.len() < self.slots.open {
            self.resting.rest(until);
        }
        answer
    }

    /// What an item takes, as far as that is known.
    fn wait_ns(&self) -> f32 {
        self.search.latency_ns().or(self.processor.wait_ns).unwrap_or(WAIT_NS)
    }

    /// Opens the slots that are due.
    fn open_slots(&mut self, now: u64) {
        self.slots.advance(now);
        self.resting.wake(now);
    }

    /// Judges the round that goes on, and begins the next.
    fn judge(&mut self, now: u64) {
        let wait_ns = self.processor.round(self.opening.take().is_some());
        let place = self.round.place(|level| self.processor.own_ns(level));
        self.trouble.judged(now);
        if let Some(place) = place {
            self.story.level(place.level, wait_ns.unwrap_or(place.latency_ns()));
            let cap = (self.ceiling as f32).min(self.trouble.fence()).min(self.processor_cap());
            let level = self.slots.wanted as f32;
            let next = self.search.judged(place, level, cap);
            self.set(next, Reason::Latency, now);
        }
        self.next_round(place.as_ref(), now);
    }

    fn little(&self) -> Option<f32> {
        self.processor.little()
    }

    fn processor_cap(&self) -> f32 {
        self.processor.cap(self.slots.wanted as f32)
    }

    fn next_round(&mut self, place: Option<&round::Place>, now: u64) {
        let level = self.slots.wanted as f32;
        let sampling = self.search.sampling(place, level);
        self.round.open(self.round.number + 1, level, sampling, now);
    }

    /// Sets the limit.
    fn set(&mut self, level: f32, reason: Reason, now: u64) {
        let (from, to) = (self.slots.wanted, whole(level, self.ceiling));
        let spread_ns = match self.search.latency_ns() {
            Some(latency) if !self.search.ramping() => latency,
            Some(latency) if self.search.in_step() => SPREAD_ON_RAMP * latency,
            _ => 0.0,
        };
        if spread_ns > 0.0 && !self.spread && self.search.knee().is_some() {
            // Once for all slots, because the ramp has opened them in bursts.
            self.spread = true;
            if self.search.in_step() {
                self.slots = Release::at(1);
            }
        }
        self.slots.set(to, whole_ns(spread_ns), now);
        self.trouble.changed(to as f32, now);
        self.story.highest = self.story.highest.max(to);
        // A look at a lower level is no back-off.
        if reason != Reason::Latency || self.search.backed_off() {
            self.story.back_off(BackOff { at: now, from, to, reason });
        }
    }

    /// Items fail, or it turned out that they fail anyway.
    fn answer(&mut self, answer: Answer, now: u64) {
        self.opening = None;
        match answer {
            Answer::Lower(level) => {
                self.search.lowered();
                self.set(level, Reason::Failures, now);
            }
            Answer::Restore(level) => {
                self.search.restored();
                self.set(level, Reason::Latency, now);
            }
        }
        self.trouble.forget(now);
        self.next_round(None, now);
    }

    /// When [`tick`](Self::tick) is due if nothing starts or ends before.
    pub fn due(&self) -> Option<u64> {
        let full = self.is_full() && self.limit() < self.ceiling;
        let stalled = full.then(|| self.stalled_at());
        let rested = self.resting.due().filter(|_| full);
        let overtaken = self.overtaken.due().filter(|_| full);
        let known = self.round.due();
        [self.slots.due(), rested, stalled, overtaken, known].into_iter().flatten().min()
    }

    fn is_full(&self) -> bool {
        self.in_flight > 0 && self.in_flight >= self.limit()
    }

    /// Time has gone by. The limit may be higher than before.
    pub fn tick(&mut self, now: u64) {
        self.open_slots(now);
        self.lets_go(now);
        self.processor.runs(self.active(), now);
        if self.is_full() && now >= self.stalled_at() {
            self.goes_on_without_an_end(now);
        }
        if self.round.ready(now) {
            self.judge(now);
        }
    }
}

/// A level as a limit, between one and `most`.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "levels are positive, and what is too large is cut off anyway"
)]
fn whole(level: f32, most: usize) -> usize {
    (level.round() as usize).clamp(1, most)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are positive, and beyond the range the conversion saturates"
)]
fn whole_ns(time: f32) -> u64 {
    time as u64
}
