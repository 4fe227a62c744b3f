//! What holds of `limit="auto"` whatever happens.

use proptest::prelude::*;
use ungil_fanout::limit::{Adaptive, Opening, Outcome, Sample, Settings, Ticket, jitter};

const MS: u64 = 1_000_000;

#[derive(Clone, Debug)]
enum Step {
    /// So many items start, if the limit allows, of groups from here on.
    Start(usize, Option<u64>),
    /// The item at this place of those that run ends after so long.
    End(usize, u64, Outcome),
    Lag(u64),
    /// Nothing happens for so long.
    Pass(u64),
    Tick,
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        8 => Just(Outcome::Completed),
        1 => Just(Outcome::Failed),
        2 => Just(Outcome::Overloaded),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..64_usize, prop::option::of(0..200_u64)).prop_map(|(n, g)| Step::Start(n, g)),
        8 => (any::<prop::sample::Index>(), 0..200 * MS, outcome())
            .prop_map(|(at, after, outcome)| Step::End(at.index(1 << 20), after, outcome)),
        1 => (0..500 * MS).prop_map(Step::Lag),
        1 => prop_oneof![0..5 * MS, 0..100_000 * MS].prop_map(Step::Pass),
        1 => Just(Step::Tick),
    ]
}

fn opening() -> impl Strategy<Value = Opening> {
    prop_oneof![Just(Opening::Hosts), Just(Opening::Service), Just(Opening::Unknown)]
}

/// Does the steps, and gives the limit after each.
fn limits(ceiling: usize, opening: Opening, steps: &[Step]) -> Vec<usize> {
    let mut now = 5;
    let mut limit =
        Adaptive::new(Settings { cpu_so_far: 7, ..Settings::new(ceiling, opening) }, now);
    let mut running: Vec<(Ticket, u64, Option<u64>)> = Vec::new();
    let mut limits = vec![limit.limit()];
    for step in steps {
        match *step {
            Step::Start(count, group) => {
                for number in 0..count as u64 {
                    if running.len() < limit.limit() {
                        let group = group.map(|group| group + number % 3);
                        running.push((limit.started(now, group), now, group));
                        limits.push(limit.limit());
                    }
                }
            }
            Step::End(at, after, outcome) if !running.is_empty() => {
                let (ticket, started, group) = running.swap_remove(at % running.len());
                now = now.max(started + after);
                limit.finished(Sample {
                    ticket,
                    started,
                    finished: now,
                    cpu_so_far: now / 3,
                    outcome,
                    asked: 0,
                    group,
                });
            }
            Step::End(..) => (),
            Step::Lag(lag) => limit.lagged(now, lag),
            Step::Pass(time) => now += time,
            Step::Tick => limit.tick(now),
        }
        limits.push(limit.limit());
        // It can always be told.
        assert!(limit.report().to_string().starts_with("limit "));
    }
    limits
}

/// Runs items that take what `latency` says, whatever the limit. Gives how many had ended when the
/// limit was `target`.
fn ends_until(limit: &mut Adaptive, target: usize, mut latency: impl FnMut(u64) -> u64) -> u64 {
    let mut ends = std::collections::BTreeMap::new();
    let (mut now, mut number, mut ended) = (0, 0_u64, 0);
    while limit.limit() < target {
        while ends.len() < limit.limit() {
            let group = Some(number);
            let ticket = limit.started(now, group);
            let sample = Sample {
                ticket,
                started: now,
                finished: now + latency(number).max(1),
                cpu_so_far: 0,
                outcome: Outcome::Completed,
                asked: 0,
                group,
            };
            ends.insert((sample.finished, number), sample);
            number += 1;
        }
        let (&(finished, _), _) = ends.first_key_value().expect("at least one runs");
        if let Some(due) = limit.due().filter(|due| *due < finished) {
            assert!(due > now || now == 0, "a time that has come is no time to wait for");
            now = due;
            limit.tick(now);
            continue;
        }
        let (_, sample) = ends.pop_first().expect("it is there");
        now = sample.finished;
        limit.finished(sample);
        ended += 1;
        assert!(ended < 2_000_000, "the limit stays at {}", limit.limit());
    }
    ended
}

proptest! {
    #[test]
    fn the_limit_is_always_between_one_and_the_ceiling(
        ceiling in prop_oneof![0..4_usize, 0..100_000_usize],
        opening in opening(),
        steps in prop::collection::vec(step(), 0..400),
    ) {
        for limit in limits(ceiling, opening, &steps) {
            prop_assert!(1 <= limit && limit <= ceiling.max(1), "{limit} of {ceiling}");
        }
    }

    #[test]
    fn the_same_calls_lead_to_the_same_limits(
        ceiling in 1..1_000_usize,
        opening in opening(),
        steps in prop::collection::vec(step(), 0..200),
    ) {
        prop_assert_eq!(limits(ceiling, opening, &steps), limits(ceiling, opening, &steps));
    }

}

proptest! {
    // Each runs thousands of items.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn without_congestion_the_limit_comes_to_the_ceiling(
        ceiling in 1..1_000_usize,
        opening in opening(),
        base in MS..200 * MS,
        spread in 0..500 * MS,
        seed: u64,
    ) {
        let mut limit = Adaptive::new(Settings::new(ceiling, opening), 0);
        let ends = ends_until(&mut limit, ceiling, |number| {
            base + jitter(seed, number, 1 << 20, 50 * MS) * spread / (50 * MS)
        });
        prop_assert!(ends < 200_000);
    }

    #[test]
    fn whatever_was_before_items_that_hang_keep_nobody_from_starting(
        ceiling in 1..300_usize,
        opening in opening(),
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut now = 5;
        let mut limit = Adaptive::new(Settings::new(ceiling, opening), now);
        // A history, in which everything ends.
        for step in steps {
            if let Step::End(_, after, outcome) = step {
                let ticket = limit.started(now, None);
                let started = now;
                now += after;
                let (finished, cpu_so_far, group) = (now, 0, None);
                limit.finished(Sample { ticket, started, finished, cpu_so_far, outcome, asked: 0, group });
            }
        }
        let mut running = 0;
        while running < ceiling {
            while running < limit.limit() {
                limit.started(now, None);
                running += 1;
            }
            if running < ceiling {
                let due = limit.due();
                prop_assert!(due.is_some_and(|due| due > now), "{due:?} at {now}");
                now = due.expect("it was just looked at");
                limit.tick(now);
            }
        }
    }
}

proptest! {
    #[test]
    fn jitter_is_less_than_a_millisecond_for_each_that_runs_and_the_same_for_the_same_seed(
        seed: u64, group: u64, running in 0..100_usize, most in 1..50 * MS,
    ) {
        let wait = jitter(seed, group, running, most);
        prop_assert_eq!(wait, jitter(seed, group, running, most));
        prop_assert!(running == 0 && wait == 0 || wait < most.min(running as u64 * MS));
    }
}
