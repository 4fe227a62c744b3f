//! Threads that do their work once, and are woken by others for it.

use super::{MS, US, burst, demand, thread};
use crate::demand::{Progress, Thread, Wake};
use crate::rules::{Change, Gil, Rules};
use crate::{Demand, predict};
use ungil_core::schedule::{Policy, Settings};

const WORK_NS: u64 = 100 * MS;

/// Two threads compute for 100 ms each, in turns, so for 200 ms. The main thread waits until both have
/// got so far, one after the other, and needs 1 ms then.
fn collected(held_ns: u64) -> Demand {
    let wake = |burst: usize| Wake {
        burst,
        by: burst + 1,
        at: Progress { burst: 0, held_ns },
        after_ns: 50 * US,
    };
    let main = [burst(MS, 195 * MS), burst(MS, 4 * MS), burst(MS, 0)];
    let worker = || thread(MS, &[burst(WORK_NS, 0)]);
    let main = Thread { wakes: [wake(0), wake(1)].into(), ..thread(0, &main) };
    demand(202 * MS, vec![main, worker(), worker()])
}

/// How many milliseconds all of that takes.
fn lasts_ms(demand: &Demand, rules: Rules) -> f64 {
    let rules = Rules { once: true, runs: 1, ..rules };
    predict(demand, &rules).unwrap().figures.duration_s * 1e3
}

fn free() -> Rules {
    Rules::of(Gil::Free)
}

fn is_about(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1.0
}

#[test]
fn who_waits_for_the_end_of_others_goes_on_sooner_if_they_need_not_take_turns() {
    let lasts = lasts_ms(&collected(Progress::END), free());
    assert!(is_about(lasts, 103.0), "{lasts}");
    let slow = Rules { changes: vec![(2, Change::Work(3.0))], ..free() };
    let lasts = lasts_ms(&collected(Progress::END), slow);
    assert!(is_about(lasts, 302.0), "{lasts}");
    let lasts = lasts_ms(&collected(Progress::END), Rules { cores: Some(1), ..free() });
    assert!(is_about(lasts, 203.0), "{lasts}");
}

#[test]
fn who_waits_for_a_result_goes_on_when_the_other_has_got_so_far() {
    let mut demand = collected(30 * MS);
    demand.threads[1].wakes = [].into();
    demand.threads.truncate(2);
    let main =
        Thread { wakes: demand.threads[0].wakes[..1].into(), ..thread(0, &[burst(MS, 0); 2]) };
    // It computes for as long as the other one then, and longer.
    demand.threads[0] = Thread { bursts: [burst(MS, 90 * MS), burst(WORK_NS, 0)].into(), ..main };
    let lasts = lasts_ms(&demand, free());
    assert!(is_about(lasts, 131.0), "{lasts}");
    let slow = Rules { changes: vec![(1, Change::Work(2.0))], ..free() };
    let lasts = lasts_ms(&demand, slow);
    assert!(is_about(lasts, 201.0), "{lasts}");
}

#[test]
fn a_thread_begins_when_the_one_that_starts_it_has_got_so_far() {
    let mut demand = collected(Progress::END);
    let at = Progress { burst: 0, held_ns: Progress::END };
    for thread in &mut demand.threads[1..] {
        thread.begun_by = Some(Wake { burst: 0, by: 0, at, after_ns: 50 * US });
    }
    // The main thread needs 1 ms before and 2 ms after that.
    let slow = Rules { changes: vec![(0, Change::Work(100.0))], ..free() };
    let lasts = lasts_ms(&demand, slow);
    assert!(is_about(lasts, 400.0), "{lasts}");
    // Who is left out starts nobody: they begin as in the recording.
    let lasts = lasts_ms(&demand, Rules { without: vec![0], ..free() });
    assert!(is_about(lasts, 101.0), "{lasts}");
}

#[test]
fn a_sleep_that_the_end_of_the_program_ends_takes_no_time() {
    let mut demand = collected(Progress::END);
    demand.threads.push(thread(0, &[burst(MS, 201 * MS)]));
    let lasts = lasts_ms(&demand, free());
    assert!(is_about(lasts, 103.0), "{lasts}");
}

#[test]
fn who_waits_for_a_thread_that_is_left_out_sleeps_as_long_as_it_did() {
    let lasts = lasts_ms(&collected(Progress::END), Rules { without: vec![1, 2], ..free() });
    assert!(is_about(lasts, 202.0), "{lasts}");
}

#[test]
fn a_note_says_so_where_a_batch_hangs_on_sleeps_that_no_thread_is_known_to_have_ended() {
    let says = |demand: &Demand| {
        let rules = Rules { once: true, runs: 1, ..free() };
        let notes = demand.answer(&rules).unwrap().notes;
        notes.iter().any(|it| it.starts_with("it would take 199 ms if no thread"))
    };
    let mut demand = collected(Progress::END);
    assert!(!says(&demand), "it waits for threads");
    demand.threads[0].wakes = [].into();
    assert!(says(&demand));
    demand.threads[0].away_ran = 1.0;
    assert!(!says(&demand), "it computes");
}

#[test]
fn work_without_the_gil_is_done_side_by_side_before_its_results_are_there() {
    let changes = vec![(1, Change::OffGil(1.0)), (2, Change::OffGil(0.5))];
    let moved = |cores| Rules {
        changes: changes.clone(),
        cores: Some(cores),
        ..Rules::from(Settings::from(Policy::Stock))
    };
    // The main thread has what it waits for before the others are done.
    for (at, expected) in [(Progress::END, 103.0), (30 * MS, 101.0)] {
        let lasts = lasts_ms(&collected(at), moved(4));
        assert!(is_about(lasts, expected), "{lasts}");
    }
    let lasts = lasts_ms(&collected(Progress::END), moved(1));
    assert!(is_about(lasts, 203.0), "{lasts}");
}
