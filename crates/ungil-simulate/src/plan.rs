//! Which threads a simulation has, and what each of them does.

use crate::delays::Delays;
use crate::demand::{Burst, Demand, Thread};
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
    /// and sleeps.
    pub(crate) sleeps_ns: u64,
}

/// A thread goes on from its beginning only if that is not over in no time: in this part of the
/// run at least.
const AGAIN_PART: u64 = 1_000;

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
                level: level.unwrap_or_default(),
                answers: thread.answers.clone(),
                wake_ups: thread.wake_ups.clone(),
            });
        }
    }
    all
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
        let mut next = self.first;
        std::iter::from_fn(move || {
            if next >= self.bursts.len() {
                next = self.again?;
            }
            let burst = self.bursts.get(next)?;
            next += 1;
            Some(self.changed(burst))
        })
    }

    fn changed(&self, burst: &Burst) -> Use {
        let not_run_ns = burst.not_run_ns.min(burst.held_ns);
        let runs_ns = scaled(burst.held_ns - not_run_ns, self.work);
        let not_run_ns = if self.as_recorded { scaled(not_run_ns, self.work) } else { 0 };
        let away_runs_ns = scaled(burst.away_ns, self.away_ran);
        Use {
            wall_ns: runs_ns.saturating_add(not_run_ns),
            runs_ns,
            away_runs_ns,
            sleeps_ns: burst.away_ns - away_runs_ns,
        }
    }
}
