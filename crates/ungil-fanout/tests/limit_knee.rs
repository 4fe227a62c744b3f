//! `limit="auto"` against a service with a known knee: at least 75 % of the throughput of the best
//! fixed limit, and at most twice its 99th percentile of latency.
//!
//! Here the best fixed limit is the knee itself, where it does not move. `examples/knee.rs` sweeps
//! limits instead, over more seeds, models and sizes.

#[path = "support/service.rs"]
mod service;

use service::{Discipline, Fixed, Groups, Latency, MS, S, World, run};
use ungil_fanout::limit::{Adaptive, Hold, Opening, Settings};

/// Simulations take time without optimisation; the example runs more of them.
const SEEDS: u64 = 7;

const CONSTANT: Latency = Latency::Constant(50 * MS);
const EXPONENTIAL: Latency = Latency::Exponential(50 * MS);
const HEAVY_TAILED: Latency = Latency::HeavyTailed(50 * MS);
const HOSTS: Latency = Latency::Hosts { fastest: 20 * MS, slowest: S };

fn limit() -> Adaptive {
    Adaptive::new(Settings::new(20_000, Opening::Service), 0)
}

/// Runs the world for several seeds, beside `fixed`, and looks at the medians.
fn keeps_up(fixed: usize, world: impl Fn(u64) -> World) {
    let (mut throughputs, mut tails) = (Vec::new(), Vec::new());
    for seed in 0..SEEDS {
        let world = world(seed);
        let (best, auto) = (run(&world, &mut Fixed(fixed)), run(&world, &mut limit()));
        throughputs.push(auto.throughput() / best.throughput());
        tails.push(auto.quantile(0.99) as f64 / best.quantile(0.99) as f64);
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (throughput, tail) = (median(&mut throughputs), median(&mut tails));
    assert!(throughput >= 0.75, "throughput {throughputs:.2?}");
    assert!(tail <= 2.0, "99th percentile {tails:.2?}");
}

#[test]
fn a_knee_of_20_is_found_within_2_000_items_whatever_the_latencies_are_like() {
    for latency in [CONSTANT, EXPONENTIAL, HEAVY_TAILED] {
        keeps_up(20, |seed| World::new(2_000, 20, latency, seed));
    }
}

#[test]
fn a_knee_of_200_is_found_within_10_000_items_whatever_the_latencies_are_like() {
    for latency in [CONSTANT, EXPONENTIAL, HEAVY_TAILED] {
        keeps_up(200, |seed| World::new(10_000, 200, latency, seed));
    }
}

#[test]
fn a_knee_of_2_000_is_found_within_100_000_items() {
    let world = World::new(100_000, 2_000, EXPONENTIAL, 1);
    let (best, auto) = (run(&world, &mut Fixed(2_000)), run(&world, &mut limit()));
    assert!(auto.throughput() >= 0.75 * best.throughput());
    assert!(auto.quantile(0.99) <= 2 * best.quantile(0.99));
}

#[test]
fn a_knee_shared_by_different_hosts_is_found_with_one_visit_each_or_with_many() {
    for hosts in [10_000, 1_000, 100] {
        keeps_up(200, |seed| {
            let groups = Groups::Hosts;
            World { hosts, groups, ..World::new(10_000, 200, HOSTS, seed) }
        });
    }
}

#[test]
fn a_service_that_shares_its_time_or_thrashes_is_not_overloaded() {
    for discipline in [Discipline::Shared, Discipline::Thrashing] {
        for (knee, items) in [(20, 2_000), (200, 10_000)] {
            keeps_up(knee, |seed| World {
                discipline,
                ..World::new(items, knee, EXPONENTIAL, seed)
            });
        }
    }
}

#[test]
fn a_knee_that_moves_midway_is_followed() {
    for latency in [CONSTANT, EXPONENTIAL] {
        for (moves, best) in [(0.5, 200), (2.0, 400)] {
            keeps_up(best, |seed| World { moves, ..World::new(15_000, 200, latency, seed) });
        }
    }
}

#[test]
fn a_knee_that_has_long_been_right_is_doubted_every_64th_round() {
    let discipline = Discipline::Shared;
    let world = World { discipline, ..World::new(100_000, 100, CONSTANT, 1) };
    let limits = run(&world, &mut limit()).limits;
    // A round that looks at a lower level is at three quarters of it or less.
    let doubts: Vec<u64> = limits
        .windows(2)
        .filter(|pair| pair[1].1 * 5 < pair[0].1 * 4)
        .map(|pair| pair[0].0)
        .collect();
    let longest = doubts.windows(2).map(|pair| pair[1] - pair[0]).max();
    // A round takes one or two latencies.
    assert!(longest.is_some_and(|longest| (4 * S..8 * S).contains(&longest)), "{longest:?}");
}

#[test]
fn a_service_that_refuses_beyond_its_knee_is_asked_for_little_more() {
    for refuses in [1.0, 1.25] {
        for moves in [1.0, 0.5] {
            keeps_up(200, |seed| {
                let refuses_beyond = Some(refuses);
                World { moves, refuses_beyond, ..World::new(10_000, 200, EXPONENTIAL, seed) }
            });
        }
    }
    let world = World { refuses_beyond: Some(1.25), ..World::new(20_000, 200, EXPONENTIAL, 1) };
    let auto = run(&world, &mut limit());
    assert!(auto.refused < 2_000, "{} of 20,000 were refused", auto.refused);
}

#[test]
fn dead_hosts_are_not_taken_for_an_overloaded_service() {
    keeps_up(200, |seed| {
        let (dead, groups) = (0.1, Groups::Hosts);
        World { dead, groups, ..World::new(10_000, 200, EXPONENTIAL, seed) }
    });
    for dead in [0.1, 0.5] {
        let world = World { dead, ..World::new(20_000, 1_000_000, EXPONENTIAL, 1) };
        let mut limit = Adaptive::new(Settings::new(500, Opening::Service), 0);
        run(&world, &mut limit);
        let report = limit.report();
        assert_eq!(report.hold, Hold::Ceiling, "{report}");
        assert!((report.usual_failures - dead).abs() < 0.1, "{report}");
    }
}

#[test]
fn items_that_hang_until_they_time_out_take_no_slots_from_the_others() {
    for (knee, items) in [(20, 2_000), (200, 10_000)] {
        // 5 % of the starts for twenty times as long: about as many slots as the others need.
        keeps_up(2 * knee, |seed| {
            let (dead, dead_after) = (0.05, S);
            World { dead, dead_after, ..World::new(items, knee, EXPONENTIAL, seed) }
        });
    }
}

#[test]
fn many_that_hang_beside_some_that_take_a_millisecond_leave_no_slot_idle() {
    let world = World {
        dead: 0.05,
        dead_after: S,
        cpu_ns: 30_000,
        groups: Groups::Unknown,
        ..World::new(20_000, 1_000_000, Latency::Exponential(MS), 1)
    };
    let mut limit = Adaptive::new(Settings::new(950, Opening::Unknown), 0);
    let (best, auto) = (run(&world, &mut Fixed(900)), run(&world, &mut limit));
    assert!(auto.took_ns * 2 < best.took_ns * 3, "{}: {}", auto.took_ns, limit.report());
}

#[test]
fn everything_at_once_against_a_small_service_does_not_go_on_for_long() {
    let world = World { groups: Groups::Unknown, ..World::new(20_000, 20, CONSTANT, 1) };
    let mut limit = Adaptive::new(Settings::new(2_000, Opening::Hosts), 0);
    let auto = run(&world, &mut limit);
    // The first 2,000 need 5 s, and nothing is started until then.
    let later = auto.ends.iter().filter(|end| end.0 > 6 * S);
    let slow = later.clone().filter(|end| end.1 > 100 * MS).count();
    assert!(slow * 50 < later.count(), "{slow}: {}", limit.report());
    assert!(auto.throughput() > 0.9 * run(&world, &mut Fixed(20)).throughput());
}

#[test]
fn a_limit_that_has_come_down_to_one_goes_up_again() {
    for seed in 1..=8 {
        let latency = Latency::Hosts { fastest: 20 * MS, slowest: S };
        let world = World { groups: Groups::Hosts, ..World::new(300_000, 20, latency, seed) };
        let auto = run(&world, &mut limit());
        let fixed = run(&world, &mut Fixed(20));
        assert!(auto.throughput() > 0.6 * fixed.throughput(), "seed {seed}");
    }
}
