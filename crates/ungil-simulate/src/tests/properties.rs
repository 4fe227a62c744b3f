//! What holds for every demand under all rules, over generated ones.

use super::{MS, US, burst, demand, thread};
use crate::coldness::Coldness;
use crate::delays::Delays;
use crate::demand::{
    Burst, Consumer, Deliveries, Delivery, Demand, End, Launch, Link, Progress, Races, Start,
    Started, Starter, Steady, Stop, Successor, Supply, Thread, Wake, Way,
};
use crate::machine::{MOVES_NS, Outcome, Setting, simulate};
use crate::naps::Naps;
use crate::plan::planned;
use crate::rules::{Gil, Rules};
use crate::{Change, predict};
use proptest::prelude::*;
use std::sync::Arc;
use ungil_core::schedule::{Policy, Settings};

const EVERY_WAY: Way = Way { for_long: true, in_pools: true, by_deliveries: true };
const LASTS_NS: u64 = 500 * MS;

fn settings() -> impl Strategy<Value = Settings> {
    (prop::sample::select(&Policy::ALL), MS..20 * MS)
        .prop_map(|(policy, quantum_ns)| Settings { policy, quantum_ns })
}

fn gil() -> impl Strategy<Value = Gil> {
    prop_oneof![4 => settings().prop_map(Gil::Scheduled), 1 => Just(Gil::Free)]
}

fn some_burst() -> impl Strategy<Value = Burst> {
    let held_ns = prop_oneof![3 => US..MS, 1 => MS..10 * MS];
    let away_ns = prop_oneof![1 => Just(0), 3 => US..MS, 2 => MS..50 * MS];
    (held_ns, away_ns, 0..3u64).prop_map(|(held_ns, away_ns, not_run)| Burst {
        not_run_ns: held_ns * not_run / 4,
        ..burst(held_ns, away_ns)
    })
}

fn some_thread() -> impl Strategy<Value = Thread> {
    let bursts = prop::collection::vec(some_burst(), 1..20);
    let cuts = (0..20usize, 0..20usize);
    (0..100 * MS, bursts, cuts, 0.0..1.0f64, 0..200_000u32, 0..5 * MS).prop_map(
        |(begins_ns, bursts, (from, to), away_ran, wake_up_ns, answer_ns)| Thread {
            steady: Steady {
                uses: from.min(to).min(bursts.len())..to.min(bursts.len()),
                away_ns: to as u64 * MS,
            },
            away_ran,
            races: Races::always(wake_up_ns).into(),
            answers: Arc::new(Delays::fixed(answer_ns)),
            ..thread(begins_ns, &bursts)
        },
    )
}

/// A thread at this place that starts the others, as often as there are: some at once, and some when
/// another has replied.
fn some_server(place: usize) -> impl Strategy<Value = Vec<Thread>> {
    let cycle = prop::collection::vec(some_burst(), 1..4);
    let requests = prop::collection::vec((some_thread(), 0..20usize, 1..4usize), 1..8);
    (cycle, requests).prop_map(move |(cycle, requests)| {
        let count = requests.len();
        let mut bursts = vec![burst(US, US)];
        let mut found = Starter::default();
        for _ in 0..count {
            let before = u32::try_from(bursts.len()).unwrap() - 1;
            bursts.extend(&cycle);
            found.waits_after.push(before);
            let start = Start { begins_ns: 20 * US, goes_on_ns: 30 * US };
            found.starts.push((before + 1, start));
            bursts.push(burst(US, US));
        }
        let mut threads = vec![Thread { starter: Some(found.into()), ..thread(0, &bursts) }];
        for (number, (one, replies, further)) in requests.into_iter().enumerate() {
            let replies = u32::try_from(replies % one.bursts.len()).unwrap();
            let started = Started { by: place, arrives_ns: one.begins_ns, replies };
            let successor = (number + further < count).then(|| Successor {
                thread: place + 1 + number + further,
                after_ns: one.begins_ns,
                is_asked: further > 1,
                is_again: false,
            });
            threads.push(Thread {
                started: Some(started),
                successor,
                steady: Steady::default(),
                ..one
            });
        }
        // Nobody follows two.
        let mut followed = std::collections::HashSet::new();
        for thread in &mut threads {
            thread.successor = thread.successor.filter(|it| followed.insert(it.thread));
        }
        threads
    })
}

/// A thread at this place that starts others, one after each of its uses.
fn some_launcher(place: usize) -> impl Strategy<Value = Vec<Thread>> {
    let batches = prop::collection::vec((some_burst(), some_thread()), 1..8);
    (batches, any::<bool>()).prop_map(move |(batches, after_all)| {
        let start = Start { begins_ns: 20 * US, goes_on_ns: 30 * US };
        let launches = (0..).zip(place + 1..).take(batches.len());
        let launches = launches.map(|(burst, thread)| Launch { burst, thread, start, after_all });
        let launches = launches.collect();
        let (bursts, others): (Vec<_>, Vec<_>) = batches.into_iter().unzip();
        let ends = |thread| Thread { is_launched: true, steady: Steady::default(), ..thread };
        let starts = Thread { launches, ..thread(0, &bursts) };
        std::iter::once(starts).chain(others.into_iter().map(ends)).collect()
    })
}

/// The same with a queue that the first of them fill, and some of the others empty.
fn some_threads_and_queue() -> impl Strategy<Value = Vec<Thread>> {
    let queue = (0..8usize, 0..8usize, prop::collection::vec(0..4u32, 0..40), 0..20u32);
    (some_threads(), queue).prop_map(|(mut threads, (producers, step, more, empty))| {
        let producers = producers.min(threads.len() - 1);
        let mut needs = vec![0];
        needs.extend(more.iter().scan(0, |sum, more| {
            *sum += more;
            Some(*sum)
        }));
        let consumers: Vec<_> = (producers..threads.len()).step_by(step + 1).collect();
        let producers = (0..producers).collect();
        let supply = Supply::new(producers, consumers.clone(), needs, 50 * US);
        let supply = Arc::new(supply);
        for place in consumers {
            threads[place].lives_on = Some(Consumer::new(supply.clone(), vec![empty]));
        }
        threads
    })
}

/// What threads want that wait for each other, and perhaps one that starts others.
fn some_demand() -> impl Strategy<Value = Demand> {
    let mixed = some_threads().prop_flat_map(|threads| {
        let place = threads.len();
        let starts = prop_oneof![some_server(place), some_launcher(place)];
        (Just(threads), starts).prop_map(|(threads, starts)| [threads, starts].concat())
    });
    prop_oneof![some_threads(), some_threads_and_queue(), some_that_deliver(), mixed]
        .prop_map(|threads| demand(LASTS_NS, threads))
}

/// Some of them need what others bring, which may never come.
fn some_that_deliver() -> impl Strategy<Value = Vec<Thread>> {
    let places = (0..8usize, 0..8usize, 0..20usize, 0..20usize, 0..5 * MS);
    let brought = prop::collection::vec((places, any::<bool>()), 0..30);
    (some_threads(), brought).prop_map(|(mut threads, brought)| {
        let count = threads.len();
        let mut all: Vec<Vec<(Wake, bool)>> = vec![Vec::new(); count];
        for ((of, by, burst, at, held_ns), sleeps) in brought {
            let (of, by) = (of % count, by % count);
            // As above: with `once`, nobody gives up waiting.
            let sleeps = sleeps && by < of;
            let burst = burst % threads[of].bursts.len();
            let held_ns = if sleeps { Progress::END } else { held_ns };
            let at = Progress { burst: at % threads[by].bursts.len(), held_ns };
            all[of].push((Wake { burst, by, at, after_ns: 50 * US }, sleeps));
        }
        for (thread, mut brought) in threads.iter_mut().zip(all) {
            brought.sort_unstable_by_key(|(wake, _)| (wake.burst, wake.at.held_ns));
            let stops = brought.iter().filter(|(_, sleeps)| !sleeps).map(|(wake, _)| Stop {
                burst: wake.burst,
                held_ns: wake.at.held_ns,
                by: wake.by,
            });
            let deliveries = Deliveries {
                all: brought
                    .iter()
                    .map(|(wake, _)| Delivery { by: wake.by, at: wake.at })
                    .collect(),
                stops: stops.collect(),
                after_ns: 50 * US,
                patience_ns: 10 * MS,
            };
            let mut wakes: Vec<_> = brought.iter().filter(|it| it.1).map(|it| it.0).collect();
            wakes.dedup_by_key(|wake| wake.burst);
            thread.wakes = wakes.into();
            thread.deliveries = Some(deliveries.into());
        }
        threads
    })
}

/// Some of the threads wait for uses of others, in any order, which may never come.
fn some_threads() -> impl Strategy<Value = Vec<Thread>> {
    let links = prop::collection::vec((0..8usize, 0..20usize, 0..8u32, 0..30u32), 0..10);
    (prop::collection::vec(some_thread(), 1..8), links).prop_map(|(mut threads, links)| {
        let count = threads.len();
        for (of, at, other, burst) in links {
            let (of, other) = (of % count, other % u32::try_from(count).unwrap());
            // Who waits for an earlier thread only waits for nobody in a circle.
            if (other as usize) < of {
                let mut bursts = threads[of].bursts.to_vec();
                let at = at % bursts.len();
                let link = Link {
                    thread: other,
                    burst,
                    after_ns: 50_000,
                    turn: 1,
                    awake: at % 3 == 0,
                    posted: at % 2 == 0,
                };
                bursts[at].after = Some(link);
                threads[of].bursts = bursts.into();
            }
        }
        threads
    })
}

fn outcome(demand: &Demand, rules: &Rules) -> Outcome {
    let setting = Setting {
        gil: rules.gil,
        cores: rules.cores,
        displaces: rules.cores.is_none(),
        wake_up_factor: 1.0,
        lateness: Delays::fixed(50 * US),
        naps: Naps::NO_MATTER,
        coldness: Coldness::NEVER,
        lasts_ns: if rules.once { u64::MAX / 4 } else { demand.lasts_ns },
        seed: rules.seed,
    };
    simulate(&planned(demand, rules, EVERY_WAY), &setting).unwrap()
}

/// Each case simulates a second, several times.
fn some_cases() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.div_ceil(8), ..usual }
}

proptest! {
    #![proptest_config(some_cases())]

    #[test]
    fn work_that_is_done_once_is_all_done_and_no_more(
        demand in some_demand(), gil in gil(), cores in prop::option::of(1..5usize),
    ) {
        let rules = Rules { once: true, cores, ..Rules::of(gil) };
        let outcome = outcome(&demand, &rules);
        for (happened, thread) in outcome.threads.iter().zip(&demand.threads) {
            let wanted: u64 = thread.bursts.iter().map(|it| it.held_ns - it.not_run_ns).sum();
            prop_assert_eq!(happened.held_ran_ns, wanted);
        }
    }

    #[test]
    fn the_gil_is_held_by_one_thread_at_a_time(demand in some_demand(), settings in settings()) {
        let outcome = outcome(&demand, &Rules::from(settings));
        let held_ns: u64 = outcome.threads.iter().map(|thread| thread.held_ns).sum();
        prop_assert!(held_ns <= outcome.ended_ns);
    }

    #[test]
    fn the_gil_is_free_only_while_a_thread_wakes_for_it_or_waits_for_its_processor(
        demand in some_demand(), settings in settings(),
    ) {
        let mut random = fastrand::Rng::with_seed(0);
        let ends = demand.threads.iter().map(|thread| thread.races.draw(0, 0, 0, Naps::NO_MATTER, &mut random));
        let longest_ns = ends.map(|end| match end {
            End::Woken(ns) => u64::from(ns),
            end => panic!("always woken, not {end:?}"),
        });
        // Or it waits for its processor, which another has taken.
        let longest_ns = longest_ns.max().unwrap().max(MOVES_NS);
        let idle_ns = outcome(&demand, &Rules::from(settings)).idle_ns;
        prop_assert!(idle_ns <= longest_ns, "{} > {}", idle_ns, longest_ns);
    }

    #[test]
    fn threads_do_no_more_than_the_processors_can(
        demand in some_demand(), gil in gil(), cores in 1..5usize,
    ) {
        let outcome = outcome(&demand, &Rules { cores: Some(cores), ..Rules::of(gil) });
        let ran_ns: u64 = outcome.threads.iter().map(|thread| thread.ran_ns).sum();
        prop_assert!(ran_ns <= outcome.ended_ns * cores as u64);
    }

    #[test]
    fn the_same_seed_brings_the_same_prediction(demand in some_demand(), gil in gil()) {
        let rules = Rules::of(gil);
        prop_assert_eq!(predict(&demand, &rules), predict(&demand, &rules));
    }

    #[test]
    fn without_a_gil_nobody_waits_for_it(
        demand in some_demand(), cores in prop::option::of(1..5usize),
    ) {
        let outcome = outcome(&demand, &Rules { cores, ..Rules::of(Gil::Free) });
        prop_assert!(outcome.threads.iter().all(|thread| thread.waits.summary().count == 0));
    }

    #[test]
    fn one_thread_alone_never_waits(thread in some_thread(), settings in settings()) {
        let demand = demand(LASTS_NS, vec![thread]);
        let outcome = outcome(&demand, &Rules::from(settings));
        prop_assert_eq!(outcome.threads[0].waits.summary().count, 0);
    }

    #[test]
    fn whoever_computes_all_the_time_gets_the_gil_again_and_again(
        settings in settings(), count in 2..8usize,
    ) {
        let computes = thread(0, &[burst(2 * LASTS_NS, 0)]);
        let demand = demand(LASTS_NS, vec![computes; count]);
        let outcome = outcome(&demand, &Rules::from(settings));
        let least_ns = outcome.threads.iter().map(|it| it.held_ns).min().unwrap();
        // Each has its turn before any has its second, within what a quantum leaves over.
        let fair_ns = LASTS_NS / count as u64;
        let turn_ns = settings.quantum_ns + MS;
        prop_assert!(least_ns + 2 * turn_ns >= fair_ns / 2, "{} of {}", least_ns, fair_ns);
    }

    #[test]
    fn so_many_times_the_work_is_so_much_more(
        demand in some_demand(), settings in settings(), factor in 1..4u32,
    ) {
        let changes = (0..demand.threads.len()).map(|it| (it, Change::Work(f64::from(factor))));
        let rules = Rules { once: true, ..Rules::from(settings) };
        let changed = Rules { changes: changes.collect(), ..rules.clone() };
        let [ran, ran_changed] = [rules, changed].map(|rules| {
            outcome(&demand, &rules).threads.iter().map(|it| it.held_ran_ns).sum::<u64>()
        });
        prop_assert_eq!(ran * u64::from(factor), ran_changed);
    }
    #[test]
    fn with_few_processors_all_work_is_done_also_by_those_that_come_too_late_for_the_gil(
        threads in prop::collection::vec((some_thread(), any::<bool>()), 1..8),
        settings in settings(), cores in 1..4usize, off_gil in 0.0..1.0f64,
    ) {
        let late = |(thread, is_late): (Thread, bool)| {
            let races = if is_late { Races::too_late().into() } else { thread.races };
            Thread { races, ..thread }
        };
        let demand = demand(LASTS_NS, threads.into_iter().map(late).collect());
        let changes = (0..demand.threads.len()).map(|it| (it, Change::OffGil(off_gil))).collect();
        let cores = Some(cores);
        let rules = Rules { once: true, runs: 1, cores, changes, ..Rules::from(settings) };
        let lasts_s = predict(&demand, &rules).unwrap().figures.duration_s;
        // No later than if all was done one behind the other, each use after some switches.
        let one_behind_the_other = demand.threads.iter().map(|it| {
            let bursts: u64 = it.bursts.iter().map(|it| it.held_ns + it.away_ns + 60 * MS).sum();
            it.begins_ns + bursts
        });
        prop_assert!(lasts_s <= one_behind_the_other.sum::<u64>() as f64 / 1e9, "{lasts_s}");
    }
}
