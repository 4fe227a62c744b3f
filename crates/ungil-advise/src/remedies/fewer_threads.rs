//! Fewer threads, where some of a group do all the work that the GIL lets the group do.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Evidence, Kind, Unit};
use crate::groups::{Group, groups};
use crate::pools;
use crate::predicted::Baseline;
use ungil_simulate::{Prediction, Rules};
use ungil_trace::analysis::words;
use ungil_trace::report::ThreadReport;

/// A group of fewer threads than this has none to spare.
const MANY: usize = 3;
/// A group that holds less of the GIL than this (of 1) is not what fills it.
const FULL: f64 = 0.5;
/// Fewer threads do the same work if they hold this part (of 1) of what all of them did.
const SAME: f64 = 0.95;
/// A thread that holds less than this part (of 1) of what the busiest of its group does is none of
/// those that share its work: helpers may be called alike.
const SHARES: f64 = 0.05;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    // All of a batch is done no sooner by fewer threads.
    if ward.is_of_duration() {
        return None;
    }
    let busy_s = scene.busy_s();
    let held_s = |group: &Group| group.threads.iter().map(|(_, it)| held_s(it)).sum::<f64>();
    let all = groups(&scene.gil.threads).into_iter().map(that_work);
    let busiest = all
        .filter(|group| group.threads.len() >= MANY)
        .max_by(|a, b| held_s(a).total_cmp(&held_s(b)))?;
    let held_share = (held_s(&busiest) / busy_s).min(1.0);
    if held_share < FULL {
        return None;
    }
    let places: Vec<usize> = busiest.threads.iter().map(|(place, _)| *place).collect();
    let threads: Vec<_> = busiest.threads.iter().map(|(_, thread)| *thread).collect();
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
        action: Action::code(pools::fewer_threads(
            &threads,
            enough,
            scene.argv,
            &scene.gil.threads,
        )),
        gain,
        confidence,
        evidence,
        same_as: None,
    })
}

/// How long a thread held the GIL once the program had several threads.
fn held_s(thread: &ThreadReport) -> f64 {
    thread.held_s - thread.startup_held_s
}

/// A group without those of its threads that hold next to nothing.
fn that_work(mut group: Group<'_>) -> Group<'_> {
    let most_s = group.threads.iter().map(|(_, it)| held_s(it)).fold(0.0, f64::max);
    group.threads.retain(|(_, thread)| held_s(thread) >= SHARES * most_s);
    group
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
