//! What a processor does for a thread, in demands of a few lines.

use super::{MS, US, burst, demand, thread};
use crate::delays::Delays;
use crate::demand::{Demand, End, Races, Reproduced, Switches, Thread, Way};
use crate::naps::Naps;
use crate::plan::planned;
use crate::rules::Rules;
use crate::{Figures, predict};
use std::sync::{Arc, OnceLock};
use ungil_core::schedule::{Policy, Settings};
use ungil_trace::report::Processors;

const LASTS_NS: u64 = 500 * MS;

fn predicted(threads: Vec<Thread>) -> Figures {
    let rules = Rules { runs: 1, ..Rules::from(Settings::from(Policy::Interactive)) };
    predict(&demand(LASTS_NS, threads), &rules).unwrap().figures
}

/// The median wait, in microseconds, of a thread that uses the GIL for 10 us and sleeps for so long
/// in between, beside one that computes and looks at requests at once.
fn wait_us(sleeps_ns: u64) -> f64 {
    let answers = Arc::new(Delays::fixed(900));
    let computes = Thread { answers, ..thread(0, &[burst(2 * LASTS_NS, 0)]) };
    let comes_and_goes = thread(0, &[burst(10 * US, sleeps_ns)]);
    predicted(vec![computes, comes_and_goes]).threads[1].waits.p50_us
}

#[test]
fn who_slept_for_microseconds_has_the_gil_before_one_that_slept_for_long_would_wake_up() {
    let [warm_us, cold_us] = [50 * US, 2 * MS].map(wait_us);
    assert!(warm_us < 6.0, "{warm_us}");
    assert!(cold_us > 30.0, "{cold_us}");
}

#[test]
fn short_times_away_are_run_and_long_ones_are_slept() {
    let aways = [10 * US, 10 * US, 10 * US, 970 * US];
    let bursts = aways.map(|away_ns| burst(US, away_ns));
    let ran = |away_ran| Thread { away_ran, ..thread(0, &bursts) }.away_runs_ns();
    assert_eq!(ran(0.04), 10 * US);
    assert_eq!(ran(0.02), 5 * US);
    assert_eq!(ran(0.53), 500 * US);
    assert!(ran(1.0) >= 970 * US);
}

#[test]
fn a_thread_that_computes_without_the_gil_does_so_in_all_of_a_time_away_or_sleeps_for_long() {
    let runs = |away_ran, aways: [u64; 4]| {
        let bursts = aways.map(|away_ns| burst(US, away_ns));
        let demand = demand(MS, vec![Thread { away_ran, ..thread(0, &bursts) }]);
        let planned = planned(&demand, &Settings::from(Policy::Stock).into(), Way::default());
        planned[0].uses(0).take(4).map(|it| it.away_runs_ns / US).collect::<Vec<_>>()
    };
    // It runs for 200 us at most, and was put aside meanwhile.
    assert_eq!(runs(0.1, [200, 240, 390, 7_170].map(|us| us * US)), [200, 240, 390, 200]);
    // One that makes calls of 50 us does not compute.
    assert_eq!(runs(0.1, [50, 60, 90, 1_800].map(|us| us * US)), [50, 60, 50, 50]);
}

#[test]
fn who_was_forced_out_and_waits_for_the_processor_of_the_other_has_it_when_that_one_sleeps() {
    let switches = Switches::always(Arc::new(Delays::fixed(2 * MS)));
    let computes = Thread { switches, ..thread(0, &[burst(2 * LASTS_NS, 0)]) };
    let comes_and_goes = thread(0, &[burst(100 * US, 5 * MS)]);
    let rules = Rules { runs: 1, ..Rules::from(Settings::from(Policy::Stock)) };
    let demand = demand(LASTS_NS, vec![computes, comes_and_goes]);
    // It is forced out each 10 ms, and would be away for a fifth of the time.
    let held_s = predict(&demand, &rules).unwrap().figures.threads[0].held_s;
    assert!(held_s > 0.98 * 0.5, "{held_s}");
}

#[test]
fn who_was_forced_out_and_waits_for_the_processor_of_the_other_does_not_want_the_gil_meanwhile() {
    let waits = |after_ns| {
        let switches = Switches::always(Arc::new(Delays::fixed(after_ns)));
        let computes = Thread { switches, ..thread(0, &[burst(2 * LASTS_NS, 0)]) };
        let comes_and_goes = thread(0, &[burst(300 * US, 5 * MS)]);
        let rules = Rules { runs: 1, ..Rules::from(Settings::from(Policy::Stock)) };
        let demand = demand(LASTS_NS, vec![computes, comes_and_goes]);
        predict(&demand, &rules).unwrap().figures.threads[0].waits.count
    };
    assert!(waits(50 * US) > 10);
    // In the recording the other one slept sooner.
    assert_eq!(waits(90 * US), 0);
}

/// Two threads compute, and are forced out by each other and by a third one, which sleeps for 2 ms
/// after each use. So long after that one has the GIL, the one that let go for it goes on.
fn two_compute_and_one_sleeps(allowed: u32, goes_on_ns: u64, away_ran: f64) -> Demand {
    let computes = Thread {
        answers: Arc::new(Delays::fixed(900)),
        switches: Switches::always(Arc::new(Delays::fixed(goes_on_ns))),
        ..thread(0, &[burst(2 * LASTS_NS, 0)])
    };
    let sleeps = Thread { away_ran, ..thread(0, &[burst(100 * US, 2 * MS)]) };
    let processors = Some(Processors { allowed, limit: None });
    let threads = vec![sleeps, computes.clone(), computes];
    Demand { processors, ..demand(LASTS_NS, threads) }
}

fn under_stock(demand: &Demand) -> Figures {
    let rules = Rules { runs: 1, ..Rules::from(Settings::from(Policy::Stock)) };
    predict(demand, &rules).unwrap().figures
}

/// What happens to these threads if light ones take the processors of others, or do not.
fn where_light_ones_displace(displaces: bool) -> Figures {
    let reproduced = Reproduced { figures: Figures::default(), way: Way::default(), displaces };
    let reproduced = OnceLock::from(reproduced);
    under_stock(&Demand { reproduced, ..two_compute_and_one_sleeps(2, 20 * US, 0.0) })
}

#[test]
fn who_asked_and_lost_its_processor_to_the_new_holder_goes_on_when_that_one_sleeps() {
    let [lost_us, kept_us] =
        [true, false].map(|it| where_light_ones_displace(it).threads[0].waits.p50_us);
    // It has the GIL before the one that was forced out, which asks 5 ms after that. If it keeps its
    // processor, it sleeps, and the other's time is not of the same hold.
    assert!((2_900.0..3_300.0).contains(&lost_us), "{lost_us}");
    assert!(kept_us > 5_000.0, "{kept_us}");
}

#[test]
fn whether_light_threads_take_the_processors_of_others_is_what_the_recording_says() {
    let of = |recorded: &Figures, allowed| {
        let demand = two_compute_and_one_sleeps(allowed, 20 * US, 0.0);
        under_stock(&Demand { recorded: recorded.clone(), ..demand })
    };
    let [lost, kept] = [true, false].map(where_light_ones_displace);
    assert_eq!((of(&lost, 2), of(&kept, 2)), (lost.clone(), kept.clone()));
    // Where a third processor is free, they take that.
    assert_eq!(of(&lost, 3), kept);
}

#[test]
fn who_waits_for_the_processor_of_one_that_falls_asleep_has_the_gil_before_one_that_is_woken() {
    let longest_us = |away_ran| {
        let figures = under_stock(&two_compute_and_one_sleeps(8, 90 * US, away_ran));
        figures.threads[1].waits.max_us.max(figures.threads[2].waits.max_us)
    };
    // It runs for 30 us in all of that time: hardly before it sleeps.
    assert!(longest_us(0.015) > 50_000.0, "{}", longest_us(0.015));
    // It computes for 0.4 ms, and sleeps then.
    assert!(longest_us(0.2) < 15_000.0, "{}", longest_us(0.2));
}

#[test]
fn who_comes_too_late_for_a_gil_that_nobody_takes_has_it_nevertheless() {
    let mut random = fastrand::Rng::with_seed(1);
    let races = Arc::new(Races::too_late());
    assert_eq!(races.draw(0, u64::MAX, u64::MAX, Naps::NO_MATTER, &mut random), End::TooLate);
    let waits = Thread { races, ..thread(0, &[burst(100 * US, 20 * MS)]) };
    // It sleeps for longer than the recording lasts.
    let other = thread(0, &[burst(20 * MS, 2 * LASTS_NS)]);
    let figures = predicted(vec![other, waits]);
    assert!(figures.threads[1].returns.count > 10, "{:?}", figures.threads[1].returns);
}

#[test]
fn who_waited_for_a_processor_in_the_recording_does_not_where_processors_are_simulated() {
    let uses_it = Thread { races: Races::always(900_000).into(), ..thread(0, &[burst(MS, MS)]) };
    let waited = |cores| {
        let rules = Rules { runs: 1, cores, ..Rules::from(Settings::from(Policy::Fair)) };
        let demand = demand(LASTS_NS, vec![uses_it.clone(); 3]);
        predict(&demand, &rules).unwrap().figures.waits.mean_us
    };
    let [alone, simulated] = [None, Some(3)].map(waited);
    assert!(simulated < alone - 500.0, "{simulated} and {alone}");
}
