//! Threads that begin because others have ended: those that are started for each request of a
//! client, which asks again after an answer, and those that somebody starts after a `join()`.
//!
//! No event says so. A thread that begins is taken for the successor of the one that ended first, if
//! that has none yet. So as many run at the same time as did in the recording.
//!
//! A thread that was started for an arrival follows the reply of another, and comes when it arrives.
//! The client thinks for as long as in the quickest thirtieth of the cases: in the others it may have
//! waited until the starter turned to it.

use super::Thread;
use super::starters::Times;
use std::collections::VecDeque;
use std::ops::Range;

/// Work that differs by no more than this factor is of one kind: a client asks for the same again.
const ALIKE: u64 = 4;
/// One of so many successors comes as soon as its client asks.
const QUICKEST: usize = 30;

/// The thread that begins when another has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Successor {
    /// Its place.
    pub(crate) thread: usize,
    /// How long after the end of the other, or after its reply.
    pub(crate) after_ns: u64,
    /// Whether that one is followed by what arrives after its reply.
    pub(crate) is_asked: bool,
    /// Whether it was there before, and is what would have come if the run had gone on.
    pub(crate) is_again: bool,
}

/// Finds out who begins after whom, of threads that were gone at these moments: `None` for those
/// that would have gone on. `middle` is the part of the run of which more would come.
pub(super) fn find(
    threads: &mut [Thread],
    gone_at_ns: &[Option<u64>],
    times: &[Times],
    middle: &Range<u64>,
) {
    let comes_ns: Vec<_> = threads
        .iter()
        .map(|thread| thread.started.map_or(thread.begins_ns, |it| it.arrives_ns))
        .collect();
    let leaves_ns: Vec<_> = threads
        .iter()
        .zip(gone_at_ns)
        .zip(times)
        .map(|((thread, gone_ns), times)| {
            let replied_ns = thread.started.map(|it| times.let_go_ns(thread, it.replies as usize));
            gone_ns.map(|gone_ns| replied_ns.unwrap_or(gone_ns))
        })
        .collect();
    // Who launches a thread says when it begins.
    let is_free = |place: &usize| !threads[*place].is_launched;
    let mut begin: Vec<_> = (0..threads.len()).filter(is_free).collect();
    begin.sort_by_key(|place| comes_ns[*place]);
    let gone = leaves_ns.iter().zip(0..).filter(|(_, place)| is_free(place));
    let mut ends: Vec<_> = gone.filter_map(|(at_ns, place)| Some(((*at_ns)?, place))).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut ended: VecDeque<(u64, usize)> = VecDeque::new();
    let works_ns: Vec<u64> = threads
        .iter()
        .map(|thread| thread.bursts.iter().map(|it| it.held_ns.saturating_sub(it.not_run_ns)).sum())
        .collect();
    // Of each thread, the first one in its line of threads that is of the middle.
    let mut first: Vec<Option<Successor>> = vec![None; threads.len()];
    let mut thinks_ns = Vec::new();
    for thread in begin {
        let begins_ns = comes_ns[thread];
        while let Some(one) = ends.next_if(|(at_ns, _)| *at_ns <= begins_ns) {
            ended.push_back(one);
        }
        let alike = ended.iter().position(|(_, one)| {
            let (less, more) =
                (works_ns[*one].min(works_ns[thread]), works_ns[*one].max(works_ns[thread]));
            more / ALIKE <= less
        });
        let Some((at_ns, before)) = ended.remove(alike.unwrap_or(0)) else { continue };
        let is_asked = threads[before].started.is_some() && threads[thread].started.is_some();
        let after_ns = begins_ns - at_ns;
        if is_asked {
            thinks_ns.push(after_ns);
        }
        let successor = Successor { thread, after_ns, is_asked, is_again: false };
        threads[before].successor = Some(successor);
        let again = Successor { is_again: true, ..successor };
        first[thread] = first[before].or(middle.contains(&begins_ns).then_some(again));
    }
    let thinks_ns = quickest(thinks_ns);
    for ((thread, first), gone) in threads.iter_mut().zip(first).zip(gone_at_ns) {
        thread.successor = thread.successor.or(first.filter(|_| gone.is_some()));
        if let Some(successor) = thread.successor.as_mut().filter(|it| it.is_asked) {
            successor.after_ns = thinks_ns;
        }
    }
}

/// How long a client thinks that came so long after its last answer in all cases: in most of them it
/// may have waited until somebody turned to it.
pub(super) fn quickest(mut all_ns: Vec<u64>) -> u64 {
    all_ns.sort_unstable();
    all_ns.get(all_ns.len() / QUICKEST).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{burst, thread};

    /// What only threads that were started for an arrival need.
    fn times(count: usize) -> Vec<Times> {
        vec![Times { wanted_at_ns: Vec::new(), began_at_ns: Vec::new(), gone_ns: 0 }; count]
    }

    /// Threads that lived from when to when, until 1,000; the middle is from 100 to 950.
    fn successors(lives: &[(u64, u64)]) -> Vec<Option<Successor>> {
        let mut threads: Vec<_> =
            lives.iter().map(|(begins_ns, _)| thread(*begins_ns, &[burst(1, 0)])).collect();
        let gone: Vec<_> = lives.iter().map(|(_, ns)| (*ns < 1_000).then_some(*ns)).collect();
        find(&mut threads, &gone, &times(lives.len()), &(100..950));
        threads.iter().map(|thread| thread.successor).collect()
    }

    #[test]
    fn of_two_lines_of_threads_each_goes_on_by_itself() {
        let lives = [(0, 1_000), (10, 200), (20, 300), (210, 400), (310, 1_000), (410, 1_000)];
        let next = |thread, after_ns| {
            Some(Successor { thread, after_ns, is_asked: false, is_again: false })
        };
        let found = successors(&lives);
        assert_eq!(found, [None, next(3, 10), next(4, 10), next(5, 10), None, None]);
    }

    #[test]
    fn a_line_of_threads_begins_again_with_its_first_one_of_the_middle() {
        let found = successors(&[(10, 50), (60, 200), (210, 400), (410, 600)]);
        let again = Successor { thread: 2, after_ns: 10, is_asked: false, is_again: true };
        assert_eq!(found.last(), Some(&Some(again)));
    }

    #[test]
    fn a_thread_follows_one_of_its_kind_that_ended_later() {
        let work = |begins_ns, ns| thread(begins_ns, &[burst(ns, 0)]);
        // A report and a page have ended, and a page and a report begin.
        let mut threads = [work(10, 100), work(20, 2), work(310, 3), work(320, 90)];
        find(&mut threads, &[Some(200), Some(300), None, None], &times(4), &(100..950));
        let next = threads.map(|thread| thread.successor.map(|it| it.thread));
        assert_eq!(next, [Some(3), Some(2), None, None]);
    }

    #[test]
    fn a_thread_without_another_is_followed_by_none() {
        assert_eq!(successors(&[(0, 1_000), (10, 200)]), [None, None]);
    }
}
