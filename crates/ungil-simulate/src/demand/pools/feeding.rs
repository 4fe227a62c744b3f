//! Who feeds a pool, and when.
//!
//! Who hands on a job has the GIL, and wakes an idle thread. That one wants the GIL while the other
//! still has it, or within 0.1 ms. A thread of which that holds for the ends of times away far more
//! often than by chance feeds the pool. A time away that ends so was one without work, and what
//! follows is a job. Inside of a job threads are away, too: for a database, a file. That rarely ends
//! just then.

use super::jobs::Job;
use crate::demand::Thread;
use crate::demand::links::{Evidence, OWN_NS};
use crate::demand::starters::{Start, Starter, Times, candidates};

/// A thread that is woken wants the GIL so long after the other has let go of it at most.
const SOON_NS: u64 = 100_000;
/// A use of the GIL that took so much longer than the thread had it was interrupted.
const UNDISTURBED_NS: u64 = 50_000;
/// As many times away are looked at, which bounds what it costs to look for who feeds a pool.
const LOOKED_AT: usize = 2_000;
/// So many uses lie between an arrival and the one that hands it on at most.
const MOST_BETWEEN: usize = 24;

/// Who feeds a pool, and when it may have.
#[derive(Debug)]
pub(super) struct Feeding {
    /// Its place.
    pub(super) feeder: usize,
    spans: Spans,
}

/// When a thread had the GIL, or had it just before: from, to, and how long in sum until then.
#[derive(Debug)]
struct Spans(Vec<[u64; 3]>);

impl Feeding {
    /// The thread that feeds this family of threads, if one does.
    pub(super) fn of(threads: &[Thread], times: &[Times], family: &[usize]) -> Option<Self> {
        let ends = ends(threads, times, family);
        let mut best: Option<(f64, Self)> = None;
        for feeder in candidates(threads) {
            if family.binary_search(&feeder).is_ok() || threads[feeder].starter.is_some() {
                continue;
            }
            let spans = Spans::of(&threads[feeder], &times[feeder]);
            let mut evidence = Evidence::default();
            for [from_ns, to_ns] in &ends {
                let covered_ns = spans.until(*to_ns) - spans.until(*from_ns);
                evidence.add(spans.cover(*to_ns), covered_ns as f64 / (to_ns - from_ns) as f64);
            }
            let beyond = evidence.beyond_chance();
            if evidence.is_significant() && best.as_ref().is_none_or(|(most, _)| *most < beyond) {
                best = Some((beyond, Self { feeder, spans }));
            }
        }
        best.map(|(_, feeding)| feeding)
    }

    /// Whether a thread that wants the GIL then may have been woken for a job.
    pub(super) fn may_wake(&self, at_ns: u64) -> bool {
        self.spans.cover(at_ns)
    }

    /// Where the feeder waits for arrivals, and where it hands on these jobs, which are in the order
    /// in which they begin. Tells them when they arrived: when the feeder turned to them, after it had
    /// slept or had handed on the one before.
    pub(super) fn door(&self, threads: &[Thread], times: &[Times], jobs: &mut [Job]) -> Starter {
        let (thread, times) = (&threads[self.feeder], &times[self.feeder]);
        let mut door = Starter::default();
        let mut last: Option<usize> = None;
        for job in jobs {
            let Some(burst) = times.last_before(job.begins_ns) else { continue };
            if last.is_some_and(|last| burst <= last) {
                continue; // One use has handed on two.
            }
            let slept = |it: &usize| thread.bursts[*it].away_ns > OWN_NS;
            let between = last.map_or(MOST_BETWEEN, |last| MOST_BETWEEN.min(burst - last));
            let mut before = (1..=between).map_while(|between| burst.checked_sub(between));
            let Some(before) = before.find(slept).or(last) else { continue };
            let (Ok(waits), Ok(hands_on)) = (u32::try_from(before), u32::try_from(burst)) else {
                continue;
            };
            last = Some(burst);
            job.is_let_in = true;
            job.arrives_ns = times.wanted_at_ns[before + 1];
            let begins_ns = job.begins_ns.saturating_sub(times.let_go_ns(thread, burst));
            door.waits_after.push(waits);
            door.starts.push((hands_on, Start { begins_ns, goes_on_ns: 0 }));
        }
        door
    }
}

/// Times away of these threads, from and to: not all of them if there are many.
fn ends(threads: &[Thread], times: &[Times], family: &[usize]) -> Vec<[u64; 2]> {
    let all = || {
        family.iter().flat_map(|place| {
            let wanted_ns = times[*place].wanted_at_ns.iter().skip(1);
            let aways = wanted_ns.zip(threads[*place].bursts.iter().map(|burst| burst.away_ns));
            aways.filter(|(_, away_ns)| *away_ns > OWN_NS)
        })
    };
    let step = all().count().div_ceil(LOOKED_AT).max(1);
    all().step_by(step).map(|(to_ns, away_ns)| [to_ns.saturating_sub(away_ns), *to_ns]).collect()
}

impl Spans {
    fn of(thread: &Thread, times: &Times) -> Self {
        let mut spans: Vec<[u64; 3]> = Vec::new();
        let mut sum_ns = 0;
        let mut add = |from_ns: u64, to_ns: u64| {
            let from_ns = spans.last().map_or(from_ns, |[_, to_ns, _]| from_ns.max(*to_ns));
            if from_ns < to_ns {
                sum_ns += to_ns - from_ns;
                spans.push([from_ns, to_ns, sum_ns]);
            }
        };
        for (burst, &began_ns) in times.began_at_ns.iter().enumerate().take(thread.bursts.len()) {
            let let_go_ns = times.let_go_ns(thread, burst);
            let undisturbed_ns = began_ns.saturating_add(thread.bursts[burst].held_ns);
            if let_go_ns > undisturbed_ns.saturating_add(UNDISTURBED_NS) {
                // It did not have the GIL all the time, and no burst says when.
                add(began_ns, undisturbed_ns);
                add(let_go_ns.saturating_sub(SOON_NS).max(began_ns), let_go_ns + SOON_NS);
            } else {
                add(began_ns, let_go_ns + SOON_NS);
            }
        }
        Self(spans)
    }

    /// The last one that has begun then.
    fn last(&self, at_ns: u64) -> Option<[u64; 3]> {
        let begun = self.0.partition_point(|[from_ns, ..]| *from_ns <= at_ns);
        begun.checked_sub(1).map(|last| self.0[last])
    }

    fn cover(&self, at_ns: u64) -> bool {
        self.last(at_ns).is_some_and(|[_, to_ns, _]| at_ns <= to_ns)
    }

    /// How long they were in sum until then.
    fn until(&self, at_ns: u64) -> u64 {
        self.last(at_ns).map_or(0, |[_, to_ns, sum_ns]| sum_ns - to_ns.saturating_sub(at_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS, US, burst, thread};

    /// A thread that had the GIL for 10 us after 1 ms, and then for 20 us, but until so long after.
    fn spans(lasts_ns: u64) -> Spans {
        let thread = thread(MS, &[burst(10 * US, MS), burst(20 * US, 0)]);
        let second_ns = 2 * MS + 10 * US;
        let wanted_at_ns = vec![MS, second_ns];
        let began_at_ns = wanted_at_ns.clone();
        Spans::of(&thread, &Times { wanted_at_ns, began_at_ns, gone_ns: second_ns + lasts_ns })
    }

    #[test]
    fn a_thread_may_wake_others_while_it_has_the_gil_and_just_after() {
        let spans = spans(20 * US);
        let covered = [MS - 1, MS, MS + 110 * US, MS + 111 * US].map(|at_ns| spans.cover(at_ns));
        assert_eq!(covered, [false, true, true, false]);
        assert_eq!(spans.until(MS + 50 * US), 50 * US);
        assert_eq!(spans.until(4 * MS), 230 * US);
    }

    #[test]
    fn one_that_was_interrupted_wakes_others_when_it_begins_or_when_it_lets_go() {
        let spans = spans(9 * MS);
        let [began_ns, let_go_ns] = [2 * MS + 10 * US, 11 * MS + 10 * US];
        let at_ns = [began_ns + 20 * US, began_ns + MS, let_go_ns - 100 * US, let_go_ns];
        assert_eq!(at_ns.map(|at_ns| spans.cover(at_ns)), [true, false, true, true]);
    }

    #[test]
    fn who_is_away_while_another_comes_and_goes_is_not_fed_by_it() {
        // They come back by the clock, which brings them together now and then.
        let by_clock = |period_ns: u64, count: u64| {
            let wanted_at_ns: Vec<_> = (1..count).map(|turn| turn * period_ns).collect();
            let uses = vec![burst(10 * US, period_ns - 10 * US); wanted_at_ns.len()];
            let began_at_ns = wanted_at_ns.clone();
            let times = Times { wanted_at_ns, began_at_ns, gone_ns: count * period_ns };
            (thread(period_ns, &uses), times)
        };
        let all = [by_clock(618_034, 1_617), by_clock(MS, 1_000), by_clock(MS, 1_000)];
        let (threads, times): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        assert!(Feeding::of(&threads, &times, &[1, 2]).is_none());
    }
}
