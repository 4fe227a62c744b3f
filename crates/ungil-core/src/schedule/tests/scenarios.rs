//! What a policy promises in the situations it is made for.

use super::simulation::simulate;
use super::workload::{Outcome, Step, Then, Thread, Workload};
use crate::schedule::Level::{self, High, Low, Normal};
use crate::schedule::scheduler::{AGING_NS, CREDIT, GRACE, LAG};
use crate::schedule::{Policy, Settings, Slice};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
const SECOND: u64 = 1_000 * MS;
const WAKE_NS: u64 = 20 * US;
const DROP_NS: u64 = 10 * US;
const QUANTUM_NS: u64 = 5 * MS;
/// How long a thread waits at most that asks at once and goes first.
const AT_ONCE_NS: u64 = QUANTUM_NS / GRACE + DROP_NS + WAKE_NS;
/// When a thread that uses little has its whole credit, though all began together.
const SETTLED_NS: u64 = SECOND / 2;
const OWN: [Policy; 4] = [Policy::Interactive, Policy::Fair, Policy::Batch, Policy::Priority];

fn computes(level: Level) -> Thread {
    Thread { level, begins_ns: 0, steps: vec![Step::Compute(1 << 50)], then: Then::Exit }
}

/// Needs the GIL for `use_ns` each time it has been away for `away_ns`.
fn serves(use_ns: u64, away_ns: u64) -> Thread {
    let steps = vec![Step::Compute(use_ns), Step::Block(away_ns)];
    Thread { level: Normal, begins_ns: 0, steps, then: Then::Repeat }
}

fn under(policy: Policy, threads: Vec<Thread>) -> Workload {
    let settings = vec![(0, Settings { policy, quantum_ns: QUANTUM_NS })];
    Workload {
        threads,
        settings,
        signal_ns: None,
        queues: vec![],
        lasts_ns: 10 * SECOND,
        wake_ns: WAKE_NS,
        drop_ns: DROP_NS,
    }
}

fn run(policy: Policy, threads: &[Thread]) -> Outcome {
    simulate(&under(policy, threads.to_vec()))
}

#[test]
fn under_interactive_a_thread_that_uses_less_than_its_share_always_asks_at_once() {
    for computing in [1, 2, 4, 8, 16] {
        for (use_ns, away_ns) in [(50 * US, 2 * MS), (200 * US, 16 * MS), (2 * MS, 60 * MS)] {
            let threads = [vec![serves(use_ns, away_ns)], vec![computes(Normal); computing]];
            let outcome = run(Policy::Interactive, &threads.concat());
            let waits = outcome.waits_of(0, SETTLED_NS).count() as u64;
            assert!(waits > 5 * SECOND / (use_ns + away_ns), "it nearly always has to wait");
            let longest_ns = outcome.longest_wait_ns(0, SETTLED_NS);
            assert!(longest_ns <= AT_ONCE_NS, "{longest_ns} beside {computing}, using {use_ns}");
        }
    }
}

#[test]
fn under_interactive_threads_that_use_little_wait_only_for_each_other() {
    let threads = [vec![serves(50 * US, 5 * MS); 10], vec![computes(Normal); 4]].concat();
    let outcome = run(Policy::Interactive, &threads);
    for thread in 0..10 {
        let longest_ns = outcome.longest_wait_ns(thread, SETTLED_NS);
        assert!(longest_ns <= AT_ONCE_NS + 10 * (50 * US + WAKE_NS), "{longest_ns}");
    }
}

#[test]
fn under_interactive_a_new_thread_asks_at_once() {
    let mut new = serves(100 * US, MS);
    new.begins_ns = SECOND;
    let threads = [vec![new], vec![computes(Normal); 8]].concat();
    let outcome = run(Policy::Interactive, &threads);
    let first = outcome.waits_of(0, 0).next().expect("it has to wait");
    assert!(first.to_ns - first.from_ns <= AT_ONCE_NS, "{first:?}");
}

#[test]
fn a_thread_that_is_new_each_time_gains_nothing_over_one_that_computes() {
    for policy in [Policy::Interactive, Policy::Fair, Policy::Batch] {
        // They begin so late after each other that they cannot take the GIL as it changes hands.
        let new = Thread { then: Then::Replace, ..serves(30 * MS, 2 * WAKE_NS) };
        let outcome = run(policy, &[vec![computes(Normal)], vec![new; 4]].concat());
        let held_ns = outcome.held_ns(0, 0, 10 * SECOND);
        assert!(held_ns >= 10 * SECOND / 5 * 4 / 5, "{policy:?}: {held_ns}");
    }
}

#[test]
fn a_flood_of_threads_that_use_little_leaves_one_that_computes_its_share() {
    for policy in [Policy::Interactive, Policy::Fair, Policy::Batch] {
        let flood = vec![serves(100 * US, MS); 40];
        let outcome = run(policy, &[vec![computes(Normal)], flood].concat());
        let held_ns = outcome.held_ns(0, 0, 10 * SECOND);
        // A quarter of the time goes by while threads wake.
        assert!(held_ns >= 10 * SECOND / 41 * 3 / 4, "{policy:?}: {held_ns}");
    }
}

#[test]
fn one_long_hold_is_paid_for_with_at_most_the_lag() {
    for policy in [Policy::Interactive, Policy::Fair, Policy::Batch] {
        for others in [1, 2, 8] {
            let steps = vec![Step::Hold(SECOND), Step::Compute(1 << 50)];
            let long = Thread { begins_ns: SECOND, steps, ..computes(Normal) };
            let threads = [vec![long], vec![computes(Normal); others]].concat();
            let outcome = run(policy, &threads);
            let longest_ns = outcome.longest_wait_ns(0, 2 * SECOND);
            let credit = if policy == Policy::Interactive { CREDIT } else { 0 };
            let each_ns = (LAG + credit + 1) * QUANTUM_NS + DROP_NS;
            let handoffs_ns = (LAG + credit + 1) * WAKE_NS;
            assert!(longest_ns <= others as u64 * (each_ns + handoffs_ns), "{longest_ns}");
            assert!(longest_ns >= LAG * QUANTUM_NS / 2, "{longest_ns} is no price at all");
        }
    }
}

#[test]
fn equal_threads_are_asked_once_per_quantum_however_many_wait() {
    for policy in OWN {
        for threads in [2, 16, 200] {
            let outcome = run(policy, &vec![computes(Normal); threads]);
            // The first uses of new threads are shorter.
            let holds = outcome.holds.len() as u64 - threads as u64;
            assert!(holds <= 10 * SECOND / QUANTUM_NS, "{policy:?}, {threads}: {holds}");
        }
    }
}

#[test]
fn under_priority_a_lower_level_gets_no_more_than_aging_gives_it() {
    let outcome = run(Policy::Priority, &[computes(High), computes(Normal), computes(Low)]);
    let held_ns = [0, 1, 2].map(|thread| outcome.held_ns(thread, 0, 10 * SECOND));
    let quanta = |waited_ns| (10 * SECOND / waited_ns + 1) * (QUANTUM_NS + DROP_NS);
    assert!(held_ns[1] <= quanta(AGING_NS / 2), "{held_ns:?}");
    assert!(held_ns[2] <= quanta(AGING_NS + AGING_NS / 2), "{held_ns:?}");
    assert!(held_ns[1] > 0 && held_ns[2] > 0, "{held_ns:?}");
}

#[test]
fn under_priority_a_low_thread_that_holds_a_lock_gets_on_beside_higher_ones() {
    for rivals in [1, 3, 10] {
        // It needs four quanta until it lets go of a lock that a high thread waits for.
        let low = Thread { steps: vec![Step::Compute(4 * QUANTUM_NS)], ..computes(Low) };
        let outcome = run(Policy::Priority, &[vec![low], vec![computes(Normal); rivals]].concat());
        let last = outcome.holds.iter().rfind(|hold| hold.thread == 0).expect("it held the GIL");
        let held_ns = outcome.held_ns(0, 0, 10 * SECOND);
        assert_eq!(held_ns, 4 * QUANTUM_NS, "it finishes");
        let each_wait_ns =
            2 * AGING_NS + AGING_NS / 2 + (rivals as u64 + 1) * (QUANTUM_NS + AT_ONCE_NS);
        assert!(last.to_ns <= held_ns + 4 * each_wait_ns, "{last:?} beside {rivals}");
    }
}

#[test]
fn a_thread_that_must_run_a_signal_handler_goes_first() {
    for policy in OWN {
        for threads in [2, 8] {
            let threads = [vec![computes(Low)], vec![computes(High); threads]].concat();
            let quiet = simulate(&under(policy, threads.clone()));
            for after_ns in [SECOND, 3 * SECOND] {
                let mut waits = quiet.waits_of(0, 0);
                let wait = waits.find(|wait| wait.from_ns > after_ns);
                let wait = wait.expect("it waits now and then");
                let signal_ns = wait.from_ns.midpoint(wait.to_ns);
                let workload = under(policy, threads.clone());
                let outcome = simulate(&Workload { signal_ns: Some(signal_ns), ..workload });
                let mut waits = outcome.waits_of(0, 0);
                let wait = waits.find(|wait| wait.from_ns < signal_ns && signal_ns < wait.to_ns);
                let wait = wait.expect("until the signal, all goes as without one");
                let longest_ns = WAKE_NS + AT_ONCE_NS;
                assert!(wait.to_ns - signal_ns <= longest_ns, "{policy:?} {wait:?}");
            }
        }
    }
}

#[test]
fn under_priority_a_higher_level_asks_a_lower_one_at_once() {
    let steps = vec![Step::Compute(MS), Step::Block(SECOND)];
    let high = Thread { level: High, steps, then: Then::Repeat, ..computes(High) };
    let outcome = run(Policy::Priority, &[high, computes(Low)]);
    assert!(outcome.waits_of(0, 0).count() > 5, "it has to wait each time");
    assert!(outcome.longest_wait_ns(0, 0) <= AT_ONCE_NS, "{}", outcome.longest_wait_ns(0, 0));
}

#[test]
fn a_thread_that_takes_the_gil_before_one_that_is_waking_for_it_pays_for_it() {
    for policy in [Policy::Interactive, Policy::Fair, Policy::Batch] {
        let barges = serves(3 * MS, WAKE_NS / 4);
        let outcome = run(policy, &[barges, computes(Normal)]);
        let held_ns = [0, 1].map(|thread| outcome.held_ns(thread, 0, 10 * SECOND));
        assert!(held_ns[0].abs_diff(held_ns[1]) <= SECOND / 10, "{policy:?} {held_ns:?}");
        let overtaken = outcome.waits_of(1, 0).map(|wait| wait.overtaken).sum::<u64>();
        assert!(overtaken > 100, "{overtaken}");
    }
}

#[test]
fn threads_that_come_and_go_are_woken_for_the_gil_only() {
    for policy in OWN {
        let threads: Vec<_> = (0..8).map(|n| serves((40 + n) * US, (110 + 7 * n) * US)).collect();
        let outcome = run(policy, &threads);
        let (wakes, waits) = (outcome.wakes, outcome.waits.len());
        assert!(waits > 10_000, "they wait for each other");
        // Some are overtaken, and are woken again; none is woken to keep time.
        assert!(wakes <= waits * 2, "{policy:?}: {wakes} wake-ups in {waits} waits");
    }
}

#[test]
fn nobody_is_overtaken_for_ever() {
    for policy in OWN {
        // The first always comes back just before the second has woken.
        let threads = [serves(20 * US, WAKE_NS - 1), computes(Normal)];
        let outcome = run(policy, &threads);
        let longest_ns = outcome.longest_wait_ns(1, 0);
        // It uses up its credit and a quantum, and is away for as long.
        let allowed_ns = 2 * (CREDIT + 1) * QUANTUM_NS + AT_ONCE_NS;
        assert!(longest_ns <= allowed_ns, "{policy:?} {longest_ns}");
        let overtaken = outcome.waits_of(1, 0).map(|wait| wait.overtaken).max();
        assert!(overtaken > Some(10), "{policy:?} {overtaken:?}");
    }
}

#[test]
fn a_place_in_the_line_is_worth_nothing_under_another_policy() {
    let begins =
        |begins_ns, steps: &[Step]| Thread { begins_ns, steps: steps.to_vec(), ..computes(Normal) };
    let threads = vec![
        // Lets go, and takes the GIL again before the second has woken.
        begins(0, &[Step::Compute(MS), Step::Block(100 * US), Step::Compute(1 << 50)]),
        begins(100 * US, &[Step::Compute(1 << 50)]),
        // Brings the news of another policy just then.
        begins(MS + 200 * US, &[Step::Compute(1 << 50)]),
    ];
    let workload = Workload { wake_ns: 300 * US, ..under(Policy::Fair, threads) };
    let priority = Settings { policy: Policy::Priority, quantum_ns: QUANTUM_NS };
    let settings = vec![workload.settings[0], (MS + 150 * US, priority)];
    let outcome = simulate(&Workload { settings, ..workload });
    for thread in 0..3 {
        assert!(outcome.held_ns(thread, 0, 10 * SECOND) >= 2 * SECOND, "{thread}");
    }
}

#[test]
fn under_interactive_a_thread_that_uses_little_has_a_short_slice_and_the_others_are_patient() {
    for policy in OWN {
        for computing in [1, 2, 4, 16] {
            let threads = [vec![serves(50 * US, 2 * MS)], vec![computes(Normal); computing]];
            let outcome = run(policy, &threads.concat());
            let (of_little, of_others) = match policy {
                Policy::Interactive => (Slice::Short, Slice::Patient),
                _ => (Slice::Own, Slice::Own),
            };
            for at_ns in [SECOND, 2 * SECOND, 10 * SECOND] {
                assert_eq!(outcome.slice_of(0, at_ns), of_little, "{policy:?} beside {computing}");
                for thread in 1..=computing {
                    assert_eq!(outcome.slice_of(thread, at_ns), of_others, "{policy:?}");
                }
            }
            let changes = outcome.slices.len();
            assert!(changes <= computing + 2, "{changes} beside {computing}");
        }
    }
}

#[test]
fn a_thread_that_begins_to_compute_has_its_short_slice_no_more() {
    let little = vec![[Step::Compute(50 * US), Step::Block(2 * MS)]; 500].concat();
    let steps = [little, vec![Step::Compute(1 << 50)]].concat();
    let threads = [vec![Thread { steps, ..computes(Normal) }], vec![computes(Normal); 4]];
    let outcome = run(Policy::Interactive, &threads.concat());
    assert_eq!(outcome.slice_of(0, SECOND), Slice::Short);
    let mut holds = outcome.holds.iter().filter(|hold| hold.thread == 0);
    let begun_ns = holds.find(|hold| hold.to_ns - hold.from_ns > MS).expect("it computes").from_ns;
    let mut changes = outcome.slices.iter().filter(|it| it.thread == 0 && it.from_ns > begun_ns);
    let back = changes.next().expect("it changes");
    let used_ns = outcome.held_ns(0, begun_ns, back.from_ns);
    assert!(used_ns <= (CREDIT + 2) * QUANTUM_NS, "{used_ns}");
    assert_eq!(outcome.slice_of(0, 10 * SECOND), Slice::Patient);
}

#[test]
fn a_change_of_the_slice_costs_quanta_whatever_threads_do() {
    for (use_ns, away_ns) in [(5 * MS, 5 * MS), (2 * MS, 20 * MS), (30 * MS, 100 * MS)] {
        let threads = [vec![serves(use_ns, away_ns); 3], vec![computes(Normal); 2]].concat();
        let outcome = run(Policy::Interactive, &threads);
        for thread in 0..threads.len() {
            let changes = outcome.slices.iter().filter(|it| it.thread == thread).count() as u64;
            let held_ns = outcome.held_ns(thread, 0, 10 * SECOND);
            assert!(changes <= 2 + held_ns / QUANTUM_NS, "{changes} in {held_ns}");
        }
    }
}

#[test]
fn another_policy_gives_a_thread_its_own_slice_at_its_next_wait() {
    let threads = [vec![serves(50 * US, 2 * MS)], vec![computes(Normal); 4]].concat();
    let workload = under(Policy::Interactive, threads);
    for policy in [Policy::Fair, Policy::Batch, Policy::Priority] {
        let changed = Settings { policy, quantum_ns: QUANTUM_NS };
        let settings = vec![workload.settings[0], (2 * SECOND, changed)];
        let outcome = simulate(&Workload { settings, ..workload.clone() });
        assert_eq!(outcome.slice_of(0, 2 * SECOND), Slice::Short);
        assert_eq!(outcome.slice_of(1, 2 * SECOND), Slice::Patient);
        for thread in 0..5 {
            let mut waits = outcome.waits_of(thread, 2 * SECOND);
            let second = waits.nth(1).expect("it waits again");
            assert_eq!(outcome.slice_of(thread, second.from_ns), Slice::Own, "{policy:?}");
        }
    }
}
