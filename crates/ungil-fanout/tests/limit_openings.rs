//! `limit="auto"` where there is no knee to find: hosts of their own, and a processor.

#[path = "support/service.rs"]
mod service;

use service::{Fixed, Groups, Latency, MS, Run, S, World, run};
use ungil_fanout::limit::{Adaptive, Driver, Hold, Level, Opening, Outcome, Sample, Settings};

/// More than there are items.
const NO_KNEE: usize = 1_000_000;

const HOSTS: Latency = Latency::Hosts { fastest: 20 * MS, slowest: S };

fn hosts(items: usize, latency: Latency) -> World {
    let mut world = World::new(items, NO_KNEE, latency, 1);
    world.groups = Groups::Hosts;
    world
}

fn limit(opening: Opening, ceiling: usize) -> Adaptive {
    Adaptive::new(Settings::new(ceiling, opening), 0)
}

fn adaptive(world: &World, opening: Opening, ceiling: usize) -> (Run, Adaptive) {
    let mut limit = limit(opening, ceiling);
    let run = run(world, &mut limit);
    (run, limit)
}

/// Items `0..count` start at `now`, each with its own group. Their tickets are for later.
fn start(limit: &mut Adaptive, count: u64, now: u64) -> Vec<Sample> {
    let starts = (0..count).map(|group| Sample {
        ticket: limit.started(now, Some(group)),
        started: now,
        finished: now,
        cpu_so_far: 0,
        outcome: Outcome::Completed,
        asked: 0,
        group: Some(group),
    });
    starts.collect()
}

#[test]
fn hosts_of_their_own_are_all_started_at_once() {
    for latency in [50 * MS, S] {
        let mut world = hosts(10_000, Latency::Constant(latency));
        world.cpu_ns = 1_500;
        let at_once = run(&world, &mut Fixed(20_000)).took_ns;
        assert_eq!(adaptive(&world, Opening::Hosts, 20_000).0.took_ns, at_once);
        // Their groups say that they are hosts.
        assert_eq!(adaptive(&world, Opening::Unknown, 20_000).0.took_ns, at_once);
    }
}

#[test]
fn items_that_do_not_say_where_they_go_are_taken_to_share_a_service() {
    let world = World::new(1_000, 100, Latency::Constant(50 * MS), 1);
    let (named, _) = adaptive(&world, Opening::Service, 20_000);
    let unnamed = World { groups: Groups::Unknown, ..world };
    assert_eq!(adaptive(&unnamed, Opening::Unknown, 20_000).0.limits, named.limits);
}

#[test]
fn items_that_only_sleep_are_all_started_as_soon_as_that_is_known() {
    let mut limit = limit(Opening::Unknown, 20_000);
    assert!(!limit.is_in_the_dark(), "more may start");
    for now in 0..16 {
        limit.started(now, None);
    }
    assert!(limit.is_in_the_dark());
    limit.asleep(16);
    assert_eq!(limit.limit(), 20_000);
    assert!(!limit.is_in_the_dark(), "it is known by now");
}

#[test]
fn threads_that_still_sleep_when_some_have_ended_are_as_many_as_a_processor_can_keep_up_with() {
    let settings = Settings {
        first: 32,
        at_once: 200,
        driver: Driver::Threads,
        ..Settings::new(2_000, Opening::Unknown)
    };
    let mut limit = Adaptive::new(settings, 0);
    let mut running: Vec<Sample> = Vec::new();
    let mut start = |limit: &mut Adaptive, count: usize, now: u64| {
        running.extend((0..count).map(|_| Sample {
            ticket: limit.started(now, None),
            started: now,
            finished: now + 20 * MS,
            cpu_so_far: 0,
            outcome: Outcome::Completed,
            asked: 0,
            group: None,
        }));
        running.clone()
    };
    start(&mut limit, 32, 0);
    limit.asleep(MS);
    assert_eq!(limit.limit(), 200);
    let running = start(&mut limit, 168, MS);
    assert!(!limit.is_in_the_dark(), "nothing is known yet of what an item takes");
    for (number, sample) in (1..).zip(&running[..60]) {
        limit.finished(Sample { cpu_so_far: number * 50_000, ..*sample });
        assert_eq!(limit.is_in_the_dark(), number > 48, "{number} have ended");
    }
    assert_eq!(limit.limit(), 200, "unless somebody says that they still sleep");
    limit.asleep(20 * MS);
    // 20 ms of sleep and 50 µs of processor each.
    assert!((380..420).contains(&limit.limit()), "{}", limit.limit());
    assert!(!limit.is_in_the_dark());
}

#[test]
fn where_items_name_a_service_nobody_needs_to_look_whether_they_sleep() {
    let mut limit = limit(Opening::Unknown, 20_000);
    for now in 0..16 {
        limit.started(now, Some(7));
    }
    assert!(!limit.is_in_the_dark());
}

#[test]
fn a_host_of_several_items_gets_no_more_than_a_few_of_them_at_first() {
    let mut world = hosts(10_000, Latency::Constant(50 * MS));
    world.hosts = 20;
    let (run, _) = adaptive(&world, Opening::Unknown, 20_000);
    let before = run.limits.iter().take_while(|(at, _)| *at < 50 * MS);
    let most = before.map(|(_, limit)| *limit).filter(|limit| *limit < 20_000).max();
    assert!(most.is_some_and(|most| (281..=320).contains(&most)), "{most:?}: 16 for each of 20");
}

#[test]
fn of_hosts_of_their_own_no_more_are_started_at_once_than_was_said() {
    let world = hosts(2_000, Latency::Constant(50 * MS));
    let settings =
        Settings { at_once: 200, driver: Driver::Threads, ..Settings::new(2_000, Opening::Hosts) };
    let mut limit = Adaptive::new(settings, 0);
    let run = run(&world, &mut limit);
    assert_eq!(run.limits[0].1, 200);
    assert!(run.most_in_flight > 500, "{}", run.most_in_flight);
}

#[test]
fn different_hosts_take_no_longer_than_all_at_once_even_if_the_processor_is_the_bottleneck() {
    for cpu_ns in [1_500, 37_000] {
        let mut world = hosts(10_000, HOSTS);
        world.cpu_ns = cpu_ns;
        let at_once = run(&world, &mut Fixed(20_000)).took_ns as f64;
        for opening in [Opening::Hosts, Opening::Unknown] {
            let took = adaptive(&world, opening, 20_000).0.took_ns as f64;
            assert!(took < 1.05 * at_once, "{opening:?}: {took} instead of {at_once}");
        }
    }
}

#[test]
fn a_few_are_started_if_the_first_items_name_one_service() {
    let mut world = World::new(100, NO_KNEE, Latency::Constant(50 * MS), 1);
    world.groups = Groups::Service;
    let (run, _) = adaptive(&world, Opening::Unknown, 20_000);
    assert_eq!(run.limits[0].1, 16);
    assert!(run.limits[1].0 >= 50 * MS, "nothing more before the first answer");
}

#[test]
fn hosts_listed_site_by_site_from_near_to_far_are_no_congestion() {
    let world = hosts(10_000, Latency::Sites { fastest: 20 * MS, slowest: S });
    let fixed = run(&world, &mut Fixed(500)).throughput();
    for opening in [Opening::Hosts, Opening::Service] {
        let (run, limit) = adaptive(&world, opening, 500);
        assert!(run.throughput() > 0.75 * fixed, "{opening:?}: {}", limit.report());
        assert_eq!(limit.report().hold, Hold::Ceiling);
    }
}

#[test]
fn a_slow_first_host_does_not_keep_the_limit_from_growing() {
    let mut limit = limit(Opening::Service, 1_000);
    let mut running = start(&mut limit, 16, 0);
    let mut now = 50 * MS;
    // The first of them never ends.
    for sample in running.drain(1..) {
        limit.finished(Sample { finished: now, ..sample });
        now += 1_000;
    }
    now += S;
    limit.tick(now);
    assert!(limit.limit() > 16, "{}", limit.report());
}

#[test]
fn hosts_that_never_end_do_not_keep_the_others_from_starting() {
    let mut limit = limit(Opening::Service, 1_000);
    let (mut now, mut running) = (0, 0);
    while running < 1_000 {
        while running < limit.limit() {
            limit.started(now, None);
            running += 1;
        }
        if running < 1_000 {
            let due = limit.due().expect("it will be higher some time");
            assert!(due > now, "{due}");
            now = due;
            limit.tick(now);
        }
    }
    assert_eq!(limit.due(), None);
}

#[test]
fn littles_law_keeps_the_limit_to_what_a_processor_can_keep_up_with() {
    let mut world = hosts(100_000, Latency::Constant(50 * MS));
    world.cpu_ns = 37_000;
    let (run, limit) = adaptive(&world, Opening::Hosts, 100_000);
    let report = limit.report();
    let little = report.little.expect("processor time is told");
    // 2 x 50 ms / 74 us is 1351; that of the first items many are not back makes it more.
    assert!((1_200..1_900).contains(&little), "{little}");
    assert!(run.most_in_flight < 1_900, "{}", run.most_in_flight);
    assert!(run.throughput() > 13_000.0, "of 13,514 at most: {}", run.throughput());
}

#[test]
fn a_start_is_put_off_by_a_quarter_of_what_an_item_takes_and_50_ms_at_most() {
    assert_eq!(limit(Opening::Hosts, 100).most_jitter(), 50 * MS);
    let after = |latency| {
        let mut limit = limit(Opening::Hosts, 100);
        for sample in start(&mut limit, 100, 0) {
            limit.finished(Sample { finished: latency, ..sample });
        }
        limit.most_jitter()
    };
    assert!(after(100 * MS).abs_diff(25 * MS) < 1_000, "{}", after(100 * MS));
    assert_eq!(after(S), 50 * MS);
}

#[test]
fn the_report_says_what_was_measured() {
    let mut world = World::new(20_000, 200, Latency::Exponential(50 * MS), 1);
    world.cpu_ns = 10_000;
    let (_, limit) = adaptive(&world, Opening::Service, 5_000);
    let report = limit.report();
    assert_eq!(report.hold, Hold::Knee);
    let knee = report.knee.expect("it was found");
    assert!((120..350).contains(&knee), "{knee} instead of 200");
    let per_item = report.cpu_per_item_ns.expect("processor time is told");
    assert!((per_item - 20_000.0).abs() < 2_000.0, "{per_item}");
    assert_eq!((report.finished, report.ceiling), (20_000, 5_000));
    // Throughput grows with the level up to the knee.
    let at = |level: f64| {
        let away = |it: &Level| (it.in_flight / level).ln().abs();
        let nearest = report.levels.iter().min_by(|a, b| away(a).total_cmp(&away(b)));
        nearest.expect("levels were seen").throughput
    };
    assert!(at(100.0) > 1.5 * at(50.0), "{:?}", report.levels);
    assert!(at(400.0) < 1.3 * at(200.0), "{:?}", report.levels);
    let text = report.to_string();
    assert!(text.contains("in flight, items only wait longer"), "{text}");
    assert!(text.contains("An item takes 20.0 \u{b5}s of processor"), "{text}");
}
