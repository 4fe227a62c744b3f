//! What holds for every workload, over generated ones.

use super::simulation::simulate;
use super::workload::{Act, Hold, Outcome, Step, Then, Thread, Wait, Workload};
use crate::schedule::scheduler::{AGING_NS, CREDIT, LAG};
use crate::schedule::{Level, Policy, Settings};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
const OWN: [Policy; 4] = [Policy::Interactive, Policy::Fair, Policy::Batch, Policy::Priority];
/// No step that looks at no requests is longer.
const LONGEST_STEP_NS: u64 = 10 * MS;

fn policy() -> impl Strategy<Value = Policy> {
    prop::sample::select(&OWN)
}

fn settings() -> impl Strategy<Value = Settings> {
    (policy(), 5 * MS..20 * MS).prop_map(|(policy, quantum_ns)| Settings { policy, quantum_ns })
}

fn level() -> impl Strategy<Value = Level> {
    prop::sample::select(&Level::ALL)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (20 * US..50 * MS).prop_map(Step::Compute),
        3 => (20 * US..MS).prop_map(Step::Compute),
        1 => (20 * US..LONGEST_STEP_NS).prop_map(Step::Hold),
        2 => (US..5 * MS).prop_map(Step::Block),
        1 => (MS..100 * MS).prop_map(Step::Block),
        2 => prop::collection::vec(act(), 1..20).prop_map(Step::Use),
    ]
}

/// Nobody waits for another for ever: one queue has no limit, the other one that is never reached.
fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (US..500 * US).prop_map(Act::Compute),
        (0..2usize).prop_map(Act::Put),
        (0..2usize, 20 * US..20 * MS).prop_map(|(queue, ns)| Act::GetWithin(queue, ns)),
    ]
}

/// Some compute all the time, some mostly wait, some are replaced by new ones for ever.
fn thread() -> impl Strategy<Value = Thread> {
    let steps = prop_oneof![
        2 => Just(vec![Step::Compute(1 << 40)]),
        4 => prop::collection::vec(step(), 1..6),
    ];
    let then = prop::sample::select(&[Then::Exit, Then::Repeat, Then::Repeat, Then::Replace]);
    (level(), prop_oneof![Just(0), 0..500 * MS], steps, then).prop_map(
        |(level, begins_ns, steps, then)| {
            // One that is new for ever uses the GIL once in its life.
            let steps = if then == Then::Replace { vec![steps[0].clone()] } else { steps };
            Thread { level, begins_ns, steps: [steps, vec![Step::Block(50 * US)]].concat(), then }
        },
    )
}

fn workload() -> impl Strategy<Value = Workload> {
    let threads = prop::collection::vec(thread(), 1..12);
    (settings(), threads, 0..100 * US, 0..500 * US).prop_map(
        |(settings, threads, wake_ns, drop_ns)| Workload {
            threads,
            settings: vec![(0, settings)],
            signal_ns: None,
            queues: vec![None, Some(usize::MAX)],
            lasts_ns: 3_000 * MS,
            wake_ns,
            drop_ns,
        },
    )
}

/// How long others may hold the GIL while `wait` lasts, as documented in `scheduler.rs`.
fn bound_ns(workload: &Workload, wait: &Wait) -> u64 {
    let Settings { policy, quantum_ns } = workload.settings[0].1;
    let others = || {
        let number_and_thread = workload.threads.iter().enumerate();
        number_and_thread.filter(|(number, _)| *number != wait.thread).map(|(_, thread)| thread)
    };
    let last_hold_ns = quantum_ns.max(LONGEST_STEP_NS) + workload.drop_ns;
    let all_their_holds_ns = last_hold_ns * (others().count() as u64 + wait.overtaken);
    if policy == Policy::Priority {
        let below = Level::High as u64 - workload.threads[wait.thread].level as u64;
        return below * AGING_NS + AGING_NS / 2 + all_their_holds_ns;
    }
    let credit = if policy == Policy::Interactive { CREDIT } else { 0 };
    let window_ns = (credit + LAG) * quantum_ns;
    let old_ns = others().map(|thread| thread.level.to_real(window_ns)).sum::<u64>();
    let weights = workload.threads.iter().map(|thread| thread.level.weight()).sum::<u64>();
    // If it is new itself, those that were in its place may have passed the others.
    let is_new = workload.threads.iter().any(|thread| thread.then == Then::Replace);
    let new_ns = if is_new { old_ns + window_ns * weights / Level::Normal.weight() } else { 0 };
    old_ns + new_ns + all_their_holds_ns
}

fn held_meanwhile_ns(outcome: &Outcome, wait: &Wait) -> u64 {
    let holds = &outcome.holds;
    let from = holds.partition_point(|hold| hold.to_ns <= wait.from_ns);
    let to = holds.partition_point(|hold| hold.from_ns < wait.to_ns);
    let length_ns =
        |hold: &Hold| hold.to_ns.min(wait.to_ns).saturating_sub(hold.from_ns.max(wait.from_ns));
    holds[from..to.max(from)].iter().map(length_ns).sum()
}

/// Each case simulates seconds.
fn some_cases() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.div_ceil(4), ..usual }
}

proptest! {
    #![proptest_config(some_cases())]

    #[test]
    fn nobody_starves(workload in workload()) {
        let outcome = simulate(&workload);
        for wait in &outcome.waits {
            let (held_ns, bound_ns) = (held_meanwhile_ns(&outcome, wait), bound_ns(&workload, wait));
            prop_assert!(held_ns <= bound_ns, "{held_ns} > {bound_ns} {wait:?}");
        }
    }

    #[test]
    fn the_gil_is_free_only_while_a_thread_wakes_for_it(workload in workload()) {
        prop_assert!(simulate(&workload).idle_ns <= workload.wake_ns);
    }

    #[test]
    fn one_workload_has_one_schedule(workload in workload()) {
        prop_assert_eq!(simulate(&workload).holds, simulate(&workload).holds);
    }

    #[test]
    fn a_thread_goes_before_one_of_a_higher_level_only_if_it_has_waited_longer(
        mut workload in workload()
    ) {
        workload.settings[0].1.policy = Policy::Priority;
        let outcome = simulate(&workload);
        let level = |wait: &Wait| workload.threads[wait.thread].level as u64;
        for goes in outcome.waits.iter().filter(|wait| wait.to_ns < workload.lasts_ns) {
            let granted_ns = goes.to_ns - workload.wake_ns.min(goes.to_ns);
            let stays = |wait: &&Wait| {
                wait.from_ns < granted_ns && goes.to_ns < wait.to_ns && level(goes) < level(wait)
            };
            for stays in outcome.waits.iter().filter(stays) {
                let levels = level(stays) - level(goes);
                let longer_ns = stays.from_ns.saturating_sub(goes.from_ns);
                prop_assert!(longer_ns >= levels * AGING_NS - AGING_NS / 2, "{goes:?} {stays:?}");
            }
        }
    }

    #[test]
    fn nobody_starves_when_policies_change(
        workload in workload(), changes in prop::collection::vec((MS..50 * MS, settings()), 1..30)
    ) {
        let mut at_ns = 0;
        let later = changes.into_iter().map(|(after_ns, settings)| {
            at_ns += after_ns;
            (at_ns, settings)
        });
        let settings: Vec<_> = workload.settings.iter().copied().chain(later).collect();
        let outcome = simulate(&Workload { settings, ..workload.clone() });
        // Under whichever policy makes it wait longest, from the last change on.
        let harshest = |policy| {
            let settings = vec![(0, Settings { policy, quantum_ns: 20 * MS })];
            Workload { settings, ..workload.clone() }
        };
        let harshest = OWN.map(harshest);
        for wait in outcome.waits.iter().filter(|wait| wait.to_ns > at_ns) {
            let wait = Wait { from_ns: wait.from_ns.max(at_ns), ..*wait };
            let held_ns = held_meanwhile_ns(&outcome, &wait);
            let bound_ns = harshest.iter().map(|workload| bound_ns(workload, &wait)).max();
            prop_assert!(Some(held_ns) <= bound_ns, "{held_ns} > {bound_ns:?} {wait:?}");
        }
    }

    #[test]
    fn equal_threads_that_compute_get_equal_shares(
        settings in settings(),
        begins_ns in prop::collection::vec(0..100 * MS, 2..20),
        level in level(),
        wake_ns in 0..100 * US,
        drop_ns in 0..500 * US,
    ) {
        let steps = vec![Step::Compute(1 << 40)];
        let threads: Vec<_> = begins_ns
            .iter()
            .map(|&begins_ns| Thread { level, begins_ns, steps: steps.clone(), then: Then::Exit })
            .collect();
        let (count, lasts_ns) = (threads.len(), 5_000 * MS);
        let settings_from_0 = vec![(0, settings)];
        let workload = Workload {
            threads, settings: settings_from_0, signal_ns: None, queues: vec![], lasts_ns, wake_ns, drop_ns,
        };
        let outcome = simulate(&workload);
        let held = |thread| outcome.held_ns(thread, 1_000 * MS, lasts_ns);
        let (least, most) = ((0..count).map(held).min(), (0..count).map(held).max());
        let apart_ns = most.unwrap() - least.unwrap();
        // One may have begun its quantum while the other was about to.
        let allowed_ns = 2 * (settings.quantum_ns + drop_ns) * level.to_real(1).max(1);
        prop_assert!(apart_ns <= allowed_ns, "{apart_ns} > {allowed_ns}");
    }

    #[test]
    fn shares_are_as_the_weights_of_the_levels(
        policy in prop::sample::select(&[Policy::Interactive, Policy::Fair]),
        levels in prop::collection::vec(level(), 2..8),
        io in any::<bool>(),
        drop_ns in 0..100 * US,
    ) {
        let computes = |&level| Thread {
            level, begins_ns: 0, steps: vec![Step::Compute(1 << 40)], then: Then::Exit,
        };
        let mut threads: Vec<_> = levels.iter().map(computes).collect();
        if io {
            let steps = vec![Step::Compute(100 * US), Step::Block(3 * MS)];
            threads.push(Thread { steps, then: Then::Repeat, ..threads[0].clone() });
        }
        let lasts_ns = 20_000 * MS;
        let settings = vec![(0, policy.into())];
        let workload =
            Workload { threads, settings, signal_ns: None, queues: vec![], lasts_ns, wake_ns: 20 * US, drop_ns };
        let outcome = simulate(&workload);
        let held = |thread| outcome.held_ns(thread, 0, lasts_ns);
        let all_ns: u64 = (0..levels.len()).map(held).sum();
        let weights: u64 = levels.iter().map(|level| level.weight()).sum();
        for (thread, level) in levels.iter().enumerate() {
            let (held_ns, due_ns) = (held(thread), all_ns * level.weight() / weights);
            // A thread that blocks in step with the quanta moves up to half a percent of all time
            // from one thread to each other, which is a tenth of what six low ones get beside a high.
            let allowed_ns = due_ns / 20 + all_ns / 200;
            prop_assert!(held_ns.abs_diff(due_ns) <= allowed_ns, "{level:?}: {held_ns} {due_ns}");
        }
    }
}
