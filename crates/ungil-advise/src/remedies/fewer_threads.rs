//! Fewer threads, where some of a group do all the work that the GIL lets the group do.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Evidence, Kind, Unit};
use crate::groups::{Group, groups};
use crate::predicted::Baseline;
use ungil_simulate::{Prediction, Rules};
use ungil_trace::analysis::words;

/// A group of fewer threads than this has none to spare.
const MANY: usize = 3;
/// A group that holds less of the GIL than this (of 1) is not what fills it.
const FULL: f64 = 0.5;
/// Fewer threads do the same work if they hold this part (of 1) of what all of them did.
const SAME: f64 = 0.95;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    let busy_s = scene.busy_s();
    let held_s = |group: &Group| -> f64 {
        group.threads.iter().map(|(_, it)| it.held_s - it.startup_held_s).sum()
    };
    let all = groups(&scene.gil.threads).into_iter();
    let busiest = all
        .filter(|group| group.threads.len() >= MANY)
        .max_by(|a, b| held_s(a).total_cmp(&held_s(b)))?;
    let held_share = (held_s(&busiest) / busy_s).min(1.0);
    if held_share < FULL {
        return None;
    }
    let places: Vec<usize> = busiest.threads.iter().map(|(place, _)| *place).collect();
    let tids = scene.tids(&places);
    let baseline = ward.baseline.as_ref().ok()?;
    let (enough, first) = enough(baseline, &tids)?;
    let without = |baseline: &Baseline| Rules {
        without: baseline.sources(&tids[enough..]),
        ..baseline.as_recorded()
    };
    let rests_on = "it assumes that the remaining threads take over the work of the others";
    let (gain, confidence) = ward.predicted_after(Some(first), without, Some(rests_on));
    let name = &busiest.pattern;
    let mut evidence = ward.evidence();
    let share = "their share of the GIL";
    evidence.push(Evidence::made(share, held_share, Unit::Share));
    evidence.push(Evidence::made("threads", places.len() as f64, Unit::Count));
    let becomes = becomes(gain.as_ref());
    Some(Advice {
        kind: Kind::FewerThreads,
        cause: None,
        text: format!(
            "together, {} {name} hold the GIL for {} of the time; {enough} would do the same \
             work{}{becomes}",
            words::count(places.len() as u64, "thread"),
            words::percent(held_share),
            scene.of_which(ward.report),
        ),
        subject: scene.subject(&places),
        action: Action::code(format!(
            "ThreadPoolExecutor(max_workers={enough})  # or: ungil.fanout.fanout(function, items, \
             limit={enough})"
        )),
        gain,
        confidence,
        evidence,
        same_as: None,
    })
}

/// How many of these threads hold the GIL for as long as all of them do, if fewer do, and what a
/// simulation of these says.
fn enough(baseline: &Baseline, tids: &[u32]) -> Option<(usize, Prediction)> {
    let all = Baseline::held_share(baseline.figures(), tids);
    let does_as_much = |count: usize| {
        let without = baseline.sources(&tids[count..]);
        let rules = Rules { without, ..baseline.as_recorded() };
        let told = baseline.try_out(&rules).ok();
        told.filter(|told| Baseline::held_share(&told.figures, tids) >= SAME * all)
    };
    // The more threads, the more they hold.
    let (mut few, mut many, mut found) = (0, tids.len(), None);
    while many - few > 1 {
        let middle = usize::midpoint(few, many);
        match does_as_much(middle) {
            Some(told) => (many, found) = (middle, Some((middle, told))),
            None => few = middle,
        }
    }
    found
}
