//! Which threads a simulation has, and what each of them does.

mod queue;

pub(crate) use queue::Queue;

use crate::delays::Delays;
use crate::demand::{
    Burst, Consumer, Demand, Link, OWN_NS, Races, Start, Starter, Switches, Thread, Unanswered,
};
use crate::lengths::scaled;
use crate::rules::{Change, Gil, Rules};
use std::ops::Range;
use std::sync::Arc;
use ungil_core::schedule::Level;

/// A thread of a simulation.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Its place in the demand.
    pub(crate) source: usize,
    /// `None` if it is a successor of another.
    pub(crate) begins_ns: Option<u64>,
    pub(crate) successor: Option<Next>,
    /// Who starts it when it has arrived there.
    pub(crate) started_by: Option<usize>,
    /// At the end of which use it has replied.
    replies: Option<usize>,
    starter: Option<Arc<Starter>>,
    /// What it lives on, and its sleeps there.
    pub(crate) lives_on: Option<(Arc<Queue>, Consumer)>,
    bursts: Arc<[Burst]>,
    unanswered: Arc<[Unanswered]>,
    /// Where it begins.
    first: usize,
    /// What it does again and again.
    again: Option<Again>,
    work: f64,
    away_runs_ns: u64,
    /// Whether the kernel runs the holder as it was recorded.
    as_recorded: bool,
    /// Whether it is slow after others, as it was when it was recorded.
    is_slowed: bool,
    /// By their places in the demand.
    leaders: Arc<[Option<Leader>]>,
    /// A copy of a thread waits for nobody: there is no copy of what it waited for.
    is_copy: bool,
    pub(crate) level: Level,
    pub(crate) answers: Arc<Delays>,
    pub(crate) races: Arc<Races>,
    pub(crate) switches: Arc<Switches>,
}

/// Which thread begins after another, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub(crate) thread: usize,
    pub(crate) after_ns: u64,
    /// Whether that is after the reply of the other, and not after its end.
    pub(crate) is_asked: bool,
}

/// One use of the GIL in a simulation, and the time away from it that follows.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) wall_ns: u64,
    /// The part of it in which the thread runs.
    pub(crate) runs_ns: u64,
    /// The parts of it, from and to, in which the thread does not let go whoever asks: one behind
    /// the other.
    pub(crate) unanswered_ns: Vec<[u64; 2]>,
    /// Whether the thread has replied then.
    pub(crate) replies: bool,
    /// Then it runs without the GIL,
    pub(crate) away_runs_ns: u64,
    /// and waits.
    pub(crate) waits: Waits,
}

impl Use {
    /// How long the thread is away after it, where that does not hang on others.
    pub(crate) fn away_ns(&self) -> u64 {
        match self.waits {
            Waits::For(ns) => self.away_runs_ns.saturating_add(ns),
            _ => u64::MAX,
        }
    }

    /// Whether the thread hardly sleeps after it.
    pub(crate) fn ends_in_short_call(&self) -> bool {
        self.away_ns() <= OWN_NS
    }
}

/// What a thread waits for after a use of the GIL.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waits {
    /// It sleeps for so long.
    For(u64),
    /// For another thread.
    Until(Until),
    /// For something to arrive.
    Arrival,
    /// It starts a thread for what has arrived, and waits until that one runs. If nothing has, it
    /// sleeps for so long.
    Start(Start, u64),
}

/// A thread waits until so long after the beginning of a use of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    pub(crate) thread: usize,
    pub(crate) begins: Begins,
    pub(crate) after_ns: u64,
    /// Whether that one wakes it through a lock of the program.
    pub(crate) posted: bool,
}

/// Which use of another thread one waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begins {
    /// That of this number; its uses are counted from 0 on. So two threads that wait for each other
    /// always find what they wait for.
    Number(usize),
    /// The how many-th from when on it waits; 1 is the next one. Of a thread that waits for nobody
    /// that comes in any case, at its own pace. One that was `awake` all the time had done what it was
    /// waited for before it slept, however many uses that took.
    Turn { turn: usize, awake: bool },
}

/// A thread that others wait for, as often as it goes on anew.
#[derive(Clone, Debug)]
struct Leader {
    /// Its place among those that are planned.
    thread: usize,
    follows: bool,
    again: Option<Again>,
}

/// Where a thread is in what it does.
#[derive(Clone, Copy, Debug)]
struct Place {
    burst: usize,
    /// After which one that came in the recording what it waits for then; the one before a new round
    /// may be another.
    waits_as_after: Option<usize>,
    round: usize,
}

/// The uses that a thread does over and over, and the time away between two rounds.
#[derive(Clone, Debug)]
struct Again {
    uses: Range<usize>,
    away_ns: u64,
    /// What it waits for before a new round.
    after: Option<Link>,
}

/// A thread goes on from its beginning only if that is not over in no time: in this part of the
/// run at least.
const AGAIN_PART: u64 = 1_000;

/// So much of the work of a thread that does the same throughout is in the middle of the run.
const STEADY_PART: f64 = 0.6;

/// Nobody falls asleep and wakes up in less time.
const LEAST_SLEEP_NS: u64 = 20_000;

/// How many threads `demand` has under `rules`.
pub(crate) fn count(demand: &Demand, rules: &Rules) -> usize {
    let mut times = vec![1usize; demand.threads.len()];
    for (of, change) in &rules.changes {
        if let (Some(times), Change::Times(count)) = (times.get_mut(*of), change) {
            *times = times.saturating_mul(*count);
        }
    }
    times.into_iter().fold(0, usize::saturating_add)
}

/// The threads of `demand` under `rules`.
pub(crate) fn planned(demand: &Demand, rules: &Rules) -> Vec<Planned> {
    let mut all = Vec::new();
    for (source, thread) in demand.threads.iter().enumerate() {
        if rules.without.contains(&source) || thread.bursts.is_empty() {
            continue;
        }
        let changes = rules.changes.iter().filter(|(of, _)| *of == source).map(|(_, it)| it);
        let (mut work, mut times) = (1.0, 1);
        for change in changes {
            match *change {
                Change::Work(factor) => work *= factor.max(0.0),
                Change::Times(count) => times *= count,
            }
        }
        let level = rules.levels.iter().find(|(of, _)| *of == source).map(|(_, level)| *level);
        let again = again(thread, demand.lasts_ns, work, rules);
        let switches = Arc::new(thread.switches.clone());
        // Copies that did the same at the same time would all want the GIL at once. But one whose work
        // is not what it does over and over has to do all of it, from its beginning.
        let apart = again.as_ref().filter(|again| times > 1 && again.is_its_work(&thread.bursts));
        for copy in 0..times {
            let first = match apart {
                Some(Again { uses, .. }) if copy > 0 => uses.start + uses.len() * copy / times,
                _ => 0,
            };
            all.push(Planned {
                source,
                begins_ns: Some(thread.begins_ns),
                successor: None,
                started_by: None,
                replies: thread.started.map(|it| it.replies as usize),
                starter: thread.starter.clone().filter(|_| copy == 0),
                lives_on: None,
                bursts: thread.bursts.clone(),
                unanswered: thread.unanswered.clone(),
                first,
                again: again.clone(),
                work,
                away_runs_ns: thread.away_runs_ns(),
                as_recorded: rules.cores.is_none(),
                is_slowed: rules.gil != Gil::Free,
                leaders: [].into(),
                is_copy: copy > 0,
                level: level.unwrap_or_default(),
                answers: thread.answers.clone(),
                races: thread.races.clone(),
                switches: switches.clone(),
            });
        }
    }
    let mut leaders = vec![None; demand.threads.len()];
    for (number, thread) in all.iter().enumerate().filter(|(_, thread)| !thread.is_copy) {
        let follows = demand.threads[thread.source].follows;
        leaders[thread.source] =
            Some(Leader { thread: number, follows, again: thread.again.clone() });
    }
    let leaders: Arc<[_]> = leaders.into();
    for thread in &mut all {
        thread.leaders = leaders.clone();
    }
    follow_each_other(&mut all, demand, rules, &leaders);
    queue::tell(&mut all, demand);
    all
}

/// Says who begins after whom, and who is started by whom.
fn follow_each_other(
    all: &mut [Planned],
    demand: &Demand,
    rules: &Rules,
    leaders: &[Option<Leader>],
) {
    let its = |place: usize| leaders.get(place).and_then(Option::as_ref).map(|it| it.thread);
    for number in 0..all.len() {
        let source = &demand.threads[all[number].source];
        if all[number].is_copy {
            continue;
        }
        if let Some(started) = source.started {
            all[number].started_by = its(started.by);
            all[number].begins_ns = all[number].begins_ns.map(|ns| ns.min(started.arrives_ns));
        }
        let successor = source.successor.filter(|it| !(it.is_again && rules.once));
        let Some((successor, thread)) = successor.and_then(|it| Some((it, its(it.thread)?))) else {
            continue;
        };
        let is_asked = successor.is_asked && source.started.is_some();
        all[number].successor = Some(Next { thread, after_ns: successor.after_ns, is_asked });
        if !successor.is_again {
            all[thread].begins_ns = None;
        }
    }
}

impl Leader {
    /// Which of its uses it is that was the one of this number when it was recorded, in this round
    /// of one that follows it. `None` if nobody need wait for it.
    fn begins(&self, link: Link, round: usize) -> Option<Begins> {
        let burst = link.burst as usize;
        if !self.follows {
            let turn = link.turn.max(1) as usize;
            return Some(Begins::Turn { turn, awake: link.awake });
        }
        if round == 0 {
            return Some(Begins::Number(burst));
        }
        let uses = &self.again.as_ref()?.uses;
        uses.contains(&burst).then(|| Begins::Number(burst + round * uses.len()))
    }
}

impl Again {
    /// Whether what the thread does over and over is most of what it did.
    fn is_its_work(&self, bursts: &[Burst]) -> bool {
        let held_ns =
            |bursts: &[Burst]| bursts.iter().fold(0u64, |sum, it| sum.saturating_add(it.held_ns));
        let steady_ns = held_ns(bursts.get(self.uses.clone()).unwrap_or_default());
        steady_ns as f64 >= STEADY_PART * held_ns(bursts) as f64
    }
}

fn again(thread: &Thread, lasts_ns: u64, work: f64, rules: &Rules) -> Option<Again> {
    if rules.once {
        return None;
    }
    let uses = thread.steady.uses.clone();
    let length_ns = thread.bursts.get(uses.clone())?.iter().fold(0u64, |sum, burst| {
        sum.saturating_add(scaled(burst.held_ns - burst.not_run_ns, work))
            .saturating_add(burst.away_ns)
    });
    let before = uses.start.checked_sub(1).and_then(|before| thread.bursts.get(before));
    let after = before.and_then(|burst| burst.after);
    let away_ns = thread.steady.away_ns;
    (length_ns > lasts_ns / AGAIN_PART).then_some(Again { uses, away_ns, after })
}

impl Planned {
    /// All uses, in their order.
    pub(crate) fn uses(&self) -> impl Iterator<Item = Use> + '_ {
        let (mut next, mut round) = (self.first, 0);
        std::iter::from_fn(move || {
            let mut burst = *self.bursts.get(next)?;
            let mut place = Place { burst: next, waits_as_after: Some(next), round };
            next += 1;
            if let Some(again) = self.again.as_ref().filter(|again| again.uses.end == next) {
                (burst.away_ns, burst.after) = (again.away_ns, again.after);
                next = again.uses.start;
                round += 1;
                (place.waits_as_after, place.round) = (next.checked_sub(1), round);
            }
            Some(self.changed(&burst, place))
        })
    }

    fn until(&self, link: Link, round: usize) -> Option<Until> {
        let leader = self.leaders.get(link.thread as usize)?.as_ref()?;
        Some(Until {
            thread: leader.thread,
            begins: leader.begins(link, round)?,
            after_ns: u64::from(link.after_ns),
            posted: link.posted,
        })
    }

    /// What the thread waits for after that use; if it is only time, for so long.
    fn waits(&self, burst: &Burst, place: Place, sleeps_ns: u64) -> Waits {
        let Some(starter) = &self.starter else {
            let after = burst.after.filter(|_| !self.is_copy);
            let until = after.and_then(|link| self.until(link, place.round));
            return until.map_or(Waits::For(sleeps_ns), Waits::Until);
        };
        if let Some(start) = starter.start(place.burst) {
            return Waits::Start(start, sleeps_ns);
        }
        // It waits for no other thread: one that it is seen to follow may be one that it starts.
        match place.waits_as_after {
            Some(before) if starter.waits_after(before) => Waits::Arrival,
            _ => Waits::For(sleeps_ns),
        }
    }

    /// In a time away, what is left after it has run is a sleep if it is as long as this. A thread that
    /// computes without the GIL does so for different lengths, and the kernel puts it aside.
    fn least_sleep_ns(&self) -> u64 {
        match self.away_runs_ns {
            computes_ns if computes_ns > OWN_NS => computes_ns,
            ns if ns > LEAST_SLEEP_NS => LEAST_SLEEP_NS,
            _ => 0,
        }
    }

    /// Whether it only waits for what is brought next after that use.
    fn is_empty_after(&self, place: Place) -> bool {
        self.lives_on.as_ref().is_some_and(|(_, consumer)| consumer.is_empty_after(place.burst))
    }

    fn changed(&self, burst: &Burst, place: Place) -> Use {
        let not_run_ns = burst.not_run_ns.min(burst.held_ns);
        // More work does not mean more of what it comes back to.
        let cold_ns = if self.is_slowed { scaled(burst.cold_ns, self.work.min(1.0)) } else { 0 };
        let runs_ns = scaled(burst.held_ns - not_run_ns, self.work).saturating_sub(cold_ns);
        let not_run_ns = if self.as_recorded { scaled(not_run_ns, self.work) } else { 0 };
        let away_ns = if self.is_empty_after(place) { 0 } else { burst.away_ns };
        let mut away_runs_ns = away_ns.min(self.away_runs_ns);
        if away_ns - away_runs_ns < self.least_sleep_ns() {
            away_runs_ns = away_ns;
        }
        let wall_ns = runs_ns.saturating_add(not_run_ns);
        let of_wall = |ns: u64| scaled(ns, wall_ns as f64 / burst.held_ns.max(1) as f64);
        let first = self.unanswered.partition_point(|it| (it.burst as usize) < place.burst);
        let unanswered = self.unanswered[first..].iter();
        let unanswered = unanswered.take_while(|it| it.burst as usize == place.burst);
        Use {
            wall_ns,
            runs_ns,
            unanswered_ns: unanswered.map(|it| [it.from_ns, it.to_ns].map(of_wall)).collect(),
            replies: self.replies == Some(place.burst),
            away_runs_ns,
            waits: self.waits(burst, place, away_ns - away_runs_ns),
        }
    }
}
