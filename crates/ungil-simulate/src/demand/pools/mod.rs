//! Pools of threads that work for clients, as in gunicorn, waitress, cheroot or a gRPC server.
//!
//! One thread waits for what arrives and hands it on, and whichever thread of the pool is idle takes
//! it. So what one of them does has no order of its own. There is as much to do at a time as there are
//! clients, each of which asks again once it has its answer, however many threads the pool has.
//!
//! No event says who feeds whom, nor where a job begins: see `feeding.rs`. So both are simulated, the
//! pool and the threads each by itself, and the one that is more like the recording is believed (see
//! `prediction.rs`).

mod feeding;
mod jobs;
mod clients;

pub(crate) use clients::Client;
pub(crate) use jobs::{Job, Worker};

use super::Thread;
use super::links::Follows;
use super::starters::{Starter, Times};
use feeding::Feeding;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Threads that are woken by those of the pool so often wait for these, not for clients.
const FOLLOWED: usize = 10;

/// Threads that take what another one hands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) workers: Vec<Worker>,
    /// The place of the thread that hands on.
    pub(crate) feeder: usize,
    /// After which of its uses that one waits for an arrival, and at the end of which it hands one on.
    pub(crate) door: Arc<Starter>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) clients: Vec<Client>,
}

/// Finds the pools. `middle` is the part of the run of which more would come.
pub(super) fn find(threads: &[Thread], times: &[Times], middle: &Range<u64>) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    let mut taken = HashSet::new();
    for family in families(threads) {
        let Some(pool) = pool(threads, times, &family, middle) else { continue };
        let places = || pool.workers.iter().map(|it| it.place).chain([pool.feeder]);
        if places().all(|it| !taken.contains(&it)) {
            taken.extend(places());
            pools.push(pool);
        }
    }
    pools
}

/// The threads that live on, by what their names say but for a number: those of one pool.
fn families(threads: &[Thread]) -> Vec<Vec<usize>> {
    let mut families: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (place, thread) in threads.iter().enumerate() {
        let is_known = thread.starter.is_some()
            || thread.started.is_some()
            || thread.is_launched
            || thread.lives_on.is_some();
        if !thread.steady.uses.is_empty() && !is_known {
            families.entry(without_number(&thread.name)).or_default().push(place);
        }
    }
    families.into_values().filter(|it| it.len() > 1).collect()
}

/// A name, before and after its last number.
fn without_number(name: &str) -> (&str, &str) {
    let is_digit = |it: char| it.is_ascii_digit();
    let Some(last) = name.rfind(is_digit) else { return (name, "") };
    let before = name[..last].trim_end_matches(is_digit);
    (before, &name[last + 1..])
}

/// The pool that these threads are, if one feeds them and nobody else waits for them.
fn pool(
    threads: &[Thread],
    times: &[Times],
    family: &[usize],
    middle: &Range<u64>,
) -> Option<Pool> {
    let feeding = Feeding::of(threads, times, family)?;
    let (workers, mut jobs) = jobs::of(threads, times, family, &feeding);
    let places: HashSet<_> = workers.iter().map(|it| it.place).collect();
    // If it is known for whom most of them wait, that says more.
    let follow = places.iter().filter(|it| threads[**it].follows == Follows::Often).count();
    if places.len() < 2 || follow * 2 > places.len() || are_followed(threads, &places) {
        return None;
    }
    let door = Arc::new(feeding.door(threads, times, &mut jobs));
    let clients = clients::of(&mut jobs, middle);
    Some(Pool { workers, feeder: feeding.feeder, door, jobs, clients })
}

/// Whether another thread waits for what these do: they work for that one.
fn are_followed(threads: &[Thread], places: &HashSet<usize>) -> bool {
    let waits_for_them = |thread: &Thread| {
        let links = thread.bursts.iter().filter_map(|it| it.after);
        links.filter(|it| places.contains(&(it.thread as usize))).count() >= FOLLOWED
    };
    let mut others = threads.iter().enumerate().filter(|(place, _)| !places.contains(place));
    others.any(|(_, thread)| waits_for_them(thread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::Steady;
    use crate::demand::links::Link;
    use crate::tests::{MS, US, burst, thread};

    /// A thread that used the GIL from when to when, over and over.
    fn used(name: &str, uses: &[(u64, u64)], ends_ns: u64) -> (Thread, Times) {
        let wanted_at_ns: Vec<_> = uses.iter().map(|(from_ns, _)| *from_ns).collect();
        let next = wanted_at_ns.iter().skip(1).copied().chain([ends_ns]);
        let bursts: Vec<_> =
            uses.iter().zip(next).map(|((from, to), next)| burst(to - from, next - to)).collect();
        let steady = Steady { uses: 0..uses.len(), away_ns: 0 };
        let thread = Thread { name: name.into(), steady, ..thread(uses[0].0, &bursts) };
        (thread, Times { began_at_ns: wanted_at_ns.clone(), wanted_at_ns, gone_ns: ends_ns })
    }

    /// A server for two clients: each 20 ms, one asks for a report of 9 ms, and the other one twice
    /// for a page of 0.5 ms, which first waits 2 ms for a database. Three threads take turns.
    pub(super) fn server() -> (Vec<Thread>, Vec<Times>) {
        let ends_ns = 2_000 * MS;
        let (mut feeder, mut workers) = (vec![(0, 10 * US)], [const { Vec::new() }; 3]);
        for worker in &mut workers {
            worker.push((100 * US, 120 * US));
        }
        let mut turn = 0;
        for round in 1..100 {
            for (after_ns, work_ns) in [(0, 9 * MS), (11 * MS, MS / 2), (16 * MS, MS / 2)] {
                let at_ns = round * 20 * MS + after_ns;
                feeder.extend([(at_ns, at_ns + 20 * US), (at_ns + 30 * US, at_ns + 60 * US)]);
                let begins_ns = at_ns + 75 * US;
                let computes_ns = begins_ns + 2 * MS;
                workers[turn % 3].extend([
                    (begins_ns, begins_ns + 50 * US),
                    (computes_ns, computes_ns + work_ns),
                    (computes_ns + work_ns + 20 * US, computes_ns + work_ns + 30 * US),
                ]);
                turn += 1;
            }
        }
        let mut all = vec![used("accepts", &feeder, ends_ns)];
        let named = workers.iter().enumerate();
        all.extend(named.map(|(number, uses)| used(&format!("worker-{number}"), uses, ends_ns)));
        all.into_iter().unzip()
    }

    fn found(threads: &[Thread], times: &[Times]) -> Vec<Pool> {
        find(threads, times, &(200 * MS..1_900 * MS))
    }

    #[test]
    fn a_thread_that_hands_on_what_arrives_feeds_a_pool() {
        let (threads, times) = server();
        let [pool] = &found(&threads, &times)[..] else { panic!("one pool") };
        let workers: Vec<_> = pool.workers.iter().map(|it| (it.place, it.before)).collect();
        assert_eq!((pool.feeder, workers), (0, vec![(1, 1), (2, 1), (3, 1)]));
        assert_eq!(pool.jobs.len(), 297);
        assert!(pool.jobs.iter().all(|it| it.bursts.len() == 3 && it.longest == 1));
    }

    #[test]
    fn each_client_asks_again_for_what_is_alike() {
        let (threads, times) = server();
        let [pool] = &found(&threads, &times)[..] else { panic!("one pool") };
        let asks: Vec<_> = pool.clients.iter().map(|it| it.asks.len()).collect();
        assert_eq!(asks, [99, 198]);
        let long = pool.clients[0].asks.iter().map(|it| pool.jobs[it.job].longest_ns);
        assert!(long.clone().all(|ns| ns == 9 * MS));
        // From the end of its computing to the next arrival.
        let after_ns: HashSet<_> = pool.clients[0].asks[1..].iter().map(|it| it.after_ns).collect();
        assert_eq!(after_ns, HashSet::from([20 * MS - 11 * MS - 75 * US]));
    }

    #[test]
    fn who_hands_on_waits_for_an_arrival_before() {
        let (threads, times) = server();
        let [pool] = &found(&threads, &times)[..] else { panic!("one pool") };
        assert_eq!(pool.door.waits_after, (0..297).map(|job| 2 * job).collect::<Vec<_>>());
        let handed_on: Vec<_> = pool.door.starts.iter().map(|(burst, _)| *burst).collect();
        assert_eq!(handed_on, (1..=297).map(|job| 2 * job).collect::<Vec<_>>());
        assert!(pool.jobs.iter().all(|it| it.is_let_in));
    }

    #[test]
    fn threads_that_another_one_waits_for_are_no_pool() {
        let (mut threads, times) = server();
        let after = Link { thread: 1, burst: 0, turn: 1, awake: false, after_ns: 1, posted: false };
        let waits = burst(US, MS);
        let bursts = vec![super::super::Burst { after: Some(after), ..waits }; FOLLOWED];
        threads[0].bursts = [&threads[0].bursts[..], &bursts].concat().into();
        assert!(found(&threads, &times).is_empty());
    }

    #[test]
    fn threads_for_which_it_is_known_what_they_wait_for_are_no_pool() {
        let (mut threads, times) = server();
        threads[1].follows = Follows::Often;
        assert_eq!(found(&threads, &times).len(), 1, "most are not");
        threads[2].follows = Follows::Often;
        assert!(found(&threads, &times).is_empty());
    }

    #[test]
    fn the_threads_of_a_pool_have_the_same_name_but_for_a_number() {
        assert_eq!(without_number("ThreadPoolExecutor-0_12"), ("ThreadPoolExecutor-0_", ""));
        assert_eq!(without_number("Thread-5 (worker)"), ("Thread-", " (worker)"));
        assert_eq!(without_number("main"), ("main", ""));
    }
}
