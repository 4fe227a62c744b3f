//! Hog: one thread has the GIL nearly all the time that anybody has it, while others wait.
//!
//! The most general of the findings, so it is made only for wait time that no other one explains:
//! the hog of a convoy is the culprit named there.

use super::scene::Scene;
use super::words;
use crate::report::{Evidence, Finding, ThreadReport, Who};

/// The part of all held time that makes a hog.
const HOG_SHARE: f64 = 0.8;

/// The hog, if there is one that `told` does not tell of already.
pub(super) fn find(scene: Scene, told: &[Finding]) -> Option<Finding> {
    let threads = &scene.gil.threads;
    // What the first thread held before there was a second one was at nobody's cost.
    let held_s = |thread: &ThreadReport| (thread.held_s - thread.startup_held_s).max(0.0);
    let hog = threads.iter().max_by(|a, b| held_s(a).total_cmp(&held_s(b)))?;
    let held_share = held_s(hog) / (scene.gil.held_s - scene.gil.startup_held_s);
    if held_share.is_nan() || held_share <= HOG_SHARE {
        return None;
    }
    let is_told = |victim: Who| {
        let mut victims = told
            .iter()
            .filter(|finding| !matches!(finding.evidence, Evidence::NativeHold { .. }))
            .flat_map(|finding| &finding.threads);
        victims.any(|&tid| victim == Who::Thread(tid))
    };
    let charged = scene.gil.blame.iter().filter(|row| row.culprit == Who::Thread(hog.tid));
    let untold: Vec<_> = charged.filter(|row| !is_told(row.victim)).collect();
    let is_native = told
        .iter()
        .filter(|finding| matches!(finding.evidence, Evidence::NativeHold { .. }))
        .any(|finding| finding.threads.contains(&hog.tid));
    let natively_s = if is_native { hog.kept.waited_s } else { 0.0 };
    let charged_s: f64 = untold.iter().map(|row| row.waited_s).sum();
    // What its native code costs is told there, and what the kernel did is not its own doing.
    let elsewhere_s = natively_s + hog.descheduled.waited_s;
    let cost_s = (charged_s - elsewhere_s).max(0.0);
    if !scene.is_relevant(cost_s) || elsewhere_s > cost_s {
        return None;
    }
    let victims = match untold.iter().filter(|row| row.victim == Who::Others).count() as u64 {
        0 => untold.len() as u64,
        _ => untold.len() as u64 - 1 + scene.gil.others.map_or(0, |others| others.threads),
    };
    let text = format!(
        "thread {} held the GIL for {} in which any thread held it ({}); {} waited for it for {}, \
         within {}",
        scene.name(hog),
        words::part(hog.held_s, scene.gil.held_s),
        words::percent(held_share),
        words::count(victims, "other thread"),
        words::summed(charged_s, victims),
        words::length(scene.busy_s()),
    );
    Some(Finding {
        advice: Some(scene.advice_to_schedule(
            "ungil run lets threads that need the GIL for a moment go first; ",
            "moving its work to another process ends these waits",
        )),
        threads: vec![hog.tid],
        cost_s,
        ..scene.finding(Evidence::Hog { held_share, victims }, text)
    })
}
