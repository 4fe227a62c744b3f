//! What threads waited for in locks, or in a free-threaded interpreter for anything, and who woke them.
//!
//! * Every park counts for its thread, by its cause, with percentiles.
//! * What a thread waited at one lock is summed with whoever woke it.
//! * A *pause of the world* is time in which threads that another one has stopped sleep. Such sleeps
//!   that overlap are one pause: a thread that did not want to run meanwhile sleeps in none.

use super::length::{Lengths, Sum, seconds};
use super::park_stacks::{InStacks, ParkStacks};
use crate::record::{COLLECTED, Park, ThreadId};
use crate::report::{ParkedAt, ParkedBy, ParkedThread, ParksReport, Waker, WorldPauses};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use ungil_core::park::{Cause, Ending};

/// Threads that are told apart, and locks with the threads that waited for them; what is beyond is
/// summed.
const THREADS: usize = 1_000;
const WAITS: usize = 4_096;
/// Threads that are told to have woken one at one lock.
const WAKERS: usize = 16;
/// Rows of locks in a report.
const ROWS: usize = 256;
/// Pauses that a later record may still be part of.
const RECENT: usize = 256;

/// Of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Parks {
    threads: BTreeMap<ThreadId, BTreeMap<Cause, Lengths>>,
    /// Of the threads that are not told apart.
    others: BTreeMap<Cause, Lengths>,
    waits: HashMap<Wait, Waits>,
    /// Who slept last at a lock, until when, and whether two ever did at once.
    locks: HashMap<(Cause, u32), Last>,
    pauses: Pauses,
}

/// A thread at a lock; lock 0 is all those that are not told apart, as are those of objects that the
/// thread had itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Wait {
    pub(super) thread: ThreadId,
    pub(super) cause: Cause,
    pub(super) lock: u32,
}

/// As what a park counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) wait: Wait,
    /// Whose it counts as; `None` if that is not known, or if there are too many.
    pub(super) waker: Option<ThreadId>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    of: String,
    sum: Sum,
    /// The stacks in which the thread slept.
    pub(super) places: InStacks,
    /// The threads that ended them, with what they had lasted.
    wakers: Vec<Wakes>,
}

/// What one thread ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Wakes {
    pub(super) waker: Option<ThreadId>,
    sum: Sum,
    /// How many of them it ended by letting go of the lock.
    let_go: u64,
    /// From where it did.
    places: InStacks,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    thread: ThreadId,
    until_ns: u64,
    together: bool,
}

#[derive(Clone, Debug, Default)]
struct Pauses {
    /// Oldest first.
    recent: VecDeque<Pause>,
    /// Those before, and the collections among them.
    sum: Sum,
    collections: Sum,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    begin_ns: u64,
    end_ns: u64,
    is_collection: bool,
}

impl Parks {
    /// Counts `park` from `since_ns` on: as what, unless its thread is too many to be told apart.
    pub(super) fn add(&mut self, thread: ThreadId, park: &Park, since_ns: u64) -> Option<Counted> {
        let ns = park.until_ns.saturating_sub(since_ns);
        let is_told = self.threads.len() < THREADS || self.threads.contains_key(&thread);
        let causes =
            if is_told { self.threads.entry(thread).or_default() } else { &mut self.others };
        causes.entry(park.cause).or_default().add(ns);
        self.meets(thread, park, since_ns);
        if park.cause == Cause::Pause {
            let is_collection = park.of == COLLECTED;
            self.pauses.add(Pause { begin_ns: since_ns, end_ns: park.until_ns, is_collection });
        }
        if !is_told {
            return None;
        }
        let mut wait = Wait { thread, cause: park.cause, lock: park.lock };
        // A thread that lets go of the lock of an object in order to park for it again: 3.13 does so
        // once for each dict that another thread has made. They are no contention, and would be many.
        let is_own = park.cause == Cause::Object && park.waker == Some(thread);
        let is_too_many = self.waits.len() >= WAITS && !self.waits.contains_key(&wait);
        if is_own || is_too_many {
            wait.lock = 0;
        }
        let waits = self.waits.entry(wait).or_default();
        if wait.lock != 0 && waits.of.is_empty() {
            waits.of.clone_from(&park.of);
        }
        waits.sum.add(ns);
        waits.places.add(park.stack, ns);
        let place_of = |waker| waits.wakers.iter().position(|known| known.waker == waker);
        let (place, has_room) = (place_of(park.waker), waits.wakers.len() < WAKERS);
        // One that is too many is as if it were not known.
        let waker = park.waker.filter(|_| place.is_some() || has_room);
        let place = place.or_else(|| place_of(waker)).unwrap_or_else(|| {
            waits.wakers.push(Wakes { waker, ..Wakes::default() });
            waits.wakers.len() - 1
        });
        let woken_by = &mut waits.wakers[place];
        woken_by.sum.add(ns);
        woken_by.let_go += u64::from(park.ending == Ending::LetGo);
        woken_by.places.add(park.waker_stack, ns);
        Some(Counted { wait, waker })
    }

    /// Notes whether another thread slept at the same lock meanwhile.
    fn meets(&mut self, thread: ThreadId, park: &Park, since_ns: u64) {
        let (key, until_ns) = ((park.cause, park.lock), park.until_ns);
        if park.lock == 0 || (self.locks.len() >= WAITS && !self.locks.contains_key(&key)) {
            return;
        }
        let last = self.locks.entry(key).or_insert(Last { thread, until_ns: 0, together: false });
        last.together |= last.thread != thread && since_ns < last.until_ns;
        if until_ns >= last.until_ns {
            (last.thread, last.until_ns) = (thread, until_ns);
        }
    }

    /// How long threads slept for others, added up.
    pub(super) fn parked_ns(&self) -> u64 {
        let threads = self.threads.values().chain([&self.others]);
        let causes = threads.flatten().filter(|(cause, _)| is_for_others(**cause));
        causes.fold(0, |sum, (_, lengths)| sum.saturating_add(lengths.sum.total_ns))
    }

    /// The report, in which `stacks` tells what numbers of stacks stand for, and `who` kernel thread id, name, and whether it is the main thread.
    pub(super) fn report(
        &self,
        stacks: &ParkStacks,
        who: impl Fn(ThreadId) -> Option<(u32, String, bool)>,
    ) -> ParksReport {
        let mut threads: Vec<_> = self
            .threads
            .iter()
            .map(|(id, causes)| {
                let (tid, name, main) = who(*id).unwrap_or_default();
                ParkedThread { tid, name, main, causes: by_cause(causes) }
            })
            .collect();
        threads.sort_by(|a, b| b.waited_s().total_cmp(&a.waited_s()));
        ParksReport {
            threads,
            others: by_cause(&self.others),
            waits: self.rows(stacks, who),
            pauses: self.pauses.report(),
        }
    }

    /// How likely it is that a thread that waits so has nothing to do.
    fn idleness(&self, wait: &Wait, contended: &HashSet<(Cause, u32)>) -> u8 {
        match wait.cause {
            Cause::Event => 2,
            Cause::Lock => u8::from(!self.is_shared(wait)),
            Cause::OffGil => u8::from(!contended.contains(&(wait.cause, wait.lock))),
            _ => 0,
        }
    }

    /// Whether two threads were ever parked for that lock at once.
    fn is_shared(&self, wait: &Wait) -> bool {
        self.locks.get(&(wait.cause, wait.lock)).is_some_and(|it| it.together)
    }

    /// The locks for which some thread waited that also let go of them for others. Where nobody is known
    /// to have let go of any, as from 3.14 on, one that ended waits of others, if two waited at once:
    /// then it is not several locks, one after the other at one address.
    pub(super) fn contended(&self) -> HashSet<(Cause, u32)> {
        let off_gil = |wait: &Wait| wait.cause == Cause::OffGil && wait.lock != 0;
        let waits = || self.waits.iter().filter(|(wait, _)| off_gil(wait));
        let is_known = waits().flat_map(|(_, waits)| &waits.wakers).any(|it| it.let_go > 0);
        let wakers = waits().flat_map(|(wait, waits)| {
            let may_be = !is_known && self.is_shared(wait);
            let those = waits.wakers.iter().filter(move |wakes| wakes.let_go > 0 || may_be);
            let others = those.filter_map(|wakes| wakes.waker);
            others
                .filter(|waker| *waker != wait.thread)
                .map(|waker| Wait { thread: waker, ..*wait })
        });
        let waited = wakers.filter(|waker| self.waits.contains_key(waker));
        let queues = if is_known { self.queues() } else { HashSet::new() };
        let locks = waited.map(|it| (it.cause, it.lock));
        locks.filter(|lock| !queues.contains(lock)).collect()
    }

    /// The locks of simple queues (`Modules/_queuemodule.c`): who takes an item has that lock, and lets go of
    /// it to put another one in. So each idle worker of a pool hands on that it is to end, once.
    /// Whoever puts in the first item has not had the lock.
    fn queues(&self) -> HashSet<(Cause, u32)> {
        // By lock, the signals, and how often each thread let go of it.
        let mut ends: HashMap<(Cause, u32), (u64, HashMap<ThreadId, u64>)> = HashMap::new();
        for (wait, waits) in &self.waits {
            let (signals, let_go) = ends.entry((wait.cause, wait.lock)).or_default();
            for wakes in &waits.wakers {
                let Some(waker) = wakes.waker else { continue };
                *signals += wakes.sum.count - wakes.let_go;
                *let_go.entry(waker).or_default() += wakes.let_go;
            }
        }
        ends.retain(|_, (signals, let_go)| {
            let (most, all) = (let_go.values().max().copied(), let_go.values().sum());
            *signals > 0 && (most.unwrap_or(0) < 2 || *signals > all)
        });
        ends.into_keys().collect()
    }

    /// For how long each thread slept for these locks.
    pub(super) fn slept_for(&self, locks: &HashSet<(Cause, u32)>) -> HashMap<ThreadId, u64> {
        let mut slept_ns = HashMap::new();
        for (wait, waits) in &self.waits {
            if locks.contains(&(wait.cause, wait.lock)) {
                *slept_ns.entry(wait.thread).or_default() += waits.sum.total_ns;
            }
        }
        slept_ns
    }

    /// What threads waited at locks in the order of the report: longest first, in idleness last.
    pub(super) fn ordered(&self, contended: &HashSet<(Cause, u32)>) -> Vec<(&Wait, &Waits)> {
        let mut waits: Vec<_> = self.waits.iter().collect();
        waits.sort_by_key(|(wait, waits)| (std::cmp::Reverse(waits.sum.total_ns), **wait));
        // What may be waited for in idleness is told, but not at the cost of the rest.
        waits.sort_by_key(|(wait, _)| self.idleness(wait, contended));
        waits.truncate(ROWS);
        waits
    }

    /// What threads waited at locks, longest first, in idleness last.
    pub(super) fn rows(
        &self,
        stacks: &ParkStacks,
        who: impl Fn(ThreadId) -> Option<(u32, String, bool)>,
    ) -> Vec<ParkedAt> {
        let contended = self.contended();
        let row = |(wait, waits): (&Wait, &Waits)| {
            let (tid, name, _) = who(wait.thread).unwrap_or_default();
            let wakers =
                waits.ordered_wakers().into_iter().map(|Wakes { waker, sum, let_go, places }| {
                    let known = waker.and_then(&who);
                    let (tid, name) = known.map(|(tid, name, _)| (tid, name)).unzip();
                    let place = places.report(stacks).into_iter().next();
                    let (frame, user_frame) = place.map(|it| (it.frame, it.user_frame)).unzip();
                    Waker {
                        tid,
                        name,
                        count: sum.count,
                        waited_s: seconds(sum.total_ns),
                        let_go: *let_go,
                        frame,
                        user_frame: user_frame.flatten(),
                    }
                });
            ParkedAt {
                tid,
                name,
                cause: wait.cause.name(),
                of: Some(waits.of.clone()).filter(|of| !of.is_empty()),
                lock: Some(wait.lock).filter(|&lock| lock != 0),
                together: self.is_shared(wait),
                contended: contended.contains(&(wait.cause, wait.lock)),
                count: waits.sum.count,
                waited_s: seconds(waits.sum.total_ns),
                max_ms: waits.sum.max_ns as f64 / 1e6,
                places: waits.places.report(stacks),
                wakers: wakers.collect(),
            }
        };
        self.ordered(&contended).into_iter().map(row).collect()
    }
}

impl Waits {
    /// Who ended most of it first.
    pub(super) fn ordered_wakers(&self) -> Vec<&Wakes> {
        let mut wakers: Vec<_> = self.wakers.iter().collect();
        wakers.sort_by_key(|wakes| std::cmp::Reverse(wakes.sum.total_ns));
        wakers
    }
}

/// Whether a thread that sleeps so wants to go on, and cannot because of another one. Of a lock of
/// the program nobody knows: conditions and queues are made of them, too.
pub(super) const fn is_for_others(cause: Cause) -> bool {
    !matches!(cause, Cause::Event)
}

fn by_cause(causes: &BTreeMap<Cause, Lengths>) -> Vec<ParkedBy> {
    let row = |(cause, lengths): (&Cause, &Lengths)| ParkedBy {
        cause: cause.name(),
        waited_s: seconds(lengths.sum.total_ns),
        parks: lengths.report(),
    };
    causes.iter().map(row).collect()
}

impl Pauses {
    /// Adds the park of one thread, which may have been told later than those of others.
    fn add(&mut self, park: Pause) {
        let mut pause = park;
        self.recent.retain(|other| {
            let overlaps = other.begin_ns < park.end_ns && park.begin_ns < other.end_ns;
            if overlaps {
                pause.begin_ns = pause.begin_ns.min(other.begin_ns);
                pause.end_ns = pause.end_ns.max(other.end_ns);
                pause.is_collection |= other.is_collection;
            }
            !overlaps
        });
        let place = self.recent.partition_point(|other| other.begin_ns < pause.begin_ns);
        self.recent.insert(place, pause);
        if self.recent.len() > RECENT
            && let Some(oldest) = self.recent.pop_front()
        {
            oldest.count(&mut self.sum, &mut self.collections);
        }
    }

    fn report(&self) -> WorldPauses {
        let (mut sum, mut collections) = (self.sum, self.collections);
        self.recent.iter().for_each(|pause| pause.count(&mut sum, &mut collections));
        WorldPauses {
            count: sum.count,
            stopped_s: seconds(sum.total_ns),
            max_ms: sum.max_ns as f64 / 1e6,
            collections: collections.count,
            collections_s: seconds(collections.total_ns),
        }
    }
}

impl Pause {
    fn count(self, all: &mut Sum, collections: &mut Sum) {
        let ns = self.end_ns.saturating_sub(self.begin_ns);
        all.add(ns);
        if self.is_collection {
            collections.add(ns);
        }
    }
}
