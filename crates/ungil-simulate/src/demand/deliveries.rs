//! What others bring to a thread that sleeps until it is there: a result, an item for a queue, a place
//! in one. Waits for locks tell so (decision 70), but only where the thread slept.
//!
//! While it waits for the GIL more may be brought, and it handles all of that at once. Where it has
//! the GIL sooner there is less each time, and it sleeps more often. So what it does between two
//! sleeps is one piece for each delivery, of which those without a sleep are estimated:
//! docs/decisions/0078-a-thread-does-a-piece-for-each-delivery.md.

use super::links::{Follows, OWN_NS};
use super::starters::Times;
use super::{Progress, Thread, Wake};
use crate::lengths::{median, scaled};
use std::collections::BTreeMap;

/// So many sleeps tell how a thread is woken,
const ENOUGH: usize = 20;
/// if they are this part of its long times away.
const MOSTLY: f64 = 0.6;
/// A thread that was woken so long ago at most may still be on its way.
const WAKES_NS: u64 = 60_000;
/// A delivery that does not come for so many times the longest sleep does not come.
const PATIENCE: u64 = 2;

/// What others bring to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deliveries {
    pub(crate) all: Vec<Delivery>,
    /// Where it would sleep beside the recorded places, if nothing were there; in their order.
    pub(crate) stops: Vec<Stop>,
    /// After how long it usually wants the GIL once something is brought.
    pub(crate) after_ns: u64,
    /// For so long it sleeps at most.
    pub(crate) patience_ns: u64,
}

/// Thread `by` brings something when it has got so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) by: usize,
    pub(crate) at: Progress,
}

/// A thread needs what `by` brought once it has had the GIL for `held_ns` in a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) burst: usize,
    pub(crate) held_ns: u64,
    pub(crate) by: usize,
}

/// What was brought to a thread that did not sleep then, as far as that is known, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Unseen {
    at_ns: u64,
    by: usize,
    at: Progress,
}

/// For what a thread slept: from when until when, in their order.
struct Sleeps(Vec<[u64; 2]>);

/// Finds out which threads live on what others bring. Who is seen to follow others does so already.
pub(super) fn find(threads: &mut [Thread], times: &[Times]) {
    let of = |place: usize| of(threads, times, place);
    let all: Vec<_> = (0..threads.len()).map(of).collect();
    for (thread, deliveries) in threads.iter_mut().zip(all) {
        thread.deliveries = deliveries.map(Into::into);
    }
}

fn of(threads: &[Thread], times: &[Times], place: usize) -> Option<Deliveries> {
    let (thread, its) = (&threads[place], &times[place]);
    let wakes = &thread.wakes;
    let long = thread.bursts.iter().filter(|burst| burst.away_ns > OWN_NS).count();
    let is_told = wakes.len() >= ENOUGH && wakes.len() as f64 >= MOSTLY * long as f64;
    if thread.follows != Follows::Nobody || !is_told {
        return None;
    }
    let sleeps = Sleeps::of(thread, its);
    let mut by: BTreeMap<usize, Vec<&Wake>> = BTreeMap::new();
    for wake in wakes.iter() {
        by.entry(wake.by).or_default().push(wake);
    }
    let mut unseen: Vec<_> = by
        .iter()
        .flat_map(|(&by, wakes)| sleeps.missed(by, wakes, &threads[by], &times[by]))
        .collect();
    unseen.sort_unstable();
    let mut all: Vec<_> = wakes.iter().map(|it| Delivery { by: it.by, at: it.at }).collect();
    let mut stops = Vec::new();
    let mut unseen = unseen.into_iter().peekable();
    for (wakes, sleeps) in wakes.windows(2).zip(sleeps.0.windows(2)) {
        let mut brought = Vec::new();
        while let Some(one) = unseen.next_if(|it| it.at_ns < sleeps[1][0]) {
            if one.at_ns >= sleeps[0][1] {
                brought.push(one);
            }
        }
        all.extend(brought.iter().map(|&Unseen { by, at, .. }| Delivery { by, at }));
        stops.extend(pieces(thread, wakes[0].burst + 1, wakes[1].burst, &brought));
    }
    let after_ns = median(wakes.iter().map(|it| it.after_ns))?;
    let longest_ns = sleeps.0.iter().map(|[from_ns, until_ns]| until_ns.saturating_sub(*from_ns));
    let patience_ns = longest_ns.max()?.saturating_mul(PATIENCE);
    Some(Deliveries { all, stops, after_ns, patience_ns })
}

/// Where a thread needs what was brought meanwhile, if it does a piece of the same length for each, and
/// for what it was woken for, from use `first` to use `last`.
fn pieces(
    thread: &Thread,
    first: usize,
    last: usize,
    brought: &[Unseen],
) -> impl Iterator<Item = Stop> {
    let bursts = &thread.bursts[first..=last];
    let total_ns = bursts.iter().fold(0, |sum: u64, burst| sum.saturating_add(burst.held_ns));
    let part = 1.0 / (brought.len() + 1) as f64;
    let (mut burst, mut before_ns) = (first, 0);
    brought.iter().enumerate().map(move |(number, it)| {
        let at_ns = scaled(total_ns, part * (number + 1) as f64);
        while burst < last && before_ns + bursts[burst - first].held_ns <= at_ns {
            before_ns += bursts[burst - first].held_ns;
            burst += 1;
        }
        Stop { burst, held_ns: at_ns - before_ns, by: it.by }
    })
}

impl Sleeps {
    fn of(thread: &Thread, times: &Times) -> Self {
        let sleep = |wake: &Wake| {
            let back_ns = times.wanted_at_ns[wake.burst + 1];
            [times.let_go_ns(thread, wake.burst), back_ns.saturating_sub(wake.after_ns)]
        };
        Self(thread.wakes.iter().map(sleep).collect())
    }

    fn contain(&self, at_ns: u64) -> bool {
        let before = self.0.partition_point(|[from_ns, _]| *from_ns <= at_ns).checked_sub(1);
        before.is_some_and(|before| at_ns <= self.0[before][1].saturating_add(WAKES_NS))
    }

    /// What `thread`, at that place, brought while nobody slept. Of its uses in which it came as far as
    /// it had where it was seen to wake the other, as many brought something as did in sleeps.
    fn missed(&self, by: usize, wakes: &[&Wake], thread: &Thread, times: &Times) -> Vec<Unseen> {
        let (Some([from_ns, _]), Some([_, until_ns])) = (self.0.first(), self.0.last()) else {
            return Vec::new();
        };
        let left_ns =
            |wake: &&Wake| thread.bursts[wake.at.burst].held_ns.saturating_sub(wake.at.held_ns);
        let usually_left_ns = median(wakes.iter().map(left_ns)).unwrap_or(0);
        let at_end = wakes.iter().filter(|wake| wake.at.held_ns == Progress::END).count();
        let is_at_end = at_end * 2 > wakes.len();
        let may_be = |burst: usize| {
            let (began_ns, gone_ns) = (times.began_at_ns[burst], times.let_go_ns(thread, burst));
            if is_at_end {
                let at = Progress { burst, held_ns: Progress::END };
                return Unseen { at_ns: gone_ns, by, at };
            }
            let all_ns = thread.bursts[burst].held_ns;
            let held_ns = all_ns.saturating_sub(usually_left_ns);
            let part = held_ns as f64 / all_ns.max(1) as f64;
            let at_ns = began_ns + scaled(gone_ns.saturating_sub(began_ns), part);
            Unseen { at_ns, by, at: Progress { burst, held_ns } }
        };
        let (asleep, awake): (Vec<_>, Vec<_>) =
            (0..thread.bursts.len()).map(may_be).partition(|it| self.contain(it.at_ns));
        let part = wakes.len() as f64 / asleep.len().max(wakes.len()) as f64;
        let mut due = 0.5;
        let is_due = |it: &Unseen| {
            if !(*from_ns..=*until_ns).contains(&it.at_ns) {
                return false;
            }
            due += part;
            let is_due = due >= 1.0;
            due -= f64::from(u8::from(is_due));
            is_due
        };
        awake.into_iter().filter(is_due).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS, US, burst, thread};

    const ROUNDS: usize = 60;
    const ROUND_NS: u64 = 10 * MS;

    /// Each 10 ms a thread works for 2 ms, and sleeps until another has done its third piece of 0.5 ms
    /// since. That one does the first while the thread works, and the second while it sleeps.
    fn woken() -> ([Thread; 2], [Times; 2]) {
        let rounds = (0..ROUNDS).map(|round| round as u64 * ROUND_NS);
        let works_at_ns: Vec<_> = rounds.clone().collect();
        let piece_at_ns: Vec<_> =
            rounds.flat_map(|at_ns| [1, 5, 9].map(|ms| at_ns + ms * MS)).collect();
        let wake = |burst: usize| Wake {
            burst,
            by: 1,
            at: Progress { burst: 3 * burst + 2, held_ns: Progress::END },
            after_ns: 500 * US,
        };
        let works = Thread {
            wakes: (0..works_at_ns.len() - 1).map(wake).collect(),
            ..thread(0, &vec![burst(2 * MS, 8 * MS); works_at_ns.len()])
        };
        let aways = [3_500 * US, 3_500 * US, 1_500 * US];
        let pieces: Vec<_> = (0..ROUNDS).flat_map(|_| aways.map(|ns| burst(MS / 2, ns))).collect();
        let times = [works_at_ns, piece_at_ns].map(|at_ns| Times {
            wanted_at_ns: at_ns.clone(),
            began_at_ns: at_ns,
            gone_ns: ROUNDS as u64 * ROUND_NS,
        });
        ([works, thread(0, &pieces)], times)
    }

    #[test]
    fn as_much_is_brought_to_a_thread_that_is_awake_as_to_one_that_sleeps() {
        let (mut threads, times) = woken();
        find(&mut threads, &times);
        assert_eq!(threads[1].deliveries, None);
        let Deliveries { all, stops, after_ns, patience_ns } =
            threads[0].deliveries.as_deref().unwrap();
        // Of two pieces that were done while it slept, one woke it; so does one of two others.
        assert!(stops.len().abs_diff(ROUNDS / 2) <= 2, "{}", stops.len());
        assert_eq!(all.len(), stops.len() + ROUNDS - 1);
        assert!(stops.iter().all(|stop| (stop.held_ns, stop.by) == (MS, 1)), "{stops:?}");
        assert_eq!([*after_ns, *patience_ns], [500 * US, 15 * MS]);
    }

    #[test]
    fn who_mostly_sleeps_for_something_else_or_follows_others_lives_on_no_deliveries() {
        fn slept(thread: &mut Thread, wakes: usize, aways: usize) {
            thread.wakes = thread.wakes[..wakes].into();
            thread.bursts = thread.bursts[..aways].into();
        }
        let found = |change: fn(&mut Thread)| {
            let (mut threads, times) = woken();
            change(&mut threads[0]);
            find(&mut threads, &times);
            threads[0].deliveries.is_some()
        };
        assert!(found(|_| {}));
        assert!(found(|thread| slept(thread, ENOUGH, ENOUGH + 1)));
        assert!(!found(|thread| slept(thread, ENOUGH - 1, ENOUGH)));
        assert!(!found(|thread| slept(thread, ENOUGH, 2 * ENOUGH)));
        assert!(!found(|thread| thread.follows = Follows::Often));
    }
}
