//! Less work for the garbage collector, which keeps the GIL until it has looked at all objects.

use super::{Ward, becomes};
use crate::advice::{Action, Advice, Kind};
use ungil_simulate::{Change, Rules};
use ungil_trace::analysis::words;
use ungil_trace::report::Evidence as Found;

pub(super) fn find(ward: &Ward) -> Option<Advice> {
    let scene = &ward.scene;
    if !ward.is_about_collections() {
        return None;
    }
    let Found::NativeHold { user_frame, frame, unanswered_s, holds, .. } =
        &scene.finding.1.evidence
    else {
        return None;
    };
    let &culprit = scene.culprits.first()?;
    let kept = (unanswered_s / scene.thread(culprit).held_s.max(1e-9)).min(1.0);
    let tids = scene.tids(&scene.culprits);
    let rests_on = "it assumes that collections then cost next to nothing";
    let (gain, confidence) = ward.predicted(
        |baseline| {
            let sources = baseline.sources(&tids).into_iter();
            let changes = sources.map(|source| (source, Change::Work(1.0 - kept))).collect();
            Rules { changes, ..baseline.as_recorded() }
        },
        Some(rests_on),
    );
    let becomes = becomes(gain.as_ref());
    let mut subject = scene.subject(&scene.culprits);
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

impl Ward<'_> {
    /// Whether it is the garbage collector for which threads wait. Another process has other
    /// objects, and a free-threaded build stops all threads for it.
    pub(super) fn is_about_collections(&self) -> bool {
        match &self.scene.finding.1.evidence {
            Found::NativeHold { native: Some(native), .. } => native.is_collection(),
            _ => false,
        }
    }
}
