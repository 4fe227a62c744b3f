//! Threads that start others for work of their own, again and again: a pool for each batch, which is
//! waited for.
//!
//! No event says so. As with a starter (see `starters.rs`), who calls `Thread.start()` lets go of the
//! GIL just before the new thread wants it, and wants it again only after that one has said that it
//! runs. But a starter turns to what has arrived. This one goes on with its own work, and a thread
//! begins when it has got that far, under other rules, too.

use super::Thread;
use super::starters::{LEAST_TIMES, Seen, Start, Times, all_started_by, candidates};

/// A thread wants the GIL so long after the other has let go of it at most,
const BEGINS_NS: u64 = 1_000_000;
/// and that one wants it again so long after the thread has got it at most.
const GOES_ON_NS: u64 = 2_000_000;

/// A thread starts another at the end of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The number of that use.
    pub(crate) burst: u32,
    /// The place of the thread that begins.
    pub(crate) thread: usize,
    pub(crate) start: Start,
}

/// Finds out who starts whom, of threads that have ended and that no starter has started.
pub(super) fn find(threads: &mut [Thread], times: &[Times]) {
    for launcher in candidates(threads) {
        if threads[launcher].starter.is_some() {
            continue;
        }
        let seen = all_started_by(threads, times, launcher, |it| {
            may_be_launched(&threads[it.thread])
                && is_launch(it, &times[it.thread], &times[launcher])
        });
        if seen.len() < LEAST_TIMES {
            continue;
        }
        let launches = seen.iter().filter_map(|&Seen { thread, burst, start }| {
            Some(Launch { burst: u32::try_from(burst).ok()?, thread, start })
        });
        threads[launcher].launches = launches.collect();
        for it in seen {
            threads[it.thread].is_launched = true;
        }
    }
}

/// Whether no other thread launches it, and it does not go on for ever.
fn may_be_launched(thread: &Thread) -> bool {
    !thread.is_launched && thread.steady.uses.is_empty()
}

/// Whether what may be a start looks like a call of `Thread.start()`.
fn is_launch(seen: &Seen, its: &Times, of_other: &Times) -> bool {
    let began_ns = its.began_at_ns.first();
    let again_ns = of_other.wanted_at_ns.get(seen.burst + 1);
    seen.start.begins_ns < BEGINS_NS && seen.start.goes_on_ns < GOES_ON_NS && again_ns > began_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS, US, burst, thread};

    /// A thread that is gone after these uses, each from when to when and the time away after it.
    fn gone_after(uses: &[(u64, u64, u64)]) -> (Thread, Times) {
        let bursts: Vec<_> =
            uses.iter().map(|(from, to, away_ns)| burst(to - from, *away_ns)).collect();
        let wanted_at_ns: Vec<_> = uses.iter().map(|(from, ..)| *from).collect();
        let gone_ns = uses.last().map_or(0, |(_, to, away_ns)| to + away_ns);
        let mut thread = thread(uses[0].0, &bursts);
        thread.steady.uses = 0..0;
        (thread, Times { began_at_ns: wanted_at_ns.clone(), wanted_at_ns, gone_ns })
    }

    /// A thread that starts another each 10 ms, which uses the GIL twice, and waits for its end; and
    /// when they were there.
    fn batches(count: u64) -> (Vec<Thread>, Vec<Times>) {
        let at_ns = |batch: u64| batch * 10 * MS;
        let uses = |from_ns: u64| {
            [(from_ns, from_ns + 100 * US, 80 * US), (from_ns + 180 * US, from_ns + MS, 9 * MS)]
        };
        let main: Vec<_> = (0..count).flat_map(|batch| uses(at_ns(batch))).collect();
        let others = (0..count).map(|batch| {
            let from_ns = at_ns(batch) + 120 * US;
            gone_after(&[
                (from_ns, from_ns + 50 * US, MS),
                (from_ns + 1_050 * US, from_ns + 3 * MS, 0),
            ])
        });
        let all: Vec<_> = std::iter::once(gone_after(&main)).chain(others).collect();
        all.into_iter().unzip()
    }

    #[test]
    fn who_starts_a_thread_and_waits_until_it_runs_launches_it() {
        let (mut threads, times) = batches(20);
        find(&mut threads, &times);
        assert_eq!(threads[0].launches.len(), 20);
        let start = Start { begins_ns: 20 * US, goes_on_ns: 60 * US };
        assert_eq!(threads[0].launches[3], Launch { burst: 6, thread: 4, start });
        assert!(threads[1..].iter().all(|thread| thread.is_launched));
    }

    #[test]
    fn a_few_threads_that_one_seems_to_start_are_chance() {
        let (mut threads, times) = batches(9);
        find(&mut threads, &times);
        assert!(threads[0].launches.is_empty());
        assert!(threads.iter().all(|thread| !thread.is_launched));
    }

    #[test]
    fn a_thread_that_goes_on_for_ever_is_not_launched_again() {
        let (mut threads, times) = batches(20);
        threads[1].steady.uses = 0..2;
        find(&mut threads, &times);
        assert_eq!(threads[0].launches.len(), 19);
        assert!(!threads[1].is_launched);
    }

    #[test]
    fn who_goes_on_before_the_other_runs_does_not_launch_it() {
        let (mut threads, mut times) = batches(20);
        for batch in 0..20 {
            times[0].wanted_at_ns[2 * batch + 1] -= 65 * US;
        }
        find(&mut threads, &times);
        assert!(threads[0].launches.is_empty());
    }
}
