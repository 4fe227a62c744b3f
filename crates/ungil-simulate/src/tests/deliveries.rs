//! Threads that do a piece for each thing that others bring.

use super::{MS, US, burst, demand, thread};
use crate::demand::{Deliveries, Delivery, Demand, Progress, Stop, Thread, Wake};
use crate::figures::{Figures, ThreadFigures};
use crate::rules::Rules;
use crate::{Gil, predict};
use std::sync::OnceLock;
use ungil_core::schedule::{Policy, Settings};

const ROUNDS: usize = 400;
const PIECES: usize = 5;
const PIECE_NS: u64 = 50 * US;

/// A thread computes, and brings something each millisecond. Another one needs 50 us for that. In the
/// recording it waited for a switch interval, slept once in that time, and did five pieces.
fn brought() -> Demand {
    let brings = thread(0, &[burst((PIECES * ROUNDS) as u64 * MS, 0)]);
    let at = |number: usize| Progress { burst: 0, held_ns: (number as u64 + 1) * MS };
    let wake = |round| Wake { burst: round, by: 0, at: at(PIECES * round), after_ns: 30 * US };
    let delivery = |number| Delivery { by: 0, at: at(number) };
    let stops = (1..=ROUNDS).flat_map(|burst| {
        (1..PIECES as u64).map(move |piece| Stop { burst, held_ns: piece * PIECE_NS, by: 0 })
    });
    let deliveries = Deliveries {
        all: (0..PIECES * ROUNDS).map(delivery).collect(),
        stops: stops.collect(),
        after_ns: 30 * US,
        patience_ns: 20 * MS,
    };
    let uses = Thread {
        wakes: (0..ROUNDS).map(wake).collect(),
        deliveries: Some(deliveries.into()),
        ..thread(0, &vec![burst(PIECES as u64 * PIECE_NS, MS); ROUNDS + 1])
    };
    let mut demand = demand(1_500 * MS, vec![brings, uses]);
    // What a recording under these rules would tell.
    demand.recorded = predicted(&demand, Settings::from(Policy::Stock).into());
    demand.reproduced = OnceLock::new();
    demand
}

fn predicted(demand: &Demand, rules: Rules) -> Figures {
    predict(demand, &Rules { runs: 1, ..rules }).unwrap().figures
}

/// What becomes of the second thread.
fn under(rules: impl Into<Rules>) -> ThreadFigures {
    under_of(rules, 1)
}

/// What becomes of the thread at that place among those that are left.
fn under_of(rules: impl Into<Rules>, place: usize) -> ThreadFigures {
    predicted(&brought(), rules.into()).threads.swap_remove(place)
}

#[test]
fn who_has_the_gil_sooner_sleeps_more_often_and_does_less_each_time() {
    let stock = under(Settings::from(Policy::Stock));
    let sooner = under(Settings { policy: Policy::Stock, quantum_ns: 50 * US });
    assert!(sooner.returns.count > 3 * stock.returns.count, "{stock:?}\n{sooner:?}");
    assert!((sooner.held_s / stock.held_s - 1.0).abs() < 0.1, "{stock:?}\n{sooner:?}");
}

#[test]
fn without_a_gil_it_sleeps_for_each_delivery() {
    let free = under(Rules::of(Gil::Free));
    let delivered = 1_500;
    assert!(free.returns.count.abs_diff(delivered) < 20, "{free:?}");
    assert!((free.held_s / (delivered * PIECE_NS) as f64 * 1e9 - 1.0).abs() < 0.05, "{free:?}");
}

#[test]
fn who_waits_for_one_that_is_left_out_sleeps_as_long_as_it_did() {
    let alone = under_of(Rules { without: vec![0], ..Settings::from(Policy::Stock).into() }, 0);
    assert!(alone.returns.count.abs_diff(1_500 * MS / (5 * PIECE_NS + MS)) < 5, "{alone:?}");
}

#[test]
fn what_was_to_be_brought_and_never_comes_is_not_waited_for_for_ever() {
    let mut demand = brought();
    let Some(deliveries) = demand.threads[1].deliveries.as_deref() else { unreachable!() };
    let deliveries = Deliveries { all: Vec::new(), ..deliveries.clone() };
    demand.threads[1].deliveries = Some(deliveries.into());
    let figures = predicted(&demand, Settings::from(Policy::Stock).into());
    assert!(figures.threads[1].returns.count > 50, "{figures:?}");
}
