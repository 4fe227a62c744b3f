//! Threads that sleep for a moment only, and those that sleep for longer.

use super::{MS, US, burst, demand, thread};
use crate::demand::Machine;
use crate::naps::Naps;
use crate::rules::Rules;
use crate::{Demand, predict};
use ungil_core::schedule::{Policy, Settings};

/// The mean wait of a thread that wants the GIL again and again beside one that computes, us, on a
/// machine that wakes threads sooner after naps, and on one that does not.
fn waits_us(settings: Settings) -> [f64; 2] {
    let recorded = Naps::of(vec![12_000; 40], vec![30_000; 40]);
    [recorded, Naps::NO_MATTER].map(|naps| {
        let threads =
            vec![thread(0, &[burst(400 * MS, 0)]), thread(0, &vec![burst(20 * US, 980 * US); 200])];
        let made = demand(400 * MS, threads);
        let made = Demand { machine: Machine { naps, ..made.machine.clone() }, ..made };
        predict(&made, &Rules::from(settings)).unwrap().figures.threads[1].waits.mean_us
    })
}

#[test]
fn who_is_let_in_soon_is_woken_sooner_than_one_that_sleeps_for_a_switch_interval() {
    let [naps, none] = waits_us(Policy::Interactive.into());
    assert!(naps < none - 10.0, "{naps} and {none}");
    let [naps, none] = waits_us(Policy::Stock.into());
    assert!((naps / none - 1.0).abs() < 0.01, "{naps} and {none}");
}

#[test]
fn a_short_switch_interval_is_over_sooner_where_threads_are_awake_sooner() {
    let short = Settings { quantum_ns: 50 * US, ..Settings::from(Policy::Stock) };
    let [naps, none] = waits_us(short);
    assert!(naps < none - 10.0, "{naps} and {none}");
}
