//! Threads that live on what others bring: the consumers of a queue.
//!
//! A consumer that finds its queue empty sleeps until a producer puts something in. What it did
//! between two such sleeps was all that had been brought, and it cannot do more under other rules,
//! however soon it gets the GIL. No event says so. But if the sleeps of a thread that seldom sleeps
//! end soon after a thread has begun that mostly sleeps, again and again and far more often than by
//! chance, then that one is a producer.
//!
//! Consumers of the same producers share one queue. What was brought between two moments at which
//! that was empty counts as brought in equal parts by all uses of the producers in between.

use super::Thread;
use super::links::{Evidence, Follows, OWN_NS, by_chance};
use super::starters::Times;
use crate::lengths::median;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A consumer wants the GIL within this time of the beginning of a producer's use.
const SOON_NS: u64 = 200_000;
/// A consumer also sleeps for other reasons: producers explain so much of what chance does not.
const EXPLAINED: f64 = 0.3;
/// Who explains less than one for so many that another explains is no producer.
const SHARE: usize = 10;
/// So many uses tell whether a thread mostly sleeps.
const LEAST_USES: usize = 10;
/// As many beginnings are looked at for one sleep, which bounds what that costs.
const LOOKED_AT: usize = 64;

/// What some threads live on together, by their places, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Supply {
    pub(crate) producers: Vec<usize>,
    pub(crate) consumers: Vec<usize>,
    /// How many uses the producers had begun before each use of the consumers, all in one order; the
    /// last one is for the end of the recording.
    needs: Vec<u32>,
    /// How long after the beginning of a producer's use a consumer wants the GIL.
    pub(crate) after_ns: u64,
}

/// A thread that lives on what others bring.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    pub(crate) supply: Arc<Supply>,
    /// After which of its uses it slept because there was nothing left, ascending.
    empty_after: Vec<u32>,
}

impl Supply {
    #[cfg(test)]
    pub(crate) fn new(
        producers: Vec<usize>,
        consumers: Vec<usize>,
        needs: Vec<u32>,
        after_ns: u64,
    ) -> Self {
        Self { producers, consumers, needs, after_ns }
    }

    /// How many uses its producers must have begun before the consumers begin this use of theirs.
    pub(crate) fn needed(&self, use_: usize) -> u64 {
        self.needs.get(use_).or(self.needs.last()).map_or(0, |count| u64::from(*count))
    }
}

impl Consumer {
    #[cfg(test)]
    pub(crate) fn new(supply: Arc<Supply>, empty_after: Vec<u32>) -> Self {
        Self { supply, empty_after }
    }

    /// Whether it slept after this use because there was nothing left.
    pub(crate) fn is_empty_after(&self, use_: usize) -> bool {
        u32::try_from(use_).is_ok_and(|use_| self.empty_after.binary_search(&use_).is_ok())
    }
}

/// The beginning of a producer's use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Beginning {
    at_ns: u64,
    place: usize,
}

/// The end of a consumer's sleep.
#[derive(Clone, Copy, Debug)]
struct End {
    /// After which use it slept.
    burst: usize,
    at_ns: u64,
    /// What it followed.
    last: Beginning,
}

/// Finds out who lives on what others bring.
pub(super) fn find(threads: &mut [Thread], times: &[Times]) {
    let (producers, consumers): (Vec<_>, Vec<_>) = (0..threads.len())
        .filter(|place| is_known(&threads[*place]))
        .partition(|place| mostly_sleeps(&threads[*place]));
    let mut beginnings: Vec<_> = producers
        .into_iter()
        .flat_map(|place| {
            let began_ns = times[place].began_at_ns.iter();
            began_ns.map(move |at_ns| Beginning { at_ns: *at_ns, place })
        })
        .collect();
    beginnings.sort_unstable();
    let mut groups: BTreeMap<Vec<usize>, Vec<(usize, Vec<End>)>> = BTreeMap::new();
    for place in consumers {
        if let Some(ends) = ends_of_sleeps(&threads[place], &times[place], &beginnings) {
            groups.entry(followed(&ends)).or_default().push((place, ends));
        }
    }
    for (producers, consumers) in groups {
        let theirs = beginnings.iter().filter(|it| producers.binary_search(&it.place).is_ok());
        let brought_ns: Vec<_> = theirs.map(|it| it.at_ns).collect();
        let supply = Arc::new(supply(producers, &consumers, &brought_ns, times));
        for (place, ends) in consumers {
            let empty_after = ends.iter().filter_map(|end| u32::try_from(end.burst).ok()).collect();
            threads[place].lives_on = Some(Consumer { supply: supply.clone(), empty_after });
        }
    }
}

/// Whether the thread did enough, and nothing else is known to make it wait.
fn is_known(thread: &Thread) -> bool {
    thread.bursts.len() >= LEAST_USES
        && thread.follows == Follows::Nobody
        && thread.starter.is_none()
        && thread.started.is_none()
        && !thread.is_launched
        && thread.launches.is_empty()
}

fn mostly_sleeps(thread: &Thread) -> bool {
    let sleeps = thread.bursts.iter().filter(|burst| burst.away_ns > OWN_NS).count();
    sleeps * 2 > thread.bursts.len()
}

/// The ends of the sleeps of a thread that follow `beginnings`, if it lives on those.
fn ends_of_sleeps(thread: &Thread, times: &Times, beginnings: &[Beginning]) -> Option<Vec<End>> {
    let mut evidence = Evidence::default();
    let mut ends = Vec::new();
    let wanted_ns = times.wanted_at_ns.iter().copied().skip(1);
    for (burst, (at_ns, slept)) in wanted_ns.zip(thread.bursts.iter()).enumerate() {
        if slept.away_ns <= OWN_NS {
            continue;
        }
        let until = beginnings.partition_point(|it| it.at_ns <= at_ns);
        let known = &beginnings[until.saturating_sub(LOOKED_AT)..until];
        let mut since_ns = at_ns.saturating_sub(slept.away_ns);
        if known.len() == LOOKED_AT {
            since_ns = since_ns.max(known[0].at_ns);
        }
        let inside = &known[known.partition_point(|it| it.at_ns <= since_ns)..];
        let last = inside.last().filter(|it| at_ns - it.at_ns <= SOON_NS);
        let began_ns = inside.iter().rev().map(|it| it.at_ns);
        evidence.add(last.is_some(), by_chance(began_ns, [since_ns, at_ns], SOON_NS));
        ends.extend(last.map(|last| End { burst, at_ns, last: *last }));
    }
    evidence.explains(EXPLAINED).then_some(ends)
}

/// The places of those that these ends follow often enough, ascending.
fn followed(ends: &[End]) -> Vec<usize> {
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    for end in ends {
        *times.entry(end.last.place).or_default() += 1;
    }
    let most = times.values().copied().max().unwrap_or(0);
    times.retain(|_, times| *times * SHARE >= most);
    times.into_keys().collect()
}

/// What these consumers, each with the ends of its sleeps, live on, if producers brought something
/// at `brought_ns`.
fn supply(
    producers: Vec<usize>,
    consumers: &[(usize, Vec<End>)],
    brought_ns: &[u64],
    times: &[Times],
) -> Supply {
    let began_ns = consumers.iter().flat_map(|(place, _)| &times[*place].began_at_ns);
    let mut began_ns: Vec<_> = began_ns.copied().collect();
    began_ns.sort_unstable();
    let mut ends: Vec<_> = consumers.iter().flat_map(|(_, ends)| ends).collect();
    ends.sort_unstable_by_key(|end| end.at_ns);
    let empty = ends.iter().map(|end| {
        let used = began_ns.partition_point(|at_ns| *at_ns < end.at_ns);
        [used, brought_ns.partition_point(|at_ns| *at_ns <= end.at_ns)]
    });
    let mut needs = Vec::with_capacity(began_ns.len() + 1);
    let mut from = [0, 0];
    for to in empty.chain([[began_ns.len(), brought_ns.len()]]) {
        let [used, brought] = [to[0] - from[0], to[1] - from[1]];
        needs.extend((0..used).map(|at| from[1] + at * brought / used));
        from = to;
    }
    needs.push(from[1]);
    let after_ns = median(ends.iter().map(|end| end.at_ns - end.last.at_ns));
    Supply {
        producers,
        consumers: consumers.iter().map(|(place, _)| *place).collect(),
        needs: needs.into_iter().map(|it| u32::try_from(it).unwrap_or(u32::MAX)).collect(),
        after_ns: after_ns.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::Burst;
    use crate::tests::{MS, US, burst, thread};

    /// A thread that uses the GIL at these times, for so long.
    fn at(times_ns: &[u64], held_ns: u64) -> (Thread, Times) {
        let bursts: Vec<Burst> = times_ns
            .windows(2)
            .map(|two| burst(held_ns, two[1] - two[0] - held_ns))
            .chain([burst(held_ns, 0)])
            .collect();
        let (wanted_at_ns, began_at_ns) = (times_ns.to_vec(), times_ns.to_vec());
        let gone_ns = times_ns[times_ns.len() - 1] + held_ns;
        (thread(times_ns[0], &bursts), Times { wanted_at_ns, began_at_ns, gone_ns })
    }

    /// A producer that brings something each millisecond, and a consumer that does `count` uses with
    /// it, each of 20 us, with 10 us in between, from `late_ns` after that on.
    fn queue(count: u64, late_ns: impl Fn(u64) -> u64) -> (Vec<Thread>, Vec<Times>) {
        let producer: Vec<_> = (0..50).map(|turn| turn * MS).collect();
        let consumer: Vec<_> = (0..50)
            .flat_map(|turn| {
                let from_ns = turn * MS + late_ns(turn);
                (0..count).map(move |at| from_ns + at * 30 * US)
            })
            .collect();
        [at(&producer, 10 * US), at(&consumer, 20 * US)].into_iter().unzip()
    }

    #[test]
    fn who_wakes_up_after_anothers_uses_lives_on_them() {
        let (mut threads, times) = queue(4, |_| 50 * US);
        find(&mut threads, &times);
        assert!(threads[0].lives_on.is_none());
        let consumer = threads[1].lives_on.as_ref().unwrap();
        let supply = &consumer.supply;
        assert_eq!((&supply.producers[..], &supply.consumers[..]), (&[0][..], &[1][..]));
        assert_eq!(supply.after_ns, 50 * US);
        // After the first four uses each four need one more.
        let needs: Vec<_> = (4..12).map(|use_| supply.needed(use_)).collect();
        assert_eq!(needs, [2, 2, 2, 2, 3, 3, 3, 3]);
        assert_eq!(supply.needed(usize::MAX), 50);
        let empty: Vec<_> = (0..9).filter(|use_| consumer.is_empty_after(*use_)).collect();
        assert_eq!(empty, [3, 7]);
    }

    #[test]
    fn who_wakes_up_at_any_time_does_not() {
        let (mut threads, times) = queue(4, |turn| turn * 17 % 80 * 10 * US);
        find(&mut threads, &times);
        assert!(threads.iter().all(|thread| thread.lives_on.is_none()));
    }

    #[test]
    fn consumers_of_the_same_producers_share_what_they_bring() {
        let (mut threads, mut times) = queue(4, |_| 50 * US);
        let other: Vec<_> = times[1].wanted_at_ns.iter().map(|at_ns| at_ns + 15 * US).collect();
        let (other, its_times) = at(&other, 20 * US);
        threads.push(other);
        times.push(its_times);
        find(&mut threads, &times);
        let supplies = [1, 2].map(|place| threads[place].lives_on.clone().unwrap().supply);
        assert!(Arc::ptr_eq(&supplies[0], &supplies[1]));
        assert_eq!(supplies[0].consumers, [1, 2]);
        assert_eq!([8, 15, 17].map(|use_| supplies[0].needed(use_)), [2, 2, 3]);
    }
}
