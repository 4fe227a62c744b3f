//! The course of the limit in each scenario of `examples/knee.rs`, compared with the one that was
//! recorded: a change of a number in the limiter's formulas that the other tests have room for is
//! noticed here. `UNGIL_RECORD=1 cargo test -p ungil-fanout --test limit_course` records it anew;
//! `examples/knee.rs` says if it is a better one.

#[path = "support/service.rs"]
mod service;

use std::fmt::Write;

use service::{Groups, Run, SCENARIOS, World, run};
use ungil_fanout::limit::{Adaptive, Driver, Opening, Settings};

const RECORDED: &str = include_str!("limit_course.txt");

/// At how many moments of a run its limit is recorded.
const MOMENTS: usize = 25;

/// A limit for coroutines that share a service.
fn of_service() -> Settings {
    Settings::new(20_000, Opening::Service)
}

/// A limit for threads.
fn of_threads() -> Settings {
    let (first, at_once, driver) = (32, 200, Driver::Threads);
    Settings { first, at_once, driver, ..Settings::new(2_000, Opening::Unknown) }
}

/// What is limited, where, and for how many times as many items as the knee.
struct Case {
    what: &'static str,
    settings: fn() -> Settings,
    change: fn(&mut World),
    knee: usize,
    times: usize,
}

const CASES: [Case; 6] = [
    Case { what: "knee 20", settings: of_service, change: |_| (), knee: 20, times: 100 },
    Case { what: "knee 200", settings: of_service, change: |_| (), knee: 200, times: 50 },
    Case { what: "knee 1,000", settings: of_service, change: |_| (), knee: 1_000, times: 20 },
    Case {
        what: "a busy loop",
        settings: of_service,
        change: |world| (world.cpu_ns, world.again_after) = (100_000, service::S),
        knee: 300,
        times: 20,
    },
    Case {
        what: "threads",
        settings: of_threads,
        change: |world| (world.cpu_ns, world.groups) = (50_000, Groups::Unknown),
        knee: 400,
        times: 20,
    },
    Case {
        what: "all at once",
        settings: || Settings::new(20_000, Opening::Hosts),
        change: |world| world.cpu_ns = 10_000,
        knee: 1_500,
        times: 3,
    },
];

/// The limit at each moment, in order.
fn course(run: &Run) -> String {
    let mut course = String::new();
    for moment in 1..=MOMENTS as u64 {
        let at = run.took_ns / MOMENTS as u64 * moment;
        let changes = run.limits.partition_point(|(time, _)| *time <= at);
        write!(course, " {}", run.limits[changes - 1].1).expect("strings have room");
    }
    course
}

#[test]
fn the_limit_takes_the_course_that_was_recorded() {
    let mut courses = String::new();
    for Case { what, settings, change, knee, times } in CASES {
        for scenario in &SCENARIOS {
            let mut world = scenario.world(times * knee, knee, 1);
            change(&mut world);
            let mut limit = Adaptive::new(settings(), 0);
            let course = course(&run(&world, &mut limit));
            writeln!(courses, "{what}, {}:{course}", scenario.name).expect("strings have room");
        }
    }
    if std::env::var_os("UNGIL_RECORD").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/limit_course.txt");
        std::fs::write(path, &courses).expect("the sources can be written to");
        return;
    }
    let differ = RECORDED.lines().zip(courses.lines()).filter(|(recorded, now)| recorded != now);
    let differ: Vec<String> =
        differ.map(|(recorded, now)| format!("recorded {recorded}\nnow      {now}\n")).collect();
    assert!(differ.is_empty(), "{} courses differ:\n{}", differ.len(), differ.concat());
    assert_eq!(RECORDED.lines().count(), courses.lines().count());
}
