//! What the threads of a pool do: one job after another.

use super::feeding::Feeding;
use crate::demand::Thread;
use crate::demand::links::OWN_NS;
use crate::demand::starters::Times;
use std::ops::Range;

/// So often at least a thread of the pool was given a job.
const LEAST_JOBS: usize = 3;

/// A thread of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Worker {
    pub(crate) place: usize,
    /// How many uses it had before its first job.
    pub(crate) before: usize,
}

/// What a thread of a pool did from one time without work to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// The place of the thread that did it.
    pub(crate) worker: usize,
    /// Which of its uses.
    pub(crate) bursts: Range<usize>,
    /// Which of these was the longest: then the answer is there.
    pub(crate) longest: usize,
    /// For how long the thread ran in that.
    pub(super) longest_ns: u64,
    /// When it wanted the GIL for the longest use, and let go of it.
    pub(super) computes_ns: Range<u64>,
    /// When the thread first wanted the GIL for it.
    pub(super) begins_ns: u64,
    /// When it arrived.
    pub(super) arrives_ns: u64,
    /// Whether that is known: the feeder waited for it.
    pub(crate) is_let_in: bool,
}

/// The threads of this family that were fed, and what they did, in the order in which that began.
pub(super) fn of(
    threads: &[Thread],
    times: &[Times],
    family: &[usize],
    feeding: &Feeding,
) -> (Vec<Worker>, Vec<Job>) {
    let (mut workers, mut jobs) = (Vec::new(), Vec::new());
    for &place in family {
        let (thread, times) = (&threads[place], &times[place]);
        let wanted_ns = &times.wanted_at_ns;
        let is_first = |burst: &usize| {
            thread.bursts[burst - 1].away_ns > OWN_NS && feeding.may_wake(wanted_ns[*burst])
        };
        let count = thread.bursts.len().min(wanted_ns.len());
        let firsts: Vec<_> = (1..count).filter(is_first).collect();
        if firsts.len() < LEAST_JOBS {
            continue;
        }
        workers.push(Worker { place, before: firsts[0] });
        let ends = firsts[1..].iter().copied().chain([count]);
        jobs.extend(firsts.iter().zip(ends).map(|(&from, to)| job(place, thread, times, from..to)));
    }
    jobs.sort_by_key(|it| (it.begins_ns, it.worker));
    (workers, jobs)
}

/// The job that these uses of a thread were.
fn job(worker: usize, thread: &Thread, times: &Times, bursts: Range<usize>) -> Job {
    let ran_ns = |burst: usize| {
        let burst = &thread.bursts[burst];
        burst.held_ns.saturating_sub(burst.not_run_ns)
    };
    let longest = bursts.clone().max_by_key(|burst| ran_ns(*burst)).unwrap_or(bursts.start);
    let begins_ns = times.wanted_at_ns[bursts.start];
    Job {
        worker,
        longest: longest - bursts.start,
        longest_ns: ran_ns(longest),
        computes_ns: times.wanted_at_ns[longest]..times.let_go_ns(thread, longest),
        begins_ns,
        arrives_ns: begins_ns,
        is_let_in: false,
        bursts,
    }
}
