//! A fan-out of random items, with a world that ends them at random, against what is promised.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ungil_fanout::bucket::Bucket;
use ungil_fanout::dispatch::{Dispatch, Membership, Next};

const MILLISECOND: u64 = 1_000_000;

/// An item of the world: its group, how often it fails, and how long each attempt takes.
#[derive(Clone, Debug)]
struct Item {
    group: Option<u64>,
    failures: u32,
    takes: u64,
}

#[derive(Clone, Debug)]
struct World {
    items: Vec<Item>,
    limit: usize,
    window: usize,
    in_order: bool,
    per_group: usize,
    per_second: Option<f64>,
    most_jitter: u64,
    reads_ahead: bool,
    /// How many outcomes are taken at a time, after how many milliseconds.
    appetite: usize,
}

fn worlds() -> impl Strategy<Value = World> {
    let item = (proptest::option::of(0u64..4), 0u32..3, 1u64..50)
        .prop_map(|(group, failures, takes)| Item { group, failures, takes });
    (
        proptest::collection::vec(item, 0..120),
        1usize..20,
        1usize..30,
        any::<bool>(),
        1usize..4,
        proptest::option::of(50.0f64..5000.0),
        (prop_oneof![Just(0), 1..50 * MILLISECOND], any::<bool>()),
        1usize..20,
    )
        .prop_map(
            |(items, limit, window, in_order, per_group, per_second, starts, appetite)| {
                let (most_jitter, reads_ahead) = starts;
                World {
                    items,
                    limit,
                    window,
                    in_order,
                    per_group,
                    per_second,
                    most_jitter,
                    reads_ahead,
                    appetite,
                }
            },
        )
}

/// What happened: the numbers in the order in which they were handed out, and when each started.
struct Story {
    handed_out: Vec<u64>,
    starts: Vec<u64>,
    attempts: BTreeMap<u64, u32>,
}

fn live(world: &World) -> Story {
    let bucket = world.per_second.map(|rate| Bucket::new(rate, 1.0, 0));
    let mut dispatch = Dispatch::new(world.limit, world.window, world.in_order, bucket);
    dispatch.most_jitter = world.most_jitter;
    dispatch.reads_ahead = world.reads_ahead;
    let mut story = Story { handed_out: vec![], starts: vec![], attempts: BTreeMap::new() };
    let mut running: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut now = 0;
    let membership = |index: u64| -> Membership {
        world.items[usize::try_from(index).expect("few")]
            .group
            .map(|group| (group, world.per_group))
    };
    for _ in 0..100_000 {
        let mut wake = None;
        loop {
            let started = match dispatch.next(now) {
                Next::Run(index) => Some(index),
                Next::Wait(until) => {
                    assert!(until > now);
                    wake = Some(until);
                    break;
                }
                Next::Blocked => break,
                Next::Pull if dispatch.pulled() == world.items.len() as u64 => {
                    dispatch.exhausted();
                    continue;
                }
                Next::Pull => {
                    let index = dispatch.pulled();
                    dispatch.entered(index, membership(index), now)
                }
            };
            if let Some(index) = started {
                let item = &world.items[usize::try_from(index).expect("few")];
                running.insert((now + item.takes * MILLISECOND, index));
                *story.attempts.entry(index).or_default() += 1;
                story.starts.push(now);
            }
            assert!(running.len() <= world.limit);
            assert_eq!(running.len(), dispatch.running());
            for group in 0..4 {
                let of_group = |&&(_, index): &&(u64, u64)| {
                    world.items[usize::try_from(index).expect("few")].group == Some(group)
                };
                assert!(running.iter().filter(of_group).count() <= world.per_group);
            }
            assert!(dispatch.outstanding() <= (world.window + world.limit) as u64);
        }
        let taken: Vec<u64> = (0..world.appetite).map_while(|_| dispatch.take()).collect();
        let took = !taken.is_empty();
        story.handed_out.extend(taken);
        if dispatch.is_over() {
            return story;
        }
        let ends = running.first().map(|&(ends, _)| ends);
        match [ends, wake].into_iter().flatten().min() {
            Some(next) => now = next,
            // What was taken has made room for more.
            None => assert!(took, "nothing runs, waits or could be taken"),
        }
        while let Some(&(ends, index)) = running.first().filter(|&&(ends, _)| ends <= now) {
            running.remove(&(ends, index));
            dispatch.ended(membership(index));
            let item = &world.items[usize::try_from(index).expect("few")];
            if story.attempts[&index] <= item.failures {
                dispatch.retry(index, index, membership(index), now + MILLISECOND);
            } else {
                dispatch.finished(index, index);
            }
        }
    }
    panic!("it does not come to an end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_item_is_handed_out_once_after_as_many_attempts_as_it_needs(world in worlds()) {
        let story = live(&world);
        let all: Vec<u64> = (0..world.items.len() as u64).collect();
        let mut sorted = story.handed_out.clone();
        sorted.sort_unstable();
        prop_assert_eq!(&sorted, &all);
        if world.in_order {
            prop_assert_eq!(&story.handed_out, &all);
        }
        for (index, item) in (0u64..).zip(&world.items) {
            prop_assert_eq!(story.attempts[&index], item.failures + 1);
        }
    }

    #[test]
    fn no_second_has_more_starts_than_the_rate_allows(world in worlds()) {
        let Some(rate) = world.per_second else { return Ok(()) };
        let starts = live(&world).starts;
        for (place, start) in starts.iter().enumerate() {
            let within = starts[place..].iter().take_while(|s| **s < start + 1_000_000_000).count();
            // The burst of one, and one that the rounding of a boundary may let in.
            prop_assert!((within as f64) <= rate + 2.0);
        }
    }
}

#[test]
fn an_endless_input_is_pulled_only_as_far_as_the_window_when_nobody_takes() {
    let mut dispatch = Dispatch::new(10, 50, true, None);
    loop {
        match dispatch.next(0) {
            Next::Pull => {
                let index = dispatch.pulled();
                assert_eq!(dispatch.entered(index, None, 0), Some(index));
                dispatch.ended(None);
                dispatch.finished(index, index);
            }
            other => {
                assert_eq!(other, Next::Blocked);
                break;
            }
        }
    }
    assert_eq!(dispatch.pulled(), 60);
}

#[test]
fn what_waits_when_all_is_stopped_is_given_back_and_what_runs_may_end() {
    let mut dispatch = Dispatch::new(10, 50, false, None);
    let one_at_a_time: Membership = Some((7, 1));
    for index in 0..3u64 {
        assert_eq!(dispatch.next(0), Next::Pull);
        assert_eq!(dispatch.entered(index, one_at_a_time, 0).is_some(), index == 0);
    }
    let mut rest = dispatch.stop();
    rest.sort_unstable();
    assert_eq!(rest, [1, 2]);
    dispatch.ended(one_at_a_time);
    dispatch.finished(0, 0);
    assert_eq!(dispatch.next(0), Next::Blocked);
    assert!(dispatch.has_ended());
    assert_eq!(dispatch.take(), Some(0));
}

#[test]
fn the_end_of_the_input_is_known_before_the_rate_lets_another_start() {
    let mut dispatch = Dispatch::new(10, 50, true, Some(Bucket::new(0.1, 1.0, 0)));
    dispatch.reads_ahead = true;
    assert_eq!(dispatch.next(0), Next::Pull);
    assert_eq!(dispatch.entered(0, None, 0), Some(0));
    assert_eq!(dispatch.next(1), Next::Pull);
    assert_eq!(dispatch.entered(1, None, 1), None, "it has no token yet");
    assert_eq!(dispatch.next(2), Next::Wait(10 * 1_000 * MILLISECOND), "one is enough");
    assert_eq!(dispatch.next(10_000 * MILLISECOND), Next::Run(1));
    assert_eq!(dispatch.next(10_000 * MILLISECOND), Next::Pull);
    dispatch.exhausted();
    for index in 0..2 {
        dispatch.ended(None);
        dispatch.finished(index, index);
    }
    assert!(dispatch.has_ended());
}

/// Starts what may start, and gives when each does.
fn starts(dispatch: &mut Dispatch<u64>, group: u64, until: u64) -> Vec<u64> {
    let (mut now, mut starts) = (0, Vec::new());
    while now <= until {
        let started = match dispatch.next(now) {
            Next::Run(_) => true,
            Next::Pull => {
                let index = dispatch.pulled();
                dispatch.entered(index, Some((group, 1_000)), now).is_some()
            }
            Next::Wait(due) => {
                now = due;
                continue;
            }
            Next::Blocked => break,
        };
        starts.extend(started.then_some(now));
    }
    starts
}

#[test]
fn items_of_one_group_do_not_start_in_the_same_instant() {
    let mut dispatch = Dispatch::new(20, 50, true, None);
    (dispatch.most_jitter, dispatch.seed) = (50 * MILLISECOND, 3);
    let starts = starts(&mut dispatch, 7, 100 * MILLISECOND);
    assert_eq!((starts.len(), starts[0]), (20, 0), "the first at once");
    assert!(starts.iter().collect::<BTreeSet<_>>().len() > 18, "{starts:?}");
    assert!(starts[19] < 20 * MILLISECOND, "a millisecond for each");
}

#[test]
fn who_takes_the_place_of_another_is_not_put_off() {
    let mut dispatch = Dispatch::new(20, 50, true, None);
    dispatch.most_jitter = 50 * MILLISECOND;
    assert_eq!(starts(&mut dispatch, 7, 100 * MILLISECOND).len(), 20);
    for index in 0..10 {
        dispatch.ended(Some((7, 1_000)));
        dispatch.finished(index, index);
    }
    assert_eq!(starts(&mut dispatch, 7, 0), [0; 10]);
}

/// Asks until nothing may start now, ending each item at once.
fn start_all(dispatch: &mut Dispatch<u64>, now: u64) {
    loop {
        match dispatch.next(now) {
            Next::Pull => {
                let item = dispatch.pulled();
                let entered = dispatch.entered(item, None, now);
                assert_eq!(entered, Some(item));
            }
            Next::Run(_) => {}
            Next::Wait(_) | Next::Blocked => return,
        }
    }
}

proptest! {
    // What a caller does is ask twice, with two readings of the clock.
    #[test]
    fn who_was_told_to_wait_is_told_again_until_when_even_if_that_is_over(
        rate in 50.0f64..5000.0,
        later in proptest::collection::vec(0u64..50_000_000, 1..20),
    ) {
        let mut dispatch = Dispatch::new(1000, 1000, false, Some(Bucket::new(rate, 1.0, 0)));
        let mut now = 0;
        for later in later {
            start_all(&mut dispatch, now);
            let Next::Wait(until) = dispatch.next(now) else { panic!("nothing else holds it up") };
            let looked = now + later;
            let pause = dispatch.pauses_until(looked, None);
            prop_assert!(pause.is_some_and(|pause| pause <= until.max(looked)), "{pause:?}");
            now = looked.max(until);
        }
    }
}

#[test]
fn nobody_comes_back_for_what_only_an_end_lets_start() {
    let mut dispatch = Dispatch::new(1, 10, false, None);
    start_all(&mut dispatch, 0);
    assert_eq!(dispatch.next(0), Next::Blocked);
    assert_eq!(dispatch.pauses_until(5, None), None);
    assert_eq!(dispatch.pauses_until(5, Some(3)), Some(3));
    dispatch.ended(None);
    assert_eq!(dispatch.pauses_until(6, None), None, "who ends an item asks for the next");
}
