//! Who ended a thread's sleep for a lock of the program, as the trace tells it (decision 70): with a
//! result, an item for a queue, its own end, or as it let go of a lock.
//!
//! Where each thread does its work once, a thread goes on when the other has got as far as it had then.
//! Where threads do their work over and over, no two rounds of theirs belong together in such a way.

use super::Thread;
use super::starters::Times;

/// Who calls `Thread.start()` sleeps until the new thread runs, which wants the GIL so much later at most.
const STARTS_NS: u64 = 3_000_000;

/// A sleep that another thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slept {
    /// When it ended.
    pub(super) until_ns: u64,
    /// The place of the other thread.
    pub(super) by: usize,
}

/// How far a thread has got: in which of its uses of the GIL, and for how long it has had the GIL in that;
/// [`Progress::END`] once it has let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Progress {
    pub(crate) burst: usize,
    pub(crate) held_ns: u64,
}

impl Progress {
    /// The use is over.
    pub(crate) const END: u64 = u64::MAX;
}

/// What a thread waits for after a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wake {
    /// The number of that use.
    pub(crate) burst: usize,
    /// The place of the thread that wakes it.
    pub(crate) by: usize,
    /// How far that one was then.
    pub(crate) at: Progress,
    /// How much later it wanted the GIL.
    pub(crate) after_ns: u64,
}

/// Finds out after which uses a thread waited for which other one; `slept` are the sleeps of each, in
/// their order.
pub(super) fn find(threads: &mut [Thread], times: &[Times], slept: &[Vec<Slept>]) {
    let all: Vec<Vec<Wake>> = (0..threads.len())
        .map(|place| {
            let mut slept = slept[place].iter().peekable();
            let backs = times[place].wanted_at_ns.iter().skip(1).enumerate();
            let wakes = backs.filter_map(|(burst, &back_ns)| {
                let mut last = None;
                while let Some(one) = slept.next_if(|it| it.until_ns <= back_ns) {
                    last = Some(one);
                }
                let Slept { until_ns, by } = *last?;
                let is_of_it = until_ns >= times[place].let_go_ns(&threads[place], burst);
                let at = progress(&threads[by], &times[by], until_ns).filter(|_| is_of_it)?;
                Some(Wake { burst, by, at, after_ns: back_ns - until_ns })
            });
            wakes.collect()
        })
        .collect();
    for (starter, wakes) in all.iter().enumerate() {
        for Wake { burst, by, .. } in wakes.iter().filter(|it| it.at.burst == 0) {
            let let_go_ns = times[starter].let_go_ns(&threads[starter], *burst);
            let after_ns = threads[*by].begins_ns.checked_sub(let_go_ns);
            if let Some(after_ns) = after_ns.filter(|ns| *ns <= STARTS_NS) {
                let at = Progress { burst: *burst, held_ns: Progress::END };
                threads[*by].begun_by = Some(Wake { burst: 0, by: starter, at, after_ns });
            }
        }
    }
    for (thread, wakes) in threads.iter_mut().zip(all) {
        thread.wakes = wakes.into();
    }
}

/// How far a thread was at that time. Where it was interrupted in a use, that is about as far as in the
/// same part of the time.
fn progress(thread: &Thread, times: &Times, at_ns: u64) -> Option<Progress> {
    let burst = times.began_at_ns.partition_point(|began_ns| *began_ns <= at_ns).checked_sub(1)?;
    let (began_ns, let_go_ns) = (times.began_at_ns[burst], times.let_go_ns(thread, burst));
    if at_ns >= let_go_ns {
        return Some(Progress { burst, held_ns: Progress::END });
    }
    let part = (at_ns - began_ns) as f64 / (let_go_ns - began_ns) as f64;
    let held_ns = crate::lengths::scaled(thread.bursts.get(burst)?.held_ns, part);
    Some(Progress { burst, held_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS, US, burst, thread};

    fn times(wanted: &[u64], gone_ns: u64) -> Times {
        let at_ns = wanted.to_vec();
        Times { wanted_at_ns: at_ns.clone(), began_at_ns: at_ns, gone_ns }
    }

    /// For what a thread waits that is away from 1 to 50 ms, and again from 51 ms on until 80 ms. Another
    /// one computes from 10 to 40 ms, of which it has the GIL for 15 ms, and again from 45 to 46 ms.
    fn waits(slept: &[u64]) -> Vec<Wake> {
        let mut threads = [
            thread(0, &[burst(MS, 49 * MS), burst(MS, 29 * MS), burst(US, 0)]),
            thread(10 * MS, &[burst(15 * MS, 5 * MS), burst(MS, 54 * MS)]),
        ];
        let all = [times(&[0, 50 * MS, 80 * MS], 100 * MS), times(&[10 * MS, 45 * MS], 100 * MS)];
        let slept = slept.iter().map(|&until_ns| Slept { until_ns, by: 1 }).collect();
        find(&mut threads, &all, &[slept, Vec::new()]);
        threads[0].wakes.to_vec()
    }

    #[test]
    fn a_thread_waits_until_another_has_got_as_far_as_it_had() {
        let at = Progress { burst: 0, held_ns: 5 * MS };
        assert_eq!(waits(&[20 * MS]), [Wake { burst: 0, by: 1, at, after_ns: 30 * MS }]);
        let at = Progress { burst: 0, held_ns: Progress::END };
        assert_eq!(waits(&[42 * MS]), [Wake { burst: 0, by: 1, at, after_ns: 8 * MS }]);
        let at = Progress { burst: 1, held_ns: Progress::END };
        assert_eq!(waits(&[79 * MS]), [Wake { burst: 1, by: 1, at, after_ns: MS }]);
    }

    /// When a thread begins, after the other one has let go at 1 ms, if that sleeps until `until_ns`.
    fn begun_after(begins_ns: u64, until_ns: u64) -> Option<u64> {
        let mut threads = [
            thread(0, &[burst(MS, 49 * MS), burst(US, 0)]),
            thread(begins_ns, &[burst(15 * MS, 5 * MS), burst(MS, 0)]),
        ];
        let its = [begins_ns, begins_ns + 20 * MS];
        let all = [times(&[0, 50 * MS], 100 * MS), times(&its, 100 * MS)];
        find(&mut threads, &all, &[vec![Slept { until_ns, by: 1 }], Vec::new()]);
        let Wake { by, at, after_ns, .. } = threads[1].begun_by?;
        assert_eq!((by, at), (0, Progress { burst: 0, held_ns: Progress::END }));
        Some(after_ns)
    }

    #[test]
    fn who_sleeps_until_a_thread_runs_that_has_just_begun_has_started_it() {
        assert_eq!(begun_after(MS + 50 * US, MS + 80 * US), Some(50 * US));
        assert_eq!(begun_after(MS + 50 * US, 22 * MS), None, "it had run before");
        assert_eq!(begun_after(10 * MS, 11 * MS), None, "somebody else did");
    }

    #[test]
    fn of_several_sleeps_in_a_time_away_the_last_one_counts() {
        let wakes = waits(&[20 * MS, 49 * MS]);
        assert_eq!(wakes.len(), 1);
        assert_eq!(wakes[0].at, Progress { burst: 1, held_ns: Progress::END });
    }

    #[test]
    fn a_sleep_before_the_thread_let_go_or_before_the_other_began_tells_nothing() {
        assert_eq!(waits(&[MS / 2]), []);
        assert_eq!(waits(&[5 * MS]), []);
    }
}
