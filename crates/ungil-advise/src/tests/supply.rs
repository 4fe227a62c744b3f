//! Threads that do nothing but to compute, and the processors that they have.

use super::story::{MS, PID, Story, Told, first};
use crate::{Kind, advise};

/// So many threads take turns at the GIL, in a program that may use so many processors.
fn compute_on(computing: u32, processors: u32) -> Told {
    let names = ["MainThread", "worker-0", "worker-1", "worker-2", "worker-3", "worker-4"];
    let mut story = Story::of(&names[..=computing as usize]);
    story.may_use(processors, None);
    story.take_turns(computing)
}

/// The part of what threads wait that is left by the advice of a kind.
fn left_by(told: &Told, kind: Kind) -> f64 {
    let gain = told.of(kind).unwrap().gain.as_ref().unwrap();
    gain.after / gain.before
}

#[test]
fn threads_that_only_compute_gain_nothing_from_another_order_of_their_turns() {
    let told = compute_on(2, 2);
    assert!(told.of(Kind::SwitchInterval).is_none() && told.of(Kind::Policy).is_none());
    let kinds = told.kinds();
    assert!(kinds.contains(&Kind::ToAProcess) && kinds.contains(&Kind::FreeThreaded));
    assert!(left_by(&told, Kind::FreeThreaded) < 0.1);
}

#[test]
fn on_one_processor_there_is_nothing_to_gain_for_threads_that_only_compute() {
    let told = compute_on(2, 1);
    assert!(first(&told).text.ends_with(
        "threads take turns at the GIL to compute, and the program keeps the 1 processor busy that \
         it may use"
    ));
    assert_eq!(told.kinds(), [Kind::NotTheGil]);
    let rejected: Vec<_> = told.advised.rejected.iter().map(|it| it.kind).collect();
    assert_eq!(rejected, [Kind::FreeThreaded]);
}

#[test]
fn side_by_side_threads_that_only_compute_wait_for_processors() {
    let told = compute_on(5, 2);
    // Two of five run; of the four that waited three still do.
    let left = left_by(&told, Kind::FreeThreaded);
    assert!((left - 0.75).abs() < 0.01, "{left}");
    let because = &told.of(Kind::FreeThreaded).unwrap().confidence.because;
    assert!(because.contains("have the 2 processors that the program may use"), "{because}");
}

#[test]
fn a_thread_that_is_late_after_calls_gains_from_another_order_on_one_processor_too() {
    let mut story = Story::convoy();
    story.may_use(1, None);
    let told = story.end(2_000 * MS);
    assert_eq!(told.kinds()[0], Kind::Policy);
    assert!(left_by(&told, Kind::SwitchInterval) < 0.5);
}

#[test]
fn a_server_gets_more_processes_only_where_the_recorded_ones_leave_processors() {
    let code = |processors, workers: u32| {
        let mut story = Story::convoy().started_by("/venv/bin/python /venv/bin/gunicorn app:app");
        story.may_use(processors, None);
        let Told { mut report, demands, .. } = story.end(2_000 * MS);
        for worker in 1..workers {
            let mut process = report.processes[0].clone();
            process.pid = PID + 10 + worker;
            report.processes.push(process);
        }
        let advised = advise(&report, &demands).advice;
        let advice = |kind| advised.iter().find(|it| it.kind == kind).unwrap().clone();
        let process = advice(Kind::ToAProcess);
        let build = advice(Kind::FreeThreaded).confidence.because;
        (process.action.code.unwrap(), process.confidence.because, build)
    };
    for (processors, workers, is_told) in [(2, 1, true), (1, 1, false), (3, 3, false), (8, 3, true)]
    {
        let (code, because, build) = code(processors, workers);
        assert_eq!(code.contains("gunicorn with --workers N"), is_told, "{code}");
        assert_eq!(
            because.contains("leaves out that the program keeps the"),
            !is_told,
            "{because}"
        );
        let leaves_out = "it leaves out that threads then wait for one of the";
        assert_eq!(build.contains(leaves_out), !is_told, "{build}");
    }
}
