//! `limit="auto"` with nothing else set, against the services of `bench/fanout_services.py`: at most
//! 1.25 times the time of the best fixed limit, and never more than twice as many at once as the
//! service can stand.

#[path = "support/service.rs"]
mod service;

use service::{Discipline, Fixed, Groups, Latency, MS, Run, S, World, run};
use ungil_fanout::limit::{Adaptive, Driver, Opening, Settings};

const KNEE: usize = 100;

const CONSTANT: Latency = Latency::Constant(100 * MS);

/// 3,000 items that do not say where they go, as a client in Python starts them.
fn world() -> World {
    World { groups: Groups::Unknown, cpu_ns: 60_000, ..World::new(3_000, KNEE, CONSTANT, 1) }
}

fn best(world: &World) -> u64 {
    let limits = [50, 75, 100, 150, 200, 250, 400];
    let took = limits.map(|limit| run(world, &mut Fixed(limit)).took_ns);
    took.into_iter().min().expect("there are some")
}

/// Runs it, and looks at the time.
fn keeps_up(world: &World, settings: Settings) -> Run {
    within(1.25, world, settings)
}

fn within(most: f64, world: &World, settings: Settings) -> Run {
    let best = best(world);
    let mut limit = Adaptive::new(settings, 0);
    let auto = run(world, &mut limit);
    let times = auto.took_ns as f64 / best as f64;
    assert!(times <= most, "{times:.2}: {}", limit.report());
    auto
}

fn unknown() -> Settings {
    Settings::new(20_000, Opening::Unknown)
}

#[test]
fn a_service_with_a_knee_is_found_out_without_a_long_line_before_it() {
    for latency in [CONSTANT, Latency::Exponential(100 * MS)] {
        let auto = keeps_up(&World { latency, ..world() }, unknown());
        assert!(auto.most_in_flight <= 2 * KNEE, "{}", auto.most_in_flight);
    }
}

#[test]
fn a_service_that_degrades_is_not_brought_down() {
    for discipline in [Discipline::Thrashing, Discipline::Shared] {
        let auto = keeps_up(&World { discipline, ..world() }, unknown());
        assert!(auto.most_in_flight <= 2 * KNEE, "{}", auto.most_in_flight);
    }
}

#[test]
fn a_service_that_turns_items_away_does_so_seldom() {
    // As with 429 and Retry-After, with resets and backoff, and with neither.
    for again_after in [S, 200 * MS, 0] {
        let world = World { refuses_beyond: Some(1.0), again_after, ..world() };
        let auto = keeps_up(&world, unknown());
        assert!(auto.refused < 150, "{} of 3,000 were turned away", auto.refused);
        assert!(auto.most_in_flight <= 2 * KNEE, "{}", auto.most_in_flight);
    }
}

#[test]
fn items_that_hang_take_no_slots_from_those_that_do_not() {
    let world = World { dead: 0.05, dead_after: S, ..world() };
    let auto = keeps_up(&world, unknown());
    assert!(auto.most_in_flight <= 2 * KNEE, "{}", auto.most_in_flight);
}

/// Of threads, each of which needs `cpu_ns` to begin and as much to end, and waits for `latency`.
fn threads(items: usize, latency: u64, cpu_ns: u64) -> World {
    let latency = Latency::Constant(latency);
    World { groups: Groups::Unknown, cpu_ns, ..World::new(items, 1_000_000, latency, 1) }
}

fn of_threads() -> Settings {
    Settings { first: 32, at_once: 200, driver: Driver::Threads, ..unknown() }
}

#[test]
fn threads_that_only_wait_are_soon_as_many_as_the_processor_can_keep_up_with() {
    // The run is ten round-trips long, of which the first four find out how many there may be. Real
    // threads take their time to start, be they 250 or found out: there it is less.
    let auto = within(1.4, &threads(2_000, 20 * MS, 50_000), of_threads());
    assert!(auto.most_in_flight < 500, "{}", auto.most_in_flight);
}

#[test]
fn threads_that_keep_each_other_waiting_for_the_gil_stay_few() {
    let auto = keeps_up(&threads(5_000, MS, 200_000), of_threads());
    assert!(auto.most_in_flight <= 50, "{}", auto.most_in_flight);
}

#[test]
fn a_knee_anywhere_is_found_with_hardly_more_than_twice_as_many() {
    for (latency, dead, most, longest) in [
        (CONSTANT, 0.0, 2.15, 1.25),
        (CONSTANT, 0.05, 2.15, 1.25),
        // By chance half of them are back early, however long the line is.
        (Latency::Exponential(100 * MS), 0.0, 2.15, 1.45),
    ] {
        for (knee, cpu_ns) in (60..160).step_by(14).zip([20_000, 60_000, 120_000].iter().cycle()) {
            let world = World { knee, cpu_ns: *cpu_ns, latency, dead, dead_after: S, ..world() };
            let auto = within(longest, &world, unknown());
            let times = auto.most_inside as f64 / knee as f64;
            assert!(times <= most, "{knee}, {cpu_ns} ns, {latency:?}, {dead}: {times:.2}");
        }
    }
}
