//! What would have happened.

use crate::demand::Demand;
use crate::figures::{Figures, ThreadFigures, Total};
use crate::lengths::Lengths;
use crate::machine::{NoStack, Setting, simulate};
use crate::plan::planned;
use crate::rules::Rules;

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpredictable {
    /// Nothing is left to run.
    #[error("no thread is left to simulate; leave fewer threads out")]
    NoThread,
    /// The threads do not fit into memory.
    #[error("there is not enough memory to simulate {0} threads; ask for fewer of them")]
    TooMany(usize),
}

/// What would have happened.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Of all runs of the simulation together.
    pub figures: Figures,
}

/// A run in which each thread does its work once ends after so many times the recorded one.
const LONGEST: u64 = 1_000;

/// What `demand` would have met under `rules`.
pub fn predict(demand: &Demand, rules: &Rules) -> Result<Prediction, Unpredictable> {
    let threads = planned(demand, rules);
    if threads.is_empty() {
        return Err(Unpredictable::NoThread);
    }
    let lasts_ns =
        if rules.once { demand.lasts_ns.saturating_mul(LONGEST) } else { demand.lasts_ns };
    let setting = Setting {
        gil: rules.gil,
        cores: rules.cores,
        wake_ups: &demand.machine.wake_ups,
        lateness: &demand.machine.lateness,
        lasts_ns,
        seed: rules.seed,
    };
    let outcome = simulate(&threads, &setting).map_err(|NoStack| Unpredictable::TooMany(threads.len()))?;
    let mut total = Total::default();
    let (mut waits, mut returns) = (Lengths::default(), Lengths::default());
    let mut rows = Vec::new();
    for (happened, thread) in outcome.threads.iter().zip(&threads) {
        total.add(happened.held_ns, happened.ran_ns);
        waits.merge(&happened.waits);
        returns.merge(&happened.returns);
        let source = &demand.threads[thread.source];
        rows.push(ThreadFigures {
            tid: source.tid,
            name: source.name.clone(),
            held_s: happened.held_ns as f64 / 1e9,
            waited_s: happened.waits.total_ns() as f64 / 1e9,
            ran_s: happened.ran_ns as f64 / 1e9,
            waits: happened.waits.summary(),
            returns: happened.returns.summary(),
        });
    }
    let figures =
        Figures::new(outcome.ended_ns, total, outcome.handoffs, outcome.forced, [&waits, &returns], rows);
    Ok(Prediction { figures })
}
