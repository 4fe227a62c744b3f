//! How much of a hold the kernel ran the thread that had the GIL.
//!
//! A hold is made of the time in which its thread ran, of that in which it slept or waited for
//! something, and of that in which it wanted to run and the kernel did not run it. The thread
//! itself tells the first at the end of a long hold, and whether there was anything of the second.
//! If there was, the kernel's own counts of the third, read from outside at a few moments, tell
//! the two apart as far as those moments allow.
//!
//! A thread that ungil stops for a moment, to see its native frames, has blocked by the kernel's
//! account. If nobody saw it asleep otherwise, that is all that it did.

use super::kernel_counts::KernelCounts;
use crate::record::KernelCount;

/// A figure is told if it is known to within this part of its hold.
const KNOWN_PART: u64 = 4;
/// The longest tick of a kernel: by so much a count of time on a processor may lag behind.
const LAG_NS: u64 = 10_000_000;

/// What the holder told at the end of its hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    pub(super) cpu_ns: u64,
    /// Whether it may have slept.
    pub(super) blocked: bool,
}

/// KernelCounts by when they were made.
#[derive(Clone, Copy)]
struct Around {
    /// The last one before the hold.
    before: Option<KernelCount>,
    /// The first and the last one in it.
    inside: Option<[KernelCount; 2]>,
    /// The last one in it from before the time that is asked about.
    earlier: Option<KernelCount>,
    /// The last one in it that found the thread asleep.
    asleep: Option<KernelCount>,
    /// One of after its end.
    after: Option<KernelCount>,
}

/// What is known of one hold, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunTime {
    /// For how long the thread ran.
    pub(super) cpu_ns: Option<u64>,
    /// For how long the kernel did not run it, if that is known well enough to be told.
    pub(super) not_run_ns: Option<u64>,
    /// For how long the kernel did not run it, at least,
    pub(super) not_run_least_ns: u64,
    /// and at most; 0 also if nothing is known.
    pub(super) not_run_most_ns: u64,
    /// For how long the thread did not run although nobody saw it asleep, so that stops may be all
    /// that it blocked for.
    pub(super) awake_ns: Option<u64>,
}

impl RunTime {
    /// What is known of the rest of the hold, `rest_ns` long, after its first `cut_ns`.
    pub(super) fn after(self, cut_ns: u64, rest_ns: u64) -> Self {
        if cut_ns == 0 {
            return self;
        }
        Self {
            cpu_ns: None,
            not_run_ns: None,
            not_run_least_ns: self.not_run_least_ns.saturating_sub(cut_ns),
            not_run_most_ns: self.not_run_most_ns.min(rest_ns),
            awake_ns: None,
        }
    }

    /// The same of a hold of that length, if ungil had stopped the holder for so long, at most. That
    /// may be told after the hold.
    pub(super) fn with_stops(self, stood_ns: u64, length_ns: u64) -> Self {
        let Some(awake_ns) = self.awake_ns.filter(|_| stood_ns > 0) else { return self };
        let most_ns = self.not_run_most_ns;
        let off_ns = awake_ns.saturating_sub(stood_ns);
        let least_ns = off_ns.clamp(self.not_run_least_ns, most_ns);
        let not_run_ns = Some(least_ns).filter(|_| most_ns - least_ns <= length_ns / KNOWN_PART);
        Self { not_run_ns, not_run_least_ns: least_ns, ..self }
    }
}

/// What is known of the hold from `start_ns` to `end_ns`: by what the thread told at its end, and by
/// what was counted before the hold and since its beginning. Whether it was stopped comes later.
pub(super) fn run_time(
    [start_ns, end_ns]: [u64; 2],
    ran: Option<Ran>,
    before: &KernelCounts,
    since: &KernelCounts,
) -> RunTime {
    let length_ns = end_ns.saturating_sub(start_ns);
    if let Some(Ran { cpu_ns, blocked: false }) = ran {
        let off_ns = length_ns.saturating_sub(cpu_ns);
        return RunTime {
            cpu_ns: Some(cpu_ns),
            not_run_ns: Some(off_ns),
            not_run_least_ns: off_ns,
            not_run_most_ns: off_ns,
            awake_ns: None,
        };
    }
    let around = Around::new(before, since, [start_ns, end_ns]);
    if ran.is_none() && around.inside.is_none() && around.after.is_none() {
        return RunTime::default();
    }
    let [counted_ns, seen_ns] = around.inside.map_or([0, 0], |[first, last]| {
        let ran_ns = last.ran_ns.saturating_sub(first.ran_ns);
        // What the first one lacked is in the last one.
        [ran_ns.saturating_sub(LAG_NS), last.at_ns.saturating_sub(first.at_ns)]
    });
    let is_seen = length_ns.saturating_sub(seen_ns) <= length_ns / KNOWN_PART;
    let ran_ns = ran.map_or(counted_ns, |ran| ran.cpu_ns).min(length_ns);
    let most_ns = around.most(start_ns, end_ns).min(length_ns - ran_ns);
    let least_ns = around.least(end_ns).min(most_ns);
    RunTime {
        cpu_ns: Some(ran_ns).filter(|_| ran.is_some() || is_seen),
        not_run_ns: Some(least_ns).filter(|_| most_ns - least_ns <= length_ns / KNOWN_PART),
        not_run_least_ns: least_ns,
        not_run_most_ns: most_ns,
        awake_ns: ran.map(|ran| length_ns.saturating_sub(ran.cpu_ns)),
    }
}

/// For how long, at most, the kernel did not run the thread from `from_ns` on, in the hold from
/// `start_ns` to `end_ns`: all of it, if nothing is known.
pub(super) fn not_run_most(
    [start_ns, from_ns, end_ns]: [u64; 3],
    ran: Option<Ran>,
    before: &KernelCounts,
    since: &KernelCounts,
) -> u64 {
    let rest_ns = end_ns.saturating_sub(from_ns);
    // Some of what it did not run may have been before, which only counts tell.
    let counted_ns = Around::new(before, since, [from_ns, end_ns]).most(from_ns, end_ns);
    let length_ns = end_ns.saturating_sub(start_ns);
    let off_ns = ran.map_or(rest_ns, |ran| length_ns.saturating_sub(ran.cpu_ns));
    counted_ns.min(off_ns).min(rest_ns)
}

/// For how long the kernel did not run the thread between two moments.
const fn delayed_between(earlier: &KernelCount, later: &KernelCount) -> u64 {
    later.delayed_ns.saturating_sub(earlier.delayed_ns)
}

impl Around {
    /// Those before a hold and those since its beginning, around some of it up to its end.
    fn new(before: &KernelCounts, since: &KernelCounts, [from_ns, end_ns]: [u64; 2]) -> Self {
        let inside = || since.iter().filter(|counted| counted.at_ns <= end_ns).copied();
        Self {
            before: before.iter().next_back().copied(),
            inside: inside().next().zip(inside().next_back()).map(<[KernelCount; 2]>::from),
            earlier: inside().rfind(|counted| counted.at_ns <= from_ns),
            asleep: inside().rfind(|counted| !counted.runnable),
            after: since.iter().find(|counted| counted.at_ns > end_ns).copied(),
        }
    }

    /// For how long the kernel did not run the thread in the hold, at least.
    fn least(&self, end_ns: u64) -> u64 {
        let Some([first, last]) = self.inside else { return 0 };
        let until_after = self.after.map_or(0, |after| {
            // All that it was delayed since the end may have been after the end.
            delayed_between(&first, &after).saturating_sub(after.at_ns.saturating_sub(end_ns))
        });
        delayed_between(&first, &last).max(until_after)
    }

    /// And at most from `start_ns` on: all delays between two counts, and all time that is not
    /// between them. A thread that sleeps or has just let go is in no delay that would not be counted yet.
    fn most(&self, start_ns: u64, end_ns: u64) -> u64 {
        let first = self.inside.map(|[first, _]| first);
        let never = KernelCount { at_ns: start_ns, ran_ns: 0, delayed_ns: 0, runnable: true };
        let openings = [Some(self.before.unwrap_or(never)), first, self.earlier];
        // The last one of all may have seen it on its way to its death, which is a delay, too.
        let closings = [self.after, self.asleep];
        let pairs = openings.iter().flatten().flat_map(|opening| {
            closings.iter().flatten().map(move |closing| {
                let unseen_ns = opening.at_ns.saturating_sub(start_ns);
                delayed_between(opening, closing)
                    .saturating_add(unseen_ns)
                    .saturating_add(end_ns.saturating_sub(closing.at_ns))
            })
        });
        pairs.min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// So long the thread does one thing, and by so much time on a processor lags behind at most.
    const UNIT: u64 = LAG_NS;

    /// What the thread does for one unit of time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Doing {
        Running,
        Delayed,
        Sleeping,
    }
    use Doing::{Delayed, Running, Sleeping};

    /// A thread's life in pieces. It runs when it takes the GIL and when it lets go.
    #[derive(Clone, Debug)]
    struct Life {
        doing: Vec<Doing>,
        start: usize,
        end: usize,
    }

    fn pieces() -> impl Strategy<Value = Vec<Doing>> {
        let piece = (prop::sample::select(vec![Running, Delayed, Sleeping]), 1usize..12);
        prop::collection::vec(piece, 0..8).prop_map(|pieces| {
            // A thread that has slept or was not run runs next, or wants to.
            pieces.into_iter().flat_map(|(doing, times)| vec![doing; times]).collect()
        })
    }

    fn life() -> impl Strategy<Value = Life> {
        (pieces(), pieces(), pieces()).prop_map(|(before, inside, after)| {
            let (start, running) = (before.len(), [Running]);
            let end = start + inside.len() + 2;
            let parts = [&before[..], &running, &inside, &running, &after, &running];
            Life { doing: parts.concat(), start, end }
        })
    }

    impl Life {
        fn time(&self, from: usize, to: usize, wanted: Doing) -> u64 {
            self.doing[from..to].iter().filter(|&&doing| doing == wanted).count() as u64 * UNIT
        }

        /// As the kernel counts: a delay once it is over, and time on a processor with some lag.
        fn counted(&self, at: usize, lag: u64) -> KernelCount {
            let now = self.doing[at];
            let over = match now {
                Delayed => {
                    self.doing[..at].iter().rposition(|&it| it != Delayed).map_or(0, |it| it + 1)
                }
                _ => at,
            };
            KernelCount {
                at_ns: at as u64 * UNIT,
                ran_ns: self.time(0, at, Running).saturating_sub(lag),
                delayed_ns: self.time(0, over, Delayed),
                runnable: now != Sleeping,
            }
        }

        /// What was counted before the hold, and since.
        fn counts(&self, moments: &[(usize, u64)]) -> [KernelCounts; 2] {
            let (mut before, mut since) = (KernelCounts::default(), KernelCounts::default());
            let mut moments = moments.to_vec();
            moments.sort_by_key(|moment| moment.0);
            for (at, lag) in moments {
                let to = if at <= self.start { &mut before } else { &mut since };
                to.add(self.counted(at, lag));
            }
            [before, since]
        }

        fn run_time(&self, moments: &[(usize, u64)], ran: Option<Ran>, end: usize) -> RunTime {
            let [before, since] = self.counts(moments);
            let times = [self.start, end].map(|at| at as u64 * UNIT);
            run_time(times, ran, &before, &since)
        }

        fn not_run_most(
            &self,
            moments: &[(usize, u64)],
            ran: Option<Ran>,
            from: usize,
            end: usize,
        ) -> u64 {
            let [before, since] = self.counts(moments);
            let times = [self.start, from, end].map(|at| at as u64 * UNIT);
            not_run_most(times, ran, &before, &since)
        }
    }

    proptest! {
        #[test]
        fn what_is_said_of_a_hold_is_true(
            life in life(),
            choices in prop::collection::vec((any::<prop::sample::Index>(), 0..=UNIT), 0..7),
            tells in any::<bool>(),
            blocked_before in any::<bool>(),
        ) {
            let mut moments: Vec<_> =
                choices.iter().map(|(index, lag)| (index.index(life.doing.len()), *lag)).collect();
            // The recorder looks once after a hold, and soon.
            let after = moments.iter().map(|it| it.0).filter(|&at| at > life.end).min();
            moments.retain(|it| it.0 <= life.end || Some(it.0) == after);
            moments.dedup_by_key(|it| it.0);
            let (start, end) = (life.start, life.end);
            let [cpu, not_run] = [Running, Delayed].map(|doing| life.time(start, end, doing));
            let blocked = blocked_before || life.time(start, end, Sleeping) > 0;
            let ran = tells.then_some(Ran { cpu_ns: cpu, blocked });
            let said = life.run_time(&moments, ran, end);
            if tells {
                prop_assert_eq!(said.cpu_ns, Some(cpu));
            }
            prop_assert!(said.not_run_least_ns <= not_run, "{:?}, not {}", said, not_run);
            if said != RunTime::default() {
                prop_assert!(said.not_run_most_ns >= not_run, "{:?}, not {}", said, not_run);
            }
            if let Some(told) = said.not_run_ns {
                let length = (end - start) as u64 * UNIT;
                let quarter = length / KNOWN_PART;
                prop_assert!(told <= not_run && not_run - told <= quarter, "{:?}, not {}", said, not_run);
                prop_assert!(told + said.cpu_ns.unwrap_or(0) <= length);
            }
            if !blocked && tells {
                prop_assert_eq!(said.not_run_ns, Some(not_run));
            }
        }

        #[test]
        fn what_is_said_of_the_end_of_a_hold_accuses_nobody_wrongly(
            life in life(),
            choices in prop::collection::vec((any::<prop::sample::Index>(), 0..=UNIT), 0..7),
            from in any::<prop::sample::Index>(),
            tells in any::<bool>(),
            blocked_before in any::<bool>(),
        ) {
            let mut moments: Vec<_> =
                choices.iter().map(|(index, lag)| (index.index(life.doing.len()), *lag)).collect();
            let after = moments.iter().map(|it| it.0).filter(|&at| at > life.end).min();
            moments.retain(|it| it.0 <= life.end || Some(it.0) == after);
            moments.dedup_by_key(|it| it.0);
            let (start, end) = (life.start, life.end);
            let from = start + from.index(end - start);
            let [cpu, _] = [Running, Delayed].map(|doing| life.time(start, end, doing));
            let blocked = blocked_before || life.time(start, end, Sleeping) > 0;
            let ran = tells.then_some(Ran { cpu_ns: cpu, blocked });
            let said = life.not_run_most(&moments, ran, from, end);
            let not_run = life.time(from, end, Delayed);
            let rest = (end - from) as u64 * UNIT;
            prop_assert!(said >= not_run && said <= rest, "{}, not {}", said, not_run);
            if tells {
                // What it ran is its own, whatever the kernel did otherwise.
                let ran_at_least = cpu.saturating_sub((from - start) as u64 * UNIT);
                prop_assert!(rest - said >= ran_at_least);
            }
        }

        /// A program that is killed tells nothing, and nothing is known of after.
        #[test]
        fn what_is_said_of_a_hold_that_was_cut_short_is_true(
            life in life(),
            choices in prop::collection::vec((any::<prop::sample::Index>(), 0..=UNIT), 0..7),
            cut in any::<prop::sample::Index>(),
        ) {
            let end = life.start + 1 + cut.index(life.end - life.start);
            let mut moments: Vec<_> =
                choices.iter().map(|(index, lag)| (index.index(end), *lag)).collect();
            moments.dedup_by_key(|it| it.0);
            let not_run = life.time(life.start, end, Delayed);
            let said = life.run_time(&moments, None, end);
            prop_assert!(said.not_run_least_ns <= not_run, "{:?}, not {}", said, not_run);
            if said != RunTime::default() {
                prop_assert!(said.not_run_most_ns >= not_run, "{:?}, not {}", said, not_run);
            }
        }
    }

    fn counted(at_ns: u64, ran_ns: u64, delayed_ns: u64, runnable: bool) -> KernelCount {
        KernelCount { at_ns, ran_ns, delayed_ns, runnable }
    }

    fn counts(all: impl IntoIterator<Item = KernelCount>) -> KernelCounts {
        let mut counts = KernelCounts::default();
        all.into_iter().for_each(|counted| counts.add(counted));
        counts
    }

    const MS: u64 = 1_000_000;
    const AGES: [u64; 5] = [5 * MS, 10 * MS, 20 * MS, 40 * MS, 80 * MS];

    #[test]
    fn a_thread_that_sleeps_until_it_is_killed_was_not_delayed() {
        let before = counts([counted(500, 40, 7, false)]);
        let since = counts(AGES.map(|age| counted(1_000 + age, 40, 7, false)));
        let said = run_time([1_000, 1_000 + 90 * MS], None, &before, &since);
        assert_eq!((said.not_run_least_ns, said.not_run_most_ns), (0, 10 * MS));
        assert_eq!((said.cpu_ns, said.not_run_ns), (Some(0), Some(0)));
    }

    #[test]
    fn a_thread_that_computes_until_it_is_killed_was_run() {
        let since = counts(AGES.map(|age| counted(1_000 + age, age, 7, true)));
        let said = run_time([1_000, 1_000 + 85 * MS], None, &KernelCounts::default(), &since);
        assert_eq!((said.cpu_ns, said.not_run_ns), (Some(65 * MS), Some(0)));
    }

    #[test]
    fn a_sleep_is_the_holders_own_from_the_first_count_on() {
        let since = counts(AGES.map(|age| counted(1_000 + age, 40, 7, false)));
        let ran = Some(Ran { cpu_ns: 0, blocked: true });
        let times = [1_000, 1_000 + 10 * MS, 1_000 + 90 * MS];
        // The thread may have woken up right after the last count, and may not have been run then.
        assert_eq!(not_run_most(times, ran, &KernelCounts::default(), &since), 10 * MS);
        let since =
            counts([5 * MS, 80 * MS, 91 * MS].map(|age| counted(1_000 + age, 40, 7, false)));
        assert_eq!(not_run_most(times, ran, &KernelCounts::default(), &since), 0);
    }

    #[test]
    fn nothing_is_said_of_a_hold_that_nobody_saw() {
        let before = counts([counted(500, 40, 7, false)]);
        let said = run_time([1_000, 2_000], None, &before, &KernelCounts::default());
        assert_eq!(said, RunTime::default());
    }

    #[test]
    fn of_the_rest_of_a_hold_only_bounds_are_known() {
        let whole = RunTime {
            cpu_ns: Some(30),
            not_run_ns: Some(70),
            not_run_least_ns: 70,
            not_run_most_ns: 70,
            awake_ns: None,
        };
        assert_eq!(whole.after(0, 100), whole);
        let rest = RunTime { not_run_least_ns: 10, not_run_most_ns: 40, ..RunTime::default() };
        assert_eq!(whole.after(60, 40), rest);
    }
}
