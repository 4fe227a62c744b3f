//! What is worth telling about a finished report: pure functions over the numbers of one GIL.
//!
//! A program in which nobody waits long gets [`Evidence::None`](crate::report::Evidence::None),
//! however busy it is: every finding is about wait time, and must have cost a relevant part of the
//! run.

pub mod words;
mod place;
mod repeats;
mod whose;
mod scene;
mod advice;
mod convoy;
mod descheduled;
mod hog;
mod late_wakeups;
mod native_hold;
mod parked;
mod switched_on;
mod unfair;
mod nothing;

/// The finding about processes in which nothing else was found.
pub(super) use nothing::find as nothing;
/// Whether a finding says so.
/// Whether the GIL is the limit, whatever these findings say of it.
pub(super) use nothing::{Limit, limit_besides};
/// Lets findings say which one before them tells the same of another process.
pub(super) use repeats::mark as mark_repeats;
pub(super) use scene::{RELEVANT_SHARE, WINDOW_S};
pub(super) use switched_on::find as switched_on;
/// Lets findings say which process and which GIL they are about, if there are several.
pub(super) use whose::say as say_whose;

use crate::report::{Evidence, Finding, ProcessReport};
use scene::{MOST_PART, Scene, recorded};

/// What is wrong in these processes, those findings that explain most wait time first.
pub(super) fn find(processes: &[ProcessReport]) -> Vec<Finding> {
    let scenes = recorded(processes)
        .flat_map(|process| process.gils.iter().map(move |gil| Scene { process, gil }));
    let mut findings: Vec<Finding> = scenes.flat_map(find_in).collect();
    findings.extend(processes.iter().flat_map(parked::find));
    sort(&mut findings);
    findings
}

/// Those first that explain most wait time. On a busy machine the kernel now and then leaves any
/// holder: where that is not most of what threads waited, the program is what to look at first.
pub(super) fn sort(findings: &mut [Finding]) {
    let is_aside = |finding: &Finding| match finding.evidence {
        Evidence::Descheduled { waited_s, .. } => finding.cost_s < MOST_PART * waited_s,
        _ => false,
    };
    let order = |a: &Finding, b: &Finding| {
        is_aside(a).cmp(&is_aside(b)).then(b.cost_s.total_cmp(&a.cost_s))
    };
    findings.sort_by(order);
}

fn find_in(scene: Scene) -> Vec<Finding> {
    let mut findings = native_hold::find(scene);
    findings.extend(late_wakeups::find(scene));
    let told_s: f64 = findings.iter().map(|finding| finding.cost_s).sum();
    findings.extend(convoy::find(scene, told_s));
    findings.extend(unfair::find(scene));
    let hog = hog::find(scene, &findings);
    findings.extend(hog);
    findings.extend(descheduled::find(scene));
    findings
}
