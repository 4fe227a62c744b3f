//! What is told of a run, recorded or predicted.

use crate::lengths::{Lengths, Summary};
use serde::Serialize;

/// Threads that want the GIL for at least this part of the run are compared for fairness.
const RIVAL: f64 = 0.5;

/// What is told of one run at one GIL.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// How long it lasted.
    pub duration_s: f64,
    /// CPU time for each second of the run, of all threads, with the GIL and without it. Time with
    /// the GIL in which the kernel did not run its holder, as far as it is known, is left out.
    pub cpu_per_s: f64,
    /// The part of the run in which a thread held the GIL.
    pub held_share: f64,
    /// Acquires by another thread than the holder before.
    pub handoffs: u64,
    /// Releases that somebody had asked for.
    pub forced: u64,
    /// All waits of all threads.
    pub waits: Summary,
    /// From wanting the GIL after a blocking call to having it, of all threads; 0 where the thread
    /// did not have to wait.
    pub returns: Summary,
    /// Jain's index of what threads that wanted the GIL for half of the run or more had of it: 1
    /// for equal parts; `None` with fewer than two of them.
    pub jain: Option<f64>,
    /// Each thread, in the order of the demand.
    pub threads: Vec<ThreadFigures>,
}

/// What is told of one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadFigures {
    /// Kernel thread id when it was recorded.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// How long it held the GIL.
    pub held_s: f64,
    /// How long it waited for it.
    pub waited_s: f64,
    /// CPU time, with the GIL and without it.
    pub ran_s: f64,
    /// Its waits.
    pub waits: Summary,
    /// From wanting the GIL after a blocking call to having it.
    pub returns: Summary,
}

/// Sums over all threads, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    held_ns: u64,
    ran_ns: u64,
}

impl Total {
    pub(crate) fn add(&mut self, held_ns: u64, ran_ns: u64) {
        self.held_ns = self.held_ns.saturating_add(held_ns);
        self.ran_ns = self.ran_ns.saturating_add(ran_ns);
    }
}

impl Figures {
    pub(crate) fn new(
        lasts_ns: u64,
        total: Total,
        handoffs: u64,
        forced: u64,
        [waits, returns]: [&Lengths; 2],
        threads: Vec<ThreadFigures>,
    ) -> Self {
        let duration_s = lasts_ns.max(1) as f64 / 1e9;
        Self {
            duration_s,
            cpu_per_s: total.ran_ns as f64 / 1e9 / duration_s,
            held_share: total.held_ns as f64 / 1e9 / duration_s,
            handoffs,
            forced,
            waits: waits.summary(),
            returns: returns.summary(),
            jain: jain(&threads, duration_s),
            threads,
        }
    }

    /// How long threads held the GIL or waited for it.
    pub(crate) fn wanted_s(&self) -> f64 {
        self.threads.iter().map(|thread| thread.held_s + thread.waited_s).sum()
    }
}

fn jain(threads: &[ThreadFigures], duration_s: f64) -> Option<f64> {
    let rivals =
        threads.iter().filter(|thread| thread.held_s + thread.waited_s >= duration_s * RIVAL);
    let parts: Vec<_> = rivals.map(|thread| thread.held_s).collect();
    let sum: f64 = parts.iter().sum();
    let squares: f64 = parts.iter().map(|part| part * part).sum();
    (parts.len() > 1 && squares > 0.0).then(|| sum * sum / (parts.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_are_fair_and_one_that_has_all_is_not() {
        let with =
            |held_s, waited_s| ThreadFigures { held_s, waited_s, ..ThreadFigures::default() };
        assert_eq!(jain(&[with(5.0, 5.0), with(5.0, 5.0)], 10.0), Some(1.0));
        assert_eq!(jain(&[with(10.0, 0.0), with(0.0, 10.0)], 10.0), Some(0.5));
        assert_eq!(jain(&[with(10.0, 0.0), with(0.0, 1.0)], 10.0), None);
    }
}
