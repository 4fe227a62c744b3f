//! Which threads a simulation has, and what each of them does.

use crate::delays::Delays;
use crate::demand::{Burst, Demand, Link, Thread};
use crate::lengths::scaled;
use crate::rules::{Change, Rules};
use std::sync::Arc;
use ungil_core::schedule::Level;

/// A thread of a simulation.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Its place in the demand.
    pub(crate) source: usize,
    pub(crate) begins_ns: u64,
    bursts: Arc<[Burst]>,
    /// Where it begins, and where it goes on after the last one.
    first: usize,
    again: Option<usize>,
    work: f64,
    away_ran: f64,
    /// Whether the kernel runs the holder as it was recorded.
    as_recorded: bool,
    /// By their places in the demand.
    leaders: Arc<[Option<Leader>]>,
    /// A copy of a thread waits for nobody: there is no copy of what it waited for.
    is_copy: bool,
    pub(crate) level: Level,
    pub(crate) answers: Arc<Delays>,
    pub(crate) wake_ups: Arc<Delays>,
}

/// One use of the GIL in a simulation, and the time away from it that follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) wall_ns: u64,
    /// The part of it in which the thread runs.
    pub(crate) runs_ns: u64,
    /// Then it runs without the GIL,
    pub(crate) away_runs_ns: u64,
    /// and sleeps, unless it waits for another.
    pub(crate) sleeps_ns: u64,
    pub(crate) until: Option<Until>,
}

/// A thread waits until so long after the beginning of a use of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    pub(crate) thread: usize,
    /// Its uses are counted from 0 on.
    pub(crate) begins: usize,
    pub(crate) after_ns: u64,
    /// Whether that one wakes it through a lock of the program.
    pub(crate) posted: bool,
}

/// A thread that others wait for, as often as it goes on anew.
#[derive(Clone, Copy, Debug)]
struct Leader {
    /// Its place among those that are planned.
    thread: usize,
    length: usize,
    again: Option<usize>,
}

/// A thread goes on from its beginning only if that is not over in no time: in this part of the
/// run at least.
const AGAIN_PART: u64 = 1_000;

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
        for copy in 0..times {
            // Copies that did the same at the same time would all want the GIL at once.
            let first = again.map_or(0, |again| {
                let length = thread.bursts.len() - again;
                if copy == 0 { 0 } else { again + length * copy / times }
            });
            all.push(Planned {
                source,
                begins_ns: thread.begins_ns,
                bursts: thread.bursts.clone(),
                first,
                again,
                work,
                away_ran: thread.away_ran,
                as_recorded: rules.cores.is_none(),
                leaders: [].into(),
                is_copy: copy > 0,
                level: level.unwrap_or_default(),
                answers: thread.answers.clone(),
                wake_ups: thread.wake_ups.clone(),
            });
        }
    }
    let mut leaders = vec![None; demand.threads.len()];
    for (number, thread) in all.iter().enumerate().filter(|(_, thread)| !thread.is_copy) {
        let (length, again) = (thread.bursts.len(), thread.again);
        leaders[thread.source] = Some(Leader { thread: number, length, again });
    }
    let leaders: Arc<[_]> = leaders.into();
    for thread in &mut all {
        thread.leaders = leaders.clone();
    }
    all
}

impl Leader {
    /// Which of its uses it is that was the one of this number when it was recorded, in this round
    /// of one that follows it. `None` if nobody need wait for it.
    fn begins(&self, burst: usize, round: usize) -> Option<usize> {
        if round == 0 {
            return Some(burst);
        }
        let again = self.again.filter(|again| burst >= *again)?;
        Some(burst + round * (self.length - again))
    }
}

fn again(thread: &Thread, lasts_ns: u64, work: f64, rules: &Rules) -> Option<usize> {
    if rules.once || !thread.goes_on {
        return None;
    }
    let from = thread.first_in_company;
    let rest = thread.bursts.get(from..)?;
    let length_ns = rest.iter().fold(0u64, |sum, burst| {
        sum.saturating_add(scaled(burst.held_ns - burst.not_run_ns, work))
            .saturating_add(burst.away_ns)
    });
    (length_ns > lasts_ns / AGAIN_PART).then_some(from)
}

impl Planned {
    /// All uses, in their order.
    pub(crate) fn uses(&self) -> impl Iterator<Item = Use> + '_ {
        let (mut next, mut round) = (self.first, 0);
        std::iter::from_fn(move || {
            if next >= self.bursts.len() {
                next = self.again?;
                round += 1;
            }
            let burst = self.bursts.get(next)?;
            next += 1;
            Some(self.changed(burst, round))
        })
    }

    fn until(&self, link: Link, round: usize) -> Option<Until> {
        let leader = (*self.leaders.get(link.thread as usize)?)?;
        Some(Until {
            thread: leader.thread,
            begins: leader.begins(link.burst as usize, round)?,
            after_ns: u64::from(link.after_ns),
            posted: link.posted,
        })
    }

    fn changed(&self, burst: &Burst, round: usize) -> Use {
        let not_run_ns = burst.not_run_ns.min(burst.held_ns);
        let runs_ns = scaled(burst.held_ns - not_run_ns, self.work);
        let not_run_ns = if self.as_recorded { scaled(not_run_ns, self.work) } else { 0 };
        let away_runs_ns = scaled(burst.away_ns, self.away_ran);
        Use {
            wall_ns: runs_ns.saturating_add(not_run_ns),
            runs_ns,
            away_runs_ns,
            sleeps_ns: burst.away_ns - away_runs_ns,
            until: burst.after.filter(|_| !self.is_copy).and_then(|it| self.until(it, round)),
        }
    }
}
