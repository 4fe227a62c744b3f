//! What threads did that had a lock for which others slept: what looks showed of a thread while it
//! kept another one waiting.
//!
//! Whoever ends a sleep for a lock by letting go of that had it since its own last sleep for it
//! ended, or since before the other one slept. Looks at it in that time show what it had the lock for.

use super::length::{Sum, seconds};
use super::off_gil::what;
use super::samples::line_of;
use crate::record::{Doing, Frame, Park, ThreadId};
use crate::report::{DidWithLock, LockReport, What};
use std::collections::{HashMap, HashSet, VecDeque};
use ungil_core::park::{Cause, Ending};

/// Looks that are kept until it is known who waited meanwhile.
const LOOKS: usize = 512;
/// Locks that are told apart, threads that are at one of them, and what they do with it.
const LOCKS: usize = 1_024;
const THREADS: usize = 1_024;
const PLACES: usize = 16;
/// Locks in a report.
const ROWS: usize = 64;

/// Of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct BehindLocks {
    looks: VecDeque<Look>,
    locks: HashMap<u32, Lock>,
}

#[derive(Clone, Debug)]
struct Look {
    thread: ThreadId,
    at_ns: u64,
    place: Place,
    /// The locks for which it has counted: once for each, however many threads waited for that.
    counted_for: Vec<u32>,
}

/// What a thread did, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    what: What,
    call: String,
    on: String,
    frame: Option<String>,
    user_frame: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct Lock {
    sleeps: Sum,
    /// For how long any thread slept for it, and until when the last one did.
    waited_for_ns: u64,
    until_ns: u64,
    /// When each thread's last sleep for it ended.
    ends_ns: HashMap<ThreadId, u64>,
    looks: u64,
    did: Vec<(Place, u64)>,
}

impl BehindLocks {
    /// A look found a thread off the GIL.
    pub(super) fn look(&mut self, thread: ThreadId, at_ns: u64, doing: &Doing, frames: &[Frame]) {
        let Doing::Off { call, on, .. } = doing else { return };
        if self.looks.len() >= LOOKS {
            self.looks.pop_front();
        }
        let place = Place {
            what: what(call, on, frames).0,
            call: call.clone(),
            on: on.clone(),
            frame: frames.first().map(line_of),
            user_frame: Frame::innermost_of_the_user(frames).map(line_of),
        };
        self.looks.push_back(Look { thread, at_ns, place, counted_for: Vec::new() });
    }

    /// A thread has slept for a lock, from `since_ns` on as far as that counts.
    pub(super) fn slept(&mut self, thread: ThreadId, park: &Park, since_ns: u64) {
        let is_full = self.locks.len() >= LOCKS && !self.locks.contains_key(&park.lock);
        if park.lock == 0 || is_full {
            return;
        }
        let (number, until_ns) = (park.lock, park.until_ns);
        let lock = self.locks.entry(number).or_default();
        lock.sleeps.add(until_ns.saturating_sub(since_ns));
        let waited_for_ns = until_ns.saturating_sub(since_ns.max(lock.until_ns));
        lock.waited_for_ns = lock.waited_for_ns.saturating_add(waited_for_ns);
        lock.until_ns = lock.until_ns.max(until_ns);
        if lock.ends_ns.len() < THREADS || lock.ends_ns.contains_key(&thread) {
            lock.ends_ns.insert(thread, until_ns);
        }
        let Some(waker) = park.waker.filter(|_| park.ending == Ending::LetGo) else { return };
        let had_it_ns = lock.ends_ns.get(&waker).map_or(since_ns, |it| since_ns.max(*it));
        let in_that = |look: &&mut Look| {
            look.thread == waker && look.at_ns < until_ns && !look.counted_for.contains(&number)
        };
        // They come in the order of time.
        let since = self.looks.iter_mut().rev().take_while(|look| look.at_ns >= had_it_ns);
        for look in since.filter(in_that) {
            look.counted_for.push(number);
            lock.looks += 1;
            match lock.did.iter().position(|(place, _)| *place == look.place) {
                Some(known) => lock.did[known].1 += 1,
                None if lock.did.len() < PLACES => lock.did.push((look.place.clone(), 1)),
                None => {}
            }
        }
    }

    /// Of these locks, those for which threads slept longest first.
    pub(super) fn report(&self, contended: &HashSet<(Cause, u32)>) -> Vec<LockReport> {
        let its = |(number, _): &(&u32, &Lock)| contended.contains(&(Cause::OffGil, **number));
        let mut locks: Vec<_> = self.locks.iter().filter(its).collect();
        locks.sort_by_key(|(number, lock)| (std::cmp::Reverse(lock.sleeps.total_ns), **number));
        locks.truncate(ROWS);
        locks.into_iter().map(|(number, lock)| lock.report(*number)).collect()
    }
}

impl Lock {
    fn report(&self, number: u32) -> LockReport {
        let mut did: Vec<_> = self.did.iter().collect();
        did.sort_by_key(|(_, looks)| std::cmp::Reverse(*looks));
        let told = |(place, looks): &(Place, u64)| DidWithLock {
            what: place.what,
            call: place.call.clone(),
            on: place.on.clone(),
            frame: place.frame.clone(),
            user_frame: place.user_frame.clone(),
            looks: *looks,
        };
        LockReport {
            lock: number,
            count: self.sleeps.count,
            waited_s: seconds(self.sleeps.total_ns),
            waited_for_s: seconds(self.waited_for_ns),
            looks: self.looks,
            did: did.into_iter().map(told).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn park(lock: u32, (from_ms, to_ms): (u64, u64), waker: u32, ending: Ending) -> Park {
        Park {
            since_ns: from_ms * MS,
            until_ns: to_ms * MS,
            cause: Cause::OffGil,
            of: String::new(),
            lock,
            ending,
            waker: Some(ThreadId(waker)),
            stack: 0,
            waker_stack: 0,
        }
    }

    /// What is known of lock 8 after these looks, by thread, time and line, and these sleeps, by
    /// thread, time and who ended them.
    fn known(
        looks: &[(u32, u64, u32)],
        sleeps: &[(u32, (u64, u64), u32)],
        ending: Ending,
    ) -> LockReport {
        let mut behind = BehindLocks::default();
        for &(thread, at_ms, line) in looks {
            let frame = Frame { function: "f".into(), file: "/srv/app.py".into(), line };
            let (call, on) = ("clock_nanosleep".into(), String::new());
            let doing = Doing::Off { stands_for_ns: 0, call, on };
            behind.look(ThreadId(thread), at_ms * MS, &doing, &[frame]);
        }
        for &(thread, times, waker) in sleeps {
            let park = park(8, times, waker, ending);
            behind.slept(ThreadId(thread), &park, park.since_ns);
        }
        behind.report(&HashSet::from([(Cause::OffGil, 8)])).remove(0)
    }

    fn lines(lock: &LockReport) -> Vec<(&str, u64)> {
        lock.did.iter().map(|it| (it.frame.as_deref().unwrap(), it.looks)).collect()
    }

    #[test]
    fn what_the_last_holder_did_while_another_slept_is_told() {
        let looks = [(1, 5, 1), (1, 15, 2), (2, 16, 3), (1, 18, 2), (1, 25, 4)];
        let lock = known(&looks, &[(0, (10, 20), 1)], Ending::LetGo);
        assert_eq!(lines(&lock), [("f (/srv/app.py:2)", 2)]);
        assert_eq!((lock.looks, lock.count), (2, 1));
    }

    #[test]
    fn a_thread_has_not_had_a_lock_before_its_own_sleep_for_it_ended() {
        let looks = [(1, 12, 1), (1, 17, 2)];
        let lock = known(&looks, &[(1, (5, 14), 2), (0, (10, 20), 1)], Ending::LetGo);
        assert_eq!(lines(&lock), [("f (/srv/app.py:2)", 1)]);
    }

    #[test]
    fn a_look_counts_once_however_many_threads_sleep() {
        let sleeps = [(0, (10, 20), 1), (2, (12, 20), 1), (3, (12, 30), 1)];
        let lock = known(&[(1, 15, 2)], &sleeps, Ending::LetGo);
        assert_eq!(lock.looks, 1);
        assert!((lock.waited_s - 0.036).abs() < 1e-9);
        assert!((lock.waited_for_s - 0.020).abs() < 1e-9, "they slept at once");
    }

    #[test]
    fn whoever_gives_a_signal_had_no_lock() {
        let lock = known(&[(1, 15, 2)], &[(0, (10, 20), 1)], Ending::Woken);
        assert_eq!((lock.looks, lock.did.len()), (0, 0));
    }
}
