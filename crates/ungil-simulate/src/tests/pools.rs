//! Threads of a pool, which one thread feeds with what clients ask for.

use super::records::{PROCESS, begun, ended, started, uses};
use super::{MS, US};
use crate::demand::{Demand, Way};
use crate::machine::{Outcome, Setting, simulate};
use crate::plan::planned;
use crate::rules::{Change, Gil, Rules};
use ungil_core::schedule::{Policy, Settings};
use ungil_trace::Record;
use ungil_trace::record::{ThreadId, ThreadTotals};

const IN_POOLS: Way = Way { for_long: false, in_pools: true, by_deliveries: false };
const ROUNDS: u64 = 100;
const ROUND_NS: u64 = 20 * MS;

/// Each 20 ms, one client asks for a report of 9 ms, and another one for a page of 0.5 ms. One
/// thread hands that on to three, which take turns; each first waits 2 ms for a database.
fn served() -> Demand {
    let mut records = begun();
    records.extend([started(2, 0), started(3, 0)]);
    let named = |number: u32| match number {
        0 => "accepts".to_owned(),
        number => format!("worker-{number}"),
    };
    let name = |number| Record::ThreadNamed { thread: ThreadId(number), name: named(number) };
    records.extend((0..4).map(name));
    (0..4)
        .for_each(|number| uses(&mut records, number, (1 + u64::from(number)) * 100 * US, 10 * US));
    let mut worker = 0;
    for round in 1..ROUNDS {
        for (after_ns, work_ns) in [(0, 9 * MS), (12 * MS, MS / 2)] {
            let at_ns = round * ROUND_NS + after_ns;
            uses(&mut records, 0, at_ns, 20 * US);
            uses(&mut records, 0, at_ns + 30 * US, 30 * US);
            worker = worker % 3 + 1;
            uses(&mut records, worker, at_ns + 75 * US, 50 * US);
            uses(&mut records, worker, at_ns + 2 * MS, work_ns);
        }
    }
    for number in [2, 3] {
        let (at_ns, totals) = (ROUNDS * ROUND_NS, ThreadTotals::default());
        records.push(Record::ThreadEnded { thread: ThreadId(number), at_ns, totals });
    }
    let demand = Demand::of(&ended(records, ROUNDS * ROUND_NS, ThreadTotals::default())).remove(0);
    assert_eq!(demand.pid, PROCESS.0 + 70);
    assert_eq!(demand.pools.len(), 1);
    demand
}

/// What happens without a GIL, where nobody waits.
fn outcome(rules: Rules, way: Way) -> Outcome {
    let (demand, rules) = (served(), Rules { gil: Gil::Free, ..rules });
    let setting = Setting {
        gil: rules.gil,
        cores: None,
        displaces: false,
        wake_up_factor: 1.0,
        lateness: demand.machine.lateness.clone(),
        naps: demand.machine.naps,
        coldness: demand.machine.coldness,
        lasts_ns: if rules.once { 100 } else { 1 } * ROUNDS * ROUND_NS,
        seed: 0,
    };
    simulate(&planned(&demand, &rules, way), &setting).unwrap()
}

fn stock() -> Rules {
    Rules::of(Gil::Scheduled(Settings::from(Policy::Stock)))
}

/// How often the threads of the pool used the GIL.
fn used(outcome: &Outcome) -> u64 {
    outcome.threads[1..].iter().map(|thread| thread.returns.summary().count).sum()
}

/// How many of them did at the same time, on average.
fn computed(outcome: &Outcome) -> f64 {
    let held_ns: u64 = outcome.threads[1..].iter().map(|thread| thread.held_ns).sum();
    held_ns as f64 / outcome.ended_ns as f64
}

#[test]
fn a_pool_does_as_much_as_clients_ask_for() {
    let (recorded, done) = (3 + 2 * 2 * (ROUNDS - 1), used(&outcome(stock(), IN_POOLS)));
    assert!(done.abs_diff(recorded) <= 20, "{done} of {recorded}");
}

#[test]
fn as_much_is_done_at_a_time_as_there_are_clients_however_many_threads_there_are() {
    let changes = [1, 2, 3].map(|thread| (thread, Change::Work(100.0))).to_vec();
    let slow = |way| computed(&outcome(Rules { changes: changes.clone(), ..stock() }, way));
    let (clients, threads) = (slow(IN_POOLS), slow(Way::default()));
    assert!((1.7..=2.0).contains(&clients), "{clients} of two clients");
    assert!(threads > 2.3, "{threads} of three threads");
}

#[test]
fn the_threads_of_a_pool_end_when_each_client_has_asked_once() {
    let outcome = outcome(Rules { once: true, ..stock() }, IN_POOLS);
    assert_eq!(used(&outcome), 3 + 2 * 2 * (ROUNDS - 1));
    let rounds = outcome.ended_ns / ROUND_NS;
    assert!((ROUNDS - 1..=ROUNDS + 1).contains(&rounds), "{rounds}");
}

#[test]
fn each_does_its_own_if_one_of_a_pool_is_left_out() {
    let used = used(&outcome(Rules { without: vec![1], ..stock() }, IN_POOLS));
    // Of two threads only, the first of which is told as the second.
    assert!(used < 2 * 2 * (ROUNDS - 1), "{used}");
}
