//! The work of a pool of threads in a simulation: who does it, who hands it on, and what it is.

use super::{Planned, Use};
use crate::demand::Pool;
use std::collections::HashMap;
use std::sync::Arc;

/// What a [`Pool`] is among the threads that are planned.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) pool: Arc<Pool>,
    /// Who hands jobs on; `None` if that one is left out: each comes to the pool as it arrives.
    pub(crate) feeder: Option<usize>,
    pub(crate) workers: Vec<usize>,
    /// Whether each client asks once for what it asked for in the recording.
    pub(crate) once: bool,
    /// The threads that did the jobs in the recording, by their places in the demand.
    by: HashMap<usize, Planned>,
}

impl Work {
    /// The uses of the GIL that a job takes, and whether it is answered after each.
    pub(crate) fn uses(&self, job: usize) -> impl Iterator<Item = (Use, bool)> + '_ {
        let job = &self.pool.jobs[job];
        let by = self.by.get(&job.worker).into_iter();
        let uses = by.flat_map(|by| by.uses_of_job(job.bursts.clone()));
        uses.enumerate().map(|(number, it)| (it, number == job.longest))
    }
}

/// Tells the threads that are planned for which pool they work. A pool of which a thread is left out,
/// or there more than once, is simulated as threads that each do their own.
pub(super) fn tell(all: &mut [Planned], pools: &[Arc<Pool>], once: bool) {
    let mut numbers: HashMap<usize, Vec<usize>> = HashMap::new();
    for (number, thread) in all.iter().enumerate() {
        numbers.entry(thread.source).or_default().push(number);
    }
    let the_only = |place: usize| match numbers.get(&place)?[..] {
        [number] => Some(number),
        _ => None,
    };
    for pool in pools {
        let workers: Option<Vec<_>> = pool.workers.iter().map(|it| the_only(it.place)).collect();
        let Some(workers) = workers else { continue };
        let feeder = the_only(pool.feeder);
        let by = workers.iter().map(|it| (all[*it].source, all[*it].clone())).collect();
        let work = Arc::new(Work { pool: pool.clone(), feeder, workers, once, by });
        for (number, worker) in work.workers.iter().zip(&pool.workers) {
            all[*number].works_in = Some((work.clone(), worker.before));
        }
        if let Some(feeder) = feeder {
            all[feeder].starter = Some(pool.door.clone());
        }
    }
}
