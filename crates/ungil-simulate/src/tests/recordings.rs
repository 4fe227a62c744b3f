//! Recordings of known pieces, and what is made of them.

use super::{MS, US};
use crate::rules::{Change, Gil, Rules};
use crate::{Demand, Unpredictable, predict};
use ungil_core::schedule::{Policy, Settings};
use ungil_core::{Event, Kind};
use ungil_trace::Record;
use ungil_trace::record::{Process, ProcessId, ProcessTotals, ThreadId, ThreadTotals};

const PROCESS: ProcessId = ProcessId(0);

/// A process with two threads.
fn begun() -> Vec<Record> {
    let process = Process {
        process: PROCESS,
        pid: 70,
        parent_pid: 1,
        at_ns: 0,
        argv: vec!["app.py".to_owned()],
        python: "3.13.0".to_owned(),
        not_recorded: None,
    };
    vec![Record::ProcessStarted(process), started(0, 0), started(1, 0)]
}

fn started(number: u32, at_ns: u64) -> Record {
    Record::ThreadStarted {
        thread: ThreadId(number),
        process: PROCESS,
        tid: 70 + number,
        at_ns,
        name: format!("thread-{number}"),
    }
}

fn event(records: &mut Vec<Record>, thread: u32, at_ns: u64, kind: Kind) {
    let event = Event { at_ns, kind, gil: 0, seq: 0 };
    records.push(Record::Gil { process: PROCESS, thread: ThreadId(thread), event });
}

/// A thread has the GIL for `ns`.
fn uses(records: &mut Vec<Record>, thread: u32, from_ns: u64, ns: u64) {
    event(records, thread, from_ns, Kind::Acquire);
    event(records, thread, from_ns + ns, Kind::ReleaseVoluntary);
}

fn ended(mut records: Vec<Record>, at_ns: u64, totals: ThreadTotals) -> Vec<Record> {
    for thread in [ThreadId(0), ThreadId(1)] {
        records.push(Record::ThreadEnded { thread, at_ns, totals });
    }
    let totals = ProcessTotals { switch_interval_ns: 5 * MS, ..ProcessTotals::default() };
    records.push(Record::ProcessEnded { process: PROCESS, at_ns, totals });
    records
}

/// One thread computes, the other comes back from a call each 10 ms, waits a switch interval, and
/// uses the GIL for 0.1 ms.
fn convoy() -> Vec<Record> {
    let mut records = begun();
    event(&mut records, 0, 0, Kind::Acquire);
    for turn in 0..50 {
        let wants_ns = turn * 10 * MS + MS;
        let asks_ns = wants_ns + 5 * MS + 60 * US;
        event(&mut records, 1, wants_ns, Kind::Wait);
        event(&mut records, 1, asks_ns, Kind::DropRequest);
        event(&mut records, 0, asks_ns + 10 * US, Kind::ReleaseForced);
        event(&mut records, 1, asks_ns + 50 * US, Kind::Acquire);
        event(&mut records, 0, asks_ns + 90 * US, Kind::Wait);
        event(&mut records, 1, asks_ns + 150 * US, Kind::ReleaseVoluntary);
        event(&mut records, 0, asks_ns + 190 * US, Kind::Acquire);
    }
    ended(records, 501 * MS, ThreadTotals::default())
}

/// One thread computes. Others come one after the other, each 1 ms after the end of the one before:
/// it waits a switch interval, and uses the GIL for 0.1 ms.
fn line_of_threads() -> Vec<Record> {
    let mut records = begun();
    event(&mut records, 0, 0, Kind::Acquire);
    let mut begins_ns = MS;
    for number in 2..82 {
        let thread = ThreadId(number);
        records.push(started(number, begins_ns));
        let asks_ns = begins_ns + 5 * MS + 60 * US;
        event(&mut records, number, begins_ns, Kind::Wait);
        event(&mut records, number, asks_ns, Kind::DropRequest);
        event(&mut records, 0, asks_ns + 10 * US, Kind::ReleaseForced);
        event(&mut records, number, asks_ns + 50 * US, Kind::Acquire);
        event(&mut records, 0, asks_ns + 90 * US, Kind::Wait);
        let ends_ns = asks_ns + 150 * US;
        event(&mut records, number, ends_ns, Kind::ReleaseVoluntary);
        event(&mut records, 0, ends_ns + 40 * US, Kind::Acquire);
        let totals = ThreadTotals::default();
        records.push(Record::ThreadEnded { thread, at_ns: ends_ns, totals });
        begins_ns = ends_ns + MS;
    }
    ended(records, begins_ns, ThreadTotals::default())
}

/// A server with one client, which asks 1 ms after each reply. Its thread accepts the connection in
/// 0.1 ms and starts a thread, which makes the reply in 1 ms, sends it, and ends.
fn server() -> Vec<Record> {
    let mut records = begun();
    uses(&mut records, 1, 0, 5 * US);
    let mut at_ns = MS;
    for number in 2..202 {
        uses(&mut records, 1, at_ns, 100 * US);
        let begins_ns = at_ns + 120 * US;
        let thread = ThreadId(number);
        records.push(started(number, begins_ns));
        uses(&mut records, number, begins_ns, 50 * US);
        uses(&mut records, 1, begins_ns + 60 * US, 5 * US);
        uses(&mut records, number, begins_ns + 100 * US, MS);
        let sends_ns = begins_ns + 110 * US + MS;
        uses(&mut records, number, sends_ns, 10 * US);
        let totals = ThreadTotals::default();
        let ends_ns = sends_ns + 20 * US;
        records.push(Record::ThreadEnded { thread, at_ns: ends_ns, totals });
        at_ns = sends_ns + 10 * US + MS;
    }
    ended(records, at_ns, ThreadTotals::default())
}

/// One thread uses the GIL for 50 us and runs for 100 us without it, 20 times; then it sleeps for 1
/// ms, and again. The other wants the GIL in the middle of that, is woken by each release, and has it
/// only when the first one sleeps; but each eighth time it wakes up within 25 us.
fn behind() -> Vec<Record> {
    let mut records = begun();
    for round in 0..100 {
        let mut at_ns = round * 5 * MS;
        let mut waits = false;
        for turn in 0..20 {
            event(&mut records, 0, at_ns, Kind::Acquire);
            if turn == 10 {
                event(&mut records, 1, at_ns + 5 * US, Kind::Wait);
                waits = true;
            }
            at_ns += 50 * US;
            event(&mut records, 0, at_ns, Kind::ReleaseVoluntary);
            let wakes_up = turn == 10 && round % 8 == 0;
            if waits && (wakes_up || turn == 19) {
                waits = false;
                at_ns += if wakes_up { 25 * US } else { 3 * US };
                event(&mut records, 1, at_ns, Kind::Acquire);
                at_ns += 400 * US;
                event(&mut records, 1, at_ns, Kind::ReleaseVoluntary);
            }
            at_ns += 100 * US;
        }
    }
    let totals = ThreadTotals { cpu_ns: 300 * MS, ..ThreadTotals::default() };
    ended(records, 500 * MS, totals)
}

/// One thread has the GIL for 1 ms. Two others want it meanwhile, and each has it 45 us after it was let
/// go of, while another one waits, too.
fn company() -> Vec<Record> {
    let mut records = begun();
    records.push(started(2, 0));
    for turn in 0..20 {
        let mut at_ns = turn * 5 * MS;
        event(&mut records, 0, at_ns, Kind::Acquire);
        event(&mut records, 1, at_ns + 200 * US, Kind::Wait);
        event(&mut records, 2, at_ns + 300 * US, Kind::Wait);
        at_ns += MS;
        event(&mut records, 0, at_ns, Kind::ReleaseVoluntary);
        event(&mut records, 1, at_ns + 45 * US, Kind::Acquire);
        event(&mut records, 0, at_ns + 80 * US, Kind::Wait);
        at_ns += 145 * US;
        event(&mut records, 1, at_ns, Kind::ReleaseVoluntary);
        at_ns += 45 * US;
        uses(&mut records, 2, at_ns, 100 * US);
        uses(&mut records, 0, at_ns + 120 * US, 50 * US);
    }
    let totals = ThreadTotals::default();
    records.push(Record::ThreadEnded { thread: ThreadId(2), at_ns: 100 * MS, totals });
    ended(records, 100 * MS, totals)
}

/// One thread has the GIL for 104 ms, ten times, mostly in native code. The other wants it 1 ms
/// after that began, asks in vain 5 ms later, and uses it for 0.1 ms.
fn native_code() -> Vec<Record> {
    let mut records = begun();
    for turn in 0..10 {
        let begins_ns = turn * 110 * MS;
        let ends_ns = begins_ns + 104 * MS;
        event(&mut records, 0, begins_ns, Kind::Acquire);
        event(&mut records, 1, begins_ns + MS, Kind::Wait);
        event(&mut records, 1, begins_ns + 6 * MS, Kind::DropRequest);
        event(&mut records, 0, ends_ns, Kind::ReleaseForced);
        event(&mut records, 1, ends_ns + 40 * US, Kind::Acquire);
        event(&mut records, 1, ends_ns + 140 * US, Kind::ReleaseVoluntary);
    }
    ended(records, 1_100 * MS, ThreadTotals::default())
}

/// One thread brings something each millisecond. Another one does four uses with it, each of 20 us, and
/// sleeps until there is more. A third one comes and goes all the time.
fn queue() -> Vec<Record> {
    let mut records = begun();
    records.push(started(2, 0));
    let consumes = (0..4).map(|use_| (0, 60 + use_ * 30, 20));
    let goes_on = (0..4).map(|use_| (2, 52 + use_ * 30, 6));
    let alone = (0..16).map(|use_| (2, 190 + use_ * 50, 6));
    let mut uses =
        [(1, 0, 10)].into_iter().chain(consumes).chain(goes_on).chain(alone).collect::<Vec<_>>();
    uses.sort_by_key(|(_, from_us, _)| *from_us);
    for turn in 0..200 {
        for (thread, from_us, us) in &uses {
            let from_ns = turn * MS + from_us * US;
            event(&mut records, *thread, from_ns, Kind::Acquire);
            event(&mut records, *thread, from_ns + us * US, Kind::ReleaseVoluntary);
        }
    }
    let totals = ThreadTotals::default();
    records.push(Record::ThreadEnded { thread: ThreadId(2), at_ns: 200 * MS, totals });
    ended(records, 200 * MS, totals)
}

fn only(records: &[Record]) -> Demand {
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
fn who_is_put_behind_the_thread_that_woke_it_waits_until_that_one_sleeps() {
    let demand = only(&behind());
    let [recorded, reproduced] =
        [&demand.recorded, demand.reproduced().unwrap()].map(|it| it.threads[1].waits.p50_us);
    // One that woke up on a processor of its own would have it after the first release.
    assert!(recorded > 1_000.0 && reproduced > 250.0, "{reproduced} for {recorded}");
}

#[test]
fn wake_ups_count_where_others_wait_too() {
    let demand = only(&company());
    for thread in &demand.threads[1..] {
        assert_eq!(thread.wake_ups.median_ns(), 45 * US, "{}", thread.name);
    }
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

/// One thread uses the GIL twice, with that between; the other one, which was away, wants it after
/// the second time.
fn second_use(between_ns: u64) -> Vec<Record> {
    let mut records = begun();
    for round in 0..40 {
        let at_ns = round * 20 * MS;
        uses(&mut records, 0, at_ns, 100 * US);
        let second_ns = at_ns + 100 * US + between_ns;
        uses(&mut records, 0, second_ns, 100 * US);
        uses(&mut records, 1, second_ns + 150 * US, MS);
    }
    ended(records, 800 * MS, ThreadTotals::default())
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
fn several_of_a_thread_share_what_one_had() {
    let demand = only(&convoy());
    let changes = vec![(0, Change::Times(3))];
    let rules = Rules { changes, ..Rules::from(Settings::from(Policy::Fair)) };
    let figures = predict(&demand, &rules).unwrap().figures;
    assert_eq!(figures.threads.len(), 4);
    assert!(figures.jain.unwrap() > 0.95, "{:?}", figures.jain);
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
