//! The analysis against a model that looks at every nanosecond.

use super::scenario::*;
use crate::record::ThreadId;
use crate::report::Who;
use proptest::prelude::*;
use ungil_core::Kind;

/// What a thread does in one nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    Idle,
    Waiting,
    Holding,
}

/// One step of a schedule: this thread makes a legal move, so many nanoseconds after the last.
pub(super) type Step = (usize, bool, u64);

/// The events of a legal schedule, and what every thread did in every nanosecond.
pub(super) struct Schedule {
    pub(super) events: Vec<(u64, usize, Kind)>,
    /// By nanosecond, by thread.
    pub(super) doing: Vec<Vec<Doing>>,
}

pub(super) fn schedule(threads: usize, steps: &[Step]) -> Schedule {
    let mut now = vec![Doing::Idle; threads];
    let mut schedule = Schedule { events: Vec::new(), doing: Vec::new() };
    for &(thread, direct, pause) in steps {
        let thread = thread % threads;
        let free = !now.contains(&Doing::Holding);
        let (next, kind) = match now[thread] {
            Doing::Idle if free && direct => (Doing::Holding, Kind::Acquire),
            Doing::Idle => (Doing::Waiting, Kind::Wait),
            Doing::Waiting if free => (Doing::Holding, Kind::Acquire),
            Doing::Waiting => (Doing::Waiting, Kind::DropRequest),
            Doing::Holding if direct => (Doing::Idle, Kind::ReleaseVoluntary),
            Doing::Holding => (Doing::Idle, Kind::ReleaseForced),
        };
        now[thread] = next;
        schedule.events.push((schedule.doing.len() as u64, thread, kind));
        (0..pause).for_each(|_| schedule.doing.push(now.clone()));
    }
    schedule
}

impl Schedule {
    /// Nanoseconds in which `is` holds.
    fn time(&self, is: impl Fn(&[Doing]) -> bool) -> f64 {
        self.doing.iter().filter(|doing| is(doing)).count() as f64
    }

    fn handoffs(&self) -> u64 {
        let holders = self.events.iter().filter(|event| event.2 == Kind::Acquire);
        let holders: Vec<usize> = holders.map(|event| event.1).collect();
        holders.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
    }

    /// Gaps of a thread: from each release to its next acquire.
    fn gaps(&self, thread: usize) -> Vec<u64> {
        let mut released = None;
        let mut gaps = Vec::new();
        for &(at, _, kind) in self.events.iter().filter(|event| event.1 == thread) {
            match kind {
                Kind::Acquire => gaps.extend(released.take().map(|released| at - released)),
                Kind::ReleaseForced | Kind::ReleaseVoluntary => released = Some(at),
                Kind::Wait | Kind::DropRequest | Kind::Ran | Kind::RanAndBlocked => {}
            }
        }
        gaps
    }
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0usize..6, any::<bool>(), 0u64..30), 0..120)
}

fn same(measured_s: f64, expected_ns: f64) -> bool {
    (measured_s * 1e9 - expected_ns).abs() < 1e-3
}

proptest! {
    #[test]
    fn times_blame_and_counts_equal_those_of_the_naive_model(threads in 1u32..6, steps in steps()) {
        let schedule = schedule(threads as usize, &steps);
        let mut scenario = Scenario::new(threads);
        for &(at, thread, kind) in &schedule.events {
            scenario.event(at, u32::try_from(thread).unwrap(), kind);
        }
        let report = scenario.end(schedule.doing.len() as u64);
        let Some(gil) = report.processes[0].gils.first() else {
            prop_assert!(schedule.events.is_empty());
            return Ok(());
        };
        let holder = |doing: &[Doing]| doing.iter().position(|&doing| doing == Doing::Holding);
        prop_assert!(same(gil.held_s, schedule.time(|doing| holder(doing).is_some())));
        prop_assert!(same(
            gil.contended_s,
            schedule.time(|doing| holder(doing).is_some() && doing.contains(&Doing::Waiting)),
        ));
        prop_assert_eq!(gil.handoffs, schedule.handoffs());
        for thread in &gil.threads {
            let n = (thread.tid - PID) as usize;
            prop_assert!(same(thread.held_s, schedule.time(|doing| doing[n] == Doing::Holding)));
            prop_assert!(same(thread.waited_s, schedule.time(|doing| doing[n] == Doing::Waiting)));
            let count = |kind| {
                let events = schedule.events.iter();
                events.filter(|event| event.1 == n && event.2 == kind).count() as u64
            };
            prop_assert_eq!(thread.voluntary, count(Kind::ReleaseVoluntary));
            prop_assert_eq!(thread.forced, count(Kind::ReleaseForced));
            prop_assert_eq!(thread.drop_requests, count(Kind::DropRequest));
            prop_assert_eq!(thread.holds.count, count(Kind::Acquire));
            prop_assert_eq!(thread.waits.count, count(Kind::Wait));
            let gaps = schedule.gaps(n);
            let max = gaps.iter().max().copied().unwrap_or(0);
            prop_assert!(same(thread.gaps.max_ms / 1e3, max as f64));
            let mean = gaps.iter().sum::<u64>() as f64 / gaps.len().max(1) as f64;
            prop_assert!(same(thread.gaps.mean_ms / 1e3, mean));
            for culprit in (0..threads as usize).map(Some).chain([None]) {
                let party = culprit.map_or(Who::Nobody, |culprit| who(u32::try_from(culprit).unwrap()));
                let blamed = blamed_ms(&report, thread.tid - PID, party) / 1e3;
                let expected = schedule
                    .time(|doing| doing[n] == Doing::Waiting && holder(doing) == culprit);
                prop_assert!(same(blamed, expected), "{} blames {:?}: {}", n, party, blamed);
            }
        }
    }

    /// Waits may be told of a little after holds that ended during them.
    #[test]
    fn waits_told_of_late_change_no_number(threads in 2u32..6, steps in steps(), lag in 1usize..4) {
        let schedule = schedule(threads as usize, &steps);
        let mut late = schedule.events.clone();
        for place in (0..late.len()).rev().filter(|&place| schedule.events[place].2 == Kind::Wait) {
            // Not past the next event of the same thread: that order is promised.
            let thread = late[place].1;
            let others = late[place + 1..].iter().take_while(|event| event.1 != thread).count();
            late[place..=place + others.min(lag)].rotate_left(1);
        }
        let report = |events: &[(u64, usize, Kind)]| {
            let mut scenario = Scenario::new(threads);
            for &(at, thread, kind) in events {
                scenario.event(at, u32::try_from(thread).unwrap(), kind);
            }
            scenario.end(schedule.doing.len() as u64)
        };
        let (in_time, late) = (report(&schedule.events), report(&late));
        for (a, b) in in_time.processes[0].gils.iter().zip(&late.processes[0].gils) {
            prop_assert!((a.held_s - b.held_s).abs() < 1e-12);
            prop_assert!((a.contended_s - b.contended_s).abs() < 1e-12, "{} {}", a.contended_s, b.contended_s);
            for thread in &a.threads {
                for culprit in (0..threads).map(who).chain([Who::Nobody]) {
                    let victim = thread.tid - PID;
                    let (a, b) = (blamed_ms(&in_time, victim, culprit), blamed_ms(&late, victim, culprit));
                    prop_assert!((a - b).abs() < 1e-9);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn long_holds_tell_what_others_waited_in_them(threads in 1u32..6, mut steps in steps()) {
        const LONG: u64 = 20;
        // At no moment do two things happen, so that each request falls into one hold.
        for step in &mut steps {
            step.2 += 1;
        }
        let schedule = schedule(threads as usize, &steps);
        let mut scenario = Scenario::with_blame_after(threads, LONG);
        for &(at, thread, kind) in &schedule.events {
            scenario.event(at, u32::try_from(thread).unwrap(), kind);
        }
        let report = scenario.end(schedule.doing.len() as u64);
        let long_holds = report.processes[0].gils.first().map_or(&[][..], |gil| &gil.long_holds);
        for hold in long_holds {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let nanoseconds = |s: f64| (s * 1e9).round() as usize;
            let (start, length) = (nanoseconds(hold.start_s), nanoseconds(hold.duration_ms / 1e3));
            prop_assert!(length as u64 >= LONG);
            let during = &schedule.doing[start..start + length];
            let n = (hold.tid - PID) as usize;
            prop_assert!(during.iter().all(|doing| doing[n] == Doing::Holding));
            let waiters = |doing: &Vec<Doing>| {
                doing.iter().filter(|&&doing| doing == Doing::Waiting).count()
            };
            prop_assert!(same(hold.waited_s, during.iter().map(waiters).sum::<usize>() as f64));
            prop_assert_eq!(hold.waiters_max, during.iter().map(waiters).max().unwrap() as u64);
            prop_assert_eq!(hold.contended, hold.waiters_max > 0);
            let asked = schedule.events.iter().find(|event| {
                let at = usize::try_from(event.0).unwrap();
                event.2 == Kind::DropRequest && (start..start + length).contains(&at)
            });
            let unanswered = asked.map(|event| (start + length) as u64 - event.0);
            let told = hold.drop_request_unanswered_ms.map(|ms| nanoseconds(ms / 1e3) as u64);
            prop_assert_eq!(told, unanswered);
        }
    }
}

#[test]
fn a_wait_longer_than_the_history_is_charged_in_full() {
    let mut scenario = Scenario::new(4);
    scenario.wait(0, 3);
    let turns: u64 = 100_000;
    for turn in 0..turns {
        let thread = u32::from(turn % 4 == 0);
        scenario.hold(turn * 10, turn * 10 + 4, thread);
    }
    assert_eq!(scenario.acquire(turns * 10, 3), Some(ThreadId(0)));
    let report = scenario.end(turns * 10);
    assert_close(blamed_ms(&report, 3, who(0)), turns as f64 * 3e-6);
    assert_close(blamed_ms(&report, 3, who(1)), turns as f64 * 1e-6);
    assert_close(blamed_ms(&report, 3, Who::Nobody), turns as f64 * 6e-6);
    assert_close(gil(&report).contended_s, turns as f64 * 4e-9);
}

#[test]
fn the_culprit_of_a_wait_may_have_been_charged_early() {
    let mut scenario = Scenario::new(3);
    scenario.wait(0, 2);
    for turn in 0..100_000 {
        scenario.hold(turn * 10, turn * 10 + 4, u32::from(turn >= 80_000));
    }
    assert_eq!(scenario.acquire(1_000_000, 2), Some(ThreadId(0)));
}

#[test]
fn a_lost_acquire_does_not_unbalance_what_was_charged_early() {
    let mut scenario = Scenario::new(2);
    scenario.wait(0, 1);
    for turn in 0..100_000 {
        scenario.hold(turn * 10, turn * 10 + 4, 0);
    }
    scenario.wait(1_000_000, 1);
    let report = scenario.end(1_000_000);
    let charged_ms = blamed_ms(&report, 1, who(0)) + blamed_ms(&report, 1, Who::Nobody);
    assert!(charged_ms > 0.5);
    assert_close(charged_ms, thread(&report, 1).waited_s * 1e3);
}
