//! A thread that starts others for each of its batches, and waits for them.

use super::{MS, US, burst, demand, thread};
use crate::demand::{Follows, Launch, Link, Start, Steady, Thread};
use crate::rules::{Change, Gil, Rules};
use crate::{Demand, Figures, predict};
use ungil_core::schedule::{Policy, Settings};

const BATCHES: u32 = 20;
const WORK_NS: u64 = MS;

/// A thread computes for 2 ms, starts another, which computes for 1 ms and ends, and goes on 3 ms
/// later, again and again: for 100 ms in all. It does that over and over.
fn batches() -> Demand {
    let main: Vec<_> = (0..BATCHES).map(|_| burst(2 * MS, 3 * MS)).collect();
    let start = Start { begins_ns: 20 * US, goes_on_ns: 3 * MS };
    let launches = (0..BATCHES).map(|burst| Launch {
        burst,
        thread: 1 + burst as usize,
        start,
        after_all: false,
    });
    let mut threads = vec![Thread { launches: launches.collect(), ..thread(0, &main) }];
    threads.extend((0..BATCHES).map(|batch| Thread {
        is_launched: true,
        steady: Steady::default(),
        ..thread(u64::from(batch) * 5 * MS, &[burst(WORK_NS, 0)])
    }));
    demand(400 * MS, threads)
}

fn predicted(demand: &Demand, rules: Rules) -> Figures {
    predict(demand, &Rules { runs: 1, ..rules }).unwrap().figures
}

fn stock() -> Rules {
    Rules::of(Gil::Scheduled(Settings::from(Policy::Stock)))
}

/// How many batches are begun.
fn begun(figures: &Figures) -> u64 {
    figures.threads[1..].iter().map(|thread| thread.returns.count).sum()
}

#[test]
fn a_launched_thread_begins_each_time_that_the_other_has_got_so_far() {
    // In 80 times 5 ms.
    assert_eq!(begun(&predicted(&batches(), stock())), 80);
}

#[test]
fn it_begins_later_if_the_one_that_starts_it_has_more_to_do() {
    let rules = Rules { changes: vec![(0, Change::Work(4.0))], ..stock() };
    // In 36 times 11 ms.
    assert_eq!(begun(&predicted(&batches(), rules)), 36);
}

#[test]
fn it_begins_as_in_the_recording_if_the_one_that_started_it_is_left_out() {
    let rules = Rules { without: vec![0], ..stock() };
    let figures = predicted(&batches(), rules);
    let held_s: f64 = figures.threads.iter().map(|thread| thread.held_s).sum();
    assert!((held_s * 1e3 - f64::from(BATCHES)).abs() < 0.1, "{held_s}");
}

/// The same, where the first one starts no thread before all others have ended.
fn one_after_the_other() -> Demand {
    let mut demand = batches();
    let launches = demand.threads[0].launches.iter().map(|it| Launch { after_all: true, ..*it });
    demand.threads[0].launches = launches.collect();
    demand
}

#[test]
fn who_starts_threads_after_the_end_of_others_waits_for_that() {
    let slow = (1..=BATCHES as usize).map(|thread| (thread, Change::Work(10.0)));
    let rules = Rules { changes: slow.collect(), ..Rules::of(Gil::Free) };
    // In 80 times 5 ms, and 40 times 10 ms.
    assert_eq!(begun(&predicted(&batches(), rules.clone())), 80);
    assert_eq!(begun(&predicted(&one_after_the_other(), rules)), 40);
}

#[test]
fn who_starts_threads_does_not_wait_for_the_end_of_one_that_waits_for_it() {
    let mut demand = one_after_the_other();
    let after = Link { thread: 0, burst: 0, turn: 2, awake: false, after_ns: 10_000, posted: true };
    for thread in &mut demand.threads[1..] {
        let waits = crate::Burst { after: Some(after), ..burst(US, 8 * MS) };
        thread.bursts = [waits, burst(US, 0)].into();
    }
    assert!(begun(&predicted(&demand, stock())) > 100);
}

#[test]
fn who_waits_for_a_launched_thread_waits_for_that_of_the_same_round() {
    let mut demand = batches();
    let main = &mut demand.threads[0];
    main.follows = Follows::Often;
    // It goes on 13 ms after each thread has begun, not 8 ms after its own last use.
    let uses = (0..BATCHES).flat_map(|batch| {
        let after = Link {
            thread: 1 + batch,
            burst: 0,
            turn: 1,
            awake: false,
            after_ns: 13_000_000,
            posted: true,
        };
        [burst(2 * MS, MS), crate::Burst { after: Some(after), ..burst(US, 8 * MS) }]
    });
    main.bursts = uses.collect();
    main.launches = main.launches.iter().map(|it| Launch { burst: 2 * it.burst, ..*it }).collect();
    main.steady = Steady { uses: 0..2 * BATCHES as usize, away_ns: 0 };
    for thread in &mut demand.threads[1..] {
        thread.follows = Follows::Often;
    }
    // In 26 times 15 ms, also where a round ends.
    assert_eq!(begun(&predicted(&demand, stock())), 27);
}
