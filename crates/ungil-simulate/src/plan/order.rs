//! The order of threads in a simulation: who begins after whom, and who waits for whom.

use super::{Again, Awaits, Planned};
use crate::demand::{Delivery, Demand, Launch, Link, Progress, Wake, Way};
use crate::rules::Rules;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Which thread begins after another, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub(crate) thread: usize,
    pub(crate) after_ns: u64,
    /// Whether that is after the reply of the other, and not after its end.
    pub(crate) is_asked: bool,
}

/// A thread waits until so long after the beginning of a use of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    pub(crate) thread: usize,
    pub(crate) begins: Begins,
    pub(crate) after_ns: u64,
    /// Whether that one wakes it through a lock of the program.
    pub(crate) posted: bool,
}

/// Which use of another thread one waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begins {
    /// That of this number; its uses are counted from 0 on. So two threads that wait for each other
    /// always find what they wait for.
    Number(usize),
    /// The how many-th from when on it waits; 1 is the next one. Of a thread that waits for nobody
    /// that comes in any case, at its own pace. One that was `awake` all the time had done what it was
    /// waited for before it slept, however many uses that took.
    Turn { turn: usize, awake: bool },
}

/// A thread that others wait for, as often as it goes on anew.
#[derive(Clone, Debug)]
pub(super) struct Leader {
    /// Its place among those that are planned.
    pub(super) thread: usize,
    follows: bool,
    /// Whether each of its uses is there once: then others wait for the one of the recording.
    once: bool,
    again: Option<Again>,
    /// How many uses it has in each of its lives, if another starts it over and over.
    in_a_life: Option<usize>,
}

/// Tells the threads that are planned for whom they wait, and who begins when.
pub(super) fn tell(all: &mut [Planned], demand: &Demand, rules: &Rules, way: Way) {
    // What these do has no order of its own.
    let pools = demand.pools_in(way);
    let in_pools: HashSet<_> = pools.iter().flat_map(|it| &it.workers).map(|it| it.place).collect();
    let mut leaders = vec![None; demand.threads.len()];
    for (number, thread) in all.iter().enumerate().filter(|(_, thread)| !thread.is_copy) {
        let follows = demand.threads[thread.source].waits_for_others(way)
            && !in_pools.contains(&thread.source);
        let (in_a_life, once) = (thread.in_a_life, rules.once);
        leaders[thread.source] =
            Some(Leader { thread: number, follows, once, again: thread.again.clone(), in_a_life });
    }
    let leaders: Arc<[_]> = leaders.into();
    for thread in all.iter_mut() {
        thread.leaders = leaders.clone();
    }
    follow_each_other(all, demand, rules, &leaders);
    if rules.once {
        wake_each_other(all, demand, &leaders);
    } else if way.by_deliveries {
        deliver_to_each_other(all, demand, &leaders);
    }
}

/// The number of the thread at that place in the demand, if it is simulated.
fn number_of(leaders: &[Option<Leader>], place: usize) -> Option<usize> {
    leaders.get(place)?.as_ref().map(|it| it.thread)
}

/// Says who wakes whom, of threads that do their work once.
fn wake_each_other(all: &mut [Planned], demand: &Demand, leaders: &[Option<Leader>]) {
    let planned = |wake: &Wake| Some(Wake { by: number_of(leaders, wake.by)?, ..*wake });
    let mut posts: Vec<Vec<Progress>> = vec![Vec::new(); all.len()];
    for thread in all.iter_mut().filter(|it| !it.is_copy) {
        let source = &demand.threads[thread.source];
        thread.wakes = source.wakes.iter().filter_map(planned).collect();
        // Who starts it for an arrival, or for a batch, knows it already.
        let is_free = thread.started_by.is_none() && thread.in_a_life.is_none();
        thread.begins_after = source.begun_by.filter(|_| is_free).as_ref().and_then(planned);
        for Wake { by, at, .. } in thread.wakes.iter().filter(|it| it.at.held_ns < Progress::END) {
            posts[*by].push(*at);
        }
    }
    let are_begun: Vec<_> = all.iter().map(|thread| thread.begins_after.is_some()).collect();
    for thread in all.iter_mut() {
        thread.begins_ns = thread.begins_ns.filter(|_| thread.begins_after.is_none());
        thread.successor = thread.successor.filter(|next| !are_begun[next.thread]);
    }
    for (thread, mut posts) in all.iter_mut().zip(posts) {
        posts.sort_unstable();
        posts.dedup();
        thread.posts = posts.into();
    }
}

/// Says who brings what to whom, of threads that do their work over and over.
fn deliver_to_each_other(all: &mut [Planned], demand: &Demand, leaders: &[Option<Leader>]) {
    let its = |place| number_of(leaders, place);
    let mut brings: Vec<Vec<(Progress, usize)>> = vec![Vec::new(); all.len()];
    for (number, thread) in all.iter_mut().enumerate() {
        let source = &demand.threads[thread.source];
        let is_free = !thread.is_copy && thread.started_by.is_none() && thread.in_a_life.is_none();
        let Some(deliveries) = source.deliveries.as_ref().filter(|_| is_free) else { continue };
        let sleeps = source.wakes.iter().filter(|it| its(it.by).is_some());
        let stops = deliveries.stops.iter().filter(|it| its(it.by).is_some());
        thread.awaits = Some(Awaits {
            sleeps: sleeps.map(|it| (it.burst, it.after_ns)).collect(),
            stops: stops.copied().collect(),
            after_ns: deliveries.after_ns,
            patience_ns: deliveries.patience_ns,
        });
        for Delivery { by, at } in &deliveries.all {
            if let Some(by) = its(*by) {
                brings[by].push((*at, number));
            }
        }
    }
    for (thread, mut brings) in all.iter_mut().zip(brings) {
        brings.sort_unstable();
        let mut posts: Vec<_> = brings.iter().map(|it| it.0).collect();
        posts.retain(|at| at.held_ns < Progress::END);
        posts.dedup();
        (thread.posts, thread.brings) = (posts.into(), brings.into());
    }
}

/// Says who begins after whom, and who is started by whom.
fn follow_each_other(
    all: &mut [Planned],
    demand: &Demand,
    rules: &Rules,
    leaders: &[Option<Leader>],
) {
    let its = |place| number_of(leaders, place);
    for number in 0..all.len() {
        let source = &demand.threads[all[number].source];
        if all[number].is_copy {
            continue;
        }
        let launches = source.launches.iter();
        let launches = launches.filter_map(|it| Some(Launch { thread: its(it.thread)?, ..*it }));
        all[number].launches = launches.collect();
        if all[number].in_a_life.is_some() {
            all[number].begins_ns = None;
        }
        if let Some(started) = source.started {
            all[number].started_by = its(started.by);
            all[number].begins_ns = all[number].begins_ns.map(|ns| ns.min(started.arrives_ns));
        }
        let successor = source.successor.filter(|it| !(it.is_again && rules.once));
        let Some((successor, thread)) = successor.and_then(|it| Some((it, its(it.thread)?))) else {
            continue;
        };
        let is_asked = successor.is_asked && source.started.is_some();
        all[number].successor = Some(Next { thread, after_ns: successor.after_ns, is_asked });
        if !successor.is_again {
            all[thread].begins_ns = None;
        }
    }
}

impl Leader {
    /// Which of its uses it is that was the one of this number when it was recorded, in this round
    /// of one that follows it. `None` if nobody need wait for it.
    pub(super) fn begins(&self, link: Link, round: usize) -> Option<Begins> {
        let burst = link.burst as usize;
        if !self.follows && !self.once && self.in_a_life.is_none() {
            let turn = link.turn.max(1) as usize;
            return Some(Begins::Turn { turn, awake: link.awake });
        }
        if let Some(uses) = self.in_a_life {
            return Some(Begins::Number(burst + round * uses));
        }
        let Some(again) = &self.again else {
            return (round == 0).then_some(Begins::Number(burst));
        };
        Some(Begins::Number(again.number(burst, round)))
    }
}

impl Again {
    /// Which use it is that was the one of this number when it was recorded, in this round. One from
    /// before the first of a round, or from after the last, is the last one before that: with any other,
    /// two threads might wait for each other between two rounds.
    fn number(&self, burst: usize, round: usize) -> usize {
        let Range { start, end } = self.uses;
        let (length, last) = (self.uses.len(), end.saturating_sub(1));
        match round.checked_sub(1) {
            Some(before) if burst < start => last + before * length,
            _ => burst.min(last) + round * length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_counted_on_from_round_to_round_and_no_use_of_the_next_round_is_waited_for() {
        let again = Again { uses: 10..30, away_ns: 0, after: None };
        let numbers = |round| [4, 10, 29, 33].map(|burst| again.number(burst, round));
        assert_eq!(numbers(0), [4, 10, 29, 29]);
        assert_eq!(numbers(1), [29, 30, 49, 49]);
        assert_eq!(numbers(2), [49, 50, 69, 69]);
    }
}
