//! Threads that start one for each thing that arrives: those that accept the connections of a server
//! with a thread for each request.
//!
//! No event says so. But who calls `Thread.start()` lets go of the GIL just before the new thread
//! wants it, and wants it again only after that one has said that it runs, in its first use. A thread
//! for which that holds again and again is a starter. Before that it waited for an arrival: so many
//! uses before the start as there usually are since it was last away for long.

use super::Thread;
use super::links::OWN_NS;
use std::collections::HashSet;

/// A thread is started by who let go of the GIL so long before it wanted it at most,
const STARTS_NS: u64 = 3_000_000;
/// and who wants it again so long after that thread has got it at most.
const GOES_ON_NS: u64 = 5_000_000;
/// A thread that started so many others is a starter,
pub(super) const LEAST_TIMES: usize = 10;
/// if there is a start for so many of its uses at least. An event loop starts some for its executor,
/// and then waits for them.
const USES_FOR_ONE: usize = 8;
/// So many uses lie between an arrival and the start at most.
const MOST_BETWEEN: usize = 4;
/// So many threads are looked at, whether they are starters.
const MOST_CANDIDATES: usize = 64;
/// So often the starter must have been seen to wait for an arrival.
const LEAST_WAITS: usize = 5;

/// A thread that starts others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Starter {
    /// The uses after which it waits for an arrival, in their order.
    pub(crate) waits_after: Vec<u32>,
    /// The uses at the end of which it starts a thread for an arrival, in their order.
    pub(crate) starts: Vec<(u32, Start)>,
}

impl Starter {
    /// How it starts a thread at the end of that use, if it does.
    pub(crate) fn start(&self, burst: usize) -> Option<Start> {
        let place = self.starts.binary_search_by_key(&burst, |(burst, _)| *burst as usize);
        place.ok().map(|place| self.starts[place].1)
    }

    /// Whether it waits for an arrival after that use.
    pub(crate) fn waits_after(&self, burst: usize) -> bool {
        self.waits_after.binary_search_by_key(&burst, |burst| *burst as usize).is_ok()
    }
}

/// How a thread was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// When it wanted the GIL, after the starter had let go of it.
    pub(crate) begins_ns: u64,
    /// When the starter wanted the GIL again, after the beginning of its first use.
    pub(crate) goes_on_ns: u64,
}

/// A thread that was started for an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// The place of its starter.
    pub(crate) by: usize,
    /// When the starter turned to what had arrived.
    pub(crate) arrives_ns: u64,
    /// At the end of which use it has replied.
    pub(crate) replies: u32,
}

/// When a thread wanted the GIL for each of its uses, when it got it, and when it was gone.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) wanted_at_ns: Vec<u64>,
    pub(super) began_at_ns: Vec<u64>,
    pub(super) gone_ns: u64,
}

impl Times {
    /// The same, counted from a moment before all of them.
    pub(super) fn since(self, ns: u64) -> Self {
        let since = |all: Vec<u64>| all.into_iter().map(|at_ns| at_ns.saturating_sub(ns)).collect();
        Self {
            wanted_at_ns: since(self.wanted_at_ns),
            began_at_ns: since(self.began_at_ns),
            gone_ns: self.gone_ns.saturating_sub(ns),
        }
    }

    /// When `thread`, whose times they are, let go of the GIL after that use.
    pub(super) fn let_go_ns(&self, thread: &Thread, burst: usize) -> u64 {
        let next_ns = self.wanted_at_ns.get(burst + 1).copied().unwrap_or(self.gone_ns);
        next_ns.saturating_sub(thread.bursts.get(burst).map_or(0, |burst| burst.away_ns))
    }

    /// In which use it was at that time, or which was its last one.
    pub(super) fn last_before(&self, at_ns: u64) -> Option<usize> {
        self.wanted_at_ns.partition_point(|wanted_ns| *wanted_ns <= at_ns).checked_sub(1)
    }
}

/// A thread that may have been started by another at the end of that use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) thread: usize,
    pub(super) burst: usize,
    pub(super) start: Start,
}

/// Finds out who starts whom.
pub(super) fn find(threads: &mut [Thread], times: &[Times]) {
    for starter in candidates(threads) {
        let seen = all_started_by(threads, times, starter, |_| true);
        let Some(between) = uses_between(&threads[starter], &seen) else { continue };
        let mut found = Starter::default();
        let mut last = None;
        for Seen { thread, burst, start } in seen {
            let waits_after = burst.checked_sub(between + 1);
            let Some(waits_after) = waits_after.filter(|it| last.is_none_or(|last| *it > last))
            else {
                continue; // It was not away in between.
            };
            last = Some(burst);
            let (Ok(before), Ok(burst)) = (u32::try_from(waits_after), u32::try_from(burst)) else {
                continue;
            };
            found.waits_after.push(before);
            found.starts.push((burst, start));
            let arrives_ns = times[starter].wanted_at_ns[waits_after + 1];
            let replies = replies(&threads[thread]);
            threads[thread].started = Some(Started { by: starter, arrives_ns, replies });
        }
        threads[starter].starter = Some(found.into());
    }
}

/// The threads that may have started others: those with the most uses, as each start takes some.
pub(super) fn candidates(threads: &[Thread]) -> Vec<usize> {
    let mut candidates: Vec<_> =
        (0..threads.len()).filter(|place| threads[*place].bursts.len() > LEAST_TIMES).collect();
    candidates.sort_by_key(|place| std::cmp::Reverse(threads[*place].bursts.len()));
    candidates.truncate(MOST_CANDIDATES);
    candidates
}

/// Those for which nobody else is known to, and which are `likely`, by the use that started them.
pub(super) fn all_started_by(
    threads: &[Thread],
    times: &[Times],
    starter: usize,
    likely: impl Fn(&Seen) -> bool,
) -> Vec<Seen> {
    let mut seen: Vec<_> = (0..threads.len())
        .filter(|thread| *thread != starter && threads[*thread].started.is_none())
        .filter_map(|thread| started_by(threads, times, thread, starter))
        .filter(likely)
        .collect();
    // Of two that one call seems to have started, it started the one that began first.
    seen.sort_by_key(|it| (it.burst, it.start.begins_ns));
    seen.dedup_by_key(|it| it.burst);
    seen
}

/// How `starter` started `thread`, if it did.
fn started_by(threads: &[Thread], times: &[Times], thread: usize, starter: usize) -> Option<Seen> {
    let first = threads[thread].bursts.first()?;
    let begins_ns = *times[thread].wanted_at_ns.first()?;
    let burst = times[starter].last_before(begins_ns)?;
    let again_ns = *times[starter].wanted_at_ns.get(burst + 1)?;
    let let_go_ns = times[starter].let_go_ns(&threads[starter], burst);
    let its_let_go_ns = times[thread].let_go_ns(&threads[thread], 0);
    let its_hold_ns = its_let_go_ns.saturating_sub(first.held_ns);
    let is_so = let_go_ns.saturating_add(STARTS_NS) >= begins_ns
        && let_go_ns <= its_let_go_ns
        && again_ns <= its_hold_ns.saturating_add(GOES_ON_NS);
    is_so.then_some(Seen {
        thread,
        burst,
        start: Start {
            begins_ns: begins_ns.saturating_sub(let_go_ns),
            goes_on_ns: again_ns.saturating_sub(its_hold_ns),
        },
    })
}

/// How many uses lie between the one that an arrival begins and the one that starts a thread for
/// it: as many as most often since a long time away, where that was no wait for a thread to run.
fn uses_between(starter: &Thread, seen: &[Seen]) -> Option<usize> {
    if seen.len() < LEAST_TIMES.max(starter.bursts.len() / USES_FOR_ONE) {
        return None;
    }
    let starts: HashSet<_> = seen.iter().map(|it| it.burst).collect();
    let mut times = [0; MOST_BETWEEN + 1];
    for Seen { burst, .. } in seen {
        let mut before = (0..=MOST_BETWEEN)
            .map_while(|between| Some((between, burst.checked_sub(between + 1)?)))
            .take_while(|(_, before)| !starts.contains(before));
        if let Some((between, _)) = before.find(|it| starter.bursts[it.1].away_ns > OWN_NS) {
            times[between] += 1;
        }
    }
    let most = (0..times.len()).max_by_key(|between| times[*between])?;
    (times[most] >= LEAST_WAITS).then_some(most)
}

/// At the end of which use a thread has replied: the one that follows its longest. A server makes
/// the reply, sends what comes before it, sends it, and then closes and forgets the connection.
fn replies(thread: &Thread) -> u32 {
    let longest = (0..thread.bursts.len()).max_by_key(|burst| thread.bursts[*burst].held_ns);
    let replies = longest.map_or(0, |longest| (longest + 1).min(thread.bursts.len() - 1));
    u32::try_from(replies).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS, US, burst, thread};

    /// A thread with its times: uses from when to when, until it was gone.
    fn used(uses: &[(u64, u64)], gone_ns: u64) -> (Thread, Times) {
        let wanted_at_ns: Vec<_> = uses.iter().map(|(from_ns, _)| *from_ns).collect();
        let next = wanted_at_ns.iter().skip(1).copied().chain([gone_ns]);
        let bursts: Vec<_> =
            uses.iter().zip(next).map(|((from, to), next)| burst(to - from, next - to)).collect();
        (
            thread(uses[0].0, &bursts),
            Times { began_at_ns: wanted_at_ns.clone(), wanted_at_ns, gone_ns },
        )
    }

    /// Each 10 ms something arrives: the server accepts it, starts a thread, and waits until that one
    /// has begun, which makes its reply in 2 ms, sends it, and closes. A third thread computes.
    fn server(requests: u64) -> (Vec<Thread>, Vec<Times>) {
        let mut accepts = vec![(0, 5 * US)];
        let mut all = Vec::new();
        for at_ns in (1..=requests).map(|request| request * 10 * MS) {
            // After `select`, after `accept`, and once the thread runs.
            accepts.extend([(at_ns, at_ns + 5 * US), (at_ns + 10 * US, at_ns + 100 * US)]);
            accepts.push((at_ns + 180 * US, at_ns + 190 * US));
            let begins_ns = at_ns + 120 * US;
            let made_ns = begins_ns + 3 * MS;
            let uses = [
                (begins_ns, begins_ns + 80 * US),
                (begins_ns + MS, made_ns),
                (made_ns + 10 * US, made_ns + 20 * US),
                (made_ns + 30 * US, made_ns + 40 * US),
            ];
            all.push(used(&uses, made_ns + 50 * US));
        }
        let ends_ns = (requests + 1) * 10 * MS;
        all.insert(0, used(&accepts, ends_ns));
        all.insert(1, used(&[(0, ends_ns)], ends_ns));
        all.into_iter().unzip()
    }

    #[test]
    fn a_thread_that_starts_one_for_each_arrival_is_found() {
        let (mut threads, times) = server(20);
        find(&mut threads, &times);
        let starter = threads[0].starter.clone().unwrap();
        let start = Start { begins_ns: 20 * US, goes_on_ns: 60 * US };
        let starts: Vec<_> = (0..20).map(|request| (3 * request + 2, start)).collect();
        assert_eq!(starter.starts, starts);
        assert_eq!(starter.waits_after, (0..20).map(|request| 3 * request).collect::<Vec<_>>());
        let third = Started { by: 0, arrives_ns: 30 * MS, replies: 2 };
        assert_eq!(threads[4].started, Some(third));
        assert_eq!((&threads[1].starter, threads[1].started), (&None, None));
    }

    #[test]
    fn a_thread_that_does_much_else_is_no_starter() {
        let (mut threads, mut times) = server(20);
        let mut bursts = threads[0].bursts.to_vec();
        let ends_ns = times[0].gone_ns;
        times[0].wanted_at_ns.extend((0..200).map(|turn| ends_ns + turn * MS));
        times[0].gone_ns = ends_ns + 200 * MS;
        bursts.extend([burst(US, MS - US); 200]);
        threads[0].bursts = bursts.into();
        find(&mut threads, &times);
        assert_eq!(threads[0].starter, None);
    }

    #[test]
    fn a_few_threads_that_begin_while_another_is_away_are_not_started_by_it() {
        let (mut threads, times) = server(9);
        find(&mut threads, &times);
        assert!(threads.iter().all(|thread| thread.starter.is_none() && thread.started.is_none()));
    }
}
