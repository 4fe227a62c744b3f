//! Unfair: threads that want the GIL nearly all the time get very different shares of it.

use super::scene::{SWITCH_INTERVAL_MS, Scene};
use super::words;
use crate::report::{Evidence, Finding, ThreadReport};

/// A thread wants the GIL all the time if, waits left out, it is without it for at most this part
/// of the time it has it: alone it would hold for 80 % of its life. Wait time does not count as
/// wanting, or the victims of a convoy, who need the GIL for a moment only, would be rivals too.
const IDLE_PART: f64 = 0.25;
/// A thread that hardly ever got the GIL wants it if it was neither holding nor waiting for at
/// most this part of its life.
const IDLE_SHARE: f64 = 0.001;
/// Threads are compared if this part of the longest of their lives was common to them.
const COMMON_LIFE: f64 = 0.8;
/// Jain's index below which shares count as unequal: two threads of which one gets twice as much
/// as the other, or ten of which one gets nothing, have 0.9.
const FAIR_JAIN: f64 = 0.9;
/// Turns each thread should have had before shares are compared. With n turns given out by
/// chance a share scatters by 1/sqrt(n), so a hundred turns keep chance alone at an index of 0.99.
const TURNS: f64 = 100.0;
/// Lives shorter than this are mostly start-up.
const LIFE_S: f64 = 1.0;

/// The unfair split among the threads that always want this GIL.
pub(super) fn find(scene: Scene) -> Option<Finding> {
    let wants_always = |thread: &&ThreadReport| {
        let life_s = scene.life_s(thread);
        let idle_s = life_s - thread.held_s - thread.waited_s;
        life_s >= LIFE_S && idle_s <= (IDLE_PART * thread.held_s).max(IDLE_SHARE * life_s)
    };
    let wanting: Vec<_> = scene.gil.threads.iter().filter(wants_always).collect();
    let longest = *wanting.iter().max_by(|a, b| scene.life_s(a).total_cmp(&scene.life_s(b)))?;
    let life_s = scene.life_s(longest);
    let in_common = |thread: &ThreadReport| {
        let start_s = thread.started_s.max(longest.started_s);
        scene.end_s(thread).min(scene.end_s(longest)) - start_s
    };
    let mut rivals: Vec<_> =
        wanting.into_iter().filter(|thread| in_common(thread) >= COMMON_LIFE * life_s).collect();
    let share = |thread: &ThreadReport| (thread.held_s / scene.life_s(thread)).min(1.0);
    rivals.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let (best, worst) = (*rivals.first()?, *rivals.last()?);
    let turn_s = scene.process.switch_interval_ms.unwrap_or(SWITCH_INTERVAL_MS) / 1e3;
    let shares: Vec<f64> = rivals.iter().map(|thread| share(thread)).collect();
    let jain = jain_index(&shares);
    if rivals.len() < 2 || life_s < TURNS * turn_s * rivals.len() as f64 || jain >= FAIR_JAIN {
        return None;
    }
    // What a thread with less than the mean share waited longer than one with the mean share.
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let cost_s: f64 = rivals.iter().map(|thread| (mean - share(thread)).max(0.0) * life_s).sum();
    let held = |thread: &ThreadReport| {
        let held = words::part(thread.held_s, scene.life_s(thread));
        format!("{held} ({})", words::percent(share(thread)))
    };
    let text = format!(
        "{} wanted the GIL all the time but got unequal shares: {} held it for {}, {} for {} with \
         gaps of up to {} (Jain index {jain:.2})",
        words::count(rivals.len() as u64, "thread"),
        scene.name(best),
        held(best),
        scene.name(worst),
        held(worst),
        words::length(worst.gaps.max_ms / 1e3),
    );
    let evidence = Evidence::Unfair {
        jain,
        best_share: share(best),
        worst_share: share(worst),
        worst_gap_ms: worst.gaps.max_ms,
    };
    Some(Finding {
        advice: Some(scene.advice_to_schedule(
            "ungil run --policy fair gives them equal shares; ",
            "processes instead of threads share the processors, not the GIL",
        )),
        threads: rivals.iter().rev().map(|thread| thread.tid).collect(),
        cost_s,
        ..scene.finding(evidence, text)
    })
}

/// R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness and discrimination" (1984).
fn jain_index(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}
