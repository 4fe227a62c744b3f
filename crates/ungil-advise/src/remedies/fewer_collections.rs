//! Less work for the garbage collector, which keeps the GIL until it has looked at all objects.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Kind};
use ungil_trace::analysis::words;
use ungil_trace::report::{Evidence as Found, Finding};

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    // It may be costlier that threads also wait for other work of the same one.
    let mut findings = ward.report.findings.iter();
    let finding = findings.find(|it| scene.is_of(it) && is_about_collections(it))?;
    let Found::NativeHold { user_frame, frame, unanswered_s, holds, .. } = &finding.evidence else {
        return None;
    };
    let place = |tid: &u32| scene.gil.threads.iter().position(|it| it.tid == *tid);
    let culprits: Vec<usize> = finding.threads.iter().filter_map(place).collect();
    let kept = scene.kept_share(&culprits, *unanswered_s);
    let tids = scene.tids(&culprits);
    let rests_on = "it assumes that collections then cost next to nothing";
    let (gain, confidence) = ward.predicted_with_less_work(&tids, kept, rests_on);
    let becomes = becomes(gain.as_ref());
    let mut subject = scene.subject(&culprits);
    subject.function = user_frame.clone().or_else(|| frame.clone());
    Some(Advice {
        kind: Kind::FewerCollections,
        cause: None,
        text: format!(
            "let the garbage collector look at less, and less often: it kept the GIL for {} in \
             {}{}{becomes}",
            words::length(*unanswered_s),
            words::count(*holds, "collection"),
            scene.of_which(ward.report),
        ),
        subject,
        action: Action::code(
            "import gc\n\
             gc.collect(); gc.freeze()  # once all is loaded: collections leave out what is there\n\
             gc.set_threshold(50_000, 20, 50)  # and collect less often; call gc.collect() less \
             often, too",
        ),
        gain,
        confidence,
        evidence: ward.evidence(),
        same_as: None,
    })
}

/// Whether it is the garbage collector for which threads wait. Another process has other objects,
/// and a free-threaded build stops all threads for it.
pub(super) fn is_about_collections(finding: &Finding) -> bool {
    match &finding.evidence {
        Found::NativeHold { native: Some(native), .. } => native.is_collection(),
        _ => false,
    }
}
