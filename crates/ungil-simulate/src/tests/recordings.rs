//! Recordings of known pieces, and what is made of them.

use super::records::{
    begun, behind, convoy, ended, event, line_of_threads, native_code, not_run, queue, second_use,
    server,
};
use super::{MS, US, burst, demand, thread};
use crate::demand::{Reproduced, Steady, Way};
use crate::rules::{Change, Gil, Rules};
use crate::{Demand, Figures, Summary, Unpredictable, predict};
use std::sync::OnceLock;
use ungil_core::Kind;
use ungil_core::schedule::{Policy, Settings};
use ungil_trace::Record;
use ungil_trace::record::ThreadTotals;

pub(super) fn only(records: &[Record]) -> Demand {
    let mut demands = Demand::of(records);
    assert_eq!(demands.len(), 1);
    demands.remove(0)
}

#[test]
fn a_forced_release_does_not_end_a_burst() {
    let demand = only(&convoy());
    let [computes, blocks] = &demand.threads[..] else { panic!("two threads") };
    assert_eq!(computes.bursts.len(), 1);
    assert_eq!(blocks.bursts.len(), 50);
    assert!(blocks.bursts.iter().all(|burst| burst.held_ns == 100 * US));
}

#[test]
fn what_a_thread_waited_is_no_part_of_what_it_wanted() {
    let demand = only(&convoy());
    let away = 10 * MS - 5 * MS - 60 * US - 150 * US;
    let bursts = &demand.threads[1].bursts;
    assert!(bursts[..49].iter().all(|burst| burst.away_ns == away), "{bursts:?}");
}

#[test]
fn the_rules_that_were_recorded_bring_what_was_recorded() {
    let demand = only(&convoy());
    let reproduced = demand.reproduced().unwrap();
    let [recorded, reproduced] = [&demand.recorded, reproduced].map(|it| it.threads[1].waits);
    assert!(reproduced.count.abs_diff(recorded.count) <= 1, "{reproduced:?} for {recorded:?}");
    assert!((reproduced.p50_us / recorded.p50_us - 1.0).abs() < 0.05);
}

#[test]
fn a_policy_that_asks_at_once_lets_the_thread_in_sooner() {
    let demand = only(&convoy());
    let stock = demand.reproduced().unwrap().threads[1].waits.p50_us;
    let rules = Rules::from(Settings::from(Policy::Interactive));
    let interactive = predict(&demand, &rules).unwrap();
    assert!(interactive.figures.threads[1].waits.p50_us < stock / 3.0);
    let range = interactive.ranges.threads[1].wait_p50_us;
    assert!(range.low <= range.high);
}

#[test]
fn no_rules_let_a_thread_in_while_native_code_runs() {
    let demand = only(&native_code());
    let stock = Settings { quantum_ns: 50 * US, ..Settings::from(Policy::Stock) };
    for settings in [stock, Policy::Interactive.into(), Policy::Fair.into()] {
        let predicted = predict(&demand, &Rules::from(settings)).unwrap();
        let waits = predicted.figures.threads[1].waits;
        assert!(waits.p99_us > 90_000.0, "{settings:?}: {waits:?}");
    }
}

#[test]
fn while_the_kernel_does_not_run_the_holder_it_cannot_answer() {
    let demand = only(&not_run());
    let holder = &demand.threads[0];
    assert_eq!(holder.bursts[0].not_run_ns, 10 * 98 * MS);
    assert!(holder.unanswered.is_empty(), "{:?}", holder.unanswered);
    assert!(holder.answers.median_ns() < MS);
}

#[test]
fn who_came_too_late_for_short_calls_in_the_recording_waits_until_the_other_sleeps() {
    let demand = only(&behind());
    let [recorded, reproduced] =
        [&demand.recorded, demand.reproduced().unwrap()].map(|it| it.threads[1].waits.p50_us);
    // One that woke up on a processor of its own would have it after the first release.
    assert!(recorded > 1_000.0 && reproduced > 250.0, "{reproduced} for {recorded}");
}

#[test]
fn threads_that_begin_when_others_end_begin_sooner_if_those_do_not_wait() {
    let demand = only(&line_of_threads());
    let reproduced = demand.reproduced().unwrap();
    let (recorded, stock) = (demand.recorded.returns.count, reproduced.returns.count);
    assert!(stock.abs_diff(recorded) <= recorded / 20, "{stock} for {recorded}");
    let rules = Rules { runs: 1, ..Rules::from(Settings::from(Policy::Interactive)) };
    let interactive = predict(&demand, &rules).unwrap().figures.returns.count;
    assert!(interactive > 3 * recorded, "{interactive} for {recorded}");
    let once = predict(&demand, &Rules { once: true, ..rules }).unwrap().figures.returns.count;
    assert_eq!(once, recorded);
}

#[test]
fn a_client_asks_again_only_after_the_server_has_let_it_in_and_replied() {
    let demand = only(&server());
    let server = demand.threads.iter().position(|it| it.starter.is_some()).unwrap();
    let uses = |work, without: &[usize]| {
        let changes = vec![(server, Change::Work(work))];
        let without = without.to_vec();
        let rules = Rules { runs: 1, changes, without, ..Rules::from(demand.settings) };
        predict(&demand, &rules).unwrap().figures.returns.count
    };
    let recorded = demand.recorded.returns.count;
    let same = uses(1.0, &[]);
    assert!(same.abs_diff(recorded) <= recorded / 20, "{same} for {recorded}");
    // A request takes 2.3 ms, and now 2.1 ms more.
    let slow = uses(21.0, &[]);
    assert!(slow.abs_diff(recorded / 2) <= recorded / 10, "{slow} for {recorded}");
    // Without the thread that accepts, those of the requests begin by themselves: three uses of five.
    let alone = uses(1.0, &[server]);
    assert!(alone.abs_diff(recorded * 3 / 5) <= recorded / 10, "{alone} for {recorded}");
}

#[test]
fn who_waits_for_a_later_use_of_another_is_known_to_wait_for_one_that_was_awake() {
    let links = |between_ns| {
        let demand = only(&second_use(between_ns));
        let links = demand.threads[1].bursts.iter().filter_map(|burst| burst.after);
        links.map(|link| (link.turn, link.awake)).collect::<Vec<_>>()
    };
    let (awake, asleep) = (links(10 * US), links(MS));
    assert!(awake.len() > 30 && awake.iter().all(|it| *it == (2, true)), "{awake:?}");
    assert!(asleep.len() > 30 && asleep.iter().all(|it| *it == (2, false)), "{asleep:?}");
}

#[test]
fn what_was_slow_after_anothers_work_is_quick_without_that_one() {
    let demand = only(&convoy());
    let held_s =
        |rules: &Rules| predict(&demand, rules).unwrap().figures.threads.last().unwrap().held_s;
    let rules = Rules { runs: 1, once: true, ..Rules::from(demand.settings) };
    let (recorded, with) = (demand.recorded.threads[1].held_s, held_s(&rules));
    let without = held_s(&Rules { without: vec![0], ..rules });
    assert!((with - recorded).abs() < recorded / 100.0, "{with} for {recorded}");
    assert!((without - recorded / 12.0).abs() < recorded / 100.0, "{without} for {recorded}");
}

#[test]
fn a_thread_alone_does_not_wait_and_none_is_nothing_to_predict() {
    let demand = only(&convoy());
    let rules = Rules { without: vec![0], ..Rules::from(demand.settings) };
    assert_eq!(predict(&demand, &rules).unwrap().figures.waits.count, 0);
    let rules = Rules { without: vec![0, 1], ..rules };
    assert_eq!(predict(&demand, &rules), Err(Unpredictable::NoThread));
}

#[test]
fn consumers_do_no_more_than_producers_bring() {
    let demand = only(&queue());
    let producer = demand.threads.iter().position(|it| it.name == "thread-1").unwrap();
    let as_recorded = Rules::from(Settings::from(Policy::Interactive));
    // Each use of the producer takes 4 ms instead of 10 us, and others come in between.
    let changes = vec![(producer, Change::Work(400.0))];
    let slow = Rules { changes, ..as_recorded.clone() };
    for (rules, most) in [(as_recorded, 201), (slow, 45)] {
        let threads = predict(&demand, &rules).unwrap().figures.threads;
        let count = |name| threads.iter().find(|it| it.name == name).unwrap().returns.count;
        let [brought, used] = ["thread-1", "thread-0"].map(count);
        assert!(brought <= most && used.abs_diff(4 * brought) <= 4, "{used} of {brought}");
    }
}

#[test]
fn what_is_said_of_the_recorded_rules_is_their_prediction() {
    let demand = only(&convoy());
    let figures = predict(&demand, &Rules::from(demand.settings)).unwrap().figures;
    assert_eq!(demand.reproduced(), Ok(&figures));
}

#[test]
fn the_first_thread_that_has_the_gil_took_it_from_nobody() {
    let mut records = begun();
    for (thread, at_ms) in [(0, 0), (0, 2), (1, 4), (0, 6)] {
        event(&mut records, thread, at_ms * MS, Kind::Acquire);
        event(&mut records, thread, (at_ms + 1) * MS, Kind::ReleaseVoluntary);
    }
    let demand = only(&ended(records, 20 * MS, ThreadTotals::default()));
    assert_eq!(demand.recorded.handoffs, 2);
    let rules = Rules { once: true, ..Rules::from(demand.settings) };
    assert_eq!(predict(&demand, &rules).unwrap().figures.handoffs, 2);
}

#[test]
fn several_of_a_thread_share_what_one_had() {
    let demand = only(&convoy());
    let changes = vec![(0, Change::Times(3))];
    let rules = Rules { changes, ..Rules::from(Settings::from(Policy::Fair)) };
    let figures = predict(&demand, &rules).unwrap().figures;
    assert_eq!(figures.threads.len(), 4);
    assert!(figures.jain.unwrap() > 0.95, "{:?}", figures.jain);
}

/// A thread of an executor that computes once, and then hardly anything.
#[test]
fn a_copy_of_a_thread_does_all_of_its_work() {
    let mut bursts = vec![burst(200 * MS, 10 * MS)];
    bursts.extend([burst(10 * US, 40 * MS); 20]);
    let mut computes = thread(0, &bursts);
    computes.steady = Steady { uses: 3..19, away_ns: 40 * MS };
    let changes = vec![(0, Change::Times(2))];
    let rules = Rules { changes, ..Rules::from(Settings::from(Policy::Fair)) };
    let figures = predict(&demand(1_000 * MS, vec![computes]), &rules).unwrap().figures;
    let held_s: Vec<_> = figures.threads.iter().map(|it| it.held_s).collect();
    assert!(held_s.len() == 2 && held_s.iter().all(|it| (0.2..0.21).contains(it)), "{held_s:?}");
}

#[test]
fn threads_that_do_not_fit_into_memory_are_refused() {
    let demand = only(&convoy());
    for times in [30_000, usize::MAX] {
        let changes = vec![(0, Change::Times(times))];
        let rules = Rules { changes, runs: 1, ..Rules::from(demand.settings) };
        assert_eq!(predict(&demand, &rules), Err(Unpredictable::TooMany(times.saturating_add(1))));
    }
}

#[test]
fn a_hold_in_which_the_kernel_did_not_run_its_thread_is_no_work() {
    let mut records = begun();
    event(&mut records, 0, 0, Kind::Acquire);
    event(&mut records, 0, 4 * MS, Kind::Ran);
    event(&mut records, 0, 10 * MS, Kind::ReleaseVoluntary);
    event(&mut records, 1, 10 * MS, Kind::Acquire);
    event(&mut records, 1, 11 * MS, Kind::ReleaseVoluntary);
    let demand = only(&ended(records, 20 * MS, ThreadTotals::default()));
    assert_eq!(demand.threads[0].bursts[0].not_run_ns, 6 * MS);
    let rules = Rules { cores: Some(2), once: true, ..Rules::of(Gil::Free) };
    let figures = predict(&demand, &rules).unwrap().figures;
    assert!((figures.threads[0].held_s - 0.004).abs() < 1e-9);
}

#[test]
fn time_away_is_work_as_far_as_the_thread_had_a_processor() {
    let mut records = begun();
    event(&mut records, 0, 0, Kind::Acquire);
    event(&mut records, 0, MS, Kind::ReleaseVoluntary);
    event(&mut records, 0, 9 * MS, Kind::Acquire);
    event(&mut records, 0, 10 * MS, Kind::ReleaseVoluntary);
    event(&mut records, 1, 10 * MS, Kind::Acquire);
    event(&mut records, 1, 11 * MS, Kind::ReleaseVoluntary);
    let totals = ThreadTotals { cpu_ns: 6 * MS, ..ThreadTotals::default() };
    let demand = only(&ended(records, 10 * MS, totals));
    assert!((demand.threads[0].away_ran - 0.5).abs() < 1e-9);
}

#[test]
fn a_snapshot_counts_from_where_it_begins() {
    let mut records = begun();
    event(&mut records, 0, 0, Kind::Acquire);
    records.push(Record::Snapshot { from_ns: 100 * MS });
    event(&mut records, 0, 110 * MS, Kind::ReleaseVoluntary);
    event(&mut records, 1, 110 * MS, Kind::Acquire);
    event(&mut records, 1, 111 * MS, Kind::ReleaseVoluntary);
    let demand = only(&ended(records, 200 * MS, ThreadTotals::default()));
    assert_eq!(demand.lasts_ns, 100 * MS);
    assert_eq!(demand.threads[0].bursts[0].held_ns, 10 * MS);
}

#[test]
fn events_that_contradict_each_other_do_no_harm() {
    for first in [Kind::ReleaseForced, Kind::Acquire, Kind::Wait, Kind::DropRequest, Kind::Ran] {
        let mut records = begun();
        for (at_ns, kind) in [(9, first), (5, first), (u64::MAX, first), (0, Kind::Acquire)] {
            event(&mut records, 0, at_ns, kind);
            event(&mut records, 1, at_ns, kind);
        }
        for demand in Demand::of(&records) {
            let _ = predict(&demand, &Rules { runs: 1, ..Rules::from(demand.settings) });
        }
    }
}

#[test]
fn a_prediction_from_a_recording_that_the_simulation_misses_says_so() {
    let with_mean = |mean_us| {
        let waits = Summary { mean_us, ..Summary::default() };
        Figures { waits, ..Figures::default() }
    };
    let notes = |recorded_us, reproduced_us| {
        let demand = Demand {
            recorded: with_mean(recorded_us),
            reproduced: OnceLock::from(Reproduced {
                figures: with_mean(reproduced_us),
                way: Way::default(),
                displaces: false,
            }),
            ..demand(MS, vec![thread(0, &[burst(US, US)])])
        };
        demand.answer(&Settings::from(Policy::Fair).into()).unwrap().notes
    };
    assert_eq!(
        notes(600.0, 1_500.0),
        ["the simulation of the recorded rules has waits of 1.5 ms on average, and the recording \
          600 µs: rely on a real run, not on this prediction"]
    );
    assert!(notes(600.0, 1_100.0).is_empty());
    assert!(notes(20.0, 90.0).is_empty(), "what two wake-ups take");
}
