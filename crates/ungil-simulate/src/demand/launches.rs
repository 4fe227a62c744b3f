//! Threads that start others for work of their own, again and again: a pool for each batch, which is
//! waited for.
//!
//! No event says so. As with a starter (see `starters.rs`), who calls `Thread.start()` lets go of the
//! GIL just before the new thread wants it, and wants it again only after that one has said that it
//! runs. But a starter turns to what has arrived. This one goes on with its own work, and a thread
//! begins when it has got that far, under other rules, too.

use super::Thread;
use super::links::{Follows, Link, OWN_NS};
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
    /// Whether it does so after all that it has started before have ended.
    pub(crate) after_all: bool,
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
            Some(Launch { burst: u32::try_from(burst).ok()?, thread, start, after_all: false })
        });
        threads[launcher].launches = launches.collect();
        for it in seen {
            threads[it.thread].is_launched = true;
        }
        wait_for_ends(threads, times, launcher);
    }
}

/// Lets a thread that starts others wait for the end of all of these before it starts the next ones, if
/// it did so: mostly there is a time away that ended when the last of them did.
fn wait_for_ends(threads: &mut [Thread], times: &[Times], launcher: usize) {
    let (mut all, mut waits) = (threads[launcher].launches.to_vec(), Vec::new());
    // Who ends last of those that were started so far, and when.
    let mut last: Option<(u64, usize)> = None;
    for Launch { thread, after_all, .. } in &mut all {
        let its = &times[*thread];
        if let Some(end) = last
            && its.wanted_at_ns.first().is_some_and(|begins_ns| end.0 < *begins_ns)
        {
            *after_all = true;
            waits.extend(wait_for_end(threads, times, launcher, end));
        }
        let last_use = threads[*thread].bursts.len().saturating_sub(1);
        last = last.max(Some((its.let_go_ns(&threads[*thread], last_use), *thread)));
    }
    if waits.len() * 2 <= all.iter().filter(|it| it.after_all).count() {
        return;
    }
    threads[launcher].launches = all.into();
    let mut bursts = threads[launcher].bursts.to_vec();
    for (burst, link) in waits {
        bursts[burst].after.get_or_insert(link);
    }
    threads[launcher].bursts = bursts.into();
    threads[launcher].follows = Follows::Often;
}

/// After which of its uses a thread waited for the end of another (when, and the place of that one), if
/// it did.
fn wait_for_end(
    threads: &[Thread],
    times: &[Times],
    waiter: usize,
    (ended_ns, place): (u64, usize),
) -> Option<(usize, Link)> {
    let (thread, its) = (&threads[place], &times[place]);
    let last = thread.bursts.len().checked_sub(1)?;
    let began_ns = *its.began_at_ns.get(last)?;
    let back = times[waiter].wanted_at_ns.partition_point(|at_ns| *at_ns < began_ns);
    let back_ns = *times[waiter].wanted_at_ns.get(back)?;
    let burst = back.checked_sub(1)?;
    let was_away = threads[waiter].bursts.get(burst)?.away_ns > OWN_NS;
    if !was_away || back_ns > ended_ns.saturating_add(BEGINS_NS) {
        return None;
    }
    // Whatever interrupted that use is no part of it.
    let after_ns = (back_ns - began_ns).min(thread.bursts[last].held_ns);
    let link = Link {
        thread: u32::try_from(place).ok()?,
        burst: u32::try_from(last).ok()?,
        turn: 1,
        awake: false,
        after_ns: u32::try_from(after_ns).ok()?,
        posted: true,
    };
    Some((burst, link))
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
        assert_eq!(threads[0].launches[3], Launch { burst: 6, thread: 4, start, after_all: false });
        assert!(threads[1..].iter().all(|thread| thread.is_launched));
    }

    /// For whom a thread waits that starts another each time so long after the end of the one before;
    /// each uses the GIL twice, the second time so much later.
    fn waits(back_after_ns: u64, late_ns: u64) -> Vec<Option<Link>> {
        let each_ns = 3_120 * US + back_after_ns;
        let main: Vec<_> = (0..20)
            .map(|batch| batch * each_ns)
            .flat_map(|at_ns| {
                let away_ns = each_ns - MS;
                [(at_ns, at_ns + 100 * US, 80 * US), (at_ns + 180 * US, at_ns + MS, away_ns)]
            })
            .collect();
        let others = (0..20).map(|batch| batch * each_ns + 120 * US).map(|from_ns| {
            let second_ns = from_ns + 1_050 * US + late_ns;
            gone_after(&[
                (from_ns, from_ns + 50 * US, MS + late_ns),
                (second_ns, second_ns + 1_950 * US, 0),
            ])
        });
        let all = std::iter::once(gone_after(&main)).chain(others);
        let (mut threads, times): (Vec<_>, Vec<_>) = all.unzip();
        find(&mut threads, &times);
        assert_eq!(threads[0].launches.len(), 20);
        threads[0].bursts.iter().map(|burst| burst.after).collect()
    }

    #[test]
    fn who_goes_on_when_a_thread_has_ended_waits_for_the_end_of_that_one() {
        let after = |thread| Link {
            thread,
            burst: 1,
            turn: 1,
            awake: false,
            after_ns: 1_950_000,
            posted: true,
        };
        assert_eq!(waits(10 * US, 0)[..4], [None, Some(after(1)), None, Some(after(2))]);
        assert_eq!(waits(3 * MS, 0), [None; 40], "it comes back long after that");
        assert_eq!(waits(10 * US, 20 * MS), [None; 40], "they have not ended then");
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
