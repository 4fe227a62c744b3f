//! Which threads a simulation has, and what each of them does.

mod order;
mod parts;
mod queue;
mod work;

use order::Leader;
pub(crate) use order::{Begins, Next, Until};
pub(crate) use queue::Queue;
pub(crate) use work::Work;

use crate::delays::Delays;
use crate::demand::{
    Burst, Consumer, Demand, Launch, Link, OWN_NS, Progress, Races, Start, Starter, Stop, Switches,
    Thread, Unanswered, Wake, Way,
};
use crate::lengths::scaled;
use crate::rules::{Change, Gil, Rules};
use std::collections::HashSet;
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
    /// Where another thread has to be for it to begin, if that starts it.
    pub(crate) begins_after: Option<Wake>,
    pub(crate) successor: Option<Next>,
    /// Who starts it when it has arrived there.
    pub(crate) started_by: Option<usize>,
    /// At the end of which use it has replied.
    replies: Option<usize>,
    starter: Option<Arc<Starter>>,
    /// Whom it starts for work of its own, by their places among those that are planned.
    launches: Arc<[Launch]>,
    /// By whom it is woken after which uses, by their places among those that are planned, if each
    /// thread does its work once,
    wakes: Arc<[Wake]>,
    /// and how far it is when it wakes others.
    posts: Arc<[Progress]>,
    /// What it brings to whom, if threads do a piece for each delivery: how far it is then.
    pub(crate) brings: Arc<[(Progress, usize)]>,
    /// What others bring to it.
    pub(crate) awaits: Option<Awaits>,
    /// How many uses it has in each of its lives, if another starts it so.
    in_a_life: Option<usize>,
    /// What it lives on, and its sleeps there.
    pub(crate) lives_on: Option<(Arc<Queue>, Consumer)>,
    /// For which pool it works, and how many uses it has before.
    pub(crate) works_in: Option<(Arc<Work>, usize)>,
    bursts: Arc<[Burst]>,
    unanswered: Arc<[Unanswered]>,
    /// Where it begins.
    first: usize,
    /// What it does again and again.
    again: Option<Again>,
    work: f64,
    /// Which part (of 1) of that it does without the GIL.
    off_gil: f64,
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

/// One use of the GIL in a simulation, and the time away from it that follows.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    /// For so long the thread runs first, without the GIL.
    pub(crate) off_gil_ns: u64,
    /// Whether it goes on with the use before this one.
    pub(crate) goes_on: bool,
    /// Then it has the GIL for so long.
    pub(crate) wall_ns: u64,
    /// The part of that in which the thread runs.
    pub(crate) runs_ns: u64,
    /// The parts of that, from and to, in which the thread does not let go whoever asks: one behind
    /// the other.
    pub(crate) unanswered_ns: Vec<[u64; 2]>,
    /// When in that the thread wakes others, and how far it is then.
    pub(crate) posts: Vec<(u64, Progress)>,
    /// When in that it needs what others bring.
    pub(crate) stops_ns: Vec<u64>,
    /// How far it is at its end.
    pub(crate) end: Progress,
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
    /// For another thread to have got so far.
    Wake(Wake),
    /// For the next thing that others bring. It goes on so long after that.
    Delivery { after_ns: u64 },
    /// For something to arrive.
    Arrival,
    /// It starts that thread, or one for what has arrived, and waits until it runs; perhaps only after
    /// all that it has started before have ended. If nothing has arrived, or a job is only handed on, it
    /// sleeps for so long, or until something arrives.
    Start { whom: Option<usize>, start: Start, after_all: bool, sleeps_ns: Option<u64> },
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

/// What a thread needs that others bring.
#[derive(Clone, Debug)]
pub(crate) struct Awaits {
    /// After which uses it sleeps until something is there, and how long after that it goes on;
    sleeps: Arc<[(usize, u64)]>,
    /// and where else it would sleep if nothing were there.
    stops: Arc<[Stop]>,
    /// How long after that it goes on there.
    pub(crate) after_ns: u64,
    /// For so long it sleeps at most.
    pub(crate) patience_ns: u64,
}

/// The uses that a thread does over and over, and the time away between two rounds.
#[derive(Clone, Debug)]
struct Again {
    uses: Range<usize>,
    away_ns: u64,
    /// What it waits for before a new round, if it waited for nothing after the last of these uses.
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

/// The threads of `demand` under `rules`, if it is understood in this way.
pub(crate) fn planned(demand: &Demand, rules: &Rules, way: Way) -> Vec<Planned> {
    // Who waits for whom need not be guessed then.
    let is_known = rules.once && demand.threads.iter().any(|thread| !thread.wakes.is_empty());
    let way = if is_known { Way::default() } else { way };
    let is_there = |source: &usize| {
        !rules.without.contains(source) && !demand.threads[*source].bursts.is_empty()
    };
    let there = (0..demand.threads.len()).filter(is_there);
    let launches = there.clone().flat_map(|source| demand.threads[source].launches.iter());
    let are_launched: HashSet<_> = launches.map(|it| it.thread).collect();
    let mut all = Vec::new();
    for source in there {
        let thread = &demand.threads[source];
        let changes = rules.changes.iter().filter(|(of, _)| *of == source).map(|(_, it)| it);
        let (mut work, mut off_gil, mut times, mut is_idle) = (1.0, 0.0, 1, false);
        for change in changes {
            match *change {
                Change::Work(factor) => work *= factor.max(0.0),
                Change::OffGil(part) => off_gil = part.clamp(0.0, 1.0),
                Change::Idle => (work, is_idle) = (0.0, true),
                Change::Times(count) => times *= count,
            }
        }
        let level = rules.levels.iter().find(|(of, _)| *of == source).map(|(_, level)| *level);
        let again = again(thread, demand.lasts_ns, work, rules);
        let switches = Arc::new(thread.switches.clone());
        let bursts = thread.bursts_in(way);
        let bursts = if rules.once { with_end(&bursts) } else { bursts };
        let away_runs_ns = thread.away_runs_ns();
        let (bursts, away_runs_ns) = if is_idle {
            (parts::asleep(&bursts, away_runs_ns), 0)
        } else {
            (bursts, away_runs_ns)
        };
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
                begins_after: None,
                successor: None,
                started_by: None,
                replies: thread.started.map(|it| it.replies as usize),
                starter: thread.starter.clone().filter(|_| copy == 0),
                launches: [].into(),
                wakes: [].into(),
                posts: [].into(),
                brings: [].into(),
                awaits: None,
                in_a_life: (copy == 0 && are_launched.contains(&source))
                    .then_some(thread.bursts.len()),
                lives_on: None,
                works_in: None,
                bursts: bursts.clone(),
                unanswered: thread.unanswered.clone(),
                first,
                again: again.clone(),
                work,
                off_gil,
                away_runs_ns,
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
    order::tell(&mut all, demand, rules, way);
    if !is_known {
        queue::tell(&mut all, demand);
    }
    work::tell(&mut all, demand.pools_in(way), rules.once);
    all
}

impl Awaits {
    /// How long after a delivery it goes on, if it waits for one after that use.
    fn sleeps_after(&self, burst: usize) -> Option<u64> {
        let place = self.sleeps.binary_search_by_key(&burst, |it| it.0).ok()?;
        Some(self.sleeps[place].1)
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

/// These, with nothing after the last one: that the program ended then ended a sleep.
fn with_end(bursts: &[Burst]) -> Arc<[Burst]> {
    let mut bursts = bursts.to_vec();
    if let Some(last) = bursts.last_mut() {
        last.away_ns = 0;
    }
    bursts.into()
}

/// How long a thread runs in a time away in which it runs for `most_ns` at most. What is left after that is
/// a sleep if it is long enough. A thread that computes without the GIL does so for different lengths, and
/// the kernel puts it aside.
fn away_runs_ns(away_ns: u64, most_ns: u64) -> u64 {
    let least_sleep_ns = match most_ns {
        computes_ns if computes_ns > OWN_NS => computes_ns,
        ns if ns > LEAST_SLEEP_NS => LEAST_SLEEP_NS,
        _ => 0,
    };
    let runs_ns = away_ns.min(most_ns);
    if away_ns - runs_ns < least_sleep_ns { away_ns } else { runs_ns }
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
    /// All uses, in their order, of a thread that has lived so often before.
    pub(crate) fn uses(&self, lives: usize) -> impl Iterator<Item = Use> + '_ {
        // Who launches it launches it in each round.
        let (mut next, mut round) = (self.first, if self.in_a_life.is_some() { lives } else { 0 });
        std::iter::from_fn(move || {
            let mut burst = *self.bursts.get(next)?;
            let mut place = Place { burst: next, waits_as_after: Some(next), round };
            next += 1;
            if let Some(again) = self.again.as_ref().filter(|again| again.uses.end == next) {
                burst.away_ns = again.away_ns;
                next = again.uses.start;
                round += 1;
                place.waits_as_after = next.checked_sub(1);
                if burst.after.is_none() {
                    (burst.after, place.round) = (again.after, round);
                }
            }
            Some(self.changed(&burst, place))
        })
        .flat_map(|it| self.in_parts(it))
    }

    /// The uses of a job that some of its uses were. What followed was a time without work.
    fn uses_of_job(&self, bursts: Range<usize>) -> impl Iterator<Item = Use> + '_ {
        let last = bursts.end.saturating_sub(1);
        bursts.filter_map(move |burst| {
            let it = self.bursts.get(burst)?;
            let is_last = Burst { away_ns: 0, after: None, ..*it };
            let place = Place { burst, waits_as_after: None, round: 0 };
            Some(self.changed(if burst == last { &is_last } else { it }, place))
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
        let launch = self.launches.binary_search_by_key(&place.burst, |it| it.burst as usize);
        if let Ok(launch) = launch {
            let Launch { thread, start, after_all, .. } = self.launches[launch];
            return Waits::Start {
                whom: Some(thread),
                start,
                after_all,
                sleeps_ns: Some(sleeps_ns),
            };
        }
        let Some(starter) = &self.starter else {
            if let Ok(wake) = self.wakes.binary_search_by_key(&place.burst, |it| it.burst) {
                return Waits::Wake(self.wakes[wake]);
            }
            if let Some(after_ns) = self.awaits.as_ref().and_then(|it| it.sleeps_after(place.burst))
            {
                return Waits::Delivery { after_ns };
            }
            let after = burst.after.filter(|_| !self.is_copy);
            let until = after.and_then(|link| self.until(link, place.round));
            return until.map_or(Waits::For(sleeps_ns), Waits::Until);
        };
        if let Some(start) = starter.start(place.burst) {
            let sleeps_ns = (!starter.waits_after(place.burst)).then_some(sleeps_ns);
            return Waits::Start { whom: None, start, after_all: false, sleeps_ns };
        }
        // It waits for no other thread: one that it is seen to follow may be one that it starts.
        match place.waits_as_after {
            Some(before) if starter.waits_after(before) => Waits::Arrival,
            _ => Waits::For(sleeps_ns),
        }
    }

    /// How far it is when it wakes others during that use.
    fn posts_in(&self, burst: usize) -> impl Iterator<Item = Progress> {
        let first = self.posts.partition_point(|it| it.burst < burst);
        let posts = self.posts[first..].iter().copied();
        posts.take_while(move |it| it.burst == burst)
    }

    /// For how long it has had the GIL in that use when it needs what others bring.
    fn stops_in(&self, burst: usize) -> impl Iterator<Item = u64> + '_ {
        let stops = self.awaits.as_ref().map_or(&[][..], |it| &it.stops);
        let first = stops.partition_point(|it| it.burst < burst);
        stops[first..].iter().take_while(move |it| it.burst == burst).map(|it| it.held_ns)
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
        let away_runs_ns = away_runs_ns(away_ns, self.away_runs_ns);
        let wall_ns = runs_ns.saturating_add(not_run_ns);
        let of_wall = |ns: u64| scaled(ns, wall_ns as f64 / burst.held_ns.max(1) as f64);
        let first = self.unanswered.partition_point(|it| (it.burst as usize) < place.burst);
        let unanswered = self.unanswered[first..].iter();
        let unanswered = unanswered.take_while(|it| it.burst as usize == place.burst);
        Use {
            off_gil_ns: 0,
            goes_on: false,
            wall_ns,
            runs_ns,
            unanswered_ns: unanswered.map(|it| [it.from_ns, it.to_ns].map(of_wall)).collect(),
            posts: self.posts_in(place.burst).map(|it| (of_wall(it.held_ns), it)).collect(),
            stops_ns: self.stops_in(place.burst).map(of_wall).collect(),
            end: Progress { burst: place.burst, held_ns: Progress::END },
            replies: self.replies == Some(place.burst),
            away_runs_ns,
            waits: self.waits(burst, place, away_ns - away_runs_ns),
        }
    }
}
